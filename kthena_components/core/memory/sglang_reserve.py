"""What SGLang leaves free on a GPU for activations and CUDA graphs. Sizes in MiB, as SGLang's.

Sources: sglang/srt/arg_groups/memory_hook.py handle_gpu_memory_settings and reserve_for_graph_mb;
sglang/srt/model_executor for what is measured before the weights are loaded.
"""

from collections.abc import Sequence

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
