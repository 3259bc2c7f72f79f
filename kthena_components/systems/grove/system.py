"""Grove: PodCliqueSet."""

from kthena_components.systems.contract import System, legacy
from kthena_components.systems.grove.facts import KINDS, read
from kthena_components.systems.grove.rules import RULES, judge_pod_clique_set

SYSTEM = System(
    name="grove",
    title="Grove PodCliqueSet",
    kinds=tuple(
        legacy(kind, read, judge_pod_clique_set, rules=RULES, copies="replicas")
        for kind in sorted(KINDS)
    ),
)
