"""What the allocator of vLLM's sleep mode gives back while PyTorch still counts it. Sizes in GiB.

Weights are loaded in a pool of its own. At the end, use_memory_pool in vllm/device_allocator/
cumem.py unmaps each segment in which nothing is left, but memory_reserved of PyTorch still counts
it. Before 0.27 memory_profiling subtracts memory_reserved from what the GPU states as used, so the
cache is larger by these segments (vllm/utils/mem_utils.py of 0.18.0 to 0.26.0; vllm#37111). They
are counted here by the rules of PyTorch's allocator (get_free_block, should_split and
get_allocation_size in c10/cuda/CUDACachingAllocator.cpp), in the order of vLLM's allocations.
"""

import dataclasses
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from kthena_components.core.engines import CommandFacts
from kthena_components.core.memory.sharding import VLLM
from kthena_components.core.memory.sizes import GIB, Split
from kthena_components.core.models import ModelShape
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.images import Version

SLEEPS = "--enable-sleep-mode"
_MIB = 2**20
_SMALL, _SEGMENT, _LARGE, _ROUND = _MIB, 20 * _MIB, 10 * _MIB, 2 * _MIB
"""Bytes up to which an allocation is in another list, whose segments are small; of a segment for
less than the next number; and by which larger ones are rounded."""
_UNBOUNDED = 2**62
_POOLED = (((0, 11), (0, 14)), ((0, 17), (0, 27)))
"""Releases that load weights in the pool, unmap what is free in it and measure memory_reserved.
0.10.1 unmaps nothing. 0.14.1, 0.15.1 and 0.16.0 do not enter the pool (load_model in vllm/v1/
worker/gpu_worker.py: `with A and B`, vllm#32947), 0.17.1 does. 0.27.0 measures what is free."""
_UNUSED = (_POOLED[0][1], _POOLED[1][0])
_WHOLE_SINCE, _CONVERTED_SINCE = (0, 21), (0, 19)
"""The first release that splits no block of 20 MiB and more while it loads (_scoped_allocator_
max_split in gpu_worker.py of 0.21.0, not of 0.20.2), and the first that converts AWQ before it
packs it again (0.19.1, not 0.18.0), and allocates a head of Gemma 3."""
_HEAD, _GROUP = 128, 128
"""Width of a head, and weights with a scale, where the table of models has none."""
_BYTES = {"bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int4": 0.5}
"""Bytes of a weight, of the formats whose layers are modelled."""
_WORD = 4


def unmapped(
    command: CommandFacts, shape: ModelShape, split: Split, release: Version | None
) -> float:
    """Return GiB that vLLM gives back and still counts; 0 without sleep mode, or if not known."""
    sleeps = command.options.get(SLEEPS) is True and command.engine in VLLM
    if not sleeps or release is None or not counts_unmapped(release):
        return 0.0
    stated = str(command.options.get("--quantization", ""))
    names = f"{command.model} {shape.name} {stated}".lower()
    awq = "awq" in names
    newer = release >= _CONVERTED_SINCE
    tied = bool(shape.full_head_dim or (shape.vision_asked and newer))
    how = _Loading(
        whole=release >= _WHOLE_SINCE, tied=tied, converts=awq and newer,
        copies=not awq and "gptq" not in names,
    )  # fmt: skip
    return _unmapped(shape, split.tensor, split.pipeline, how)


def repacked_weights(
    options: Mapping[str, Any], shape: ModelShape, gib: float, release: Version | None
) -> float:
    """Return GiB of weights in sleep mode, at most, while they are packed again; 0 if they are not.

    Its allocator gives back what is freed once all weights are packed. Experts in MXFP4 get other
    sizes then, and may not fit into the gaps (vllm#34877).
    """
    first, end = _UNUSED
    enters = release is None or not first <= release < end
    sleeps = options.get(SLEEPS) is True and enters
    return 2 * gib if sleeps and shape.dtype == "mxfp4" else 0.0


def counts_unmapped(release: Version) -> bool:
    """Return whether a release of vLLM takes what its pool has given back for more room."""
    return any(since <= release < until for since, until in _POOLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loading:
    """How a release loads a model."""

    whole: bool
    """Whether it splits no large block."""
    converts: bool
    """Whether it converts AWQ."""
    copies: bool
    """Whether it copies weights in another order before it packs them again."""
    tied: bool
    """Whether the model has a head that gives way to its embeddings."""


@lru_cache(maxsize=16)
def _unmapped(shape: ModelShape, ranks: int, stages: int, how: _Loading) -> float:
    if not _is_modelled(shape) or stages > 1:
        return 0.0
    pool = Pool(_SEGMENT if how.whole else _UNBOUNDED)
    linear = _load(pool, shape, ranks, tied=how.tied)
    if shape.dtype == "int4":
        for rows, columns, blocks in linear:
            _repack(pool, rows * columns, shape.group or _GROUP, blocks, how)
    return pool.unused / GIB


def _is_modelled(shape: ModelShape) -> bool:
    dense = shape.experts == 0 and shape.latent is None and not shape.state_layers
    sizes = shape.hidden and shape.ffn and shape.vocab and shape.heads and shape.kv_heads
    images = shape.image_patches is not None and not shape.vision_asked and not shape.full_head_dim
    return bool(dense and sizes) and not images and shape.dtype in _BYTES


@dataclasses.dataclass(slots=True)
class _Block:
    """A part of a segment, beside its neighbours."""

    size: int
    segment: int
    free: bool = False
    before: "_Block | None" = None
    after: "_Block | None" = None


class Pool:
    """PyTorch's pool of large blocks: the smallest free one that fits, split if it may be."""

    def __init__(self, whole: int) -> None:
        """Create an empty pool.

        Args:
            whole: Bytes from which a block is not split (max_split_size_mb).
        """
        self._whole = whole
        self._free: list[_Block] = []
        self._segments: list[int] = []

    @property
    def unused(self) -> int:
        """Bytes of the segments in which nothing is left."""
        return sum(block.size for block in self._free if not block.before and not block.after)

    def take(self, size: int) -> _Block | None:
        """Allocate; None if it is so small that it is in another list."""
        if size <= _SMALL:
            return None
        size = -(-size // 512) * 512
        found = min(filter(lambda block: self._fits(block, size), self._free),
                    key=lambda block: (block.size, block.segment), default=None)  # fmt: skip
        if found is None:
            rounded = _SEGMENT if size < _LARGE else -(-size // _ROUND) * _ROUND
            found = _Block(rounded, len(self._segments))
            self._segments.append(rounded)
        else:
            self._free.remove(found)
        found.free = False
        if size < self._whole and found.size - size > _SMALL:
            self._split(found, size)
        return found

    def give(self, *blocks: _Block | None) -> None:
        """Free blocks, and join each with its free neighbours."""
        for block in blocks:
            if block is None:
                continue
            block.free = True
            for other in (block.before, block.after):
                if other is not None and other.free:
                    self._free.remove(other)
                    self._join(block, other)
            self._free.append(block)

    def _fits(self, block: _Block, size: int) -> bool:
        if size < self._whole:
            return size <= block.size < self._whole
        return size <= block.size < size + _SEGMENT

    def _split(self, block: _Block, size: int) -> None:
        rest = _Block(block.size - size, block.segment, free=True, before=block, after=block.after)
        if block.after is not None:
            block.after.before = rest
        block.size, block.after = size, rest
        self._free.append(rest)

    def _join(self, block: _Block, other: _Block) -> None:
        block.size += other.size
        if other is block.before:
            block.before = other.before
            if other.before is not None:
                other.before.after = block
        else:
            block.after = other.after
            if other.after is not None:
                other.after.before = block


_Blocks = tuple[_Block | None, ...]
_Linear = tuple[int, int, _Blocks]
"""Inputs and outputs of a linear layer, and blocks of its weights, zeros and scales."""


def _load(pool: Pool, shape: ModelShape, ranks: int, *, tied: bool) -> list[_Linear]:
    """Allocate a model as it is built, and return its linear layers.

    Tables of rotations are made with the first layer of each kind. The head of Gemma 3 and 4 is
    allocated before it is tied: gemma3.py of 0.19.1 (not of 0.13.0), gemma4.py of 0.26.0.
    """
    words, linear = (shape.vocab or 0) // ranks * (shape.hidden or 0) * 2, []
    pool.take(words)
    every = shape.layers // shape.full_layers if shape.full_head_dim and shape.full_layers else 0
    seen: set[int] = set()
    for layer in range(shape.layers):
        full = every > 0 and layer % every == every - 1
        width = (shape.full_head_dim if full else shape.head_dim) or _HEAD
        for number, (rows, columns) in enumerate(_sizes(shape, ranks, width, full=full)):
            linear.append((rows, columns, _weights(pool, shape, rows * columns)))
            if number == 1 and width not in seen:
                seen.add(width)
                _rotations(pool, shape, width)
    head = pool.take(words)
    if tied:
        pool.give(head)
    return linear


def _sizes(shape: ModelShape, ranks: int, width: int, *, full: bool) -> tuple[tuple[int, int], ...]:
    """Return inputs and outputs of a layer's parts on one rank."""
    hidden, inner = shape.hidden or 0, (shape.ffn or 0) // ranks
    heads = (shape.full_kv_heads if full else None) or shape.kv_heads or 0
    queries = shape.heads * width // ranks
    joined = queries + 2 * max(heads // ranks, 1) * width
    return (hidden, joined), (queries, hidden), (hidden, 2 * inner), (inner, hidden)


def _weights(pool: Pool, shape: ModelShape, numbers: int) -> _Blocks:
    weights = pool.take(int(numbers * _BYTES[shape.dtype or ""]))
    if shape.dtype != "int4":
        return (weights,)
    groups = numbers // (shape.group or _GROUP)
    return weights, pool.take(groups // 2), pool.take(groups * 2)


def _rotations(pool: Pool, shape: ModelShape, width: int) -> None:
    """Allocate a table of rotations, and free what it is calculated from, in floats.

    _compute_cos_sin_cache in vllm/model_executor/layers/rotary_embedding/base.py.
    """
    positions = shape.context or 0 if shape.rotates else 0
    half = positions * width // 2 * _WORD
    first = [pool.take(size) for size in (positions * _WORD, half, half, half)]
    joined = pool.take(2 * half)
    pool.give(*first)
    pool.take(half)
    pool.give(joined)


def _repack(pool: Pool, numbers: int, group: int, blocks: _Blocks, how: _Loading) -> None:
    """Pack a layer's integers of four bits for Marlin, and move its scales.

    process_weights_after_loading in vllm/model_executor/kernels/linear/mixed_precision/marlin.py
    copies the integers of other checkpoints than AWQ and GPTQ first, as their order differs.
    """
    weights, _, scales = blocks
    copy = pool.take(numbers // 2) if how.copies else None
    if how.converts:
        weights = _converted(pool, numbers, weights)
    pool.take(numbers // 2)
    pool.give(weights, copy)
    pool.take(numbers // group * 2)
    pool.give(scales)


def _converted(pool: Pool, numbers: int, packed: _Block | None) -> _Block | None:
    """Unpack integers (shifted, masked, in another order), shift them again, and add them up.

    _convert_awq_to_standard_format in vllm/model_executor/layers/quantization/awq_marlin.py.
    """
    size = numbers * _WORD
    shifted = pool.take(size)
    masked = pool.take(size)
    pool.give(shifted)
    ordered = pool.take(size)
    pool.give(masked)
    again = pool.take(size)
    done = pool.take(numbers // 2)
    pool.give(again, ordered, packed)
    return done
