"""Grove: PodCliqueSet."""

import re

from kthena_components.core.plan.controller_variables import Told, reference
from kthena_components.core.values.read import is_name, mapping
from kthena_components.systems.grove.facts import GROUP_PODS, facts, kept_cliques, pods_of_cliques
from kthena_components.systems.grove.rules.pods_counts_startup_sharing_links import (
    grove_counts,
    grove_links,
    grove_pods,
    grove_sharing,
    grove_startup,
)
from kthena_components.systems.grove.rules.scaling_groups_names_gang import (
    grove_gang,
    grove_names,
    grove_scaling_groups,
)
from kthena_components.systems.grove.view import GROVE, SET, CliqueSet, read_clique_set
from kthena_components.systems.system import Body, Kind, Restart, System

_GROUP = "-".join(map(reference, ("GROVE_PCSG_NAME", "GROVE_PCSG_INDEX")))
_OF_SET = ("GROVE_PCS_", "GROVE_PCLQ_", "GROVE_HEADLESS_SERVICE")
_DOMAIN = reference("GROVE_HEADLESS_SERVICE")


def _by_hand(body: Body) -> str:
    """Describe how pods restart if only their deletion restarts them.

    Source: ai-dynamo/grove operator/api/core/v1alpha1/podcliqueset.go, UpdateStrategyType.
    """
    strategy = mapping(mapping(mapping(body).get("spec")).get("updateStrategy"))
    deleted = strategy.get("type") == "OnDelete"
    return "a pod restarts when it is deleted" if deleted else ""


def tells(view: CliqueSet) -> Told:
    """Return the number of a pod in its clique, and the address of the leader's.

    Source: ai-dynamo/grove operator/api/common/constants/constants.go, and
    operator/internal/controller/podclique/components/pod/pod.go.
    """
    leaders = {engine.path for engine in facts(view).engines}
    grouped = view.grouped
    names = [c.name for c in view.cliques if is_name(c.name) and view.object.at(c.path) in leaders]
    return Told(
        size=(GROUP_PODS,),
        ordinal=("GROVE_PCLQ_POD_INDEX",),
        addresses=tuple(
            rf"{_GROUP}-{re.escape(str(name))}-0\.{_DOMAIN}" for name in names if name in grouped
        ),
        others=("GROVE_",),
        # Without a scaling group, no pod is told about one.
        exactly=_OF_SET if view.gap is None and not grouped else None,
    )


SYSTEM = System(
    name="grove",
    title="Grove PodCliqueSet",
    kinds=(
        Kind(
            group=GROVE,
            name=SET[1],
            view=read_clique_set,
            facts=facts,
            pods=pods_of_cliques,
            rules=(
                grove_names,
                grove_counts,
                grove_scaling_groups,
                grove_startup,
                grove_pods,
                grove_gang,
                grove_sharing,
                grove_links,
            ),
            kept=kept_cliques,
            # Labels, annotations, podSpec and priorityClassName: operator/internal/controller/
            # common/component/utils/podclique.go, ComputePCLQPodTemplateHash.
            restarts=Restart(
                paths=r"spec\.template\.(priorityClassName\b"
                r"|cliques(\[\d+\])?(\.(spec\.podSpec|labels|annotations)\b|$))",
                how="one replica after another restarts",
                otherwise=_by_hand,
            ),
            copies="replicas",
            tells=tells,
            without={
                "templates": "a clique has a podSpec and separate labels instead of a template",
                "production-labels": "Grove labels its pods app.kubernetes.io/name and part-of",
            },
        ),
    ),
)
