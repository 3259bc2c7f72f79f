"""Finds the smallest case about which the scheduler and the model still disagree."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from conformance.fit.random_clusters import Case, Gang

TRIES = 20
"""Each try asks the real scheduler, which takes about two seconds."""
_OPTIONAL = ("minResources", "minTaskMember", "priorityClassName", "networkTopology")
Body = dict[str, Any]


def shrink(case: Case, differs: Callable[[Case], bool], tries: int = TRIES) -> Case:
    """Remove parts while the two still disagree."""
    found = True
    while found:
        found = False
        for smaller in smaller_cases(case):
            if not tries:
                return case
            tries -= 1
            if differs(smaller):
                case, found = smaller, True
                break
    return case


def smaller_cases(case: Case) -> Iterator[Case]:
    """Yield smaller copies, the smallest first."""
    if len(case.gangs) > 1:
        for gang in case.gangs:
            yield replace(case, gangs=[other for other in case.gangs if other is not gang])
    for part in _parts(case.fillers):
        yield replace(case, fillers=part)
    for part in _parts(case.nodes):
        names = {body["metadata"]["name"] for body in part}
        fillers = [pod for pod in case.fillers if pod["spec"]["nodeName"] in names]
        if part:
            yield replace(case, nodes=part, fillers=fillers)
    plain = [{**body, "spec": {}} for body in case.nodes]
    if plain != case.nodes:
        yield replace(case, nodes=plain)
    if any(spec["capability"] for spec in case.queues.values()):
        yield replace(case, queues={name: {"capability": None, "weight": 1}
                                    for name in case.queues})  # fmt: skip
    for position, gang in enumerate(case.gangs):
        for smaller in _smaller_gangs(gang):
            gangs = [*case.gangs[:position], smaller, *case.gangs[position + 1 :]]
            yield replace(case, gangs=gangs)


def _smaller_gangs(gang: Gang) -> Iterator[Gang]:
    if gang.kind != "written":
        return
    group, *pods = gang.bodies
    for key in _OPTIONAL:
        if key in group["spec"]:
            other = copy.deepcopy(group)
            del other["spec"][key]
            yield replace(gang, bodies=[other, *pods])
    for number, policy in enumerate(group["spec"].get("subGroupPolicy", ())):
        for key in {"networkTopology", "minSubGroups"} & set(policy):
            other = copy.deepcopy(group)
            del other["spec"]["subGroupPolicy"][number][key]
            yield replace(gang, bodies=[other, *pods])
    for pod in pods[-1:]:
        other = copy.deepcopy(group)
        other["spec"]["minMember"] = min(group["spec"]["minMember"], len(pods) - 1)
        if len(pods) > 1:
            yield replace(gang, bodies=[other, *(p for p in pods if p is not pod)],
                          pods=gang.pods - 1)  # fmt: skip


def _parts(bodies: list[Body]) -> Iterator[list[Body]]:
    """Yield a list without its halves, quarters, …, and without each single element."""
    size = len(bodies)
    while size:
        size //= 2
        step = max(size, 1)
        for start in range(0, len(bodies), step):
            yield [*bodies[:start], *bodies[start + step :]]
