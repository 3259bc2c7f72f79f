"""Reads AIBrix's RayClusterFleet as equal Ray clusters.

Source: vllm-project/aibrix v0.7 api/orchestration/v1alpha1/rayclusterfleet_types.go: its template
has the metadata and the spec of a RayCluster of KubeRay.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import wraps

from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding
from kthena_components.core.objects.object import Object, copies_in
from kthena_components.core.values.read import count_or_unknown, inside, mapping, name_of
from kthena_components.core.values.unknown import MaybeInt
from kthena_components.systems.ray.facts import facts as facts_of_cluster
from kthena_components.systems.ray.view import RayView, read_ray

_TEMPLATE = "spec.template"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """A RayClusterFleet."""

    object: Object
    copies: MaybeInt
    cluster: RayView
    """One of its clusters, with the paths of the template."""


def read_fleet(found: Object) -> Fleet:
    """Read the template as a RayCluster, whatever the object contains."""
    spec = found.body.get("spec")
    template = inside(spec, "template")
    metadata = {**mapping(inside(template, "metadata")), "name": found.metadata.get("name")}
    body = {"metadata": metadata, "spec": inside(template, "spec")}
    cluster = replace(found, body=body, path=found.at(_TEMPLATE))
    return Fleet(
        object=found, copies=copies_in(inside(spec, "replicas"), 1), cluster=read_ray(cluster)
    )


def facts(view: Fleet) -> ServingFacts:
    """Return the facts of one cluster, with the name of the fleet and its replicas."""
    found = facts_of_cluster(view.cluster)
    copies = count_or_unknown(view.object.spec.get("replicas"), "replicas", 1)
    return replace(found, name=name_of(view.object.body), copies=copies)


def of_cluster(
    rule: Callable[[RayView], Iterator[Finding]],
) -> Callable[[Fleet], Iterator[Finding]]:
    """Return a rule over a Ray cluster as one over a fleet."""

    @wraps(rule)
    def judge(view: Fleet) -> Iterator[Finding]:
        for finding in rule(view.cluster):
            yield finding.under(_TEMPLATE)

    return judge
