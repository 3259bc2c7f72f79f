"""Reads the command lines of LMDeploy.

Source: InternLM/lmdeploy 0.16.0 lmdeploy/cli/serve.py and cli/utils.py (`FlexibleArgumentParser`,
argparse where `_` may stand for `-`), lmdeploy/pytorch/config.py (`DistConfig`),
lmdeploy/serve/openai/launch_server.py, lmdeploy/turbomind/parallel_config.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kthena_components.core.engines.arguments import Reading
from kthena_components.core.engines.facts import CommandFacts
from kthena_components.core.engines.options import Option, Use, build_dialect
from kthena_components.core.engines.placeholders import Scope
from kthena_components.core.values.unknown import MaybeInt, Unknown, all_known

_USES: Mapping[str, tuple[str, Use]] = {
    "--tp": ("int", Use("tensor", least=1)),
    "--dp": ("int", Use("data", least=1)),
    "--ep": ("int", Use("expert", least=1)),
    "--nnodes": ("int", Use("nnodes", least=1)),
    "--node-rank": ("int", Use("node_rank", least=0)),
    "--session-len": ("int", Use("max_model_len", least=1)),
    "--backend": ("text", Use("backend")),
    "--distributed-executor-backend": ("text", Use("executor")),
}
_SWITCHES = """
    --allow-credentials --allow-terminate-by-client --disable-fastapi-docs --disable-metrics
    --eager-mode --enable-abort-handling --enable-eplb --enable-microbatch --enable-prefix-caching
    --enable-return-routed-experts --language-model-only --ssl --trust-remote-code
"""
_SEVERAL = """
    --allow-headers --allow-methods --allow-origins --allowed-media-domains
    --cudagraph-capture-batch-sizes
"""
_VALUED = """
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
DIALECT = build_dialect(
    "LMDeploy",
    [
        *((Option(name, type=kind, use=use), (name,), ()) for name, (kind, use) in _USES.items()),
        *((Option(name), (name,), ()) for name in _VALUED.split()),
        *((Option(name, "+"), (name,), ()) for name in _SEVERAL.split()),
        *((Option(name, "*"), (name,), ()) for name in ("--adapters", "--api-keys")),
        *((Option(name, "0"), (name,), ()) for name in _SWITCHES.split()),
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
    reading = Reading(DIALECT, scope).read(words)
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
