"""Reads the command lines of LMDeploy and of Text Generation Inference.

Source: InternLM/lmdeploy 0.16.0 lmdeploy/cli/serve.py and cli/utils.py (`FlexibleArgumentParser`,
argparse where `_` may stand for `-`), lmdeploy/pytorch/config.py (`DistConfig`),
lmdeploy/serve/openai/launch_server.py, lmdeploy/turbomind/parallel_config.py.

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
from kthena_components.core.values.unknown import MaybeInt, Unknown, all_known

_LMDEPLOY_USES: Mapping[str, tuple[str, Use]] = {
    "--tp": ("int", Use("tensor", least=1)),
    "--dp": ("int", Use("data", least=1)),
    "--ep": ("int", Use("expert", least=1)),
    "--nnodes": ("int", Use("nnodes", least=1)),
    "--node-rank": ("int", Use("node_rank", least=0)),
    "--session-len": ("int", Use("max_model_len", least=1)),
    "--backend": ("text", Use("backend")),
    "--distributed-executor-backend": ("text", Use("executor")),
}
_LMDEPLOY_SWITCHES = """
    --allow-credentials --allow-terminate-by-client --disable-fastapi-docs --disable-metrics
    --eager-mode --enable-abort-handling --enable-eplb --enable-microbatch --enable-prefix-caching
    --enable-return-routed-experts --language-model-only --ssl --trust-remote-code
"""
_SEVERAL = """
    --allow-headers --allow-methods --allow-origins --allowed-media-domains
    --cudagraph-capture-batch-sizes
"""
_LMDEPLOY_VALUED = """
    --async --cache-block-seq-len --cache-max-entry-count --chat-template --communicator --cp
    --device --dist-init-addr --dllm-block-length --dllm-confidence-threshold
    --dllm-denoising-steps --dllm-unmasking-strategy --download-dir --dtype
    --generation-config --hf-overrides --kernel-block-size --log-level --logprobs-mode
    --max-batch-size --max-concurrent-requests --max-log-len --max-prefill-iters
    --max-prefill-token-num --migration-backend --model-format --model-name --num-tokens-per-iter
    --prefix-cache-decode-state-interval --prefix-cache-state-budget --proxy-url --quant-policy
    --reasoning-parser --revision --role --rope-scaling-factor --server-name --server-port
    --speculative-algorithm --speculative-draft-model --speculative-num-draft-tokens
    --tool-call-parser --vision-max-batch-size
"""
LMDEPLOY = build_dialect(
    "LMDeploy",
    [
        *(
            (Option(name, type=kind, use=use), (name,), ())
            for name, (kind, use) in _LMDEPLOY_USES.items()
        ),
        *((Option(name), (name,), ()) for name in _LMDEPLOY_VALUED.split()),
        *((Option(name, "+"), (name,), ()) for name in _SEVERAL.split()),
        *((Option(name, "*"), (name,), ()) for name in ("--adapters", "--api-keys")),
        *((Option(name, "0"), (name,), ()) for name in _LMDEPLOY_SWITCHES.split()),
    ],
    refused={
        **dict.fromkeys(("-tp", "--tp-size", "--tensor-parallel-size"), "--tp"),
        **dict.fromkeys(("-dp", "--dp-size", "--data-parallel-size"), "--dp"),
    },
    underscores=True,
)
_TURBOMIND = Unknown(
    "TurboMind lays the copies of --dp over as many GPUs as there are, up to tensor × data"
)


def read_lmdeploy(words: Sequence[str], scope: Scope) -> CommandFacts:
    """Read the arguments behind `lmdeploy serve api_server`.

    The sizes overlap. One copy of a model has as many ranks as the larger of its tensor and expert
    sizes. With several copies, the PyTorch engine has as many as the largest of all three.
    """
    reading = Reading(LMDEPLOY, scope).read(words)
    reading.take_model(positional=True)
    facts = reading.facts("lmdeploy")
    experts: MaybeInt = 1 if isinstance(facts.expert, bool) else facts.expert
    sizes = all_known(facts.tensor, facts.data, experts)
    if isinstance(sizes, Unknown):
        return replace(facts, tensor=sizes, data=1)
    data, most = sizes[1], max(sizes)
    if data == 1:
        return replace(facts, tensor=most)
    if reading.get("backend", None) != "pytorch":
        return replace(facts, tensor=_TURBOMIND, data=1)
    return replace(facts, tensor=max(most // data, 1))


_TGI_USES: Mapping[str, tuple[str, Use]] = {
    "--num-shard": ("int", Use("tensor", least=1)),
    "--sharded": ("bool", Use("sharded")),
    "--model-id": ("text", Use("model")),
    "--max-total-tokens": ("int", Use("max_model_len", least=1)),
}
"""The flags that are read, with their types and fields."""
_TGI_SWITCHES = """
    --disable-custom-kernels --disable-grammar-support --enable-prefill-logprobs --env --json-output
    --ngrok --trust-remote-code
"""
_TGI_VALUED = """
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
TGI = build_dialect(
    "Text Generation Inference",
    [
        *(
            (Option(name, type=kind, use=use), (name,), ())
            for name, (kind, use) in _TGI_USES.items()
        ),
        *((Option(name), (name,), ()) for name in _TGI_VALUED.split()),
        *((Option(name, "0"), (name,), ()) for name in _TGI_SWITCHES.split()),
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
    reading = Reading(TGI, scope).read(words)
    reading.take_model(positional=False)
    for flag, (_, use) in _TGI_USES.items():
        if use.field not in reading.values and use.field not in reading.doubts:
            _from_variable(flag, use.field, reading)
    facts = reading.facts("tgi")
    tensor, where = _shards(reading)
    return replace(facts, tensor=tensor, where=MappingProxyType({**facts.where, **where}))


def _from_variable(flag: str, field: str, reading: Reading) -> None:
    """Read an option of Text Generation Inference from the variable with its name in capitals."""
    name = flag.removeprefix("--").replace("-", "_").upper()
    value = reading.scope.look_up(name)
    if isinstance(value, Unknown):
        reading.values[field] = value
    elif value:
        stated = Reading(TGI, Scope({}, {}, in_shell=True)).read([flag, value])
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
