"""Finds pods that are in the way: host ports, affinity between pods, spread constraints. Pure."""

from collections.abc import Iterator
from dataclasses import replace

from kthena_components.core.findings import count_of
from kthena_components.core.values.read import mapping, sequence
from kthena_components.placement.case import Case
from kthena_components.placement.changes import SpecChange, fits, with_specs
from kthena_components.placement.free_nodes import largest, slots
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
