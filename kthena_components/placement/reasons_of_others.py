"""Why other pods or volumes keep a group from its place, and what would help. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.cluster.objects import labels_of, name_of, namespace_of
from kthena_components.core.findings import count_of
from kthena_components.core.values.read import mapping, sequence, spec_of
from kthena_components.placement.changes import Case, SpecChange, fits, with_specs
from kthena_components.placement.free_nodes import largest, refusals, slots
from kthena_components.placement.model import Body, Cause, Change, Obstacle
from kthena_components.placement.relief import freed_or_added_nodes

_BETWEEN = ("podAffinity", "podAntiAffinity")


def neighbours(case: Case) -> Iterator[Obstacle]:
    """Find what other pods forbid, those of the group included."""
    if not case.scheduler.others_decide(case.scheduler.jobs[0]):
        return
    nodes = sum(map(bool, slots(case.scheduler, largest(case.scheduler))))
    if not nodes:
        return  # its own demands say more
    for named, change in _LEFT_OUT.items():
        if fits(case.cluster, with_specs(case.group, change)):
            yield _obstacle(case, nodes, f"their {named} do", change)
            return
    if fits(case.cluster, with_specs(case.group, _without_any)):
        yield _obstacle(case, nodes, "host ports, affinity to other pods and spread constraints do")
    elif fits(replace(case.cluster, running=(), neighbours=()), case.group):
        yield _obstacle(case, nodes, "the anti-affinity of pods that run does")


def _obstacle(case: Case, nodes: int, named: str, change: SpecChange | None = None) -> Obstacle:
    """Say that a group finds room on some nodes, and what does not let it be there."""
    pods = count_of(len(case.scheduler.jobs[0].tasks), "pod")
    where = f"on {count_of(nodes, 'node')}"
    text = f"its {pods} find room {where}, but {named} not let all of them be there"
    relief = freed_or_added_nodes(case.cluster, case.group)
    if not relief and change is not None:
        what = named.removeprefix("their ").removesuffix(" do")
        left = Change(text=f"Leave out the {what}", group=with_specs(case.group, change))
        relief = case.changes(left)
    return Obstacle(cause=Cause.NEIGHBOURS, text=text, changes=relief)


def _without_ports(spec: Body) -> Body:
    return {key: value for key, value in spec.items() if key != "containers"}


def _without_affinity(spec: Body) -> Body:
    affinity = {k: v for k, v in mapping(spec.get("affinity")).items() if k not in _BETWEEN}
    kept = {key: value for key, value in spec.items() if key != "affinity"}
    return {**kept, "affinity": affinity} if affinity else kept


def _without_spread(spec: Body) -> Body:
    kept = [each for each in map(mapping, sequence(spec.get("topologySpreadConstraints")))
            if each.get("whenUnsatisfiable") == "ScheduleAnyway"]  # fmt: skip
    others = {key: value for key, value in spec.items() if key != "topologySpreadConstraints"}
    return {**others, "topologySpreadConstraints": kept} if kept else others


def _without_any(spec: Body) -> Body:
    return _without_ports(_without_affinity(_without_spread(spec)))


_LEFT_OUT: dict[str, SpecChange] = {
    "host ports": _without_ports,
    "affinity to other pods": _without_affinity,
    "spread constraints": _without_spread,
}
"""What pods state of other pods, and their spec without it."""


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
