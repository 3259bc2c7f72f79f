"""Draws gangs that never fit, not even on an empty cluster, each for one reason."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from conformance.fit.random_clusters import LOST, Case, Gang, World, draw_world, limited
from conformance.fit.random_gangs import plain_gang
from conformance.support.cluster import NAMESPACE

CLAIM = "models"
ZONE = "topology.kubernetes.io/zone"
REASONS = (
    "a pod larger than any node", "a deleted queue", "a closed queue",
    "a HyperNode with two parents", "a volume in another zone",
)  # fmt: skip
Body = dict[str, Any]


def draw_impossible(seed: int, number: int) -> Iterator[tuple[str, Case]]:
    """Draw cases, each with its reason."""
    for index in range(number):
        reason = REASONS[index % len(REASONS)]
        draw = random.Random(f"impossible {seed} {index}")  # noqa: S311 - to repeat, not to hide
        case = _plain(draw, f"i{index}", f"{reason}, case {index} of seed {seed}")
        yield reason, _spoiled(draw, case, reason)


def _plain(draw: random.Random, name: str, title: str) -> Case:
    """Draw a world with two tiers or more, and one gang for which each node has room."""
    world = World(nodes=[], hyper_nodes=[])
    while not _parents(world.hyper_nodes):
        world = draw_world(draw, name)
    topology: Body = {"mode": draw.choice(("hard", "soft"))}
    if topology["mode"] == "hard":
        topology["highestTierAllowed"] = draw.choice((1, 2))
    gang = plain_gang("gang-0", draw.choice((1, 1, 2)), limited(1), topology)
    return Case(title=title, nodes=world.nodes, hyper_nodes=world.hyper_nodes, queues={},
                gangs=[gang], usual=draw.random() < 0.5)  # fmt: skip


def _spoiled(draw: random.Random, case: Case, reason: str) -> Case:
    """Give a case the reason for which its gang never fits."""
    match reason:
        case "a pod larger than any node":
            resource, amount = draw.choice(
                (("nvidia.com/gpu", "16"), ("cpu", "96"), ("memory", "1Ti"))
            )
            asked = {**limited(1)["limits"], resource: amount}
            return replace(case, gangs=[_changed(case, resources={"requests": asked,
                                                                  "limits": asked})])  # fmt: skip
        case "a deleted queue" | "a closed queue":
            return replace(case, gangs=[_changed(case, queue=LOST)],
                           lost_queue=reason.split()[1])  # fmt: skip
        case "a HyperNode with two parents":
            return replace(case, hyper_nodes=_second_parent(draw, case.hyper_nodes))
        case _:
            return _zoned(case)


def _changed(case: Case, *, queue: str = "default", **of_container: Body) -> Gang:
    """Name another queue in the only gang of a case, and change the container of its pods."""
    (gang,) = case.gangs
    group, *pods = gang.bodies
    group = {**group, "spec": {**group["spec"], "queue": queue}}
    pods = [_with(pod, containers=[{**pod["spec"]["containers"][0], **of_container}])
            for pod in pods]  # fmt: skip
    return replace(gang, bodies=[group, *pods])


def _with(body: Body, **fields: object) -> Body:
    return {**body, "spec": {**body["spec"], **fields}}


def _parents(hyper_nodes: list[Body]) -> list[tuple[int, str]]:
    """List the position of each HyperNode over another one, with the name of one below it."""
    return [(at, _child(member)) for at, body in enumerate(hyper_nodes)
            for member in body["spec"]["members"] if member["type"] == "HyperNode"]  # fmt: skip


def _child(member: Mapping[str, Any]) -> str:
    return str(member["selector"]["exactMatch"]["name"])


def _member(name: str) -> Body:
    return {"type": "HyperNode", "selector": {"exactMatch": {"name": name}}}


def _second_parent(draw: random.Random, hyper_nodes: list[Body]) -> list[Body]:
    """Add a second parent of a HyperNode."""
    at, child = draw.choice(_parents(hyper_nodes))
    parent = hyper_nodes[at]
    name = f"{parent['metadata']['name']}-too"
    return [*hyper_nodes, {**_with(parent, members=[_member(child)]), "metadata": {"name": name}}]


def _zoned(case: Case) -> Case:
    """Let all nodes be in one zone, and the volume of the pods in another one."""
    nodes = [{**body, "metadata": {**body["metadata"], "labels":
              {**body["metadata"]["labels"], ZONE: "zone-a"}}} for body in case.nodes]  # fmt: skip
    (gang,) = case.gangs
    group, *pods = gang.bodies
    volumes = [{"name": CLAIM, "persistentVolumeClaim": {"claimName": CLAIM}}]
    pods = [_with(pod, volumes=volumes, automountServiceAccountToken=False) for pod in pods]
    outside = volume(f"volume-of-{nodes[0]['metadata']['name']}", _in("zone-b"))
    return replace(case, nodes=nodes, gangs=[replace(gang, bodies=[group, *pods])],
                   volumes=[outside, claim(outside)])  # fmt: skip


def _in(zone: str) -> Body:
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]
    return {"required": {"nodeSelectorTerms": terms}}


def volume(name: str, affinity: Mapping[str, Any]) -> Body:
    """Return a PersistentVolume for the claim."""
    spec = {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"],
        "persistentVolumeReclaimPolicy": "Retain", "storageClassName": "",
        "nfs": {"server": "127.0.0.1", "path": "/"}, "nodeAffinity": affinity,
        "claimRef": {"namespace": NAMESPACE, "name": CLAIM},
    }  # fmt: skip
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
            "spec": spec}  # fmt: skip


def claim(bound: Body) -> Body:
    """Return the claim of a volume."""
    spec = {"accessModes": ["ReadWriteMany"], "storageClassName": "",
            "volumeName": bound["metadata"]["name"],
            "resources": {"requests": {"storage": "1Gi"}}}  # fmt: skip
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": CLAIM, "namespace": NAMESPACE}, "spec": spec}  # fmt: skip
