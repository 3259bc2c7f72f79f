"""Reads servings, and what a cluster has room for. Reports what cannot be read; never fails."""

from collections import Counter
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Any

from kthena_components.cluster.client import Cluster, ClusterError
from kthena_components.cluster.objects import Body, Listed, name_of
from kthena_components.cluster.requirements import (
    HYPER_NODE,
    INVENTORY,
    MODEL_SERVING,
    POD_GROUP,
    STATEFUL_SET,
    Kind,
)
from kthena_components.cluster.status import Servings
from kthena_components.core import naming
from kthena_components.core.plan.manifest import Resource
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems import EMITTERS, find_emitter
from kthena_components.systems.volcano.emit import HYPER_NODES, QUEUES

_SYSTEM = "volcano-system"
_CONFIG = ("v1", "ConfigMap", "volcano-scheduler-configmap")
_DEPLOYMENT = ("apps/v1", "Deployment", "volcano-scheduler")
_DEVICES = "resource.k8s.io"
"""Most clusters serve it, and few have devices that are claimed."""
_TRIES = 3


@dataclass(frozen=True, slots=True)
class Fetched:
    """The objects of a cluster."""

    objects: Sequence[Body]
    notes: tuple[str, ...]
    """What could not be read and has a default, each a clause."""


class MissingRightsError(Exception):
    """The user may not list what is needed. One sentence for each right."""

    def __init__(self, reasons: Sequence[str]) -> None:
        """Keep the sentences."""
        self.reasons = tuple(reasons)
        super().__init__("\n".join(self.reasons))


def fetch_inventory(cluster: Cluster) -> Fetched:
    """Read what an inventory contains, with all nodes that its pods run on.

    The lists are read one after the other, so they are read again if nodes came or went meanwhile.

    Raises:
        MissingRightsError: With every right that is missing.
        ClusterError: The cluster does not answer, or changes each time.
    """
    for _ in range(_TRIES):
        objects, unread = _listed(cluster)
        if _node_names(objects) == {name_of(body) for body in cluster.list("v1", "Node")}:
            system, notes = _system(cluster)
            return Fetched([*_without_lost_pods(objects), *system], (*notes, *unread))
    message = (
        f"nodes came or went each of the {_TRIES} times that the cluster was read: run this again"
    )
    raise ClusterError(HTTPStatus.CONFLICT, "Changing", message)


def _listed(cluster: Cluster) -> tuple[list[Body], list[str]]:
    """Return all objects, and a note about each kind that the user may not list and need not."""
    found, refused, unread = list[Body](), list[str](), list[str]()
    for each in INVENTORY:
        try:
            if cluster.serves(each.api_version, each.kind):
                found += cluster.list(each.api_version, each.kind)
        except ClusterError as error:
            if error.status == HTTPStatus.GONE:
                message = f"the list of {each.plural} changed while it was read: run this again"
                raise ClusterError(error.status, error.reason, message) from error
            if error.status != HTTPStatus.FORBIDDEN:
                raise
            if each.group == _DEVICES:
                unread.append(f"devices for resource claims are not known, because {_right(each)}")
            else:
                refused.append(_right(each))
    if refused:
        raise MissingRightsError(refused)
    return found, unread


def _right(resource: Resource) -> str:
    group = f" of {resource.group}" if resource.group else ""
    return (
        f"you may not list {resource.plural}{group} in the whole cluster: ask for the role that "
        "`kthena-components rights --inventory` prints"
    )


def _node_names(objects: Sequence[Body]) -> set[str]:
    return {name_of(body) for body in objects if body.get("kind") == "Node"}


def _without_lost_pods(objects: Sequence[Body]) -> Iterator[Body]:
    """Leave out pods of nodes that are gone: Kubernetes deletes them soon."""
    nodes = _node_names(objects)
    for body in objects:
        node = (body.get("spec") or {}).get("nodeName")
        if body.get("kind") != "Pod" or not node or node in nodes:
            yield body


def _system(cluster: Cluster) -> tuple[list[Body], tuple[str, ...]]:
    """Read the scheduler's configuration and version, which have defaults."""
    found, notes = list[Body](), list[str]()
    usual = ((_CONFIG, "Volcano's usual plugins are"), (_DEPLOYMENT, "the newest known version is"))
    for (version, kind, name), what in usual:
        place = {"name": name, "namespace": _SYSTEM}
        body = read(cluster, {"apiVersion": version, "kind": kind, "metadata": place})
        if body is None or isinstance(body, Unknown):
            because = f"there is no {kind} {_SYSTEM}/{name}" if body is None else body.because
            notes.append(f"{what} assumed for the scheduler, because {because}")
        else:
            found.append({"apiVersion": version, "kind": kind, **body})
    return found, tuple(notes)


POD = ("v1", "Pod")
NODE = ("v1", "Node")
_EVENT = ("v1", "Event")


def why(error: ClusterError, what: str) -> Unknown:
    """Explain why something could not be read. Connection errors are raised again."""
    if error.status == 0:
        raise error
    if error.status == HTTPStatus.FORBIDDEN:
        return Unknown(f"you may not read {what}")
    if error.status == HTTPStatus.NOT_FOUND:
        return Unknown(f"this cluster has no {what}")
    return Unknown(f"the API server answers {error.status} for {what}")


def listed(
    cluster: Cluster,
    kind: Kind,
    namespace: str | None = None,
    selector: str = "",
    *,
    fields: str = "",
) -> Listed:
    """List objects; Unknown with the reason when that fails."""
    try:
        return list(cluster.list(*kind, namespace, selector, fields))
    except ClusterError as error:
        return why(error, f"{kind[1]}s")


def listed_if_served(
    cluster: Cluster, kind: Kind, namespace: str | None = None, selector: str = ""
) -> Listed:
    """List objects; an empty list when the cluster does not serve the kind."""
    try:
        if not cluster.serves(*kind):
            return ()
    except ClusterError as error:
        return why(error, f"{kind[1]}s")
    return listed(cluster, kind, namespace, selector)


def read(cluster: Cluster, body: Body) -> Body | Unknown | None:
    """Read one object; None when it does not exist."""
    try:
        answer: Any = cluster.get(body)
    except ClusterError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return None
        return why(error, f"{body['kind']} {body['metadata']['name']}")
    return dict(answer)


def look_at_servings(cluster: Cluster, namespace: str | None) -> Servings:
    """Read what `status` shows, in one namespace or all."""
    pods = listed(cluster, POD, namespace, naming.NAME)
    if isinstance(pods, Unknown):
        where = f" in namespace {namespace}" if namespace else ". Name a namespace with -n"
        raise ClusterError(0, "Forbidden", f"{pods.because}{where}")
    return Servings(
        pods=pods,
        # Not by label: the PodGroup of a standalone Role has none of our labels.
        pod_groups=listed_if_served(cluster, POD_GROUP, namespace),
        model_servings=listed_if_served(cluster, MODEL_SERVING, namespace),
        stateful_sets=listed(cluster, STATEFUL_SET, namespace, naming.NAME),
        hyper_nodes=listed_if_served(cluster, HYPER_NODE),
        nodes=listed(cluster, NODE),
        events=listed(cluster, _EVENT, namespace, fields="type=Warning"),
    )


# Counts the objects in a cluster that belong to Pulumi stacks.


_SECRET = ("v1", "Secret")


def stacks_in(cluster: Cluster) -> Counter[str]:
    """Return the name of each stack that has objects in a cluster, with the number of its objects.

    Kinds that cannot be read count as empty.

    Raises:
        ClusterError: The cluster does not answer.
    """
    emitters = [emitter for name in EMITTERS if (emitter := find_emitter(name))]
    resources = [*(one for emitter in emitters for one in emitter.resources), QUEUES, HYPER_NODES]
    kinds = dict.fromkeys([*((one.api_version, one.kind) for one in resources), _SECRET])
    found: Counter[str] = Counter()
    for kind in kinds:
        objects = listed_if_served(cluster, kind)
        if not isinstance(objects, Unknown):
            found.update(owner for body in objects if (owner := owner_of(body)))
    return found


def owner_of(body: Body) -> str:
    """Return the stack that an object belongs to; empty if it states none."""
    annotations = mapping(mapping(body.get("metadata")).get("annotations"))
    # A controller copies the annotations of an object to those that it creates.
    owned = not mapping(body.get("metadata")).get("ownerReferences")
    return str(annotations.get(naming.STACK) or "") if owned else ""
