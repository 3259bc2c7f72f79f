"""NVIDIA Dynamo: graphs of components, and single ones."""

from kthena_components.systems.contract import System, legacy
from kthena_components.systems.dynamo.facts import KINDS, read
from kthena_components.systems.dynamo.rules import RULES, judge_dynamo

SYSTEM = System(
    name="dynamo",
    title="NVIDIA Dynamo",
    kinds=tuple(legacy(kind, read, judge_dynamo, rules=RULES) for kind in sorted(KINDS)),
)
