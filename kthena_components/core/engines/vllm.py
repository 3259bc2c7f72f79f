"""vLLM: its flags, what a command line of it says, and the command lines that start it.

Reader and writer are inverse, so they stand together. Flags: vllm/engine/arg_utils.py and
vllm/entrypoints/openai/cli_args.py. How they are parsed: vllm/utils/argparse_utils.py.
"""

from collections.abc import Sequence
from dataclasses import replace

from kthena_components.core.engines.facts import CommandFacts
from kthena_components.core.engines.launch import Commands, Launch, Refusal, port_clash, script
from kthena_components.core.engines.options import Kind, Option, build_dialect
from kthena_components.core.engines.reading import Reading
from kthena_components.core.engines.words import Scope
from kthena_components.core.known import MaybeText, Unknown

RAY_SCRIPT = "/vllm-workspace/examples/online_serving/multi-node-serving.sh"
"""Where vLLM's images keep the script that starts or joins a Ray cluster."""
RAY_PORT = 6379
MASTER_PORT = 29501
"""Default of `--master-port` (vllm/config/parallel.py)."""
DATA_RPC_PORT = 13345
"""Where the ranks of a data parallel engine meet. Any free port; vLLM's own default is 29550."""


def _size(name: str, field: str, *shorts: str, least: int = 1, counted: bool = True) -> Option:
    return Option(name, Kind.SIZE, field, shorts, least=least, counted=counted)


def _counted(name: str, field: str, *shorts: str) -> Option:
    return Option(name, Kind.TEXT, field, shorts, counted=True)


def _switch(name: str, field: str, *shorts: str, negatable: bool = False) -> Option:
    return Option(name, Kind.SWITCH, field, shorts, counted=True, negatable=negatable)


def _json(name: str, field: str, key: str, item: Kind) -> Option:
    return Option(name, Kind.JSON, field, key=key, item=item)


_READ = (
    _size("--tensor-parallel-size", "tensor", "-tp"),
    _size("--pipeline-parallel-size", "pipeline", "-pp"),
    _size("--prefill-context-parallel-size", "prefill_context", "-pcp"),
    _size("--decode-context-parallel-size", "decode_context", "-dcp", counted=False),
    _size("--data-parallel-size", "data", "-dp"),
    _size("--data-parallel-size-local", "data_local", "-dpl", least=0),
    _size("--data-parallel-rank", "data_rank", "-dpn", least=0),
    _size("--data-parallel-start-rank", "data_start_rank", "-dpr", least=0),
    _size("--data-parallel-rpc-port", "data_rpc_port", "-dpp"),
    _counted("--data-parallel-address", "data_address", "-dpa"),
    _counted("--data-parallel-backend", "data_backend", "-dpb"),
    _switch("--data-parallel-hybrid-lb", "hybrid", "-dph", negatable=True),
    _switch("--data-parallel-external-lb", "external", "-dpe", negatable=True),
    _switch("--data-parallel-multi-port-external-lb", "many_ports", "-dpm"),
    _switch("--enable-expert-parallel", "expert", "-ep", negatable=True),
    _size("--nnodes", "nnodes", "-n"),
    _size("--node-rank", "node_rank", "-r", least=0),
    _counted("--master-addr", "master_address"),
    _size("--master-port", "master_port"),
    _counted("--distributed-executor-backend", "executor"),
    _switch("--headless", "headless"),
    _counted("--model", "model"),
    _size("--port", "port"),
    Option("--max-model-len", Kind.LENGTH, "max_model_len"),
    Option("--gpu-memory-utilization", Kind.FRACTION, "memory_fraction"),
    Option("--quantization", Kind.TEXT, "quantization", ("-q",)),
    Option("--kv-cache-dtype", Kind.TEXT, "kv_cache_dtype"),
    Option("--kv-cache-memory-bytes", Kind.LENGTH, "kv_cache_bytes"),
    Option("--cpu-offload-gb", Kind.FRACTION, "cpu_offload_gib"),
    _json("--hf-overrides", "architectures", "architectures", Kind.MANY),
    _json("--kv-transfer-config", "kv_role", "kv_role", Kind.TEXT),
    _json("--speculative-config", "speculative_tokens", "num_speculative_tokens", Kind.SIZE),
    Option("--config", Kind.TEXT, "config", ("--kaito-config-file",)),
)

# Read past, but known: they decide what an abbreviation can mean and which word is the model.
_VALUED = """
    --additional-config --afd-config --all2all-backend --allowed-local-media-path
    --api-server-count --attention-backend --attention-config --block-size --chat-template
    --chat-template-content-format --code-revision --cohere-format --compilation-config
    --config-format --convert --cp-kv-cache-interleave-size
    --data-parallel-supervisor-port --dbo-decode-token-threshold --dbo-prefill-token-threshold
    --dcp-kv-cache-interleave-size --default-chat-template-kwargs --default-mm-loras --device
    --disable-access-log-for-endpoints --distributed-timeout-seconds --download-dir
    --dp-supervisor-probe-failure-threshold --dp-supervisor-probe-interval-s
    --dp-supervisor-probe-timeout-s --dtype --ec-transfer-config --engine-recovery-timeout
    --eplb-config --expert-placement-strategy --external-fault-notify-port --fingerprint-mode
    --fingerprint-value --generation-config --gloo-comm-timeout --guided-decoding-backend
    --h11-max-header-count --h11-max-incomplete-event-size --hf-config-path --host
    --internal-fault-report-port --io-processor-plugin
    --kv-cache-metrics-sample --kv-events-config --kv-offloading-backend --kv-offloading-size
    --limit-mm-per-prompt --load-format --log-config-file --logits-processor-pattern
    --logprobs-mode --long-prefill-token-threshold --lora-dtype --mamba-block-size
    --mamba-cache-dtype --mamba-cache-mode --mamba-ssm-cache-dtype --max-cpu-loras
    --max-cudagraph-capture-size --max-log-len --max-logprobs --max-long-partial-prefills
    --max-lora-rank --max-loras --max-num-batched-tokens --max-num-partial-prefills --max-num-seqs
    --max-parallel-loading-workers --max-seq-len-to-capture --media-io-kwargs --middleware
    --mm-encoder-attn-backend --mm-encoder-tp-mode --mm-processor-cache-gb
    --mm-processor-cache-type --mm-processor-kwargs --mm-shm-cache-max-object-size-mb --model-impl
    --model-loader-extra-config --num-gpu-blocks-override --num-lookahead-slots
    --optimization-level --otlp-traces-endpoint --override-attention-dtype
    --override-generation-config --pooler-config --prefix-caching-hash-algo --profiler-config
    --pt-load-map-location --reasoning-parser --reasoning-parser-plugin
    --response-role --revision --root-path --rope-scaling --rope-theta --runner
    --safetensors-load-strategy --scheduler-cls --scheduling-policy --seed
    --show-hidden-metrics-for-version --ssl-ca-certs --ssl-cert-reqs --ssl-certfile --ssl-ciphers
    --ssl-keyfile --stream-interval --structured-outputs-config --swap-space --task --tokenizer
    --tokenizer-mode --tokenizer-pool-size --tokenizer-pool-type --tokenizer-revision
    --tool-call-parser --tool-parser-plugin --tool-server --ubatch-size --uds --uvicorn-log-level
    --video-pruning-rate --weight-transfer-config --worker-cls --worker-extension-cls -O -ac -asc
    -cc
"""
_MANY = """
    --allowed-headers --allowed-media-domains --allowed-methods --allowed-origins --api-key
    --collect-detailed-traces --cudagraph-capture-sizes --hf-token --ignore-patterns
    --logits-processors --lora-modules --prompt-adapters --served-model-name
"""
_SWITCHES = """
    --aggregate-engine-logging --allow-credentials --allow-deprecated-quantization
    --async-scheduling --calculate-kv-scales --cudagraph-metrics --disable-cascade-attn
    --disable-chunked-mm-input --disable-custom-all-reduce --disable-fastapi-docs
    --disable-hybrid-kv-cache-manager --disable-log-requests --disable-log-stats
    --disable-nccl-for-dp-synchronization --disable-sliding-window --disable-uvicorn-access-log
    --enable-auto-tool-choice --enable-batch-sharded-sampling --enable-chunked-prefill --enable-dbo
    --enable-elastic-ep --enable-ep-weight-filter --enable-eplb --enable-fault-tolerance
    --enable-flash-late-interaction --enable-force-include-usage --enable-layerwise-nvtx-tracing
    --enable-log-deltas --enable-log-outputs --enable-log-requests
    --enable-logging-iteration-details --enable-lora --enable-mfu-metrics --enable-mm-embeds
    --enable-offline-docs --enable-per-request-metrics --enable-prefix-caching
    --enable-prompt-embeds --enable-prompt-tokens-details --enable-request-id-headers
    --enable-return-routed-experts --enable-server-load-tracking --enable-sleep-mode
    --enable-ssl-refresh --enable-tokenizer-info-endpoint --enable-tower-connector-lora
    --enforce-eager --exclude-tools-when-tool-choice-none --fully-sharded-loras --grpc
    --interleave-mm-strings --kv-cache-metrics --kv-sharing-fast-prefill --language-model-only
    --log-error-stack --mm-encoder-only --ray-workers-use-nsight --return-tokens-as-token-ids
    --shutdown-on-fault-tolerance-failure --skip-mm-profiling --skip-tokenizer-init
    --specialize-active-lora --tokens-only --trust-remote-code --trust-request-chat-template
    --use-tqdm-on-load
"""
_OPTIONS = (
    *_READ,
    *(Option(name) for name in _VALUED.split()),
    *(Option(name, Kind.MANY) for name in _MANY.split()),
    *(Option(name, Kind.SWITCH) for name in _SWITCHES.split()),
)
DIALECT = build_dialect(
    "vLLM",
    _OPTIONS,
    {
        **dict.fromkeys(("--tp", "--tp-size"), "--tensor-parallel-size"),
        **dict.fromkeys(("--pp", "--pp-size"), "--pipeline-parallel-size"),
        **dict.fromkeys(("--dp", "--dp-size"), "--data-parallel-size"),
        **dict.fromkeys(("--ep", "--ep-size"), "--enable-expert-parallel"),
        "--dcp": "--decode-context-parallel-size",
        "--pcp": "--prefill-context-parallel-size",
        "--model-path": "--model",
    },
    underscores=True,
)
_KSERVE = (
    Option("--model-id", Kind.TEXT, "model"),
    Option("--model-dir", Kind.TEXT, "model"),
    Option("--model-name"),
)
KSERVE_DIALECT = build_dialect("huggingfaceserver", (*_OPTIONS, *_KSERVE), {}, underscores=True)
"""KServe's server takes vLLM's flags beside its own (kserve python/huggingfaceserver)."""


def read_vllm(
    words: Sequence[str], scope: Scope, *, engine: str = "vllm", positional: bool = True
) -> CommandFacts:
    """Read the arguments behind `vllm serve`, or those of a program that takes the same flags.

    A config file (`--config`) gives way to the command line, so that only what the command line
    leaves open is unknown with one (vllm/utils/argparse_utils.py `_pull_args_from_config`).
    """
    dialect = KSERVE_DIALECT if engine == "huggingfaceserver" else DIALECT
    reading = Reading(dialect, scope).read(words)
    reading.take_model(positional=positional)
    if "config" in reading.values:
        reading.hide(f"the file of {reading.where['config']} is not at hand")
    facts = reading.facts(engine)
    return replace(facts, data_mode=_data_mode(reading, facts))


def _data_mode(reading: Reading, facts: CommandFacts) -> MaybeText:
    """Say who balances the copies' load (vllm/engine/arg_utils.py `create_engine_config`).

    A start rank without `--headless` means hybrid, but only beside a local size.
    """
    stated = reading.values
    if stated.get("external") or "data_rank" in stated:
        return "external"
    if stated.get("hybrid") or stated.get("many_ports"):
        return "hybrid"
    if {"data_start_rank", "data_local"} <= stated.keys() and facts.headless is not True:
        return facts.headless if isinstance(facts.headless, Unknown) else "hybrid"
    return reading.hidden or "internal"


def write_vllm(launch: Launch) -> Commands:
    """Write the commands of a launch that `unsupported_vllm` does not refuse.

    Only sizes above 1 are stated, except tensor and pipeline, which a reader should always see.
    """
    http = ("http", launch.port)
    if launch.pods == 1:
        shape = _data(launch) + _executor(launch)
        return Commands(_serve(launch, *shape), None, (http,))
    if launch.launcher == "ray":
        return _write_ray(launch, http)
    if launch.data > 1:
        return _write_data_parallel(launch, http)
    shape = ("--nnodes", str(launch.pods), "--node-rank", "$(WORKER_INDEX)")
    shape += ("--master-addr", "$(ENTRY_ADDRESS)", "--master-port", str(MASTER_PORT))
    shape += ("--distributed-executor-backend", "mp")
    worker = _serve(launch, *shape, "--headless")
    return Commands(_serve(launch, *shape), worker, (http, ("master", MASTER_PORT)))


def _write_ray(launch: Launch, http: tuple[str, int]) -> Commands:
    local = ("--data-parallel-size-local", str(launch.data // launch.pods))
    shape = (*_data(launch), *local, "--data-parallel-backend", "ray") if launch.data > 1 else ()
    serve = _serve(launch, *shape, "--distributed-executor-backend", "ray")
    # A literal number: who reads the manifest can compare it with the pods.
    leader = script("bash", RAY_SCRIPT, "leader", f"--ray_cluster_size={launch.pods}")
    worker = ("bash", RAY_SCRIPT, "worker", "--ray_address=$(ENTRY_ADDRESS)")
    entry = ("sh", "-c", f"{leader} && exec {script(*serve)}")
    return Commands(entry, worker, (http, ("ray", RAY_PORT)))


def _write_data_parallel(launch: Launch, http: tuple[str, int]) -> Commands:
    """Write a launch whose copies lie within pods: as many in each, numbered pod by pod."""
    local = launch.data // launch.pods
    shape = [*_data(launch), "--data-parallel-size-local", str(local)]
    shape += ["--data-parallel-address", "$(ENTRY_ADDRESS)"]
    shape += ["--data-parallel-rpc-port", str(DATA_RPC_PORT), *_executor(launch)]
    worker = script(*_serve(launch, *shape, "--headless"))
    # Kubernetes cannot multiply, so the shell does.
    rank = f"--data-parallel-start-rank $((WORKER_INDEX * {local}))"
    return Commands(
        _serve(launch, *shape),
        ("sh", "-c", f"exec {worker} {rank}"),
        (http, ("dp-rpc", DATA_RPC_PORT)),
    )


def _serve(launch: Launch, *shape: str) -> tuple[str, ...]:
    words = ["vllm", "serve", launch.model, "--port", str(launch.port)]
    words += ["--tensor-parallel-size", str(launch.tensor)]
    words += ["--pipeline-parallel-size", str(launch.pipeline)]
    words += ["--enable-expert-parallel"] if launch.expert else []
    return (*words, *shape, *launch.extra_args)


def _data(launch: Launch) -> tuple[str, ...]:
    return ("--data-parallel-size", str(launch.data)) if launch.data > 1 else ()


def _executor(launch: Launch) -> tuple[str, ...]:
    several = launch.tensor * launch.pipeline > 1
    return ("--distributed-executor-backend", "mp") if several else ()


def unsupported_vllm(launch: Launch) -> list[Refusal]:
    """Say what `write_vllm` cannot express. Counts of GPUs are not judged here."""
    if launch.launcher not in {"ray", "native"}:
        seen = f"is '{launch.launcher}', and the pods of vLLM are joined by ray or native"
        return [Refusal("launcher", seen, "write 'ray' or 'native'", "engine-launch")]
    if launch.launcher == "ray":
        refusals = port_clash(launch, RAY_PORT, "Ray")
    elif launch.data > 1:
        refusals = port_clash(launch, DATA_RPC_PORT, "data parallel RPC")
    else:
        refusals = port_clash(launch, MASTER_PORT, "--master-port")
    copy = launch.tensor * launch.pipeline
    if launch.pods == 1 or launch.data == 1:
        return refusals
    if copy > launch.gpus_per_pod:
        seen = (
            f"is {launch.data}, and one copy has tensor {launch.tensor} x pipeline "
            f"{launch.pipeline} = {copy} GPUs, more than the {launch.gpus_per_pod} of a pod; "
            "several copies that each span pods are not written"
        )
        remedy = "set data to 1, or tensor x pipeline to what one pod has"
        refusals.append(Refusal("parallelism.data", seen, remedy, "data-parallel-layout"))
    elif launch.data % launch.pods:
        seen = f"is {launch.data}, which does not spread evenly over {launch.pods} pods"
        remedy = f"set data to a multiple of {launch.pods}"
        refusals.append(Refusal("parallelism.data", seen, remedy, "data-parallel-layout"))
    return refusals
