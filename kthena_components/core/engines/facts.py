"""Facts of an engine's command line, as plain numbers.

Nothing here reads, writes or checks a command. Rules that compare these numbers with GPUs are in
`core/rules`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from enum import Enum
from types import MappingProxyType
from typing import Any

from kthena_components.core.engines.dialects import SGLANG_USES, TRTLLM_USES, VLLM_USES
from kthena_components.core.engines.options import Release
from kthena_components.core.remedies import Remedy, either, set_option
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.images import Image
from kthena_components.core.values.unknown import MaybeBool, MaybeInt, MaybeText, Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A mistake in a command line that does not depend on GPUs."""

    flag: str
    """The flag as it was written: `-tp8`. `-c` for a whole script."""
    text: str
    """The observation and the rule that it violates. A clause, no full stop."""
    remedy: str = ""
    """What to write instead, in the imperative. No full stop."""
    hard: bool
    """Whether the engine (or the shell) fails to start. False: it starts, but not as intended."""
    option: bool = False
    """Whether the engine's own parser reports it, as a mistake in an option."""


MAX_PROBLEMS = 50
"""Maximum number of reported problems of each severity per command line."""


def capped(problems: Iterable[Problem]) -> list[Problem]:
    """Limit the number of problems, separately for those that keep the engine from starting."""
    kept: list[Problem] = []
    room = {True: MAX_PROBLEMS, False: MAX_PROBLEMS}
    for problem in problems:
        if room[problem.hard]:
            room[problem.hard] -= 1
            kept.append(problem)
    return kept


ALL_GPUS = Unknown("the engine takes all GPUs of its container")
"""The tensor size of an engine without the option, which takes all GPUs that it sees."""


@dataclass(frozen=True, kw_only=True)
class ParallelSizes:
    """Into how many parts the options divide a model, and how many copies of it there are."""

    tensor: MaybeInt = 1
    """GPUs that share each layer. Default 1 in every engine."""
    pipeline: MaybeInt = 1
    """Stages that the layers are split into. Default 1 in every engine."""
    data: MaybeInt = 1
    """Full copies of the model in the whole engine, all pods together. Default 1."""
    prefill_context: MaybeInt = 1
    """Context parallelism on additional GPUs: vLLM prefill context, TensorRT-LLM CP."""
    decode_context: MaybeInt = 1
    """Context parallelism inside the tensor group: no additional GPUs."""
    expert: MaybeBool | MaybeInt = False
    """vLLM: whether expert parallelism over all ranks is on (a switch). SGLang and TensorRT-LLM:
    over how many ranks (a size). False: not set. `expert_size` is the same for all engines."""
    redundant_experts: MaybeInt = 0
    """Redundant copies of experts, distributed with the experts (SGLang)."""
    attention_data: MaybeInt = 1
    """SGLang's attention data parallelism, inside the tensor group: no additional GPUs."""
    attention_context: MaybeInt = 1
    """SGLang's attention context parallelism (`--attn-cp-size`), inside the tensor group."""


@dataclass(frozen=True, kw_only=True)
class DataParallelPlace:
    """Which copies of the model run in this pod, and who balances requests over all copies."""

    data_local: MaybeInt | None = None
    """Copies in this pod (vLLM only). None: not stated, so as many as the launch mode implies."""
    data_start_rank: MaybeInt | None = None
    """Rank of this pod's first copy, from 0 (vLLM `--data-parallel-start-rank`)."""
    data_rank: MaybeInt | None = None
    """Rank of this pod's only copy, from 0 (vLLM `--data-parallel-rank`)."""
    data_mode: MaybeText = "internal"
    """Who balances requests over the copies: internal (the engine, over all pods), hybrid (an
    external balancer over pods, each with `data_local` copies) or external (each pod has one copy).
    vllm/engine/arg_utils.py derives it.
    """
    data_backend: MaybeText | None = None
    """mp or ray (vLLM `--data-parallel-backend`). None: not stated, mp."""


@dataclass(frozen=True, kw_only=True)
class Launch:
    """How the processes of one engine start and find each other."""

    nnodes: MaybeInt | None = None
    """Pods of one engine in a native multi-node launch. None: not stated, 1."""
    node_rank: MaybeInt | None = None
    """This pod's rank in a native launch, from 0. None: not stated, 0."""
    executor: MaybeText | None = None
    """vLLM: ray, mp, uni or external_launcher; SGLang: ray or None. None: the engine chooses."""
    headless: MaybeBool = False
    """Whether this pod only computes and serves no HTTP (vLLM `--headless`)."""
    runs_others: bool = field(default=False, compare=False)
    """Whether the command also runs programs that are not read, and may start Ray."""
    devices: MaybeText | None = None
    """CUDA_VISIBLE_DEVICES of the engine's process. None: not set, as far as is stated."""
    network: Mapping[str, MaybeText] = field(
        default_factory=lambda: MappingProxyType({}), compare=False
    )
    """Variables of the network in the process of the engine or of Ray, if a script starts it."""
    by_module: bool = field(default=False, compare=False)
    """Whether vLLM's module api_server starts it, which ignores --headless."""
    by_dynamo: bool = field(default=False, compare=False)
    """Whether Dynamo's `dynamo.vllm` starts it and sets some variables for it."""
    slept: int = field(default=0, compare=False)
    """Seconds that its script surely sleeps before it starts the engine."""
    gpus_per_node: MaybeInt | None = None
    """TensorRT-LLM `--gpus_per_node`. None: detected when the engine starts."""


@dataclass(frozen=True, kw_only=True)
class MpiLaunch:
    """What mpirun, srun and trtllm-llmapi-launch start."""

    mpi_ranks: MaybeInt | None = None
    """Processes that mpirun or srun starts, one per GPU. None: no MPI launcher."""
    mpi_session: MaybeBool = False
    """Whether trtllm-llmapi-launch makes one session of these processes."""
    mpi_per_host: MaybeInt | None = None
    """Processes on each host (`--map-by ppr:8:node`, `-N 8`). None: not stated as a number."""
    mpi_slots: tuple[int, ...] | Unknown | None = None
    """Slots of each host of mpirun's `-H`. None: not stated in full, or hosts may have more."""


class Blocked(Enum):
    """Why a script does not go on after `ray start`."""

    BLOCK = "--block"
    """It runs until Ray stops."""
    EXEC = "exec"
    """It takes the place of the script's shell."""


@dataclass(frozen=True, kw_only=True)
class RayLaunch:
    """What `ray start` and the image's own scripts for Ray start."""

    ray_role: str | None = None
    """head or worker when the command starts Ray; head when one script can start either."""
    ray_heads: bool = field(default=False, compare=False)
    """Whether the command starts a Ray head in every pod: its script has no branch."""
    ray_cluster_size: MaybeInt | None = None
    """Pods that the Ray head waits for, itself included. None: not stated."""
    ray_gpus: MaybeInt | None = None
    """GPUs that Ray counts in this pod (`ray start --num-gpus`). None: all that it finds."""
    ray_address: MaybeText | None = field(default=None, compare=False)
    """Where this pod joins a Ray cluster (`ray start --address`). None: it joins none."""
    ray_written: str = field(default="", compare=False)
    """The same as it is written: `$(LWS_LEADER_ADDRESS):6379`."""
    ray_port: MaybeText | None = None
    """Port of the Ray cluster that this pod starts, as text. None: it starts none."""
    ray_blocks: Blocked | Unknown | None = None
    """The `ray start` that keeps the script from starting the engine after it."""
    ray_ends: bool = field(default=False, compare=False)
    """Whether the command ends when it has joined a Ray cluster: its container stops, and Ray."""
    ends_before_engine: bool = field(default=False, compare=False)
    """Whether the command ends while the engine runs in the background: its container stops."""
    ray_script: str | None = None
    """Path of the image's own multi-node-serving.sh that the command runs. None: it runs none, the
    path is unknown, or a volume may contain it.
    """


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """The model, and what the options change about it."""

    model: MaybeText | None = None
    """Model name or path. None: not stated."""
    architectures: tuple[str, ...] | Unknown | None = None
    """Model classes that the command line overrides."""
    quantization: MaybeText | None = None
    """Quantisation method (`--quantization`). None: as the checkpoint states."""
    max_model_len: MaybeInt | None = None
    """Longest request in tokens. None: not stated, or left to the engine (`auto`, -1)."""
    long_context_allowed: MaybeBool = False
    """Whether a variable allows requests longer than the model's maximum:
    VLLM_ALLOW_LONG_MAX_MODEL_LEN, SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN."""
    stages_draft: MaybeBool = False
    """Whether a variable lets all stages of a pipeline draft tokens (SGLANG_ENABLE_PP_SPEC)."""
    speculative_tokens: MaybeInt | None = None
    """Tokens drafted ahead at each step (vLLM `--speculative-config`)."""
    kv_role: MaybeText | None = None
    """kv_producer, kv_consumer or kv_both (vLLM `--kv-transfer-config`)."""


@dataclass(frozen=True, kw_only=True)
class MemoryOptions:
    """How much memory of a GPU the engine uses, and for what."""

    memory_fraction: float | Unknown | None = None
    """Share of each GPU's memory that the engine may use, 0 to 1. None: not stated. vLLM: of the
    whole GPU, default 0.92 (0.9 up to v0.19). SGLang: weights and KV cache together, computed by
    default. TensorRT-LLM: KV cache only, of what is free after the weights, default 0.9."""
    kv_cache_dtype: MaybeText | None = None
    """Data type of the KV cache, `fp8` or `auto`. None: not stated, auto."""
    kv_cache_bytes: MaybeInt | None = None
    """Bytes of the KV cache on each GPU, instead of a share (vLLM `--kv-cache-memory-bytes`)."""
    cpu_offload_gib: float | Unknown | None = None
    """GiB of each GPU's weights that stay in host memory (`--cpu-offload-gb`)."""
    host_offload: MaybeBool = False
    """Whether weights of layers stay in host memory and are loaded on demand:
    `--offload-group-size` above 0, in vLLM and in SGLang."""


@dataclass(frozen=True, kw_only=True)
class CommandFacts(
    ParallelSizes, DataParallelPlace, Launch, MpiLaunch, RayLaunch, ModelOptions, MemoryOptions
):
    """Facts of one container's command line.

    A size that the command line does not state has the engine's default. A value is `Unknown` if
    the command line states it in a form that cannot be read now, or if a config file or an
    unresolved variable may state it.
    """

    engine: str | None = None
    """vllm, sglang, trtllm, tgi, lmdeploy or huggingfaceserver. None: only a Ray helper."""
    release: Release | None = None
    """The release whose options were read. None: no table is kept of the engine."""
    image: Image | None = field(default=None, compare=False)
    """The container's image, with what the container installs before it starts an engine."""
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """Every option on the command line, by its first long spelling in that release
    (`--max-num-seqs`): int, float, str, bool for a switch, a tuple for several words, a dict for a
    JSON object, or Unknown. One that the release does not have: as written."""
    written: Mapping[str, str] = field(
        default_factory=lambda: MappingProxyType({}), hash=False, compare=False
    )
    """The values of options with unknown parts, as written: `$(LWS_LEADER_ADDRESS):5000`."""
    hidden: Unknown | None = None
    """Why options may be set where they cannot be read. None: all can be read."""
    missing_files: tuple[str, ...] = ()
    """Messages about files that the command names and that are definitely not mounted."""
    problems: tuple[Problem, ...] = ()
    where: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """The text that each field was read from: `{"tensor": "--tensor-parallel-size 8"}`."""

    @property
    def per_rank_world(self) -> MaybeInt:
        """GPUs of one data parallel rank: tensor × pipeline × context.

        vllm/config/parallel.py `world_size`; tensorrt_llm/mapping.py; sglang has no context here.
        """
        if self.engine is None:
            return Unknown("no engine is started here")
        return _product(self.tensor, self.pipeline, self.prefill_context)

    @property
    def world(self) -> MaybeInt:
        """GPUs of one whole engine, every data parallel rank included.

        vllm/config/parallel.py `world_size_across_dp`; sglang/srt/server_args.py: DP × TP × PP.
        """
        return _product(self.per_rank_world, self.data)

    @property
    def expert_size(self) -> MaybeInt:
        """Ranks that the experts are spread over; 1 when they are not.

        vLLM spreads them over tensor × prefill context × data
        (vllm/model_executor/layers/fused_moe/config.py); the others state the size.
        """
        if isinstance(self.expert, bool):
            return _product(self.tensor, self.prefill_context, self.data) if self.expert else 1
        return self.expert


def _product(*factors: MaybeInt) -> MaybeInt:
    total = 1
    for factor in factors:
        if isinstance(factor, Unknown):
            return factor
        total *= factor
    return total


# Remedies that change the sizes of an engine, by the options of that engine.


OPTIONS_BY_FIELD: Mapping[str, Mapping[str, str]] = {
    engine: {use.field: option for option, use in reversed([*uses.items()]) if not use.key}
    for engine, uses in (("vllm", VLLM_USES), ("sglang", SGLANG_USES), ("trtllm", TRTLLM_USES))
}
"""The option of each engine that sets a field of CommandFacts: the first of several."""


def set_size(command: CommandFacts, field: str, number: int, text: str = "") -> Remedy:
    """Set a size of an engine, such as `tensor`: by the option of this engine."""
    option = OPTIONS_BY_FIELD.get(command.engine or "", {}).get(field)
    said = text or f"set {field} to {number}"
    return Remedy(said) if option is None else set_option(option, number, said)


def one_of_sizes(
    command: CommandFacts, field: str, numbers: Sequence[int], verb: str = ""
) -> Remedy:
    """Set a size of an engine to one of some numbers: `set tensor to 4 or 8`."""
    sizes = [
        set_size(command, field, n, f"{verb or f'set {field} to'} {n}" if not i else f"{n}")
        for i, n in enumerate(numbers)
    ]
    return either(*sizes, word=" or ")
