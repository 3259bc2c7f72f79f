"""What vLLM uses on a GPU beside weights and KV cache when it starts, term by term. Sizes in GiB.

vLLM runs the model once with the largest batch that it allows, and measures the peak. The terms
follow its sources: vllm/v1/worker/gpu_worker.py determine_available_memory, gpu_model_runner.py
profile_run, _dummy_sampler_run and profile_cudagraph_memory, vllm/v1/sample/ops/
topk_topp_sampler.py, vllm/engine/arg_utils.py; before 0.8 vllm/worker/worker.py.
"""

from dataclasses import replace

from kthena_components.core.memory.held_weights import copies_of_host, kept_levels
from kthena_components.core.memory.largest_batch import (
    ENGINE_V1,
    UNIFIED,
    StartUp,
    batch_of,
    encoder_peak,
    expert_numbers,
    graph_numbers,
    kept_images,
    splits_prompts,
    staying_numbers,
)
from kthena_components.core.memory.sharding import BRIDGED, FLASHINFER, LINKED, SWITCHED
from kthena_components.core.memory.sizes import GIB, captured_exchanges, captured_sizes
from kthena_components.core.memory.sparse_attention import (
    compressed_attention,
    compressed_workspace,
    decode_logits,
    expanded_latents,
)
from kthena_components.core.memory.states_and_drafts import of_descriptors
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.images import Version

_TOKEN, _MATRICES = 2, 3
"""Bytes of a number of the activations; gate, up and their product, of each token."""
_SORTED, _UNSORTED, _SINCE_UNSORTED = 38, 16, (0, 17)
"""Bytes for each logit that is sampled, as start-ups with four vocabularies state them. The source
shows 2 as computed, 4 as a float, the sorted copy (4) and its index (8): PyTorch's sort needs the
rest. Since 0.17 a Triton kernel filters without a sort, and probabilities (4) and random numbers
(4) are left."""
_VERIFIED, _VERIFIED_LATER = (((0, 11, 1), 38), ((0, 14), 46), ((0, 17), 50)), 26
"""The same where drafts are verified, before a release and since. Before 0.11.1 it is no more; then
it is two rows of logits (4), a row (2) and floats (4) of the token after the drafts, floats of them
(4), since 0.14 a copy (4), and probabilities and random numbers (8) or, before 0.17, a sort:
_dummy_sampler_run, and forward in vllm/v1/sample/rejection_sampler.py of 0.10.2 to 0.33.0."""
_FLASHINFER = 11
"""The same with FlashInfer's sampler, which an image of 0.8 to 0.16 may have or not, and with the
sampler of AITER, which has the same parts: forward_hip in topk_topp_sampler.py since 0.12."""
_SAMPLES, _AITER = FLASHINFER, "VLLM_ROCM_USE_AITER"
_ESTIMATES, _NEWER = "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS", "VLLM_USE_V2_MODEL_RUNNER"
"""Variables that choose them (vllm/envs.py of 0.10.2 to 0.33.0), graphs in the budget, a runner."""
_BOTH_SINCE = (0, 21)
"""The first release that samples with FlashInfer by default, and measures both samplers: it calls
the other one as well, for requests with seeds (_dummy_sampler_run of 0.21.0, not of 0.20.2)."""
_FILM, _FILMS_UNTIL = 153600, (0, 11, 1)
"""Tokens that vLLM 0.11.0 reserves for a film of Qwen3-VL, as its logs state: 12288, each with 12.5
for its time (get_max_video_tokens in qwen3_vl.py). 0.13 does not; between them none was read."""
_KEPT_UNTIL, _KEPT = (0, 12), 8
"""The first release that frees workspaces of FP8 experts before it samples, and a token's rows."""

_DRIVER, _LATER_DRIVER, _LATER, _SMALL_GPU = 0.14, 0.25, (0, 18), "GeForce"
"""What CUDA's libraries allocate by themselves, as start-ups state `non-torch memory`: 0.13 GiB in
most of them, 0.23 to 0.26 since 0.18 on GPUs of servers and workstations, 0.07 on one of 16 GB."""
_CONTEXT, _COUNT_CONTEXT = 0.44, (((0, 6, 4), (0, 6, 5)), ((0, 8), (0, 9, 2)))
"""The same with CUDA's context, as a start-up of 0.6.4 states it (vllm#10360), and the releases
that count it: all of the GPU that is not PyTorch's, `non_torch_allocations` in vllm/worker/
worker.py after vllm#9352 and before #10511, and in vllm/v1/worker/gpu_worker.py before #19312."""
_WITH_HOST = 1.25
"""The same where GPU and host share their memory: vLLM takes what the host has available for free,
so what its processes take meanwhile counts, too (vllm/utils/mem_utils.py MemorySnapshot)."""
ROCM, RCCL = 1.0, 0.3
"""The same of ROCm, and RCCL's channels to each other rank."""
_CHANNELS, _MULTICAST, _FROM_MULTICAST, _PCIE = 0.42, 1.9, (0, 17), 0.1
"""NCCL's channels over NVLink, and with the buffers for multicast that newer releases have; its
buffers between GPUs without NVLink, or between pipeline stages."""

_GRAPHS_SINCE, _ROCM_GRAPHS_SINCE = (0, 20), (0, 26)
"""The first releases that subtract the graphs from the budget, with CUDA and with ROCm: in
gpu_worker.py, `is_cuda` became `is_cuda_alike`."""
_LARGEST_GRAPH, _MEASURED_SINCE = 512, (0, 17, 1)
"""Largest batch of graphs, and the first release read that subtracts them if a variable asks."""
_GRAPH, _GRAPHS = 0.21 / 1024, 0.05
"""GiB of the two graphs of a layer and a batch size, and of all together, as start-ups state."""
_WHOLE, _PAGE = 1 / 1024, 2 / 1024
"""GiB of a graph of a whole decode at least (profile_cudagraph_memory), and of any with ROCm 7: HIP
allocates executable memory for its arguments (AllocGraphKernargPool in hip_graph_internal.cpp of
ROCm/rocm-systems), which ROCr takes from no larger block (kfd driver, AllocateMemory), and Linux
counts in pages of 2 MiB (VRAM_AVAILABILITY_ALIGN in amdgpu_amdkfd_gpuvm.c). Each layer's attention
ends a piece: 2,142 graphs of Llama-2-13B in vLLM (ROCm/rocm-systems#10257)."""
_INSIDE, _SAMPLED = ((0, 18), (0, 27)), 2
"""Releases that capture graphs to measure them before they look at what is free: the first that was
read, and the first without (profile_cudagraph_memory in gpu_worker.py of 0.18.0 to 0.28.0, inside
memory_profiling or after it); how many graphs of each mode, pieces and whole decodes."""
_UNCOUNTED, _RUNS_V4 = ((0, 25), (0, 29)), (0, 28)
"""Releases whose newer model runner counts none (vllm#49224): the first, and the first without. It
runs models whose layers all store every token, without experts, since 0.28 DeepSeek-V4, and since
0.29 all: use_v2_model_runner in vllm/config/vllm.py of 0.25.0 to 0.33.0."""
_COUNTED = 4 + 1 / 8
"""Bytes of each request and word that it keeps after the weights are measured, in no part of the
budget: PenaltiesState in vllm/v1/worker/gpu/sample/penalties.py, load_model in model_runner.py."""
_CAPTURED, _V0_GRAPHS = (((0, 10, 1), 4.8), ((0, 12), 3.0)), 3.0
"""By how much graphs are larger at most, before a release (2.24 GiB of Qwen3-8B were captured in
0.9, 3.45 of p11 in 0.10.2), and what V0's take at most: vllm/worker/model_runner.py of 0.6.4."""
OF_CONTEXT, _OF_RANKS, _RANKS_SINCE = 0.45, 1.5, (0, 25)
"""What CUDA's context takes of an idle GPU at least (start-ups state 0.5 GiB and more, as `Free
memory on device`), and with the buffers between ranks, which newer releases allocate before they
look at what is free: 1.54 GiB of an H100 (vllm#48601), 2.3 of an L4 (t10)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The parts of the memory beside weights and cache."""

    peak: float
    """Peak of the activations: of the layers, of the sampler, or of the encoder of images."""
    driver: float
    """Libraries of the driver."""
    communication: float
    """Buffers between ranks."""
    graphs: float
    """CUDA graphs."""
    staged: float = 0.0
    """Files of the checkpoint that the loader keeps, at most."""
    doubt: float = 0.0
    """By how much the terms may be lower: if the image samples with FlashInfer, if its model runner
    counts no graphs, or its ROCm no pages, if data-parallel copies do not gather their tokens or
    exchange them by other means, without graphs of decodes, and if the loader keeps no files."""

    @property
    def total(self) -> float:
        """The sum of the terms."""
        return self.peak + self.driver + self.communication + self.graphs + self.staged


def terms_of(start: StartUp) -> Terms | None:
    """Calculate the terms; None if the table of models lacks a size that they need."""
    peak = _peak(start)
    return None if peak is None else Terms(
        peak=peak, driver=_driver(start), graphs=_graphs(start), staged=start.staged,
        communication=_communication(start) + _held_by_exchanges(start),
        doubt=_doubt(start) + (0.0 if counts_no_graphs(start) else _of_decodes(start))
        + _gathered(start, peak) + _exchanged(start) + _held_by_exchanges(start) + start.staged,
    )  # fmt: skip


def least_of(start: StartUp) -> float:
    """Return what vLLM uses at least if the widths of the layers are not known.

    Its run ends with the sampler, whatever the layers are: _dummy_sampler_run.
    """
    rest = _driver(start) + _communication(start) + _graphs(start) + start.staged
    return rest + (_sampler(start) or 0.0)


def asked_later(start: StartUp) -> float:
    """Return what vLLM asks for at most after it has sized its cache, on a GPU with CUDA.

    Its share holds none of that: CUDA's context, graphs and words that do not count, and the
    sampler's memory in pieces: compile_or_warm_up_model in gpu_worker.py of 0.8.2 to 0.33.0.
    """
    if UNIFIED in start.gpu or not start.gpu.startswith("NVIDIA"):
        return 0.0
    if start.before(ENGINE_V1):
        return OF_CONTEXT + (0.0 if start.eager else _V0_GRAPHS)
    context = 0.0 if _counts_context(start) else OF_CONTEXT
    if start.split.tensor * start.copies > 1 and not start.before(_RANKS_SINCE):
        context = _OF_RANKS
    sampler = 0.0 if splits_prompts(start) else (_sampler(start) or 0.0) + _counts(start)
    return context + _uncounted_graphs(start) + sampler


def _counts(start: StartUp) -> float:
    """Return what the newer model runner keeps of the words that each request has."""
    words = batch_of(start)[0] * (start.shape.vocab or 0)
    return words * _COUNTED / GIB if _runs_newer(start) else 0.0


def _uncounted_graphs(start: StartUp) -> float:
    """Return the memory of the graphs that the budget does not include."""
    if start.eager or _graphs(start):
        return _doubt(start) if not start.before(_UNCOUNTED[0]) else 0.0
    factor = next((factor for until, factor in _CAPTURED if start.before(until)), 1.0)
    off = start.off - {_ESTIMATES}
    return factor * _graphs(replace(start, version=None, off=off, gathers=False))


def _peak(start: StartUp) -> float | None:
    layers, sampler = _layers(start), _sampler(start)
    if splits_prompts(start):
        return layers
    if layers is None or sampler is None:
        return None
    staying = max(_workspace(start), staying_numbers(start) * _TOKEN / GIB)
    most = max(layers, sampler + staying)
    if not start.encoder_ranks:
        return most
    (_, tokens), ranks = batch_of(start), start.encoder_ranks
    images = encoder_peak(start.shape, tokens, ranks, start.version, start.memory_gib)
    return max(most + (_film(start) or kept_images(start.shape, tokens)), images)


def _film(start: StartUp) -> float:
    """Return what the encoder's results for a film take while the language model runs, or 0.

    They are filled up to the tokens of its budget, with those of the layers that
    `deepstack_input_embeds` keeps: profile_run in vllm/v1/worker/gpu_model_runner.py.
    """
    shape = start.shape
    levels = kept_levels(shape)
    if levels == 0 or not start.films or not start.before(_FILMS_UNTIL):
        return 0.0
    return _FILM * (1 + levels) * (shape.hidden or 0) * _TOKEN / GIB


def _sampler(start: StartUp) -> float | None:
    """Return the memory of the sampler, beside the hidden states and the residual of the batch."""
    vocab, hidden = start.shape.vocab, start.shape.hidden
    if vocab is None or hidden is None:
        return None
    sequences, tokens = batch_of(start)
    each = _SORTED if start.before(_SINCE_UNSORTED) else _UNSORTED
    amd = start.gpu.startswith("AMD")
    if (_AITER if amd else _SAMPLES) in start.on and (amd or start.before(_BOTH_SINCE)):
        each = _FLASHINFER
    if start.drafts and not _runs_newer(start):
        each = next((size for until, size in _VERIFIED if start.before(until)), _VERIFIED_LATER)
    fp8 = start.shape.expert_ffn is not None and start.shape.dtype == "fp8"
    kept = _KEPT if fp8 and start.before(_KEPT_UNTIL) else 0
    return (sequences * vocab * each + tokens * 2 * (1 + kept) * hidden * _TOKEN) / GIB


def _doubt(start: StartUp) -> float:
    """Return by how much FlashInfer's sampler, another model runner or ROCm needs less at most."""
    if counts_no_graphs(start):
        return _graphs(start)
    if start.gpu.startswith("AMD") and (largest := _largest_graph(start)):
        return _captured(start, captured_sizes(largest, start.listed))
    stated = _SAMPLES in start.on or _SAMPLES in start.off
    if stated or start.before(ENGINE_V1) or not start.before(_SINCE_UNSORTED):
        return 0.0
    return batch_of(start)[0] * (start.shape.vocab or 0) * (_SORTED - _FLASHINFER) / GIB


def _runs_newer(start: StartUp) -> bool:
    """Return whether the newer model runner runs the model: it verifies no drafts to measure."""
    shape, (since, every) = start.shape, _UNCOUNTED
    dense = shape.full_cache and shape.experts == 0
    listed = not start.before(_RUNS_V4 if shape.compresses else every)
    runs = dense or listed or _NEWER in start.on
    return runs and _NEWER not in start.off and not start.before(since)


def counts_no_graphs(start: StartUp) -> bool:
    """Return whether the model runner counts no graphs: they may come after the cache is sized."""
    return start.before(_UNCOUNTED[1]) and _runs_newer(start)


def _gathered(start: StartUp, peak: float) -> float:
    """Return what the tokens of other data-parallel copies add to the peak."""
    gathers = start.copies > 1 and start.gathers
    return peak - (_peak(replace(start, gathers=False)) or peak) if gathers else 0.0


def _workspace(start: StartUp) -> float:
    """Return what is reserved for prefills of sparse or of compressed attention."""
    if not start.shape.compresses:
        return start.workspace
    return compressed_workspace(start.length, batch_of(start)[1], start.version)


def _layers(start: StartUp) -> float | None:
    """Return the largest memory of one layer, dense or with experts, and of its attention."""
    shape, hidden, (_, tokens) = start.shape, start.shape.hidden, batch_of(start)
    if hidden is None or (shape.ffn is None and shape.expert_ffn is None):
        return None
    # Hidden states and residual, of each stream, the norm, and states of blocks.
    widths = tokens * (2 * shape.streams + 1 + shape.blocks) * hidden
    sparse = int(_workspace(start) * GIB / _TOKEN)
    most = max(_dense(start, tokens), expert_numbers(start, tokens, hidden, sparse))
    attention = max(sparse, staying_numbers(start)) if shape.compresses else 0
    if shape.compresses:
        ranks = start.split.attention or start.split.tensor
        attention += compressed_attention(shape, ranks, start.gpu, tokens, start.version)
    latents = expanded_latents(shape, start.split, start.version, batch_of(start)[0])
    return max(widths + most + latents, attention) * _TOKEN / GIB


def _dense(start: StartUp, tokens: int) -> int:
    """Count the numbers of a layer without experts: gate, up and product."""
    return tokens * _MATRICES * (start.shape.ffn or 0) // start.split.tensor


def _driver(start: StartUp) -> float:
    if start.gpu.startswith("AMD"):
        return ROCM
    more = of_descriptors(start.shape, start.gpu, start.version)
    if UNIFIED in start.gpu:
        return _WITH_HOST + copies_of_host(start) + more
    if _counts_context(start):
        return _CONTEXT
    older = start.before(_LATER) or _SMALL_GPU in start.gpu
    return (_DRIVER if older else _LATER_DRIVER) + more


def _counts_context(start: StartUp) -> bool:
    return any(not start.before(since) and start.before(until) for since, until in _COUNT_CONTEXT)


def _communication(start: StartUp) -> float:
    ranks, linked = start.split.tensor, start.gpu.startswith(LINKED)
    if ranks == 1 and start.copies == 1:
        return _PCIE if start.split.pipeline > 1 else 0.0
    if ranks == 1:
        return _CHANNELS if linked else _PCIE
    if start.gpu.startswith("AMD"):
        return RCCL * (ranks - 1)
    if not linked:
        return _PCIE
    switched = start.gpu.startswith(SWITCHED) and not start.gpu.endswith(BRIDGED)
    return _MULTICAST if switched and not start.before(_FROM_MULTICAST) else _CHANNELS


def _held_by_exchanges(start: StartUp) -> float:
    """Return what exchanges in graphs that were captured to be measured still hold.

    NCCL frees their pages when it next launches something (persistentDestructor, ncclLaunchPrepare
    in its enqueue.cc). vLLM looks at what is free before that: they count with any estimate.
    """
    inside = not start.before(_INSIDE[0]) and start.version and start.before(_INSIDE[1])
    if start.eager or start.copies == 1 or not (start.gathers and inside):
        return 0.0
    sizes = captured_sizes(_most_captured(start), start.listed)
    graphs = (start.pieces + start.decodes) * min(sizes, _SAMPLED)
    linked = start.gpu.startswith(LINKED)
    return captured_exchanges(start.shape, start.split, graphs) if linked else 0.0


def _most_captured(start: StartUp) -> int:
    """Return the tokens of the largest graph, stated or by default."""
    sequences, tokens = batch_of(start)
    default = min(2 * sequences * (1 + start.drafts), _LARGEST_GRAPH)
    listed = max((size for size in start.listed if size <= tokens), default=0)
    return listed if start.listed else min(start.captured or default, tokens)


def _largest_graph(start: StartUp) -> int:
    """Return the tokens of the largest graph, and 0 if the budget includes no graphs."""
    since: Version = _ROCM_GRAPHS_SINCE if start.gpu.startswith("AMD") else _GRAPHS_SINCE
    since = _MEASURED_SINCE if _ESTIMATES in start.on else since
    excluded = start.eager or _ESTIMATES in start.off or start.before(since)
    return 0 if excluded else _most_captured(start)


def _graphs(start: StartUp) -> float:
    """Return the memory of the graphs that the budget includes."""
    largest = _largest_graph(start)
    if not largest:
        return 0.0
    captured = _captured(start, captured_sizes(largest, start.listed)) + _exchanged(start)
    return _GRAPHS + _first_graph(start, largest) + _of_decodes(start) + captured


def _captured(start: StartUp, sizes: int) -> float:
    """Return what graphs of some batch sizes take, beside what the first one needs."""
    layers = start.shape.layers / start.split.pipeline
    if start.gpu.startswith("AMD"):
        return sizes * (start.pieces * (layers + 1) + start.decodes) * _PAGE
    return sizes * (_GRAPH * layers if start.pieces else _WHOLE)


def _exchanged(start: StartUp) -> float:
    """Return the part of them that exchanges of data-parallel copies take."""
    largest = _largest_graph(start)
    gathers = largest and start.copies > 1 and start.gathers and start.gpu.startswith(LINKED)
    graphs = (start.pieces + start.decodes) * captured_sizes(largest, start.listed) - 1
    return captured_exchanges(start.shape, start.split, graphs) if gathers else 0.0


def _first_graph(start: StartUp, tokens: int) -> float:
    """Return what the first graph needs, beside itself: a layer's memory, of two runs.

    vLLM runs the largest batch once before it captures it, on a stream of its own, and measures
    both: _warmup_and_capture in vllm/v1/worker/gpu_model_runner.py.
    """
    widest = max(_dense(start, tokens), graph_numbers(start, tokens))
    return 2 * (tokens * _MATRICES * (start.shape.hidden or 0) + widest) * _TOKEN / GIB


def _of_decodes(start: StartUp) -> float:
    """Return by how much the first graph of decodes needs more: a workspace, or logits of two runs.

    Its batch has all sequences at most, each with the tokens of its draft: cudagraph_dispatcher.py.
    """
    largest = _largest_graph(start) if start.decodes else 0
    rows = min(largest, batch_of(start)[0] * (1 + start.drafts))
    logits = 2 * decode_logits(start.shape, start.gpu, start.length, rows)
    held = start.attention + _first_graph(start, rows) if rows else 0.0
    return max(max(logits, held) - _first_graph(start, largest), 0.0)
