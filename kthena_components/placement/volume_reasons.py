"""Finds volumes that keep the pods of a group from nodes with room. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.cluster.objects import labels_of, name_of, namespace_of
from kthena_components.core.values.read import mapping, sequence, spec_of
from kthena_components.placement.case import Case
from kthena_components.placement.free_nodes import refusals
from kthena_components.placement.model import Body, Cause, Change, Obstacle
from kthena_components.placement.relief import freed_or_added_nodes

_TRIED = 6
"""Places of a volume that are tried."""


def outside_volumes(case: Case) -> Obstacle:
    """Say which nodes a volume excludes, and offer room where it is, or another place for it."""
    changes = freed_or_added_nodes(case.cluster, case.group) or case.changes(*_moved(case))[:1]
    text = refusals(case.scheduler, "outside the topology")
    return Obstacle(cause=Cause.VOLUME, text=text, changes=changes)


def _moved(case: Case) -> Iterator[Change]:
    """Offer the volumes of the group in other places: by the label that each asks for first."""
    bound = [volume for volume in _bound(case) if _label(volume)]
    for key in dict.fromkeys(map(_label, bound)):
        own = [volume for volume in bound if _label(volume) == key]
        values = (labels_of(node.body).get(key) for node in case.cluster.nodes)
        for value in [one for one in dict.fromkeys(values) if one][:_TRIED]:
            names = " and ".join(map(name_of, own))
            what = "a PersistentVolume" if len(own) == 1 else "PersistentVolumes"
            yield Change(text=f"Bind its claim to {what} with {key}={value}, in place of {names}",
                         volumes=tuple(_at(volume, key, value) for volume in own))  # fmt: skip


def _bound(case: Case) -> list[Body]:
    """List the PersistentVolumes of the claims that the pods of a group name."""
    claims = {
        str(mapping(mapping(item).get("persistentVolumeClaim")).get("claimName"))
        for pods in case.group.pods
        for item in sequence(pods.spec.get("volumes"))
    }
    named = {
        spec_of(body).get("volumeName")
        for body in case.cluster.volumes
        if body.get("kind") == "PersistentVolumeClaim"
        and namespace_of(body) == case.group.namespace
        and name_of(body) in claims
    }
    return [body for body in case.cluster.volumes
            if body.get("kind") == "PersistentVolume" and name_of(body) in named]  # fmt: skip


def _label(volume: Body) -> str:
    """Return the first label that a volume asks nodes for."""
    required = mapping(mapping(spec_of(volume).get("nodeAffinity")).get("required"))
    for term in map(mapping, sequence(required.get("nodeSelectorTerms"))):
        for one in map(mapping, sequence(term.get("matchExpressions"))):
            return str(one.get("key"))
    return ""


def _at(volume: Body, key: str, value: str) -> Mapping[str, Any]:
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
    affinity = {"required": {"nodeSelectorTerms": [term]}}
    return {**volume, "spec": {**spec_of(volume), "nodeAffinity": affinity}}
