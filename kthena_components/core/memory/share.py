"""The share of a GPU's memory that an engine may use, and what SGLang leaves free.

SGLang leaves memory free for activations and CUDA graphs. Its sizes are in MiB, like in its source.

Sources: sglang/srt/arg_groups/memory_hook.py handle_gpu_memory_settings, reserve_for_graph_mb and
adjust_mem_fraction_for_vlm, and attention_hook.py, or server_args.py before them;
sglang/srt/model_executor for what is measured before the weights are loaded. The wheels of 0.3.6 to
0.5.23 have four ways to choose the default share, one after the other.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.serving import EngineFacts
from kthena_components.core.hardware import GpuFacts
from kthena_components.core.memory.largest_batch import UNIFIED
from kthena_components.core.memory.sharding import VLLM, attention_ranks, is_linked
from kthena_components.core.memory.sizes import Split
from kthena_components.core.memory.start_up import RCCL, ROCM
from kthena_components.core.models import ModelShape
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.images import Version
from kthena_components.core.values.read import first_unknown, mapping
from kthena_components.core.values.unknown import Unknown

_BY_CLASS_SINCE, _BY_BATCH_SINCE = (0, 4, 8), (0, 5, 3)
"""The first releases that reserve by the class of a GPU, and by the batch. Before them, the share
follows from the ranks."""
_OF_RANKS: Sequence[tuple[int, float]] = ((16, 0.79), (8, 0.81), (4, 0.85), (2, 0.87), (1, 0.88))
"""From how many tensor ranks on; the share."""
_LARGER, _LARGER_SINCE, _OF_LARGER = 80, (0, 4, 6), 18
"""GiB beyond which a GPU has a reserve of its own, since when, and the reserve."""
_OF_CLASS: Sequence[tuple[float, float, float]] = (
    (35, 2.8, 0.1),
    (90, 9.5, 0.5),
    (160, 12, 0.5),
    (float("inf"), 32, 0),
)
"""Up to how many GiB of memory; the reserve, and for each rank."""
_OF_COPIES = 4
"""The reserve with attention that ranks do not share, by class."""

_CLASSES: Sequence[tuple[float, int, int, int]] = (
    (20, 2048, 8, 8),
    (35, 4096, 48, 160),
    (60, 4096, 32, 160),
    (160, 8192, 256, 512),
    (float("inf"), 16384, 512, 512),
)
"""Up to how many GiB of memory; tokens of a chunk, and the largest batch of the graphs, with less
than four ranks and with more."""
_SMALLER, _LARGER_CHUNKS_SINCE = (35, 2048, 24, 80), (0, 5, 20)
"""The class of 35 GiB in the releases before."""
_MANY = 4
_ROLES_SINCE, _PREFILL, _DECODE = (0, 5, 15), "prefill", "decode"
"""The first release whose reserve leaves out what half of a split engine does not run."""
_WHOLE_PROMPTS = 16384
"""Default of --max-prefill-tokens, which counts where prompts are in no chunks."""
_OF_DRAFTS: Sequence[tuple[Version, float]] = (((0, 5, 10), 2048), ((0, 5, 14), 4096))
"""Before which release; what drafts reserve. None since then, and with NGRAM since 0.5.3."""
_NGRAM, _STANDALONE, _OF_STANDALONE = "NGRAM", "STANDALONE", 6144
"""Drafts without a model, drafts by a whole model, and what those reserve."""
_OF_EXCHANGE = 2048
"""What the buffers of DeepEP reserve, in the releases that leave out what a half does not run."""
_META, _OF_TOKEN, _OF_BATCH, _OF_EIGHT = 512, 1.5, 2, 1024
_LARGE, _LEAST = 60, 10 * 1024
_OF_COPY, _OF_LARGE_COPY, _LARGE_BATCH = 3, 4.5, 300
"""MiB for each batch size and copy of the attention, and beyond this size."""
_PREFILL_GRAPHS_SINCE, _OF_GRAPH, _OF_LATENT = (0, 5, 10), 8, 1536
"""The first release that captures graphs of prefills by default, MiB of each, and of all with
latent attention."""
_PREFILL_SIZES: Sequence[tuple[int, int]] = (
    (32, 4), (256, 16), (512, 32), (1024, 64), (4096, 256), (16384, 512),
)  # fmt: skip
"""Up to how many tokens a graph is captured for each how many."""
_CONTEXT, _LINKED, HOST = 0.6, 2.0, 9.2
"""GiB that CUDA and NCCL have taken before the weights: one rank, and ranks over NVLink. On GB10 it
is what the host does not have available (get_available_gpu_memory in sglang/srt/utils/common.py):
the median of seven idle ones whose start-ups of vLLM state it, 7.0 to 12.2. On GPUs of AMD it is
what start-ups of vLLM state of ROCm and RCCL."""
_BY_SIZE_SINCE, _FLAT, _OLDER_FLAT = (0, 4, 9, 3), 0.9, ((0, 4, 5), 0.95)
"""The first release that looks at the encoder's size, the factor for any encoder before, and before
another release: model_runner.py of 0.4.3.post4 to 0.4.8, server_args.py of 0.4.9 to 0.4.9.post3."""
_STATED_UNTIL, _ASKED_SINCE, _ASKS = (0, 4, 9), (0, 4, 6), "--enable-multimodal"
"""The first release that lowers only a share that it chooses: the ones before also a stated one.
The first one that runs the encoder of some models with an option only: sglang/srt/configs/
model_config.py, of 0.4.5.post3, 0.4.6 to 0.4.9.post6, 0.5.8 and 0.5.9."""
_VISION, _SENSITIVITY, _FACTORS = 0.95, 0.1, (0.8, 1.05)
"""Factor for an encoder of the usual size, the loss for each such size more, and its limits."""
_USUAL_LAYERS, _USUAL_HIDDEN = 24, 1024
_AITER, _AITER_FROM, _AITER_HEADS = 0.85, 8192, (16, 128)
"""Factor with the attention of AITER if requests may be longer than this, and how many heads of
latent attention a rank needs for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SglangStart:
    """What decides the share of a GPU that SGLang chooses."""

    memory_gib: float
    """Memory of one GPU, as the driver reports it."""
    ranks: int
    """Tensor × pipeline ranks."""
    chunk: int | None = None
    """Tokens of a chunk, if stated."""
    batch: int | None = None
    """The largest batch of the graphs, if stated."""
    graphs: bool = True
    """Whether CUDA graphs are captured."""
    drafts: str = ""
    """The algorithm of speculative decoding."""
    drafted: int = 1
    """Tokens of a draft."""
    requests: int | None = None
    """Requests that run at once, if stated."""
    role: str = ""
    """The half of a split engine: prefill or decode."""
    exchanges: bool = False
    """Whether experts get their tokens by DeepEP."""
    latent: bool = False
    """Whether the attention stores latents."""
    copies: int = 0
    """Copies of the attention inside the tensor group (--enable-dp-attention)."""
    release: Version | None = None
    """The release. None: the newest."""

    def before(self, release: Version) -> bool:
        """Return whether the release is older; an unknown one is the newest."""
        return self.release is not None and self.release < release


def default_share(start: SglangStart) -> float:
    """Return the share of a GPU for weights and KV cache that SGLang chooses."""
    if start.before(_BY_CLASS_SINCE):
        larger = start.memory_gib > _LARGER and not start.before(_LARGER_SINCE)
        shares = (share for ranks, share in _OF_RANKS if start.ranks >= ranks)
        return 1 - _OF_LARGER / start.memory_gib if larger else next(shares)
    if start.before(_BY_BATCH_SINCE):
        base, each = next(row[1:] for row in _OF_CLASS if start.memory_gib < row[0])
        reserve = (base + start.ranks * each + (_OF_COPIES if start.copies else 0)) * 1024
    else:
        reserve = _of_batch(start)
    reserve += _of_drafts(start)
    return round(1 - reserve / 1024 / start.memory_gib, 3)


def _of_batch(start: SglangStart) -> float:
    """Return the MiB that the newer releases reserve, without those for drafts."""
    _, tokens, few, many = _class_of(start)
    batch = start.batch or (few if start.ranks < _MANY else many)
    role = "" if start.before(_ROLES_SINCE) else start.role
    tokens = start.chunk or tokens
    if role == _DECODE:
        tokens = (start.requests or batch) * start.drafted
    tokens = max(tokens, 2048)
    reserve = _META + tokens * _OF_TOKEN + start.ranks / 8 * _OF_EIGHT
    if role != _PREFILL:
        reserve += batch * start.copies * (_OF_LARGE_COPY if batch > _LARGE_BATCH else _OF_COPY)
        reserve += batch * _OF_BATCH if start.graphs else 0
    if start.graphs and role != _DECODE and not start.before(_PREFILL_GRAPHS_SINCE):
        reserve += _OF_LATENT if start.latent else _prefill_graphs(tokens) * _OF_GRAPH
    least = _LEAST if start.memory_gib > _LARGE else 0
    exchanges = start.exchanges and start.graphs and role != _PREFILL
    known = exchanges and not start.before(_ROLES_SINCE)
    return max(reserve, least) + (_OF_EXCHANGE if known else 0)


def _of_drafts(start: SglangStart) -> float:
    """Return the MiB that speculative decoding reserves."""
    ngram = start.drafts == _NGRAM and not start.before(_BY_BATCH_SINCE)
    found = next((size for end, size in _OF_DRAFTS if start.before(end)), 0.0)
    if not start.drafts or ngram or not found:
        return 0.0
    return _OF_STANDALONE if start.drafts == _STANDALONE else found


def _class_of(start: SglangStart) -> tuple[float, int, int, int]:
    """Return the row of `_CLASSES` for a GPU, as its release of SGLang has it."""
    found = next(row for row in _CLASSES if start.memory_gib < row[0])
    older = start.before(_LARGER_CHUNKS_SINCE)
    return _SMALLER if older and found[0] == _SMALLER[0] else found


def _prefill_graphs(tokens: int) -> int:
    """Count the graphs of prefills up to a number of tokens."""
    sizes, last = 0, 0
    for limit, step in _PREFILL_SIZES:
        sizes += max(min(tokens, limit) - last, 0) // step
        last = limit
    return sizes


def taken_before(split: Split, gpu: str) -> float:
    """Return the GiB of a GPU that are in use before the weights are loaded."""
    if UNIFIED in gpu:
        return HOST
    if gpu.startswith("AMD"):
        return ROCM + RCCL * (split.tensor * split.pipeline - 1)
    return _LINKED if split.tensor * split.pipeline > 1 and is_linked(gpu) else _CONTEXT


def vision_factor(shape: ModelShape, release: Version | None) -> float:
    """Return the factor by which a share is lowered for the model's vision encoder.

    SGLang reads `num_hidden_layers` only, and takes 24 where a config calls the layers `depth`.
    """
    if shape.vision_hidden is None:
        return 1.0
    if release is not None and release < _BY_SIZE_SINCE:
        until, older = _OLDER_FLAT
        return older if release < until else _FLAT
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


_SHARE, _OLD_SHARE, _SINCE = 0.92, 0.9, (0, 20)
"""vLLM's default of --gpu-memory-utilization, now and before 0.20."""
_LARGEST = ("--cuda-graph-max-bs", "--cuda-graph-max-bs-decode")
_SIZES = ("--cuda-graph-bs", "--cuda-graph-bs-decode")
"""The options for the largest batch of the graphs, and for all sizes."""


def vllm_release(engine: EngineFacts, command: CommandFacts) -> Version | None:
    """Return the release of vLLM that runs, None for another engine."""
    return _release(engine, "vllm") if command.engine in VLLM else None


def sglang_release(engine: EngineFacts) -> Version | None:
    """Return the release of SGLang that runs; None if nothing states it."""
    return _release(engine, "sglang")


def _release(engine: EngineFacts, name: str) -> Version | None:
    image = engine.entry.image
    return image.release_of(name) if image else None


_COMPILATION, _LEVEL, _MODE = "--compilation-config", "--optimization-level", "cudagraph_mode"
_OF_LEVELS = {"0": "NONE", "1": "PIECEWISE"}
_GRAPH_SIZE, _GRAPH_SIZES = "max_cudagraph_capture_size", "cudagraph_capture_sizes"
"""Options of vLLM that state which CUDA graphs are captured, and the modes of lower levels:
CUDAGraphMode in vllm/config/compilation.py, OPTIMIZATION_LEVEL_00 and 01, and
_set_cudagraph_sizes, in vllm/config/vllm.py of 0.12.0 to 0.33.0."""


def captured_graphs(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return whether graphs of pieces and of whole decodes are captured, and of which batches."""
    config = mapping(options.get(_COMPILATION))
    stated = config.get(_MODE)
    mode = str(stated or _OF_LEVELS.get(str(options.get(_LEVEL)), "")).upper()
    none = mode == "NONE" or options.get("--enforce-eager") is True
    size, sizes = (
        config.get(name, options.get("--" + name.replace("_", "-")))
        for name in (_GRAPH_SIZE, _GRAPH_SIZES)
    )
    every = sizes if isinstance(sizes, list | tuple) else (sizes,)
    listed = tuple(filter(_is_count_option, every))
    return {
        "pieces": not none and mode not in ("FULL", "FULL_DECODE_ONLY"),
        "decodes": not none and mode != "PIECEWISE",
        "captured": size if _is_count_option(size) else None,
        "listed": listed,
    }


def count_option(command: CommandFacts, option: str) -> int | None:
    """Return a count above zero that an option states."""
    value = command.options.get(option)
    return value if _is_count_option(value) else None


def _is_count_option(value: object) -> bool:
    return type(value) is int and value > 0


def share_of(
    engine: EngineFacts,
    command: CommandFacts,
    gpu: GpuFacts | Unknown | None,
    shape: ModelShape | Unknown,
) -> float | Unknown:
    """Return the share of a GPU that an engine may use: 1 for TensorRT-LLM's, of what is free."""
    stated = command.memory_fraction
    if command.engine == "trtllm":
        return 1.0
    if isinstance(stated, Unknown):
        return stated
    if stated is not None and not 0 < stated <= 1:
        return Unknown(f"{stated:g} is not a share of a GPU's memory")
    if command.engine == "sglang" and isinstance(gpu, GpuFacts) and isinstance(shape, ModelShape):
        share = _sglang_default(engine, command, gpu, shape) if stated is None else float(stated)
        lowered = _of_encoder(engine, command, shape) * _of_aiter(command, gpu, shape)
        return share if isinstance(share, Unknown) else share * lowered
    if stated is not None:
        return float(stated)
    version = vllm_release(engine, command)
    return _OLD_SHARE if version is not None and version < _SINCE else _SHARE


def _sglang_default(
    engine: EngineFacts, command: CommandFacts, gpu: GpuFacts, shape: ModelShape
) -> float | Unknown:
    """Return the share that SGLang takes if none is stated and the model has no encoder."""
    tensor, pipeline, copies = command.tensor, command.pipeline, command.attention_data
    unknown = first_unknown(tensor, pipeline, copies)
    if unknown is not None or not (
        isinstance(tensor, int) and isinstance(pipeline, int) and isinstance(copies, int)
    ):
        return unknown or Unknown("its sizes are not known")
    return default_share(
        SglangStart(
            memory_gib=gpu.memory_gib,
            ranks=tensor * pipeline,
            chunk=_chunk(command),
            batch=_largest_batch(command),
            graphs=command.options.get("--disable-cuda-graph") is not True,
            drafts=str(command.options.get("--speculative-algorithm") or "").upper(),
            drafted=count_option(command, "--speculative-num-draft-tokens") or 1,
            requests=count_option(command, "--max-running-requests"),
            role=str(command.options.get("--disaggregation-mode") or ""),
            exchanges=command.options.get("--moe-a2a-backend") == "deepep",
            latent=shape.latent is not None,
            copies=copies if command.options.get("--enable-dp-attention") is True else 0,
            release=sglang_release(engine),
        )
    )


def _chunk(command: CommandFacts) -> int | None:
    """Return the tokens of a chunk, or of a whole batch where a prompt is in none."""
    stated = command.options.get("--chunked-prefill-size")
    if type(stated) is int and stated <= 0:
        return count_option(command, "--max-prefill-tokens") or _WHOLE_PROMPTS
    return count_option(command, "--chunked-prefill-size")


def _largest_batch(command: CommandFacts) -> int | None:
    """Return the largest batch of the graphs that options state; the sizes come first."""
    for option in _SIZES:
        sizes = command.options.get(option)
        if isinstance(sizes, tuple) and sizes and all(map(_is_count_option, sizes)):
            return int(max(sizes))
    found = (count_option(command, option) for option in _LARGEST)
    return next((count for count in found if count), None)


def _of_encoder(engine: EngineFacts, command: CommandFacts, shape: ModelShape) -> float:
    """Return the factor by which SGLang lowers the share for the vision encoder that it runs."""
    release = sglang_release(engine)
    stated_too = release is not None and release < _STATED_UNTIL
    lowers = command.memory_fraction is None or stated_too
    runs = lowers and _sees(command, shape, release)
    return vision_factor(shape, release) if runs else 1.0


def _sees(command: CommandFacts, shape: ModelShape, release: Version | None) -> bool:
    """Return whether an engine of SGLang runs its model's vision encoder."""
    options = command.options
    if shape.vision_asked and options.get(_ASKS) is not True:
        return release is not None and release < _ASKED_SINCE
    decodes = options.get("--disaggregation-mode") == "decode"
    return not decodes and options.get("--language-only") is not True


def _of_aiter(command: CommandFacts, gpu: GpuFacts, shape: ModelShape) -> float:
    """Return the factor by which AMD's AITER backend enlarges SGLang's reserve; 1 elsewhere."""
    ranks, length = attention_ranks(command), command.max_model_len
    if not gpu.name.startswith("AMD") or not isinstance(ranks, int) or ranks < 1:
        return 1.0
    longest = shape.context if length is None else length
    return aiter_factor(
        shape,
        ranks,
        longest if isinstance(longest, int) else None,
        command.options.get("--attention-backend"),
    )
