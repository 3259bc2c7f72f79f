"""SGLang: what a command line of it says. The command lines that start it: sglang_launch.py.

Flags: sglang/srt/arg_groups/fields and sglang/srt/server_args.py, parsed by plain argparse.
"""

from collections.abc import Sequence
from dataclasses import replace

from kthena_components.core.engines.facts import CommandFacts
from kthena_components.core.engines.files import as_flags, sglang_flag
from kthena_components.core.engines.options import Kind, Option, build_dialect
from kthena_components.core.engines.reading import Reading
from kthena_components.core.engines.words import Scope
from kthena_components.core.known import MaybeBool, MaybeInt, Unknown

_NO_EXCHANGE = frozenset({"none", "allgather"})
"""Values of --moe-a2a-backend that leave the experts as --ep-size says."""


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
    _size("--ep-num-redundant-experts", "redundant_experts", least=0, counted=False),
    Option("--moe-a2a-backend", Kind.TEXT, "exchange"),
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
    Option("--quantization", Kind.TEXT, "quantization"),
    Option("--kv-cache-dtype", Kind.TEXT, "kv_cache_dtype"),
    Option("--cpu-offload-gb", Kind.FRACTION, "cpu_offload_gib"),
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
    --attention-backend --attention-context-parallel-size --attn-cp-size --completion-template
    --constrained-json-max-whitespace-cnt --constrained-json-whitespace-pattern --context-bucket
    --cp-strategy --dcp-comm-backend --decode-attention-backend --decode-log-interval --device
    --disaggregation-bootstrap-port --disaggregation-mode --disaggregation-transfer-backend
    --dist-timeout --download-dir --dtype --dwdp-size --ep-dispatch-algorithm
    --eplb-algorithm --expert-balancedness-report-mode
    --expert-distribution-recorder-buffer-size --expert-distribution-recorder-mode
    --load-balance-method --load-format --model-checksum --model-config-parser --model-impl
    --model-loader-extra-config --modelexpress-config --modelopt-checkpoint-restore-path
    --modelopt-checkpoint-save-path --modelopt-export-path --modelopt-quant
    --moe-data-parallel-size --moe-dense-tp-size --moe-dp-size --moe-runner-backend --nccl-port
    --pp-async-batch-depth --pp-max-micro-batch-size --revision --served-model-name
    --tokenizer-mode --tokenizer-path --tool-call-parser
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


def read_sglang(words: Sequence[str], scope: Scope, *, positional: bool = False) -> CommandFacts:
    """Read the arguments behind `sglang serve` or `python -m sglang.launch_server`.

    Attention data parallelism lives inside the tensor group: it adds no GPUs, and the old
    `--enable-dp-attention` turns `--dp-size` into it (sglang/srt/arg_groups/parallel_hook.py
    `_handle_deprecated_dp_attention`). A config file gives way to the command line.
    """
    reading = Reading(DIALECT, scope).read(words)
    # `sglang serve` takes a model as the very first word only (sglang/cli/serve.py).
    reading.take_model(positional=positional and reading.bare[:1] == list(words[:1]))
    config = reading.config_file()
    if config is not None:
        reading.add_file(as_flags(config, sglang_flag))
    facts = reading.facts("sglang")
    if reading.values.get("use_ray"):
        facts = replace(facts, executor="ray")
    if reading.values.get("dp_attention"):
        width = facts.data if facts.attention_data == 1 else facts.attention_data
        facts = replace(facts, attention_data=width, data=1)
    return replace(facts, expert=_expert(reading, facts))


def _expert(reading: Reading, facts: CommandFacts) -> MaybeBool | MaybeInt:
    """Give the ranks that share the experts: with an exchange backend all ranks of a tensor group.

    Source: sglang/srt/server_args.py `_handle_a2a_moe`, whatever --ep-size says.
    """
    exchange = reading.values.get("exchange", "none")
    if isinstance(exchange, Unknown):
        return exchange
    return facts.expert if exchange in _NO_EXCHANGE else facts.tensor
