"""KAITO: Workspace, InferenceSet and MultiRoleInference."""

from kthena_components.systems.contract import System, legacy
from kthena_components.systems.kaito.facts import KINDS, read
from kthena_components.systems.kaito.rules import RULES, judge_kaito

SYSTEM = System(
    name="kaito",
    title="KAITO",
    kinds=tuple(legacy(kind, read, judge_kaito, rules=RULES) for kind in sorted(KINDS)),
)
