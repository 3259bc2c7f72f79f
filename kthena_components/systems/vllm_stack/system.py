"""Releases of the Helm chart vllm-stack, as Argo CD, Flux and Pulumi write them."""

from kthena_components.systems.contract import System, legacy
from kthena_components.systems.vllm_stack.facts import KINDS, judge, read
from kthena_components.systems.vllm_stack.rules import RULES

SYSTEM = System(
    name="vllm_stack",
    title="releases of vllm-stack",
    kinds=tuple(legacy(kind, read, judge, rules=RULES) for kind in sorted(KINDS)),
)
