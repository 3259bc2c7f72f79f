"""Inputs of the memory rules: an engine's model, weights, parallelism and GPU."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kthena_components.core.engines import CommandFacts
from kthena_components.core.engines.vllm import runs_encoder
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.hardware import GpuFacts, OtherGpu, largest_gpu, usable_memory
from kthena_components.core.memory import (
    Split,
    fullest_weights,
    held_weights,
    overhead,
    start_up,
    weights_on_gpu,
)
from kthena_components.core.memory.held_weights import loaded_weights, staged_files, weights_of
from kthena_components.core.memory.largest_batch import HOPPER, PATCHES, SERVER, StartUp, batch_of
from kthena_components.core.memory.sharding import (
    ENGINES,
    VLLM,
    gathers_tokens,
    model_shape,
    split_of,
    switched,
)
from kthena_components.core.memory.share import (
    captured_graphs,
    count_option,
    sglang_release,
    share_of,
    taken_before,
    vllm_release,
)
from kthena_components.core.memory.sizes import resolved_type, spreads_unknown_experts
from kthena_components.core.memory.sleep_mode import repacked_weights, unmapped
from kthena_components.core.memory.sparse_attention import (
    SglangCell,
    prefill_workspace,
    sglang_cell,
)
from kthena_components.core.memory.states_and_drafts import (
    drafted_tokens,
    kept_in_sglang,
    left_in_sglang,
    loaded_part,
)
from kthena_components.core.models import ModelShape, find_by_folder, find_by_spelling, find_model
from kthena_components.core.values.caches import cached_last
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.images import Version
from kthena_components.core.values.read import first_unknown, mapping
from kthena_components.core.values.unknown import Unknown

_OWN_CONFIG, _OWN_RELEASES = "mistralai/", ((0, 12), (0, 20))
"""Repositories with Mistral's config, the first release of vLLM that was read which prefers it by
default (get_config in vllm/transformers_utils/config.py of 0.12.0, not of 0.11.0), and the first
whose encoder for it is split: pixtral.py of 0.20.0, not of 0.19.1."""


def assumed_model(pod: PodFacts, command: CommandFacts) -> ModelShape | None:
    """Return the model that the pod downloads, or that a folder or the served name is named after.

    None: nothing suggests one.
    """
    if pod.downloaded is not None:
        return pod.downloaded
    served = served_name(command)
    paths = (command.model, command.options.get("--model"))  # two if the command is wrong
    by_folder = (find_by_folder(path, served) for path in paths)
    found = (*by_folder, *map(find_by_spelling, (command.model, served)))
    known = next(filter(None, found), None)
    stated = None if known or served is None else find_model(served)
    return stated if isinstance(stated, ModelShape) else known


def served_name(command: CommandFacts) -> str | None:
    """Return the first name under which an engine serves its model, if it is stated."""
    stated = command.options.get("--served-model-name")
    first = stated[0] if isinstance(stated, tuple) and stated else stated
    return first if isinstance(first, str) else None


_FREE = 0.9
"""TensorRT-LLM's default share of the memory that the weights leave free."""
_SPARSE = (
    "--nsa-prefill-backend", "--nsa-decode-backend",
    "--dsa-prefill-backend", "--dsa-decode-backend",
)  # fmt: skip
"""Options for the backends of sparse attention in SGLang, with their older and newer names."""
_WORKSPACE = 394 / 1024
"""VLLM_FLASHINFER_WORKSPACE_BUFFER_SIZE by default: vllm/envs.py of 0.20.2 to 0.33.0."""
_LENGTH_FLAGS = {"sglang": "--context-length", "trtllm": "--max_seq_len"}


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOnGpu:
    """An engine whose model and GPU are known. Sizes in GiB."""

    engine: EngineFacts
    command: CommandFacts
    shape: ModelShape
    gpu: GpuFacts
    gib: float
    """All weights."""
    split: Split
    share: float
    """Share of a GPU for weights, or for weights, overhead and cache together."""
    version: Version | None = None
    """Release of vLLM that the image states."""
    assumed: bool = False
    """Whether the model is the one that its folder or its served name is named after, which may be
    a copy."""

    @property
    def budget(self) -> float:
        """Memory of one GPU that the engine may use."""
        return self.share * self.gpu.memory_gib

    @property
    def most(self) -> float:
        """Memory of one GPU that weights do not exceed for certain: the budget of a stated share.

        A share that SGLang chooses itself may be another one: in two of its start-ups without a
        stated one, weights and cache take 4.5 and 5 GiB more. So it is with the factor of AITER,
        if the backend is not stated.
        """
        stated = self.command.memory_fraction
        if self.command.engine != "sglang":
            return self.budget
        if not isinstance(stated, int | float):
            return max(self.budget, self.usable - taken_before(self.split, self.gpu.name))
        chosen = "--attention-backend" not in self.command.options
        return stated * self.gpu.memory_gib if chosen else self.budget

    @property
    def weights(self) -> float:
        """Weights on a GPU, the mean over all."""
        return weights_on_gpu(self.shape, self.split, self.gib)

    @property
    def fullest(self) -> float:
        """Weights on a GPU in the fullest stage."""
        return fullest_weights(self.shape, self.split, self.gib)

    @property
    def loaded(self) -> float:
        """The weights on a GPU, padded as the engine's kernels need them."""
        shape, split, engine = self.shape, self.split, self.command.engine
        vllm = engine in VLLM
        multiple = held_weights.inner_multiple(self.gpu.name if vllm else "", self.version)
        width, release = self._rocm_width, self.version
        gib = loaded_weights(shape, split, self.gib, width, multiple, release=release)
        gib += held_weights.expanding_copies(shape, split, always=engine == "sglang")
        if vllm:
            gib += held_weights.kept_buffers(shape, batch_of(self.start)[1], self.version)
            options = self.command.options
            gib -= held_weights.encoder_left_out(shape, split, options, self.version)
        if engine == "sglang":
            release, gpu = sglang_release(self.engine), self.gpu.name
            gib += kept_in_sglang(shape, split, self.gib, gpu, release)
        return gib + held_weights.encoder_copies(shape, split) * (self._encoder_ranks == 1)

    @property
    def loading(self) -> float:
        """Weights on a GPU in the fullest stage while they are quantised; 0 if they are not."""
        again = repacked_weights(self.command.options, self.shape, self.gib, self.version)
        first = held_weights.while_quantising(self.command, self.shape, self.gib, self.version)
        return fullest_weights(self.shape, self.split, max(first, again))

    @property
    def _encoder_ranks(self) -> int:
        """Ranks that share the encoder of images; 0 if it does not run."""
        options, ranks = self.command.options, self.split.tensor
        if not runs_encoder(options):
            return 0
        return 1 if has_whole_encoder(self.shape, options, self.version, ranks) else ranks

    @property
    def _rocm_width(self) -> int | None:
        """The inner width of an expert on one rank, if vLLM runs on a GPU of AMD."""
        if self.command.engine not in VLLM or not self.gpu.name.startswith("AMD"):
            return None
        ranks = 1 if self.command.expert is True else self.split.experts or self.split.tensor
        return (self.shape.expert_ffn or 0) // ranks

    @property
    def usable(self) -> float:
        """Memory of one GPU that CUDA reports to the engine: less than the driver does."""
        return usable_memory(self.gpu)

    @property
    def room(self) -> float:
        """Memory of one GPU for weights, cache and the overhead of `overhead`."""
        return self.share * self.usable

    @property
    def terms(self) -> start_up.Terms | None:
        """The parts of vLLM's overhead; None for another engine, or without the model's sizes."""
        return start_up.terms_of(self.start) if self.command.engine in VLLM else None

    @property
    def start(self) -> StartUp:
        """What decides what vLLM uses beside weights and cache."""
        stated, kind, gpu = self.command.max_model_len, self.cache_name, self.gpu.name
        length = stated if isinstance(stated, int) else self.shape.context
        fp8 = isinstance(kind, str) and kind.startswith("fp8")
        workspace = prefill_workspace(self.shape, gpu, length, fp8=fp8, release=self.version)
        return StartUp(
            shape=with_film(self.shape, length, self.command.options),
            split=self.split,
            gpu=gpu,
            memory_gib=self.usable,
            version=self.version,
            length=length,
            workspace=workspace,
            sequences=count_option(self.command, "--max-num-seqs"),
            tokens=count_option(self.command, "--max-num-batched-tokens"),
            encoder_ranks=self._encoder_ranks,
            films=runs_encoder(self.command.options, ("video",)),
            attention=_attention(self.command, self.shape, gpu, fp8=fp8),
            **captured_graphs(self.command.options),
            gathers=gathers_tokens(self.engine, self.command),
            staged=staged_files(self.command.options, self.fullest, self.version, gpu),
            whole_experts=self.command.expert is True,
            drafts=drafted_tokens(self.command),
            on=switched(self.engine, "1", gpu, self.version),
            off=switched(self.engine, "0", gpu, self.version),
        )

    @property
    def overhead(self) -> float:
        """Memory that the room has to hold beside weights and cache.

        SGLang takes its share of what is free before the weights, and leaves the rest to
        activations and graphs.
        """
        if self.command.engine == "sglang":
            return self.share * taken_before(self.split, self.gpu.name)
        if (terms := self.terms) is not None:
            return terms.total
        least = start_up.least_of(self.start) if self.command.engine in VLLM else 0.0
        return max(overhead(self.shape, self.fullest), least)

    @property
    def unmapped(self) -> float:
        """Memory that sleep mode has given back, and that vLLM takes for more room than it has."""
        return unmapped(self.command, self.shape, self.split, self.version)

    @property
    def left(self) -> float | None:
        """Memory of a GPU that is left for the KV cache; None if its size is stated in bytes."""
        left = self.room - self.loaded - self.overhead + self.unmapped
        if self.command.kv_cache_bytes is not None:
            return None
        if self.command.engine == "sglang":
            release = sglang_release(self.engine)
            left = left_in_sglang(left, self.shape, self.split, self.command.options, release)
            return left if self.sparse_cell is None else left * self.sparse_cell.growth
        if self.command.engine == "trtllm":
            fraction = self.command.memory_fraction
            return left * (fraction if isinstance(fraction, float) else _FREE)
        return left

    @property
    def cache_name(self) -> str | Unknown | None:
        """The type of the cache, as it is stated or as a checkpoint states it to vLLM."""
        vllm, stated = self.command.engine in VLLM, self.command.kv_cache_dtype
        return resolved_type(stated, self.shape, self.version) if vllm else stated

    @property
    def sparse_cell(self) -> SglangCell | None:
        """How SGLang stores a token of sparse attention; None for other engines and models."""
        stated, options = self.command.kv_cache_dtype, self.command.options
        if self.command.engine != "sglang" or isinstance(stated, Unknown):
            return None
        backends = [options[name] for name in _SPARSE if name in options]
        return sglang_cell(self.shape, stated, self.gpu.name, sglang_release(self.engine), backends)

    @property
    def length_flag(self) -> str:
        """The flag that sets the longest request."""
        return _LENGTH_FLAGS.get(self.command.engine or "", "--max-model-len")


def _attention(command: CommandFacts, shape: ModelShape, gpu: str, *, fp8: bool) -> float:
    """Return what FlashInfer's attention allocates in the first graph of whole decodes, in GiB.

    vLLM runs it with a cache in FP8 before Hopper, and on workstations of Blackwell; with drafts it
    has no such graph. Triton runs heads of two widths, and sinks (gpt-oss): vllm/platforms/cuda.py,
    get_cudagraph_support and _get_workspace_buffer in v1/attention/backends/flashinfer.py.
    """
    stated = str(command.options.get("--attention-backend", "FLASHINFER" if fp8 else ""))
    others = shape.compresses or shape.full_head_dim or shape.dtype == "mxfp4"
    runs = stated.upper() == "FLASHINFER" and shape.latent is None and not others
    known = gpu.startswith("NVIDIA") and not gpu.startswith((*HOPPER, *SERVER))
    return _WORKSPACE if runs and known and not drafted_tokens(command) else 0.0


def with_film(shape: ModelShape, length: int | None, options: Mapping[str, Any]) -> ModelShape:
    """Return the shape with a film as its largest image if it has as many tokens as a request.

    get_num_frames_with_most_features in vllm/model_executor/models/nano_nemotron_vl.py.
    """
    if not shape.film_tokens or not runs_encoder(options, ("video",)):
        return shape
    pairs = _stated_pictures(options) // 2 or (length or 0) // shape.film_tokens
    tokens = pairs * shape.film_tokens
    return replace(shape, image_patches=2 * tokens * PATCHES, image_tokens=tokens)


def _stated_pictures(options: Mapping[str, Any]) -> int:
    """Return the pictures of a film that an option states, or 0."""
    stated = mapping(options.get("--media-io-kwargs"))
    number = mapping(stated.get("video")).get("num_frames", stated.get("video.num_frames"))
    return number if type(number) is int and number > 0 else 0


def engines_on_gpu(facts: ServingFacts) -> Iterator[tuple[EngineFacts, EngineOnGpu | Unknown]]:
    """Return each engine whose pods state a GPU, or why its memory cannot be checked."""
    for engine in facts.engines:
        if (placed := engine_on_gpu(engine)) is not None:
            yield engine, placed


def engine_on_gpu(engine: EngineFacts) -> EngineOnGpu | Unknown | None:
    """Return an engine whose pods state a GPU, or why its memory cannot be checked.

    None if they state no GPU, or run no engine whose command line names the model.
    """
    command, gpu = engine.entry.command, engine.entry.gpu
    if command is None or command.engine not in ENGINES or gpu is None:
        return None
    return _on_gpu(engine, command, gpu)


@cached_last  # several rules ask for those of the same facts
def engines_without_gpu(facts: ServingFacts) -> Sequence[tuple[EngineFacts, EngineOnGpu | Unknown]]:
    """Return each engine without a GPU by name, on the largest GPU that its pods may request.

    Nothing names its GPU, or the GPU named for all pods cannot be the GPU of these pods.
    """
    found: list[tuple[EngineFacts, EngineOnGpu | Unknown]] = []
    for engine in facts.engines:
        entry, command = engine.entry, engine.entry.command
        if command is None or command.engine not in ENGINES or entry.on_cpus is not False:
            continue
        if entry.gpu is None or isinstance(entry.gpu, OtherGpu):
            found.append((engine, _on_gpu(engine, command, largest_gpu(entry.accelerators))))
    return found


def _on_gpu(
    engine: EngineFacts, command: CommandFacts, gpu: GpuFacts | Unknown
) -> EngineOnGpu | Unknown:
    """Return an engine with its model, its GPU and its share of the GPU's memory."""
    entry = engine.entry
    stated = model_shape(command, entry.shape)
    unnamed = isinstance(stated, Unknown) and entry.shape is None
    shape = (assumed_model(entry, command) if unnamed else None) or stated
    share, split = share_of(engine, command, gpu, shape), split_of(command)
    unknown = first_unknown(gpu, shape, split, share)
    if unknown is not None:
        return unknown
    if not isinstance(shape, ModelShape) or not isinstance(gpu, GpuFacts):
        return Unknown("its sizes are not known")
    if not isinstance(split, Split) or not isinstance(share, float):
        return Unknown("its sizes are not known")
    if spreads_unknown_experts(shape, split):
        return Unknown(f"more ranks share the experts of {shape.name}, whose size is not known")
    release = vllm_release(engine, command)
    shape = loaded_part(command, shape, release)
    gib = weights_of(command, shape, release)
    if isinstance(gib, Unknown):
        return gib
    return EngineOnGpu(
        engine=engine, command=command, shape=shape, gpu=gpu, gib=gib, split=split, share=share,
        version=release, assumed=isinstance(stated, Unknown),
    )  # fmt: skip


def has_whole_encoder(
    shape: ModelShape, options: Mapping[str, Any], release: Version | None, ranks: int = 1
) -> bool:
    """Return whether each rank has the whole encoder.

    With Mistral's config vLLM runs an encoder of its own, with plain layers before 0.20: Attention
    in vllm/model_executor/models/pixtral.py. That of transformers' config is split. Kimi's is not
    if ranks do not share its heads evenly: is_vit_use_data_parallel in vision.py since 0.26.
    """
    stated, (since, until) = options.get("--config-format", "auto"), _OWN_RELEASES
    repository = shape.image_masked and shape.name.startswith(_OWN_CONFIG)
    by_default = stated == "auto" and repository and (release is None or release >= since)
    plain = (stated == "mistral" or by_default) and release is not None and release < until
    data = options.get("--mm-encoder-tp-mode") == "data" or (shape.vision_heads or ranks) % ranks
    tower = shape.image_tokens is not None and not shape.vision_asked
    return bool(data) or plain or tower
