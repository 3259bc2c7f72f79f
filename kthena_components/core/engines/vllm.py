"""vLLM: its flags, what a command line of it says, and the command lines that start it.

Reader and writer are inverse, so they stand together. Flags: vllm/engine/arg_utils.py and
vllm/entrypoints/openai/cli_args.py. How they are parsed: vllm/utils/argparse_utils.py.
"""

from collections.abc import Sequence
from types import MappingProxyType

from kthena_components.core.engines.facts import CommandFacts
from kthena_components.core.engines.launch import Commands, Launch, Refusal, port_clash, script
from kthena_components.core.engines.options import Kind, Option, build_dialect
from kthena_components.core.engines.reading import Reading
from kthena_components.core.engines.words import Scope
from kthena_components.core.known import MaybeText

RAY_SCRIPT = "/vllm-workspace/examples/online_serving/multi-node-serving.sh"
"""Where vLLM's images keep the script that starts or joins a Ray cluster."""
RAY_PORT = 6379
MASTER_PORT = 29501
"""Default of `--master-port` (vllm/config/parallel.py)."""
DATA_RPC_PORT = 13345
"""Where the ranks of a data parallel engine meet. Any free port; vLLM's own default is 29550."""


def _size(name: str, field: str, *shorts: str, least: int = 1, counted: bool = True) -> Option:
    return Option(name, Kind.SIZE, field, shorts, least=least, counted=counted)


def _counted(name: str, field: str, *shorts: str, kind: Kind = Kind.TEXT) -> Option:
    return Option(name, kind, field, shorts, counted=True)


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
    _counted("--data-parallel-hybrid-lb", "hybrid", "-dph", kind=Kind.SWITCH),
    _counted("--data-parallel-external-lb", "external", "-dpe", kind=Kind.SWITCH),
    _counted("--data-parallel-multi-port-external-lb", "many_ports", "-dpm", kind=Kind.SWITCH),
    _counted("--enable-expert-parallel", "expert", "-ep", kind=Kind.SWITCH),
    _size("--nnodes", "nnodes", "-n"),
    _size("--node-rank", "node_rank", "-r", least=0),
    _counted("--master-addr", "master_address"),
    _size("--master-port", "master_port"),
    _counted("--distributed-executor-backend", "executor"),
    _counted("--headless", "headless", kind=Kind.SWITCH),
    _counted("--model", "model"),
    _size("--port", "port"),
    Option("--max-model-len", Kind.LENGTH, "max_model_len"),
    Option("--gpu-memory-utilization", Kind.FRACTION, "memory_fraction"),
    Option("--hf-overrides", Kind.JSON, "architectures", key="architectures"),
    Option("--kv-transfer-config", Kind.JSON, "kv_role", key="kv_role"),
    Option(
        "--speculative-config", Kind.JSON, "speculative_tokens", key="num_speculative_tokens"
    ),
    Option("--config", Kind.TEXT, "config", ("--kaito-config-file",)),
)

# Read past, but known: they decide what an abbreviation can mean and which word is the model.
_VALUED = """
    --additional-config --afd-config --all2all-backend --allowed-local-media-path
    --api-server-count --attention-backend --attention-config --block-size --chat-template
    --chat-template-content-format --code-revision --compilation-config --config-format --convert
    --cp-kv-cache-interleave-size --cpu-offload-gb --data-parallel-supervisor-port
    --dbo-decode-token-threshold --dbo-prefill-token-threshold --dcp-kv-cache-interleave-size
    --default-chat-template-kwargs --default-mm-loras --disable-access-log-for-endpoints
    --distributed-timeout-seconds --download-dir --dp-supervisor-probe-failure-threshold
    --dp-supervisor-probe-interval-s --dp-supervisor-probe-timeout-s --dtype --ec-transfer-config
    --engine-recovery-timeout --eplb-config --expert-placement-strategy --fingerprint-mode
    --generation-config --gloo-comm-timeout --guided-decoding-backend --hf-config-path --host
    --io-processor-plugin --kv-cache-dtype --kv-cache-memory-bytes --kv-cache-metrics-sample
    --kv-events-config --kv-offloading-backend --kv-offloading-size --limit-mm-per-prompt
    --load-format --log-config-file --logits-processor-pattern --logprobs-mode
    --long-prefill-token-threshold --lora-dtype --mamba-block-size --mamba-cache-dtype
    --mamba-cache-mode --mamba-ssm-cache-dtype --max-cpu-loras --max-cudagraph-capture-size
    --max-log-len --max-logprobs --max-long-partial-prefills --max-lora-rank --max-loras
    --max-num-batched-tokens --max-num-partial-prefills --max-num-seqs
    --max-parallel-loading-workers --max-seq-len-to-capture --media-io-kwargs --middleware
    --mm-encoder-attn-backend --mm-encoder-tp-mode --mm-processor-cache-gb
    --mm-processor-cache-type --mm-processor-kwargs --mm-shm-cache-max-object-size-mb
    --model-dir --model-id --model-impl --model-loader-extra-config --model-name
    --num-gpu-blocks-override --num-lookahead-slots --optimization-level --otlp-traces-endpoint
    --override-attention-dtype --override-generation-config --pooler-config
    --prefix-caching-hash-algo --profiler-config --pt-load-map-location --quantization
    --reasoning-parser --reasoning-parser-plugin --response-role --revision --rope-scaling
    --rope-theta --root-path --runner --safetensors-load-strategy --scheduler-cls
    --scheduling-policy --seed --show-hidden-metrics-for-version --ssl-ca-certs --ssl-cert-reqs
    --ssl-certfile --ssl-ciphers --ssl-keyfile --stream-interval --structured-outputs-config
    --swap-space --task --tokenizer --tokenizer-mode --tokenizer-pool-size --tokenizer-revision
    --tool-call-parser --tool-parser-plugin --tool-server --ubatch-size --uds
    --uvicorn-log-level --video-pruning-rate --weight-transfer-config --worker-cls
    --worker-extension-cls -asc -ac -cc -q -O
"""
_MANY = """
    --allowed-headers --allowed-media-domains --allowed-methods --allowed-origins --api-key
    --collect-detailed-traces --cudagraph-capture-sizes --hf-token --ignore-patterns
    --logits-processors --lora-modules --prompt-adapters --served-model-name
"""
_SWITCHES = """
    --aggregate-engine-logging --allow-credentials --async-scheduling --calculate-kv-scales
    --cudagraph-metrics --data-parallel-elastic --disable-cascade-attn --disable-chunked-mm-input
    --disable-custom-all-reduce --disable-fastapi-docs --disable-hybrid-kv-cache-manager
    --disable-log-requests --disable-log-stats --disable-nccl-for-dp-synchronization
    --disable-sliding-window --disable-uvicorn-access-log --enable-auto-tool-choice
    --enable-chunked-prefill --enable-dbo --enable-elastic-ep --enable-ep-weight-filter
    --enable-eplb --enable-fault-tolerance --enable-force-include-usage
    --enable-log-requests --enable-lora --enable-mm-embeds --enable-prefix-caching
    --enable-prompt-embeds --enable-prompt-tokens-details --enable-server-load-tracking
    --enable-sleep-mode --enforce-eager --exclude-tools-when-tool-choice-none
    --fully-sharded-loras --grpc --interleave-mm-strings --kv-cache-metrics
    --kv-sharing-fast-prefill --language-model-only --mm-encoder-only --ray-workers-use-nsight
    --skip-mm-profiling --skip-tokenizer-init --specialize-active-lora --tokens-only
    --trust-remote-code --trust-request-chat-template --use-tqdm-on-load
"""
DIALECT = build_dialect(
    "vLLM",
    [
        *_READ,
        *(Option(name) for name in _VALUED.split()),
        *(Option(name, Kind.MANY) for name in _MANY.split()),
        *(Option(name, Kind.SWITCH) for name in _SWITCHES.split()),
    ],
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
