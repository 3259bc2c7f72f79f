"""What a command line says about an engine, as plain numbers.

Nothing here reads or writes a command, and nothing here judges one: a rule that compares these
numbers with GPUs lives in `core/rules`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from kthena_components.core.engines.releases import Release
from kthena_components.core.values.unknown import MaybeBool, MaybeInt, MaybeText, Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong with a command line, whatever GPUs stand behind it."""

    flag: str
    """The flag as it was written: `-tp8`. `-c` for a whole script."""
    text: str
    """What was seen and the rule that it breaks. A clause, no full stop."""
    remedy: str = ""
    """What to write instead, in the imperative. No full stop."""
    hard: bool
    """Whether the engine (or the shell) refuses to start. False: it starts, but reads badly."""
    option: bool = False
    """Whether it is about an option of the engine, as its own parser sees it."""


MAX_PROBLEMS = 50
"""Problems of one kind that one command line can have. Nobody would read the rest."""


def capped(problems: Iterable[Problem]) -> list[Problem]:
    """Leave out what nobody would read; those that let the engine start hide none that do not."""
    kept: list[Problem] = []
    room = {True: MAX_PROBLEMS, False: MAX_PROBLEMS}
    for problem in problems:
        if room[problem.hard]:
            room[problem.hard] -= 1
            kept.append(problem)
    return kept


ALL_GPUS = Unknown("the engine takes all GPUs of its container")
"""The tensor size of an engine without the option, which takes all GPUs that it sees."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandFacts:
    """What one container's command line asks of its engine.

    A size that the command line does not state has the engine's default. A value is an `Unknown`
    when the command line states it but not as something that can be read now, or when a config
    file or an unresolved variable may state it.
    """

    engine: str | None = None
    """vllm, sglang, trtllm, tgi, lmdeploy or huggingfaceserver. None: only a Ray helper."""
    release: Release | None = None
    """The release whose options were read. None: no table is kept of the engine."""
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """Every option that is stated, by its first long spelling in that release
    (`--max-num-seqs`): int, float, str, bool for a switch, a tuple for several words, a dict for a
    JSON object, or Unknown."""
    tensor: MaybeInt = 1
    """GPUs that share each layer. Default 1 in every engine."""
    pipeline: MaybeInt = 1
    """Stages that the layers are split into. Default 1 in every engine."""
    data: MaybeInt = 1
    """Full copies of the model in the whole engine, all pods together. Default 1."""
    data_local: MaybeInt | None = None
    """Copies in this pod (vLLM only). None: not stated, so as many as the launch mode implies."""
    data_start_rank: MaybeInt | None = None
    """Rank of this pod's first copy, from 0 (vLLM `--data-parallel-start-rank`)."""
    data_rank: MaybeInt | None = None
    """Rank of this pod's only copy, from 0 (vLLM `--data-parallel-rank`)."""
    data_mode: MaybeText = "internal"
    """Who spreads requests over the copies: internal (the engine, over all pods), hybrid
    (something outside between pods, each of which has `data_local` copies) or external (each pod
    has one copy). vllm/engine/arg_utils.py derives it."""
    data_backend: MaybeText | None = None
    """mp or ray (vLLM `--data-parallel-backend`). None: not stated, mp."""
    prefill_context: MaybeInt = 1
    """Context parallelism that takes GPUs of its own: vLLM prefill context, TensorRT-LLM CP."""
    decode_context: MaybeInt = 1
    """Context parallelism inside the tensor group. Takes no GPUs of its own."""
    expert: MaybeBool | MaybeInt = False
    """vLLM: whether experts are spread over all ranks (a switch). SGLang and TensorRT-LLM: over
    how many ranks (a size). False: not asked for. `expert_size` is the same for all engines."""
    redundant_experts: MaybeInt = 0
    """Copies of experts that are spread together with the experts themselves (SGLang)."""
    attention_data: MaybeInt = 1
    """SGLang's attention data parallelism. It lives inside the tensor group: no GPUs of its own."""
    attention_context: MaybeInt = 1
    """SGLang's attention context parallelism (`--attn-cp-size`), inside the tensor group."""
    nnodes: MaybeInt | None = None
    """Pods of one engine in a native multi-node launch. None: not stated, 1."""
    node_rank: MaybeInt | None = None
    """This pod's number in a native launch, from 0. None: not stated, 0."""
    executor: MaybeText | None = None
    """vLLM: ray, mp, uni or external_launcher; SGLang: ray or None. None: the engine chooses."""
    headless: MaybeBool = False
    """Whether this pod computes only and serves no HTTP (vLLM `--headless`)."""
    model: MaybeText | None = None
    """Model name or path. None: not stated."""
    max_model_len: MaybeInt | None = None
    """Longest request in tokens. None: not stated, or left to the engine (`auto`, -1)."""
    long_context_allowed: MaybeBool = False
    """Whether a variable lets the engine go on with requests longer than the model was made for:
    VLLM_ALLOW_LONG_MAX_MODEL_LEN, SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN."""
    memory_fraction: float | Unknown | None = None
    """Share of each GPU's memory that the engine may take, 0 to 1. None: not stated. vLLM: of the
    whole GPU, default 0.92 (0.9 up to v0.19). SGLang: weights and KV cache together, computed by
    default. TensorRT-LLM: KV cache only, of what is free after the weights, default 0.9."""
    quantization: MaybeText | None = None
    """Method that the weights are quantised by (`--quantization`). None: as the checkpoint says."""
    kv_cache_dtype: MaybeText | None = None
    """Type of the numbers in the KV cache, `fp8` or `auto`. None: not stated, auto."""
    kv_cache_bytes: MaybeInt | None = None
    """Bytes of the KV cache on each GPU, in place of a share (vLLM `--kv-cache-memory-bytes`)."""
    cpu_offload_gib: float | Unknown | None = None
    """GiB of weights of each GPU that stay in the memory of the host (`--cpu-offload-gb`)."""
    host_offload: MaybeBool = False
    """Whether layers' weights stay in the memory of the host and are fetched when they are needed:
    `--offload-group-size` above 0, in vLLM and in SGLang."""
    architectures: tuple[str, ...] | Unknown | None = None
    """Model classes that the command line puts in place of the checkpoint's own."""
    kv_role: MaybeText | None = None
    """kv_producer, kv_consumer or kv_both (vLLM `--kv-transfer-config`)."""
    speculative_tokens: MaybeInt | None = None
    """Tokens drafted ahead at each step (vLLM `--speculative-config`)."""
    gpus_per_node: MaybeInt | None = None
    """TensorRT-LLM `--gpus_per_node`. None: detected when the engine starts."""
    mpi_ranks: MaybeInt | None = None
    """Processes that mpirun or srun starts, one a GPU. None: no MPI launcher."""
    ray_role: str | None = None
    """head or worker when the command starts Ray; head when one script can start either."""
    ray_cluster_size: MaybeInt | None = None
    """Pods that the Ray head waits for, itself included. None: not stated."""
    ray_script: str | None = None
    """Path of the image's own multi-node-serving.sh that the command runs. None: it runs none, or
    its path is not known, or a volume may hold it."""
    hidden: Unknown | None = None
    """Why options may be stated out of sight. None: all of them can be seen."""
    missing_files: tuple[str, ...] = ()
    """What is said of files that the command names and that are surely not mounted."""
    problems: tuple[Problem, ...] = ()
    where: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """Field name to the text it was read from: `{"tensor": "--tensor-parallel-size 8"}`."""

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
