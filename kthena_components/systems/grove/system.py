"""Grove: PodCliqueSet."""

from kthena_components.core.values.read import mapping
from kthena_components.systems.contract import Body, Kind, Restart, System
from kthena_components.systems.grove.facts import facts
from kthena_components.systems.grove.pod_variables import tells
from kthena_components.systems.grove.pods import kept_cliques, pods_of_cliques
from kthena_components.systems.grove.rules.pods import grove_counts, grove_pods, grove_startup
from kthena_components.systems.grove.rules.scaling_groups import (
    grove_gang,
    grove_names,
    grove_scaling_groups,
)
from kthena_components.systems.grove.rules.sharing import grove_links, grove_sharing
from kthena_components.systems.grove.view import GROVE, SET, read_clique_set


def _by_hand(body: Body) -> str:
    """Describe how pods restart if only their deletion restarts them.

    Source: ai-dynamo/grove operator/api/core/v1alpha1/podcliqueset.go, UpdateStrategyType.
    """
    strategy = mapping(mapping(mapping(body).get("spec")).get("updateStrategy"))
    deleted = strategy.get("type") == "OnDelete"
    return "a pod restarts when it is deleted" if deleted else ""


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
