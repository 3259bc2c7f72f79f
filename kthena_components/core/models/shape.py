"""The sizes of a model that its parallelism must fit."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """One model's sizes. None means that a size is not given, unless stated otherwise."""

    name: str
    """Hugging Face id, such as `Qwen/Qwen3-32B`, or the source of the shape."""
    heads: int
    """Attention heads."""
    kv_heads: int | None
    """KV heads. None: not checked, as in latent attention, where every rank has the whole cache."""
    layers: int
    """Hidden layers."""
    hidden: int | None = None
    """Hidden size."""
    ffn: int | None = None
    """Inner width of the dense feed-forward layers. None: not given, or no layer is dense."""
    experts: int | None = None
    """Routed experts of a layer; 0 in a dense model."""
    expert_ffn: int | None = None
    """Inner width of one expert."""
    fp8_block: int | None = None
    """Edge of the square blocks that share an FP8 scale. None: weights are not in such blocks."""
    group: int | None = None
    """Inputs that share a scale in weights of AWQ or GPTQ. None: not such weights, or not given."""
    vocab: int | None = None
    """Vocabulary size."""
    head_dim: int | None = None
    """Width of one head."""
    latent: int | None = None
    """Numbers that a layer of latent attention stores per token: kv_lora_rank + qk_rope_head_dim.
    None: another attention."""
    full_cache: bool = True
    """Whether every layer stores every token. False if some layers have a sliding window or a state
    of fixed size.
    """
    dense_layers: int = 0
    """Layers without experts in a model with experts."""
    draft_layers: int = 0
    """Additional layers that only draft tokens; the size of the weights includes them."""
    context: int | None = None
    """Maximum tokens per request that the model supports."""
    dtype: str | None = None
    """Format of most weights: bf16, fp8, mxfp8, int8, nvfp4, mxfp4 or int4. None: not given."""
    weights_gib: float | None = None
    """GiB of all weights on GPUs."""
    files_gib: float | None = None
    """GiB of the repository's weight files, if different."""
    gated: bool = False
    """Whether the Hugging Face repository is gated."""
    source: str
    """Source of the shape."""
    weights_source: str | None = None
    """Source of the size of the weights."""
