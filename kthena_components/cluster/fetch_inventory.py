"""Reads the objects that say what a cluster has room for. Changes nothing."""

from collections.abc import Iterator, Sequence
from http import HTTPStatus

from kthena_components.cluster.client import Cluster, ClusterError
from kthena_components.cluster.fetch_servings import read
from kthena_components.cluster.objects import Body, name_of
from kthena_components.cluster.requirements import INVENTORY
from kthena_components.core.plan.rights import Resource
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.unknown import Unknown

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
            return Fetched([*_placed(objects), *system], (*notes, *unread))
    told = (
        f"nodes came or went each of the {_TRIES} times that the cluster was read: run this again"
    )
    raise ClusterError(HTTPStatus.CONFLICT, "Changing", told)


def _listed(cluster: Cluster) -> tuple[list[Body], list[str]]:
    """Return all objects, and a note about each kind that the user may not list and need not."""
    found, refused, unread = list[Body](), list[str](), list[str]()
    for each in INVENTORY:
        try:
            if cluster.serves(each.api_version, each.kind):
                found += cluster.list(each.api_version, each.kind)
        except ClusterError as error:
            if error.status == HTTPStatus.GONE:
                told = f"the list of {each.plural} changed while it was read: run this again"
                raise ClusterError(error.status, error.reason, told) from error
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


def _placed(objects: Sequence[Body]) -> Iterator[Body]:
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
