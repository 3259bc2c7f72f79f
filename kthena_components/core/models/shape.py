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
    source: str
    """Where the numbers are from."""
