"""Makes the change that an outcome names on the real cluster, and sees the gang placed."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from conformance.fit.driven_cluster import OWNERS, DrivenCluster, group_of
from conformance.fit.random_impossible import volume
from conformance.support.cluster import NAMESPACE, PODGROUP
from conformance.support.waiting import wait
from kthena_components.cluster.objects import name_of
from kthena_components.core.topology.node_fit import Amounts
from kthena_components.core.values.quantity import parse_quantity
from kthena_components.placement.model import Change, PodGroup, SubGroupPolicy, Topology

PATIENCE = 20.0
"""Seconds for the scheduler: dozens of cycles on a busy machine, each with other random choices."""
Body = dict[str, Any]


def helps(driven: DrivenCluster, group: PodGroup, change: Change) -> bool:
    """Make a change, and return whether the scheduler then places the gang."""
    freed = on_nodes(driven, change.freed_nodes)
    _leave(driven, {gang_of(group_of(pod)) for pod in freed} - {gang_of(group.name)})
    for pod in freed:
        driven.delete(pod)
    if change.opened_nodes:
        driven.uncordon(change.opened_nodes)
    if change.added_nodes:
        driven.add_nodes([dict(node.body) for node in change.added_nodes])
    if change.queue:
        driven.open_queue(change.queue.name)
        driven.patch_queue(change.queue.name, {"capability": _texts(change.queue.capability)})
    if change.hyper_nodes:
        driven.change_hyper_nodes([dict(body) for body in change.hyper_nodes])
    wanted = change.group or group
    spec = _spec(wanted, change.topology or wanted.topology)
    if change.topology or change.group or change.tolerations:
        driven.write_again(group.name, spec, lambda pod: _pod(pod, group, change))
    elif change.volumes:
        moved = [_elsewhere(body) for body in change.volumes]
        driven.write_again(group.name, spec, dict, lambda: driven.exchange_volumes(moved))
    return wait(lambda: any(group_of(pod) == group.name and pod["spec"].get("nodeName")
                            for pod in driven.pods()), PATIENCE)  # fmt: skip


def is_possible(driven: DrivenCluster, group: PodGroup, change: Change) -> bool:
    """Say whether a change can be made: not to pods that a controller would make again.

    Nor if such pods wait in another group of a serving that runs: they would take what it frees.
    """
    held, pods = on_nodes(driven, change.freed_nodes), driven.pods()
    if gang_of(group.name) in {gang_of(group_of(pod)) for pod in held}:
        return False
    placed = {gang_of(group_of(pod)) for pod in pods if pod["spec"].get("nodeName")}
    made = [pod for pod in pods if pod["metadata"].get("ownerReferences")]
    rivals = {gang_of(group_of(pod)) for pod in made if not pod["spec"].get("nodeName")} & placed
    if rivals - {gang_of(group.name)}:
        return False
    made = [pod for pod in made if group_of(pod) == group.name]
    return not (made and (change.topology or change.group or change.tolerations))


def others_leave(driven: DrivenCluster, group: PodGroup) -> None:
    """Delete the other gangs that wait, with what makes them: the change is for this one.

    Pods of gangs that run and wait for more would take what a change frees or adds, too.
    """
    pods = driven.pods()
    for pod in pods:
        free = not pod["spec"].get("nodeName") and not pod["metadata"].get("ownerReferences")
        if free and gang_of(group_of(pod)) != gang_of(group.name):
            driven.delete(pod)
    placed = {gang_of(group_of(pod)) for pod in pods if pod["spec"].get("nodeName")}
    _leave(driven, {gang_of(group_of(pod)) for pod in pods} - placed - {gang_of(group.name)})


def on_nodes(driven: DrivenCluster, nodes: Sequence[str]) -> list[Body]:
    """List the pods on some nodes."""
    pods = driven.sandbox.api.list("v1", "Pod", NAMESPACE)
    return [dict(pod) for pod in pods if pod["spec"].get("nodeName") in nodes]


def _leave(driven: DrivenCluster, gangs: set[str]) -> None:
    """Delete gangs, what makes them first: else it makes them again."""
    for version, kind in (*OWNERS, (PODGROUP, "PodGroup"), ("v1", "Pod")):
        for body in list(driven.sandbox.api.list(version, kind, NAMESPACE)):
            if gang_of(name_of(body)) in gangs:
                driven.delete(dict(body))


def gang_of(name: str) -> str:
    """Return the drawn gang to which an object with a name belongs: `gang-1` of `gang-1-0`."""
    return "-".join(name.split("-")[:2])


def _elsewhere(body: Mapping[str, Any]) -> Body:
    """Return another volume, so that a change shows its place: the place of a volume is fixed."""
    return volume(f"{name_of(body)}-moved", body["spec"]["nodeAffinity"])


def _pod(pod: Body, group: PodGroup, change: Change) -> Body:
    """Write a pod with further tolerations, and without what the change leaves out or lowers."""
    spec = pod["spec"]
    if change.group:
        each = [pods.requests for pods in change.group.pods]
        most = {key: max(one.get(key, Decimal(0)) for one in each) for one in each for key in one}
        spec = {**spec, "containers": [_at_most(each, most) for each in spec["containers"]]}
        gone = _stated(group) - _stated(change.group)
        spec = {key: value for key, value in spec.items() if key not in gone - {"containers"}}
        if "containers" in gone:  # only its ports are in a group
            containers = [{k: v for k, v in each.items() if k != "ports"}
                          for each in spec["containers"]]  # fmt: skip
            spec = {**spec, "containers": containers}
    if change.tolerations:
        tolerations = [*spec.get("tolerations", ()), *map(dict, change.tolerations)]
        spec = {**spec, "tolerations": tolerations}
    return {**pod, "spec": spec}


def _at_most(container: Body, most: Amounts) -> Body:
    """Lower what a container requests; the drawn pods have one."""
    resources = {
        kind: {
            key: str(most[key]) if key in most and (parse_quantity(own) or 0) > most[key] else own
            for key, own in amounts.items()
        }
        for kind, amounts in container.get("resources", {}).items()
    }
    return {**container, "resources": resources}


def _stated(group: PodGroup) -> set[str]:
    """Return the fields of the pods that matter to the scheduler."""
    return {key for pods in group.pods for key in pods.spec}


def _spec(group: PodGroup, topology: Topology | None) -> Body:
    """Write the spec of a PodGroup; null removes a field."""
    least = group.min_resources
    return {
        "minMember": group.minimum,
        "queue": group.queue,
        "minTaskMember": dict(group.task_minimum) or None,
        "minResources": None if least is None else _texts(least),
        "networkTopology": _topology(topology),
        "subGroupPolicy": list(map(_policy, group.subgroups)) or None,
    }


def _policy(policy: SubGroupPolicy) -> Body:
    stated = {
        "name": policy.name,
        "labelSelector": dict(policy.match_labels),
        "matchLabelKeys": list(policy.match_label_keys),
        "subGroupSize": policy.size,
        "minSubGroups": policy.minimum,
        "networkTopology": _topology(policy.topology),
    }
    return {key: value for key, value in stated.items() if value not in ({}, [], None)}


def _topology(topology: Topology | None) -> Body | None:
    if topology is None:
        return None
    stated = {"mode": "hard" if topology.hard else "soft",
              "highestTierAllowed": topology.highest_tier,
              "highestTierName": topology.highest_tier_name}  # fmt: skip
    return {key: value for key, value in stated.items() if value is not None}


def _texts(amounts: Amounts) -> Body:
    return {key: str(amount) for key, amount in amounts.items()}
