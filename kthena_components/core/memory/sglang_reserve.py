"""What SGLang leaves free on a GPU for activations and CUDA graphs. Sizes in MiB, as SGLang's.

Sources: sglang/srt/arg_groups/memory_hook.py handle_gpu_memory_settings, reserve_for_graph_mb and
adjust_mem_fraction_for_vlm, and attention_hook.py, or server_args.py before them;
sglang/srt/model_executor for what is measured before the weights are loaded.
"""

from collections.abc import Sequence

from kthena_components.core.models import ModelShape
from kthena_components.core.values.images import Version

_CLASSES: Sequence[tuple[float, int, int, int]] = (
    (20, 2048, 8, 8),
    (35, 4096, 48, 160),
    (60, 4096, 32, 160),
    (160, 8192, 256, 512),
    (float("inf"), 16384, 512, 512),
)
"""Up to how many GiB of memory; tokens of a chunk, and the largest batch of the graphs, with less
than four ranks and with more."""
_MANY = 4
_META, _OF_TOKEN, _OF_BATCH, _OF_EIGHT = 512, 1.5, 2, 1024
_LARGE, _LEAST = 60, 10 * 1024
_GRAPHS_OF_CHUNKS = 8
"""MiB of each graph of a chunk."""
_CONTEXT, _LINKED = 0.6, 2.0
"""GiB that CUDA and NCCL have taken before the weights: one rank, and ranks over NVLink."""
_BY_SIZE_SINCE, _FLAT = (0, 4, 9, 2), 0.9
"""The first release that looks at the encoder's size, and the factor for any encoder before."""
_VISION, _SENSITIVITY, _FACTORS = 0.95, 0.1, (0.8, 1.05)
"""Factor for an encoder of the usual size, the loss for each such size more, and its limits."""
_USUAL_LAYERS, _USUAL_HIDDEN = 24, 1024
_AITER, _AITER_FROM, _AITER_HEADS = 0.85, 8192, (16, 128)
"""Factor with the attention of AITER if requests may be longer than this, and how many heads of
latent attention a rank needs for it."""


def default_share(memory_gib: float, ranks: int, *, chunk: int | None, graphs: bool) -> float:
    """Return the share of a GPU for weights and KV cache that SGLang chooses.

    Args:
        memory_gib: Memory of one GPU.
        ranks: Tensor × pipeline ranks.
        chunk: Tokens of a chunk, if stated.
        graphs: Whether CUDA graphs are captured.
    """
    tokens, few, many = next(row[1:] for row in _CLASSES if memory_gib < row[0])
    tokens = max(chunk or tokens, 2048)
    reserve = _META + tokens * _OF_TOKEN + ranks / 8 * _OF_EIGHT
    if graphs:
        reserve += (few if ranks < _MANY else many) * _OF_BATCH + _chunk_sizes(tokens)
    if memory_gib > _LARGE:
        reserve = max(reserve, _LEAST)
    return round(1 - reserve / 1024 / memory_gib, 3)


def _chunk_sizes(tokens: int) -> int:
    """Return the MiB of the graphs for chunks: about one for each 128 tokens."""
    return tokens // 128 * _GRAPHS_OF_CHUNKS


def taken_before(ranks: int, *, linked: bool) -> float:
    """Return the GiB of a GPU that are in use before the weights are loaded."""
    return _LINKED if ranks > 1 and linked else _CONTEXT


def vision_factor(shape: ModelShape, release: Version | None) -> float:
    """Return the factor by which the default share is lowered for the model's vision encoder.

    SGLang reads `num_hidden_layers` only, and takes 24 where a config calls the layers `depth`.
    """
    if shape.vision_hidden is None:
        return 1.0
    if release is not None and release < _BY_SIZE_SINCE:
        return _FLAT
    size = (shape.vision_layers or _USUAL_LAYERS) * shape.vision_hidden**2
    more = size / (_USUAL_LAYERS * _USUAL_HIDDEN**2) - 1
    least, most = _FACTORS
    return _VISION * max(least, min(most, 1 - _SENSITIVITY * more))


def aiter_factor(shape: ModelShape, ranks: int, length: int | None, backend: object) -> float:
    """Return the factor by which a share is lowered on a GPU of AMD, even if it is stated.

    Args:
        shape: The model.
        ranks: Ranks that share the attention heads.
        length: Tokens of the longest request. None: not known, and taken as a short one.
        backend: The attention backend that is stated; None for SGLang's choice.
    """
    by_default = shape.latent is None or shape.heads // ranks in _AITER_HEADS
    uses = by_default if backend is None else backend == "aiter"
    return _AITER if uses and (length or 0) > _AITER_FROM else 1.0
