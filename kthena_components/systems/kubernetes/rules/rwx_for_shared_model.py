"""Checks volumes that several pods of a cluster share."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from kthena_components.core import naming
from kthena_components.core.findings import Finding, Level, count_of, not_checked, part_of_rule
from kthena_components.core.objects.cluster_objects import ClusterObjects, Key
from kthena_components.core.objects.object import GroupKind, Object, PodSet
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    first_unknown,
    mapping,
    require_known,
    sequence,
    unknown_in,
    unknown_inside,
)
from kthena_components.core.values.unknown import known, total

CLAIM: GroupKind = ("", "PersistentVolumeClaim")
_SHARED = frozenset({"ReadWriteMany", "ReadOnlyMany"})
_ONE_POD, _ONE_NODE = "ReadWriteOncePod", "ReadWriteOnce"


@dataclass(slots=True)
class _Users:
    """The pods of one object, or of one group of objects, that mount a claim."""

    path: str
    pods: list[PodSet] = field(default_factory=list)

    @property
    def spread(self) -> bool:
        """Whether the pods are intended for several nodes."""
        return any(pods.spread or naming.WORKER in pods.labels for pods in self.pods)


def rwx_for_shared_model(cluster: ClusterObjects) -> Iterator[Finding]:
    """A volume that several pods mount can be attached to several nodes.

    ReadWriteOnce allows one node at a time, so the pods of an engine that spans nodes cannot all
    mount it; ReadWriteOncePod allows one pod. KServe mounts the claim of pvc://claim/path into each
    pod. Claims that are elsewhere are not checked, and those that a StatefulSet creates for
    each of its pods are fine.

    Pass: a claim with ReadWriteMany, an engine of 2 pods.
    Fail: a claim with ReadWriteOnce, an engine of 2 pods.
    Level: mandatory for engines of several pods and for ReadWriteOncePod; advisory for replicas and
    for a Ray cluster that starts no engine, whose pods may happen to be on one node.
    Source: Kubernetes documentation, Persistent Volumes, Access Modes; KServe
    docs/samples/multinode: the claim must be ReadWriteMany; v0.20.0 pkg/webhook/admission/pod/
    storage_initializer_injector.go.
    """
    claims = cluster.named(CLAIM)
    for (entry, name), users in _users(cluster).items() if claims else ():
        claim = claims.get((str(users.pods[0].owner.namespace), name))
        if claim is not None and entry is not None:
            yield from _check(claim, users, name)
    yield from _late(cluster) if claims else ()


def _users(cluster: ClusterObjects) -> dict[tuple[object, str], _Users]:
    """Find the users of each claim. Objects of one ServingGroup count as one."""
    found: dict[tuple[object, str], _Users] = {}
    for pods in cluster.pods:
        for path, name in _claims_of(pods):
            if isinstance(name, str) and not unknown_in(name):
                whose = (_owner(pods.owner), name)
                users = found.setdefault(whose, _Users(pods.at(path)))
                users.pods.append(pods)
    return found


def _owner(entry: Object) -> Key | int:
    labels = mapping(mapping(entry.body.get("metadata")).get("labels"))
    group = labels.get(naming.GROUP_NAME)
    known = isinstance(group, str) and isinstance(entry.namespace, str)
    return (str(entry.namespace), str(group)) if known else entry.index


def _claims_of(pods: PodSet) -> Iterator[tuple[str, Any]]:
    for i, item in enumerate(sequence(pods.spec.get("volumes"))):
        claim = mapping(item).get("persistentVolumeClaim")
        if isinstance(claim, Mapping):
            name = claim.get("claimName")
            yield f"spec.volumes[{i}].persistentVolumeClaim.claimName", name


def _late(cluster: ClusterObjects) -> Iterator[Finding]:
    for pods in cluster.pods:
        for path, name in _claims_of(pods):
            if gap := first_unknown(name, pods.owner.namespace):
                at = pods.at(path)
                yield not_checked(at, gap)


@part_of_rule
def _check(claim: Object, users: _Users, name: str) -> Iterator[Finding]:
    stated = claim.spec.get("accessModes")
    modes = [mode for mode in sequence(stated) if isinstance(mode, str)]
    number = total([pods.count for pods in users.pods])
    require_known(users.path, claim.body.get("spec"), unknown_inside(stated))
    narrow = next((mode for mode in (_ONE_POD, _ONE_NODE) if mode in modes), None)
    if narrow is None or not _SHARED.isdisjoint(modes):
        return
    number = known(number, users.path)
    if number > 1:
        once = "mounted by one pod" if narrow == _ONE_POD else "attached to one node"
        must = users.spread or narrow == _ONE_POD
        yield Finding(
            path=users.path,
            seen=f"is {display(name)}, which is {narrow} and is {once} at a time, but "
            f"{count_of(number, 'pod')} "
            "mount it",
            remedy=f"write accessModes: [ReadWriteMany] in the claim {display(name)}, or give each "
            "pod its own claim",
            level=Level.MANDATORY if must else Level.ADVISORY,
        )
