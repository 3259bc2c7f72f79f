"""How much KV cache an engine has, and whether one request of maximum length fits. Sizes in GiB.

`estimate_of` adds up what an engine uses on its fullest GPU. docs/memory.md has the model and its
error on published start-ups, from which the band comes.
"""

import math
from dataclasses import replace
from enum import StrEnum

from kthena_components.core.memory import cache_per_token_on_gpu, cache_type
from kthena_components.core.memory.engine import EngineOnGpu
from kthena_components.core.memory.largest_batch import ENGINE_V1, UNIFIED, batch_of
from kthena_components.core.memory.sharding import VLLM
from kthena_components.core.memory.share import HOST
from kthena_components.core.memory.sizes import GIB, expert_weights
from kthena_components.core.memory.sleep_mode import SLEEPS, counts_unmapped
from kthena_components.core.memory.sparse_attention import (
    BLOCK,
    Request,
    index_cache_on_gpu,
    request_cache,
)
from kthena_components.core.memory.start_up import OF_CONTEXT, Terms, asked_later, counts_no_graphs
from kthena_components.core.memory.states_and_drafts import has_drafts
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.unknown import MaybeInt, Unknown

_BAND, _BAND_SHARE, _WIDEST = 0.5, 0.02, 2.5
"""Error of the estimate: a base and a share of the GPU's memory, at most the widest."""
_UNIFIED = 0.05
"""What other processes and the page cache change of the memory that vLLM finds free, where GPU and
host share one: 5.1 GiB of 120 at most in its start-ups."""
_FREE_SINCE, _CUDA = (0, 9, 2), "NVIDIA"
"""The first release that was read which compares its share with what is free (request_memory in
vllm/v1/worker/utils.py, not in 0.9.0.1)."""
_STATES_SINCE, _STATES_BLOCK, _UNEVEN = (0, 20), 16, 1.5
"""The first release that refuses more sequences than it has blocks of states (vllm#38270, not in
0.19.1), tokens of which a block of attention is a multiple, and how many times as many layers one
kind has if groups are as large as the other kind: resolve_cudagraph_mode_and_sizes in vllm/config/
compilation.py, _get_kv_cache_groups_uniform_page_size in vllm/v1/core/kv_cache_utils.py,
update_block_size_for_backend in vllm/platforms/interface.py."""
SEQUENCES, _FEWER = "--max-num-seqs", (512, 256, 128, 64, 32, 16, 8, 4, 2, 1)
"""The option for the sequences that run at once, and what a remedy may set it to."""
_FP4 = ("mxfp4", "nvfp4")
_REPACKED = 0.4
"""Share of weights by which they grow at most where SGLang packs them again in a way that is not
modelled: FP4 on Hopper (a quarter in SemiAnalysisAI/InferenceX#2128), and experts with AITER. Those
in 4-bit integers run in a kernel of Triton: CompressedTensorsWNA16TritonMoE."""
_ROCM_EXPERTS = 0.05
"""The same in vLLM with experts on ROCm: 3.5 GiB of 77 at most in its start-ups."""
_COMPRESSED, _COMPRESSED_TYPES = 0.04, ("auto", "fp8", "fp8_ds_mla")
"""The same with graphs of compressed attention, which are not modelled: 8.2 GiB of 140 at most in
its start-ups; and the types of its cache whose bytes are known."""
_OLDER = 0.02
"""The same in V0, whose run depends on lengths and samplers in ways that no term has: four of its
sixteen start-ups are off by 1.7 to 3.9 GiB, h55 by more."""
_AUTO = 16
"""Tokens of one block: the minimum of an engine that chooses its own length."""
BATCH, _BATCHES = "--max-num-batched-tokens", (8192, 4096, 2048, 1024)
"""The option for the tokens of a batch, and what a remedy may set it to."""
_ALL_STAGES = ((0, 14, 0), (0, 17, 0))
"""Releases of vLLM, the last one excluded, that compare the cache of one stage with what a request
needs in all stages: get_kv_cache_configs in vllm/v1/core/kv_cache_utils.py of 0.14.0 to 0.16.0, not
of 0.13.0 and 0.17.0; vllm#34076."""


class Verdict(StrEnum):
    """Whether an engine starts with the memory of its GPUs."""

    FITS = "fits"
    TIGHT = "tight"
    SHORTER = "starts, with shorter requests"
    MAY_SHORTEN = "starts, perhaps with shorter requests"
    TOO_SMALL = "does not fit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The memory of the fullest GPU of an engine."""

    usable: float
    """Memory of the GPU as the engine sees it."""
    budget: float
    """Memory that the engine may use: of the whole GPU, or for weights and cache alone."""
    weights: float
    """Weights as they are loaded."""
    overhead: float
    """What the budget has to hold besides weights and cache."""
    terms: Terms | None
    """The parts of the overhead. None: it is a general estimate."""
    cache: float
    """Memory that is left for the KV cache, or stated for it; below 0 if there is none."""
    length: int
    """Tokens of the longest request."""
    token_bytes: int
    """Bytes of a token. 0: not known."""
    request_bytes: int
    """Bytes of a request beside those of its tokens: windows and states of compressed attention."""
    band: float
    """Half the width of the range in which the cache lies."""
    doubt: float
    """Memory that the cache may have beyond that: terms of vLLM that may be nothing, and what a
    share of SGLang's choice may leave out."""
    free: float | None
    """Memory that is free on an idle GPU when the engine starts. None: it does not ask for more."""
    later: float
    """Memory that vLLM asks for at most after it has sized the cache, outside of its budget."""
    loading: float
    """Weights of a GPU while they are quantised or packed, in both formats; 0 if they are not."""
    sequences: int
    """Requests that run at once."""
    state_gib: float
    """Cache of one block of states, of which each of them needs one. 0: there are none, or an
    engine with too few of them starts."""
    shortens: bool
    """Whether the engine starts when a request of maximum length needs more than its cache. SGLang
    does, and takes requests that its cache holds: max_req_len in sglang/srt/managers/tp_worker.py,
    0.1 to 0.5.23. It rejects longer ones, or cuts them with --allow-auto-truncate: validate_input_
    length in sglang/srt/managers/utils.py. vLLM raises: check_enough_kv_cache_memory."""

    @property
    def needed(self) -> float:
        """Cache of one request of maximum length. 0: not known."""
        return (self.length * self.token_bytes + self.request_bytes) / GIB

    @property
    def longest(self) -> int:
        """Tokens of the longest request that fits for certain."""
        sure = (self.cache - self.band) * GIB - self.request_bytes
        return int(sure / self.token_bytes) if self.token_bytes and sure > 0 else 0

    @property
    def holds_one(self) -> bool:
        """Whether the cache holds a request of maximum length for certain."""
        return self.cache - self.needed >= self.band

    @property
    def outside(self) -> float:
        """Memory of the GPU that the budget leaves."""
        return self.usable - self.budget

    @property
    def is_crowded(self) -> bool:
        """Whether that may be too little for what vLLM asks for after it has sized the cache."""
        return self.later > self.outside

    @property
    def is_full_while_loading(self) -> bool:
        """Whether an idle GPU may be too small for the weights while they are changed."""
        return self.loading > self.usable - OF_CONTEXT - self.band

    @property
    def states(self) -> int | None:
        """Requests whose states fit for certain. None: states do not limit them."""
        return int((self.cache - self.band) / self.state_gib) if self.state_gib else None

    @property
    def lacks_states(self) -> bool:
        """Whether more requests may run at once than the cache has blocks of states."""
        return self.states is not None and self.sequences > self.states

    @property
    def verdict(self) -> Verdict:
        """Compare the cache with a request: certain only beyond the band."""
        spare = self.cache - self.needed
        if self.holds_one:
            doubtful = self.free is not None or self.is_crowded or self.lacks_states
            return Verdict.TIGHT if doubtful or self.is_full_while_loading else Verdict.FITS
        if self.shortens:
            rejects, spare = spare < -self.band, self.cache
            if spare >= self.band:
                return Verdict.SHORTER if rejects else Verdict.MAY_SHORTEN
        return Verdict.TIGHT if spare > -self.band - self.doubt else Verdict.TOO_SMALL


def estimate_of(placed: EngineOnGpu) -> Estimate | Unknown:
    """Estimate the memory of an engine; Unknown if the length or the cache of a request is."""
    length, each, stated = longest_request(placed), _checked(placed), placed.command.kv_cache_bytes
    if isinstance(length, Unknown):
        return length
    if isinstance(each, Unknown):
        return each
    if isinstance(stated, Unknown):
        return stated
    left, terms = placed.left, placed.terms
    request = _compressed(placed, length) or Request(each, 0)
    return Estimate(
        usable=placed.usable,
        budget=placed.room,
        weights=placed.loaded,
        overhead=placed.overhead,
        terms=terms,
        cache=(stated or 0) / GIB if left is None else left,
        length=length,
        token_bytes=request.token_bytes,
        request_bytes=request.request_bytes,
        band=0.0 if left is None else _band(placed),
        doubt=(terms.doubt if terms else 0.0) + placed.most - placed.budget,
        free=_too_little_free(placed),
        later=0.0 if stated else _later(placed),
        loading=placed.loading,
        sequences=batch_of(placed.start)[0],
        state_gib=_state(placed, request.token_bytes),
        shortens=placed.command.engine == "sglang",
    )


def _too_little_free(placed: EngineOnGpu) -> float | None:
    """Return what is free on an idle GPU if vLLM asks for more: it does not start then."""
    version, gpu = placed.version, placed.gpu.name
    if placed.command.engine not in VLLM or not gpu.startswith(_CUDA):
        return None
    free = placed.usable - (HOST if UNIFIED in gpu else OF_CONTEXT)
    checked = version is None or version >= _FREE_SINCE
    return free if checked and placed.room > free else None


def _compressed(placed: EngineOnGpu, length: int) -> Request | None:
    """Return what a request of compressed attention needs; None of others, and if not modelled."""
    command, split, options = placed.command, placed.split, placed.command.options
    stated, block = command.kv_cache_dtype or "auto", options.get("--block-size", BLOCK)
    batch = options.get(BATCH)
    known = stated in _COMPRESSED_TYPES and block == BLOCK and (not batch or isinstance(batch, int))
    amd = placed.gpu.name.startswith("AMD")
    if command.engine not in VLLM or amd or split.pipeline * split.decode_context > 1 or not known:
        return None
    _, tokens = batch_of(placed.start)
    drafts = has_drafts(command)
    return request_cache(placed.shape, length, tokens, placed.version, drafts=drafts)


def _later(placed: EngineOnGpu) -> float:
    """Return what it asks for after its cache, with what graphs of compressed attention may take.

    As the band has them, if its model runner counts none.
    """
    if placed.command.engine not in VLLM:
        return 0.0
    graphs = _captures_compressed(placed) and counts_no_graphs(placed.start)
    asleep = placed.unmapped or (placed.loaded if sleep_mode_oversizes(placed) else 0.0)
    return asked_later(placed.start) + asleep + (_COMPRESSED * placed.usable if graphs else 0.0)


def sleep_mode_oversizes(placed: EngineOnGpu) -> bool:
    """Return whether vLLM may size the cache too large in sleep mode: core/memory/sleep_mode.py.

    Integers of four bits are packed again for Marlin. If their layers are not modelled, it is by
    all weights at most (vllm#40256).
    """
    release, options = placed.version, placed.command.options
    packs = options.get(SLEEPS) is True and placed.shape.dtype == "int4"
    counts = release is not None and counts_unmapped(release)
    return placed.unmapped > 0 or (packs and counts and placed.command.engine in VLLM)


def _captures_compressed(placed: EngineOnGpu) -> bool:
    return bool(placed.shape.quarter_layers) and not placed.start.eager


def _state(placed: EngineOnGpu, each: int) -> float:
    """Return the memory of one block of states, in as many layers as a group has; 0 if not known.

    A block of attention is as large: as many tokens as a layer's states need. Layers are in groups
    of the number of the rarer kind; the rest have feed-forward parts only. Where the number of
    layers with tokens is not known, a block has a page of each layer at most.
    """
    shape, start = placed.shape, placed.start
    full, states, size = shape.full_layers, shape.state_layers, shape.state_bytes
    refuses = placed.command.engine in VLLM and not start.eager and not start.before(_STATES_SINCE)
    if not (refuses and states and size):
        return 0.0
    whole = size / (states * placed.split.tensor)
    if full is None:
        return whole * shape.layers / GIB
    if not (full and each) or full + states > shape.layers:
        return 0.0
    unit = _STATES_BLOCK * each // full
    page = math.ceil(whole / unit) * unit
    few, many = sorted((full + shape.draft_layers, states))
    return page * (few if many >= _UNEVEN * few else many) / GIB


def smaller_share(placed: EngineOnGpu, estimate: Estimate) -> float | None:
    """Return the share that leaves what vLLM asks for later; None if too little then remains.

    Args:
        placed: The engine.
        estimate: Its estimate.
    """
    share = math.floor(100 * (1 - estimate.later / placed.usable)) / 100
    found = estimate_of(replace(placed, share=share)) if share > 0 else None
    fits = isinstance(found, Estimate) and found.verdict is Verdict.FITS
    return share if fits else None


def with_fewer_sequences(placed: EngineOnGpu) -> Estimate | None:
    """Estimate with the most sequences at once that fit; None if no number of them does.

    They decide how large the sampler is, how many graphs are captured, and how many blocks of
    states there have to be.
    """
    sequences, _ = batch_of(placed.start)
    for count in (size for size in _FEWER if size < sequences):
        options = {**placed.command.options, SEQUENCES: count}
        found = estimate_of(replace(placed, command=replace(placed.command, options=options)))
        if isinstance(found, Estimate) and not found.is_crowded and not found.lacks_states:
            return found
    return None


def smaller_batch(placed: EngineOnGpu) -> int | None:
    """Return the tokens of a batch with which a request of compressed attention fits for certain.

    Windows and states need cache for each token of a batch. None: with no batch.
    """
    sequences, tokens = batch_of(placed.start)
    for batch in (size for size in _BATCHES if sequences <= size < tokens):
        options = {**placed.command.options, BATCH: batch}
        smaller = replace(placed, command=replace(placed.command, options=options))
        estimate = estimate_of(smaller)
        if (
            isinstance(estimate, Estimate)
            and estimate.request_bytes
            and estimate.verdict is Verdict.FITS
        ):
            return batch
    return None


def _checked(placed: EngineOnGpu) -> MaybeInt:
    """Return the bytes of a token with which the engine compares its cache when it starts."""
    first, end = _ALL_STAGES
    release = placed.version if placed.command.engine == "vllm" else None
    if release is None or not first <= release < end or not placed.shape.full_cache:
        return bytes_per_token(placed)
    return bytes_per_token(replace(placed, split=replace(placed.split, pipeline=1)))


def _band(placed: EngineOnGpu) -> float:
    """Return by how much the estimate may be wrong."""
    band = min(_BAND + _BAND_SHARE * placed.usable, _WIDEST)
    share = _UNIFIED if UNIFIED in placed.gpu.name else 0.0
    if placed.command.engine in VLLM and _captures_compressed(placed):
        share = max(share, _COMPRESSED)
    if placed.command.engine in VLLM and placed.start.before(ENGINE_V1):
        share = max(share, _OLDER)
    return band + share * placed.usable + _repacked(placed) * placed.loaded


def _repacked(placed: EngineOnGpu) -> float:
    """Return the share of the weights by which they may grow."""
    gpu, shape, sglang = placed.gpu.name, placed.shape, placed.command.engine == "sglang"
    if gpu.startswith("AMD") and shape.experts != 0 and not (sglang and shape.dtype == "int4"):
        return _REPACKED if sglang else _ROCM_EXPERTS
    fp4 = shape.dtype in _FP4 or expert_weights(shape) > placed.gib
    return _REPACKED if sglang and gpu.startswith("NVIDIA H") and fp4 else 0.0


def bytes_per_token(placed: EngineOnGpu) -> MaybeInt:
    """Return the bytes of a token on one GPU, in the layers that store every token.

    0 if the table of models does not have how many of its layers do.
    """
    if isinstance(stated := placed.cache_name, Unknown):
        return stated
    shape = placed.shape
    if not shape.full_cache:
        if shape.full_layers is None:
            return 0
        heads, width = shape.full_kv_heads or shape.kv_heads, shape.full_head_dim or shape.head_dim
        shape = replace(shape, layers=shape.full_layers, kv_heads=heads, head_dim=width)
    cell = placed.sparse_cell
    kind = cache_type(stated) if cell is None else cell.kind
    if isinstance(kind, Unknown):
        return kind
    each = cache_per_token_on_gpu(shape, placed.split, kind)
    if each is not None:
        return each + index_cache_on_gpu(shape, placed.split)
    if cache_per_token_on_gpu(shape, placed.split) is None:
        return Unknown("the table of models has no size of its cache")
    return Unknown(f"'{stated}' is not a KV cache type for {placed.shape.name}")


def longest_request(placed: EngineOnGpu) -> MaybeInt:
    """Return the length of the longest request, in tokens."""
    if (stated := placed.command.max_model_len) is not None:
        return stated
    if "max_model_len" in placed.command.where:
        return _AUTO
    if placed.shape.context is None:
        return Unknown(f"the table of models has no longest request of {placed.shape.name}")
    return placed.shape.context
