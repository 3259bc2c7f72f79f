"""What one pod requests of its node, and the pods of a template as sets of equal pods. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from kthena_components.core import naming
from kthena_components.core.findings import count_of
from kthena_components.core.objects.object import Object, requests_in
from kthena_components.core.objects.object import PodSet as Template
from kthena_components.core.topology.node_fit import Amounts
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.quantity import add_resources, parse_quantity
from kthena_components.core.values.read import mapping, sequence, unknown_in, unknown_within
from kthena_components.core.values.unknown import MaybeInt, Unknown
from kthena_components.placement.claims_and_slices import claimed_by, on_products
from kthena_components.placement.model import Body, PodSet
from kthena_components.placement.quotas_and_limit_ranges import ranges_of, refusals, with_defaults

_SYSTEM = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_MOST = 100_000
"""More pods of one template are not counted out."""


@dataclass(frozen=True, slots=True)
class Templates:
    """An object with pod templates, and the priority classes of its cluster."""

    owner: Object
    priorities: Mapping[str, int]
    limit_ranges: Sequence[Body] = ()
    """All LimitRanges of its cluster."""

    @property
    def namespace(self) -> str:
        """Its namespace, as far as known."""
        return self.owner.namespace if isinstance(self.owner.namespace, str) else "?"

    @property
    def name(self) -> str:
        """Its name, as far as known."""
        return self.owner.name if isinstance(self.owner.name, str) else "?"

    @property
    def title(self) -> str:
        """Its kind, namespace and name, or those of the serving that it belongs to."""
        return owner_of({**self.owner.body, "kind": self.owner.kind})

    @property
    def unnamed(self) -> Unknown | None:
        """Why its name or namespace is not known."""
        return unknown_in(self.owner.name) or unknown_in(self.owner.namespace)


def pod_sets(
    templates: Templates,
    pods: Template,
    count: int | None = None,
    *,
    name: str = "",
    labels: Mapping[str, str] | None = None,
    task: str | None = None,
) -> list[PodSet] | Unknown:
    """Return the pods of a template as one set; none if there are no pods.

    Args:
        templates: The object that has the template.
        count: How many of them; all if left out.
        name: What users call them; the object's name if left out.
        labels: Labels that their controller adds.
        task: Their task; what the template states if left out.
    """
    number = _number(pods.count if count is None else count)
    if isinstance(number, Unknown):
        return number
    ranges = ranges_of(templates.limit_ranges, templates.namespace)
    created = with_defaults(pods.spec, ranges) if ranges else pods.spec
    if isinstance(created, Unknown):
        return created
    asked = unknown_within(ranges) or scheduled_requests(created)
    claimed = claimed_by(pods.spec, pods.owner.context)
    spec, stated = deciding_spec(pods.spec), pods.task if task is None else task
    gap = _gap(pods, spec, stated)
    if isinstance(asked, Unknown) or isinstance(claimed, Unknown) or gap:
        return next(each for each in (asked, gap, claimed) if isinstance(each, Unknown))
    own = {str(key): str(value) for key, value in pods.labels.items()}
    made = PodSet(
        name=name or own.get(naming.ROLE_ID) or pods.name or templates.name,
        count=number,
        requests=add_resources(asked, claimed.amounts),
        spec=on_products(spec, claimed),
        labels={**own, **(labels or {})},
        task=str(stated or ""),
        priority=priority_in(pods.spec, templates.priorities),
        refusals=refusals(created, ranges),
    )
    return [made] if number else []


def _number(stated: MaybeInt) -> MaybeInt:
    known = isinstance(stated, int) and stated > _MOST
    return (
        Unknown(f"{count_of(stated, 'pod')} of one template are too many to place")
        if known
        else stated
    )


def _gap(pods: Template, spec: object, task: object) -> Unknown | None:
    """Return why it is not known where the pods may be placed, apart from their requests."""
    return unknown_within(spec) or unknown_in(task) or unknown_within(pods.labels)


def priority_in(spec: Mapping[str, object], priorities: Mapping[str, int]) -> int:
    """Return the priority of a spec: its own, its class's, or the default."""
    stated = spec.get("priority")
    if isinstance(stated, int) and not isinstance(stated, bool):
        return stated
    named = spec.get("priorityClassName")
    values = {**_SYSTEM, **priorities}
    return values.get(named, 0) if isinstance(named, str) and named else priorities.get("", 0)


def priority_classes(bodies: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return the values of priority classes; the default one is also listed without a name."""
    found: dict[str, int] = {}
    for body in bodies:
        name, value = mapping(body.get("metadata")).get("name"), body.get("value")
        if body.get("kind") == "PriorityClass" and isinstance(name, str) and isinstance(value, int):
            found[name] = value
            if body.get("globalDefault") is True:
                found[""] = value
    return found


# Names the object that stands behind pods and PodGroups, the same in manifests and clusters.
#
# A controller names what it creates after a hash that no manifest shows, so labels tell the owner.


_LABELS: Mapping[str, str] = {
    naming.NAME: "ModelServing",
    naming.LWS_NAME: "LeaderWorkerSet",
    "serving.kserve.io/inferenceservice": "InferenceService",
    "kaito.sh/workspace": "Workspace",
    "ray.io/cluster": "RayCluster",
    "volcano.sh/job-name": "Job",
    "grove.io/podcliqueset": "PodCliqueSet",
}
"""Labels that controllers give to pods, and the kind of the object that each names."""
_HASH = "pod-template-hash"


def owner_of(body: Mapping[str, Any]) -> str:
    """Return the kind, namespace and name of the object behind a pod, PodGroup or StatefulSet."""
    if named := labelled_owner(body):
        return named
    metadata, owner = mapping(body.get("metadata")), controller_of(body)
    labels, space = mapping(metadata.get("labels")), metadata.get("namespace") or "default"
    name = str(owner.get("name") or metadata.get("name") or "")
    if owner.get("kind") == "ReplicaSet" and _HASH in labels:
        return f"Deployment {space}/{re.sub(f'-{re.escape(str(labels[_HASH]))}$', '', name)}"
    return f"{owner.get('kind') or body.get('kind')} {space}/{name}"


def labelled_owner(body: Mapping[str, Any]) -> str:
    """Return the object that labels name; empty if none does."""
    metadata = mapping(body.get("metadata"))
    labels, space = mapping(metadata.get("labels")), metadata.get("namespace") or "default"
    found = ((kind, labels.get(label)) for label, kind in _LABELS.items())
    return next((f"{kind} {space}/{name}" for kind, name in found if isinstance(name, str)), "")


def controller_of(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the owner reference of an object's controller; empty without one."""
    owners = map(mapping, sequence(mapping(body.get("metadata")).get("ownerReferences")))
    return next((owner for owner in owners if owner.get("controller")), {})


_DECIDES = (
    "nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "volumes",
    "priorityClassName", "activeDeadlineSeconds",
)  # fmt: skip
_OF_KUBERNETES = "node.kubernetes.io/"
"""Tolerations that the API server adds to every pod."""


def scheduled_requests(spec: Mapping[str, Any]) -> dict[str, Decimal] | Unknown:
    """Add up what the scheduler counts for a pod: containers, init containers, and overhead.

    Source: Kubernetes 1.34 component-helpers resource.PodRequests.
    """
    asked = requests_in(spec)
    if isinstance(asked, Unknown):
        return asked
    overhead = spec.get("overhead")
    if gap := unknown_in(overhead):
        return gap
    read = ((key, parse_quantity(amount)) for key, amount in mapping(overhead).items())
    return add_resources(asked, {key: amount for key, amount in read if amount is not None})


def deciding_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Keep what decides about nodes and quotas: selectors, tolerations, ports, claims, class."""
    kept = {key: spec[key] for key in _DECIDES if spec.get(key)}
    tolerations = [
        each
        for each in map(mapping, sequence(spec.get("tolerations")))
        if not str(each.get("key", "")).startswith(_OF_KUBERNETES)
    ]
    claims = [dict(each) for each in map(mapping, sequence(spec.get("volumes")))
              if "persistentVolumeClaim" in each or "ephemeral" in each]  # fmt: skip
    changed = {"tolerations": tolerations, "volumes": claims, "containers": list(_ports(spec))}
    return {key: value for key, value in {**kept, **changed}.items() if value}


def _ports(spec: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Return the containers that take ports of the node, with these ports only."""
    host = bool(spec.get("hostNetwork"))
    for container in map(mapping, sequence(spec.get("containers"))):
        ports = [
            {"hostPort": port.get("hostPort") or port.get("containerPort"),
             "protocol": port.get("protocol") or "TCP",
             **({"hostIP": port["hostIP"]} if port.get("hostIP") else {})}
            for port in map(mapping, sequence(container.get("ports")))
            if port.get("hostPort") or (host and port.get("containerPort"))
        ]  # fmt: skip
        if ports:
            yield {"ports": ports}


def slot_and(requests: Amounts) -> dict[str, Decimal]:
    """Add the slot that each pod takes of a node's `pods`."""
    return add_resources(requests, {"pods": Decimal(1)})
