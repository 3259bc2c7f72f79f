"""SGLang: its flags, what a command line of it says, and the command lines that start it.

Reader and writer are inverse, so they stand together. Flags: sglang/srt/arg_groups/fields and
sglang/srt/server_args.py (0.5.23), parsed by plain argparse.
"""

from collections.abc import Sequence
from dataclasses import replace

from kthena_components.core.engines.facts import CommandFacts
from kthena_components.core.engines.launch import Commands, Launch, Refusal, port_clash
from kthena_components.core.engines.options import Kind, Option, build_dialect
from kthena_components.core.engines.reading import Reading
from kthena_components.core.engines.words import Scope

INIT_PORT = 20000
"""Where the pods of one engine meet. Any free port: `--dist-init-addr` has no default."""


def _size(name: str, field: str, *others: str, least: int = 1, counted: bool = True) -> Option:
    return Option(name, Kind.SIZE, field, others, least=least, counted=counted)


def _counted(name: str, field: str, *others: str, kind: Kind = Kind.TEXT) -> Option:
    return Option(name, kind, field, others, counted=True)


_READ = (
    _size("--tp-size", "tensor", "--tensor-parallel-size"),
    _size("--pp-size", "pipeline", "--pipeline-parallel-size"),
    _size("--dp-size", "data", "--data-parallel-size"),
    _size("--ep-size", "expert", "--expert-parallel-size", "--ep"),
    _size("--attn-dp-size", "attention_data", "--attention-data-parallel-size", counted=False),
    _size("--dcp-size", "decode_context", "--decode-context-parallel-size", counted=False),
    _counted("--enable-dp-attention", "dp_attention", kind=Kind.SWITCH),
    _size("--nnodes", "nnodes"),
    _size("--node-rank", "node_rank", least=0),
    _counted("--dist-init-addr", "init_address", "--nccl-init-addr"),
    _counted("--use-ray", "use_ray", kind=Kind.SWITCH),
    _counted("--model-path", "model", "--model"),
    _counted("--host", "host"),
    _size("--port", "port"),
    Option("--context-length", Kind.SIZE, "max_model_len"),
    Option("--mem-fraction-static", Kind.FRACTION, "memory_fraction"),
    Option(
        "--json-model-override-args",
        Kind.JSON,
        "architectures",
        key="architectures",
        item=Kind.MANY,
    ),
    Option("--config", Kind.TEXT, "config"),
)

# Read past, but known: they decide what an abbreviation can mean.
_VALUED = """
    --attention-backend --attn-cp-size --attention-context-parallel-size --completion-template
    --context-bucket --cp-strategy --dcp-comm-backend --decode-attention-backend
    --decode-log-interval --device --disaggregation-bootstrap-port --disaggregation-mode
    --disaggregation-transfer-backend --dist-timeout --download-dir --dtype
    --ep-dispatch-algorithm --ep-num-redundant-experts --eplb-algorithm
    --expert-balancedness-report-mode --expert-distribution-recorder-buffer-size
    --expert-distribution-recorder-mode --hicache-ratio --json-ignored-fields --kv-cache-dtype
    --load-balance-method --load-format --mem-reserve --model-checksum --model-config-parser
    --model-impl --model-loader-extra-config --modelexpress-config --modelopt-quant
    --moe-a2a-backend --moe-dense-tp-size --moe-dp-size --moe-data-parallel-size
    --moe-runner-backend --nccl-port --pp-async-batch-depth --pp-max-micro-batch-size
    --quantization --revision --served-model-name --tokenizer-mode --tokenizer-path
    --tool-call-parser
"""
_SWITCHES = """
    --disable-radix-cache --enable-dp-attention-local-control-broadcast --enable-dp-lm-head
    --enable-eplb --enable-metrics --enable-mixed-chunk --enable-torch-compile
    --enable-two-batch-overlap --trust-remote-code --trust-mm-content-hashes
"""
DIALECT = build_dialect(
    "SGLang",
    [
        *_READ,
        *(Option(name) for name in _VALUED.split()),
        *(Option(name, Kind.SWITCH) for name in _SWITCHES.split()),
    ],
    {
        "-tp": "--tp-size",
        "-pp": "--pp-size",
        "-dp": "--dp-size",
        "-ep": "--ep-size",
        "--enable-expert-parallel": "--ep-size",
        "--max-model-len": "--context-length",
    },
)
