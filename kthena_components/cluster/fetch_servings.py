"""Reads servings from a cluster without changing it. Reports what cannot be read; never fails."""

from collections import Counter
from http import HTTPStatus
from typing import Any

from kthena_components.cluster.client import Cluster, ClusterError
from kthena_components.cluster.objects import Body, Listed
from kthena_components.cluster.requirements import (
    HYPER_NODE,
    MODEL_SERVING,
    POD_GROUP,
    STATEFUL_SET,
    Kind,
)
from kthena_components.cluster.status import Servings
from kthena_components.core import naming
from kthena_components.core.values.read import mapping
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems import EMITTERS, find_emitter
from kthena_components.systems.volcano.emit import HYPER_NODES, QUEUES

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
    """Return the stacks that have objects in a cluster, each with their number.

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
