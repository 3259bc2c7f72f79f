"""Engines by their command lines alone, and what the rules about models' shapes say of them."""

from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, run_rule
from kthena_components.core.rules.fp8_blocks_and_quantization_groups import fp8_block_multiple
from kthena_components.core.rules.tp_heads_ffn_pp_layers_moe import (
    ffn_divisible,
    moe_expert_shape,
    pp_within_layers,
    tp_divides_heads,
    tp_divides_kv_heads,
)
from tests.support.specs import gpu_template

RULES = (
    tp_divides_heads,
    tp_divides_kv_heads,
    pp_within_layers,
    moe_expert_shape,
    ffn_divisible,
    fp8_block_multiple,
)
SGLANG = "python3 -m sglang.launch_server --model-path"
QWEN, PHI, LLAMA = "Qwen/Qwen3-32B", "microsoft/phi-4", "meta-llama/Llama-3.1-405B-Instruct"
DEEPSEEK, FP8 = "deepseek-ai/DeepSeek-V3", "Qwen/Qwen3-235B-A22B-FP8"


def serving(command: str) -> ServingFacts:
    """Give a serving of one engine that starts like this."""
    engine = EngineFacts(
        path="e",
        name="decode",
        pods=1,
        replicas=1,
        entry=read_pod(gpu_template(command), "entry", command_path="here"),
        worker=None,
    )
    return ServingFacts(path="", name="s", engines=(engine,))


def findings(command: str) -> list[Finding]:
    facts = serving(command)
    return [finding for rule in RULES for finding in run_rule(rule, facts)]


def told(command: str) -> list[str]:
    """Give what is said, without the place and the engine, which are always the same."""
    start = "here: engine 'decode' "
    lines = [str(finding) for finding in findings(command)]
    assert all(line.startswith(start) for line in lines)
    return [line.removeprefix(start) for line in lines]


def rules(command: str) -> list[str]:
    return [finding.rule for finding in findings(command)]
