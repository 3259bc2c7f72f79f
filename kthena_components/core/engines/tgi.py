"""Reads the command lines and the variables of Text Generation Inference.

Each flag is also a variable, and the flag takes precedence. Source: huggingface/text-generation-
inference v3.3.7 launcher/src/main.rs (`Args`, `find_num_shards`), parsed by clap: no abbreviations,
and hyphens only. The project has ended, and publishes nothing on the Python Package Index, so that
there is no table by release.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from kthena_components.core.engines.arguments import Reading
from kthena_components.core.engines.facts import ALL_GPUS, CommandFacts
from kthena_components.core.engines.options import Option, Use, build_dialect
from kthena_components.core.engines.placeholders import Scope
from kthena_components.core.values.unknown import MaybeInt, Unknown

_USES: Mapping[str, tuple[str, Use]] = {
    "--num-shard": ("int", Use("tensor", least=1)),
    "--sharded": ("bool", Use("sharded")),
    "--model-id": ("text", Use("model")),
    "--max-total-tokens": ("int", Use("max_model_len", least=1)),
}
"""The flags that are read, with their types and fields."""
_SWITCHES = """
    --disable-custom-kernels --disable-grammar-support --enable-prefill-logprobs --env --json-output
    --ngrok --trust-remote-code
"""
_VALUED = """
    --api-key --cors-allow-origin --cuda-graphs --cuda-memory-fraction --dtype
    --graceful-termination-timeout --hostname --huggingface-hub-cache --kv-cache-dtype
    --lora-adapters --master-addr --master-port --max-batch-prefill-tokens --max-batch-size
    --max-batch-total-tokens --max-best-of --max-client-batch-size --max-concurrent-requests
    --max-input-length --max-input-tokens --max-stop-sequences --max-top-n-tokens
    --max-waiting-tokens --ngrok-authtoken --ngrok-edge --otlp-endpoint --otlp-service-name
    --payload-limit --port --prometheus-port --quantize --revision --rope-factor --rope-scaling
    --shard-uds-path --speculate --tokenizer-config-path --usage-stats --validation-workers
    --waiting-served-ratio --watermark-delta --watermark-gamma --weights-cache-override
"""
DIALECT = build_dialect(
    "Text Generation Inference",
    [
        *((Option(name, type=kind, use=use), (name,), ()) for name, (kind, use) in _USES.items()),
        *((Option(name), (name,), ()) for name in _VALUED.split()),
        *((Option(name, "0"), (name,), ()) for name in _SWITCHES.split()),
    ],
    refused={
        **dict.fromkeys(("--num_shard", "--tp", "--tensor-parallel-size"), "--num-shard"),
        "--model": "--model-id",
    },
    abbreviates=False,
)
_VISIBLE = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
_ALL = frozenset({"", "all", "void"})
"""Values that leave all GPUs of the container visible."""


def read_tgi(words: Sequence[str], scope: Scope) -> CommandFacts:
    """Read the arguments behind `text-generation-launcher`, and the variables for other flags."""
    reading = Reading(DIALECT, scope).read(words)
    reading.take_model(positional=False)
    for flag, (_, use) in _USES.items():
        if use.field not in reading.values and use.field not in reading.doubts:
            _from_variable(flag, use.field, reading)
    facts = reading.facts("tgi")
    tensor, where = _shards(reading)
    return replace(facts, tensor=tensor, where=MappingProxyType({**facts.where, **where}))


def _from_variable(flag: str, field: str, reading: Reading) -> None:
    name = flag.removeprefix("--").replace("-", "_").upper()
    value = reading.scope.look_up(name)
    if isinstance(value, Unknown):
        reading.values[field] = value
    elif value:
        stated = Reading(DIALECT, Scope({}, {}, in_shell=True)).read([flag, value])
        reading.values.update(stated.values)
        reading.problems += stated.problems
        reading.where[field] = f"{name} {reading.scope.show(value)}"


def _shards(reading: Reading) -> tuple[MaybeInt, dict[str, str]]:
    """Return the GPUs that share the model, and where that is stated.

    Without a number, all GPUs that the container sees, or one if it is not sharded.
    """
    stated, sharded = reading.get("tensor", None), reading.get("sharded", None)
    if stated is not None:
        return stated, {}
    if sharded is False or isinstance(sharded, Unknown):
        return (1 if sharded is False else sharded), {}
    for name in _VISIBLE:
        value = reading.scope.look_up(name)
        if isinstance(value, Unknown):
            return value, {}
        if value is not None and value.strip() not in _ALL:
            return len(value.split(",")), {"tensor": f"{name} {reading.scope.show(value)}"}
    return ALL_GPUS, {}
