"""Generates small clusters with HyperNodes, and what already runs on them."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from conformance.support.cluster import NAMESPACE, PODGROUP
from kthena_components.core import naming

HOST = "kubernetes.io/hostname"
PRODUCT = "nvidia.com/gpu.product"
RACK = "fit/rack"
PRODUCTS = ("H100", "A100")
APPS = ("chat", "search")
"""Values of the label by which pods find each other."""
TAINT = {"key": "team", "value": "research", "effect": "NoSchedule"}
QUEUES = ("fit-0", "fit-1")
"""The queues whose limits are drawn. They stay for the whole run: an open Queue takes seconds."""
LOST = "fit-lost"
"""The queue that is closed or deleted after gangs were created: admission refuses later ones."""
PROBE = "probe"
"""The node, queue and label of the pods that show that the scheduler has finished a cycle."""
Body = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Nodes and HyperNodes. Several cases use one world."""

    nodes: list[Body]
    hyper_nodes: list[Body]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """What makes one or more PodGroups, and the number of pods to wait for."""

    bodies: list[Body]
    pods: int
    kind: str = "written"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One question to the scheduler."""

    title: str
    nodes: list[Body]
    hyper_nodes: list[Body]
    queues: dict[str, Body]
    """The spec of each of `QUEUES`."""
    fillers: list[Body] = field(default_factory=list)
    gangs: list[Gang] = field(default_factory=list)
    lost_queue: str = ""
    """What becomes of the queue `LOST` after the gangs were created: `closed`, `deleted`."""
    volumes: list[Body] = field(default_factory=list)
    """A PersistentVolume and its claim."""
    usual: bool = False
    """Whether the scheduler also has the plugins of Volcano's usual config: overcommit and drf."""


def draw_world(draw: random.Random, name: str) -> World:
    """Draw 2 to 40 nodes in uneven racks, under up to two further tiers."""
    count = draw.choice((2, 3, 4, 5, 6, 8, 8, 10, 12, 12, 16, 24, 40))
    tiers = draw.choice((0, 1, 1, 2, 2, 2, 3, 3))
    racks = min(count, draw.randint(1, max(1, count // 2))) if tiers else 1
    usual = draw.choice((8, 8, 8, 4))
    nodes, places = [], [draw.randrange(racks) for _ in range(count)]
    for number, place in enumerate(sorted(places)):
        gpus = usual if draw.random() < 0.85 else draw.choice((1, 2, 4, 8))
        outside = draw.random() < 0.04
        labels = {PRODUCT: PRODUCTS[draw.random() < 0.25]}
        labels |= {} if outside else {RACK: f"{name}-rack-{place}"}
        nodes.append(_node(f"{name}-node-{number:02}", labels, gpus, draw))
    return World(nodes=nodes, hyper_nodes=list(_tree(draw, name, nodes, tiers)))


def vary(draw: random.Random, world: World) -> list[Body]:
    """Return the nodes of one case: some are missing, tainted or cordoned."""
    strange = draw.random() < 0.5
    found = []
    for body in world.nodes:
        if draw.random() < 0.06 and len(world.nodes) > 2:
            continue
        spec: Body = {}
        if strange and draw.random() < 0.2:
            spec["taints"] = [TAINT]
        if strange and draw.random() < 0.1:
            spec["unschedulable"] = True
        found.append({**body, "spec": spec})
    return found or [{**world.nodes[0], "spec": {}}]


def draw_fillers(draw: random.Random, nodes: list[Body]) -> Iterator[Body]:
    """Draw pods that run already."""
    share = draw.choice((0, 0, 0.2, 0.3, 0.6))
    for body in nodes:
        if draw.random() >= share:
            continue
        name = body["metadata"]["name"]
        free = int(body["status"]["allocatable"]["nvidia.com/gpu"])
        gpus = draw.choice((free, free, max(1, free // 2), 1))
        container = {"name": "fill", "image": "fill", "resources": limited(gpus, "2")}
        asked = ask_others(draw) if draw.random() < 0.1 else {}
        yield {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": f"fill-{name}", "namespace": NAMESPACE,
                         "labels": {"app": draw.choice(APPS)}},
            "spec": with_asked({"nodeName": name, "containers": [container],
                                "tolerations": [{"operator": "Exists"}]}, asked),
        }  # fmt: skip


def ask_others(draw: random.Random) -> Body:
    """Draw what a pod asks of the pods around it: a host port, an affinity, or a spread."""
    selector = {"matchLabels": {"app": draw.choice(APPS)}}
    key = draw.choice((HOST, HOST, RACK))
    term = {"topologyKey": key, "labelSelector": selector}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    match draw.choice(("port", "port", "apart", "apart", "near", "spread")):
        case "port":
            return {"ports": [{"containerPort": 80, "hostPort": draw.choice((8080, 8081))}]}
        case "apart":
            return {"affinity": {"podAntiAffinity": required}}
        case "near":
            return {"affinity": {"podAffinity": required}}
        case _:
            spread = {**term, "maxSkew": draw.choice((1, 1, 2)),
                      "whenUnsatisfiable": "DoNotSchedule"}  # fmt: skip
            return {"topologySpreadConstraints": [spread]}


def with_asked(spec: Body, asked: Body) -> Body:
    """Add what pods ask of others to their spec."""
    ports = asked.get("ports")
    rest = {key: value for key, value in asked.items() if key != "ports"}
    (container,) = spec["containers"]
    named = [{**container, "ports": ports}] if ports else [container]
    return {**spec, "containers": named, **rest}


def draw_queues(draw: random.Random, nodes: list[Body]) -> dict[str, Body]:
    """Draw the limits of each queue."""
    total = sum(int(body["status"]["allocatable"]["nvidia.com/gpu"]) for body in nodes)
    specs: dict[str, Body] = {}
    for name in QUEUES:
        limit = draw.choice((None, total, total // 2, 8, 16))
        capability = {"nvidia.com/gpu": str(limit)} if limit else None
        specs[name] = {"capability": capability, "weight": draw.choice((1, 1, 3))}
    return specs


def limited(gpus: int, cpu: str = "1") -> Body:
    """Return the resources of a container."""
    amounts = {"cpu": cpu} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    return {"requests": amounts, "limits": amounts}


def probe_node() -> Body:
    """Return the node on which only probes run."""
    body = _body(PROBE, {PROBE: "true"}, {"cpu": "1", "memory": "1Gi", "pods": "50"})
    return {**body, "spec": {"taints": [{"key": PROBE, "effect": "NoSchedule"}]}}


def probe(name: str) -> tuple[Body, Body]:
    """Return a pod for that node, in a gang of its own."""
    metadata = {"name": name, "namespace": NAMESPACE, "labels": {PROBE: "true"}}
    group = {"apiVersion": PODGROUP, "kind": "PodGroup", "metadata": metadata,
             "spec": {"minMember": 1, "queue": PROBE}}  # fmt: skip
    container = {"name": "probe", "image": "probe", "resources": {"requests": {"cpu": "1m"}}}
    pod = {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {**metadata, "annotations": {naming.POD_GROUP: name}},
        "spec": {"schedulerName": "volcano", "containers": [container],
                 "nodeSelector": {PROBE: "true"}, "tolerations": [{"operator": "Exists"}]},
    }  # fmt: skip
    return group, pod


def _node(name: str, labels: Body, gpus: int, draw: random.Random) -> Body:
    amounts = {
        "cpu": draw.choice(("64", "64", "64", "12")),
        "memory": "512Gi",
        "pods": draw.choice(("110", "110", "110", "3")),
        "nvidia.com/gpu": str(gpus),
    }
    return _body(name, labels, amounts)


def _body(name: str, labels: Body, amounts: Body) -> Body:
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {HOST: name, "type": "kwok", **labels},
                     "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "status": {"allocatable": amounts, "capacity": amounts},
    }  # fmt: skip


def _tree(draw: random.Random, name: str, nodes: list[Body], tiers: int) -> Iterator[Body]:
    """Draw the HyperNodes: racks, spines over them, and one top."""
    racks = sorted({body["metadata"]["labels"].get(RACK, "") for body in nodes} - {""})
    if not tiers or not racks:
        return
    named = draw.random() < 0.5
    for rack in racks:
        members = [{"type": "Node", "selector": {"labelMatch": {"matchLabels": {RACK: rack}}}}]
        yield _hyper_node(rack, 1, members, named=named)
    below = racks
    for tier in range(2, tiers + 1):
        count = 1 if tier == tiers else draw.randint(1, max(1, len(below) // 2))
        lists: list[list[str]] = [[] for _ in range(count)]
        for child in below:
            draw.choice(lists).append(child)
        below = []
        for number, children in enumerate(filter(None, lists)):
            title = f"{name}-tier-{tier}-{number}"
            members = [{"type": "HyperNode", "selector": {"exactMatch": {"name": child}}}
                       for child in children]  # fmt: skip
            yield _hyper_node(title, tier, members, named=named)
            below.append(title)


def _hyper_node(name: str, tier: int, members: list[Body], *, named: bool) -> Body:
    spec: Body = {"tier": tier, "members": members}
    if named:
        spec["tierName"] = f"level-{tier}"
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode",
        "metadata": {"name": name}, "spec": spec,
    }  # fmt: skip
