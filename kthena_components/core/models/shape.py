"""The numbers of a model that its parallelism must fit."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """One model's sizes. None stands for a size that is not given, unless it says otherwise."""

    name: str
    """Hugging Face id, `Qwen/Qwen3-32B`, or what the shape was read from."""
    heads: int
    """Attention heads."""
    kv_heads: int | None
    """Heads of keys and values. None: nothing to judge, as in latent attention, whose cache every
    rank holds whole."""
    layers: int
    """Hidden layers."""
    hidden: int | None = None
    """Width of a token's state."""
    ffn: int | None = None
    """Inner width of the dense feed-forward layers. None: not given, or no layer is dense."""
    experts: int | None = None
    """Routed experts of a layer; 0 in a dense model."""
    expert_ffn: int | None = None
    """Inner width of one expert."""
    fp8_block: int | None = None
    """Edge of the square blocks that share an FP8 scale. None: weights are not in such blocks."""
    vocab: int | None = None
    """Tokens of the vocabulary."""
    head_dim: int | None = None
    """Width of one head."""
    latent: int | None = None
    """Numbers that a layer of latent attention keeps of a token: kv_lora_rank +
    qk_rope_head_dim. None: its attention is another one."""
    full_cache: bool = True
    """Whether every layer keeps every token. False where some layers look back over a window, or
    keep a state of fixed size."""
    dense_layers: int = 0
    """Layers without experts in a model with experts."""
    draft_layers: int = 0
    """Layers beside `layers` that only draft tokens; the size of the weights counts them."""
    context: int | None = None
    """Tokens of the longest request that the model was made for."""
    dtype: str | None = None
    """Form of most weights: bf16, fp8, mxfp8, int8, nvfp4, mxfp4 or int4. None: not given."""
    weights_gib: float | None = None
    """GiB that the weights take on GPUs, all of them together."""
    files_gib: float | None = None
    """GiB of the repository's weight files, where that is another number."""
    gated: bool = False
    """Whether Hugging Face gives the weights only to a token that was let in."""
    source: str
    """Where the shape is from."""
    weights_source: str | None = None
    """Where the size of the weights is from."""
