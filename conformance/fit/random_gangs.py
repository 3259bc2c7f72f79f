"""Generates gangs: hand-written PodGroups with their pods, and servings of both backends."""

import random
from typing import Any

from conformance.fit.random_clusters import (
    APPS,
    PRODUCT,
    PRODUCTS,
    QUEUES,
    TAINT,
    Gang,
    ask_others,
    limited,
    with_asked,
)
from conformance.support.cluster import BACKENDS, NAMESPACE, PODGROUP
from conformance.volcano.gangs import manifests, serving
from kthena_components.core import naming

ENGINE = "engine"
CLASSES = {"fit-low": 10, "fit-high": 1000}
"""PriorityClasses, each with its value."""
Body = dict[str, Any]


def draw_gangs(draw: random.Random, tiers: int, nodes: int) -> list[Gang]:
    """Draw the gangs of one case."""
    count = draw.choice((1, 1, 1, 2, 3, 5))
    return [draw_gang(draw, f"gang-{number}", tiers, nodes) for number in range(count)]


def draw_gang(draw: random.Random, name: str, tiers: int, nodes: int) -> Gang:
    """Draw one gang. Few have more pods than the cluster has nodes."""
    form = draw.random()
    if form < 0.06:
        return _serving(draw, name, tiers)
    most = nodes + 1 if draw.random() < 0.2 else max(1, nodes // 2)
    pods = _engines(draw, name, most) if form < 0.45 else _equal(draw, name, most)
    spec: Body = {"queue": draw.choice(("default", "default", *QUEUES))}
    if topology := _topology(draw, tiers):
        spec["networkTopology"] = topology
    if form < 0.45:
        spec["subGroupPolicy"] = _policies(draw, pods, tiers)
    minimum = len(pods) if draw.random() < 0.75 else draw.randint(0, len(pods))
    least = sum(policy["minSubGroups"] * policy["subGroupSize"]
                for policy in spec.get("subGroupPolicy", ()))  # fmt: skip
    spec["minMember"] = max(minimum, least) if draw.random() < 0.9 else minimum
    if draw.random() < 0.4:
        counted = pods if draw.random() < 0.3 else pods[: spec["minMember"]]
        spec["minResources"] = _total(counted)
    if draw.random() < 0.1:
        tasks = [pod["metadata"]["annotations"][naming.TASK_SPEC] for pod in pods]
        spec["minTaskMember"] = {task: tasks.count(task) for task in sorted(set(tasks))}
    if draw.random() < 0.25:
        spec["priorityClassName"] = draw.choice(sorted(CLASSES))
    group = {
        "apiVersion": PODGROUP, "kind": "PodGroup",
        "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec,
    }  # fmt: skip
    return Gang(bodies=[group, *pods], pods=len(pods))


def plain_gang(name: str, count: int, resources: Body, topology: Body) -> Gang:
    """Return equal pods that all must start, in the default queue."""
    container = {"name": "serve", "image": "serve", "resources": resources}
    spec = {"schedulerName": "volcano", "containers": [container]}
    group = {
        "apiVersion": PODGROUP, "kind": "PodGroup",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"minMember": count, "queue": "default", "networkTopology": topology},
    }  # fmt: skip
    pods = [_pod(name, "role-0", "0", number, spec) for number in range(count)]
    return Gang(bodies=[group, *pods], pods=count)


def _equal(draw: random.Random, name: str, most: int) -> list[Body]:
    """Draw pods of one or two shapes, without subgroups."""
    pods: list[Body] = []
    for role in range(draw.choice((1, 1, 1, 2))):
        spec = _spec(draw, draw.choice((1, 2, 4, 8, 8, 8)))
        count = min(most, draw.choice((1, 2, 2, 3, 4, 4, 6, 8)))
        pods += [_pod(name, f"role-{role}", "0", number, spec) for number in range(count)]
    return pods


def _engines(draw: random.Random, name: str, most: int) -> list[Body]:
    """Draw engines of one or two roles, each a subgroup."""
    pods: list[Body] = []
    for role in range(draw.choice((1, 1, 2))):
        spec = _spec(draw, draw.choice((4, 8, 8, 8)))
        size = min(most, draw.choice((1, 2, 2, 3, 4)))
        for engine in range(min(max(1, most // size), draw.choice((1, 2, 2, 3)))):
            pods += [_pod(name, f"role-{role}", str(engine), n, spec) for n in range(size)]
    return pods


def _policies(draw: random.Random, pods: list[Body], tiers: int) -> list[Body]:
    """Draw one policy per role."""
    policies = []
    for role in sorted({pod["metadata"]["labels"]["role"] for pod in pods}):
        own = [
            pod["metadata"]["labels"] for pod in pods if pod["metadata"]["labels"]["role"] == role
        ]
        engines = len({labels[ENGINE] for labels in own})
        policy = {
            "name": role,
            "labelSelector": {"matchLabels": {"role": role}},
            "matchLabelKeys": [ENGINE],
            "subGroupSize": len(own) // engines,
            "minSubGroups": engines if draw.random() < 0.7 else draw.randint(0, engines),
        }
        if draw.random() < 0.8 and (topology := _topology(draw, tiers)):
            policy["networkTopology"] = topology
        policies.append(policy)
    return policies


def _topology(draw: random.Random, tiers: int) -> Body | None:
    """Draw a networkTopology. Caps that no HyperNode can meet, or that are dropped, are rare."""
    form = draw.random()
    if form < 0.3:
        return None
    if form < 0.42:
        return {"mode": "soft", "highestTierAllowed": draw.randint(1, max(1, tiers))}
    if form < 0.45:
        return {"mode": "hard"}
    if form < 0.52:
        return {"mode": "hard", "highestTierName": f"level-{draw.randint(1, max(1, tiers))}"}
    cap = draw.randint(1, max(1, tiers)) if form < 0.96 else draw.choice((0, tiers + 1))
    return {"mode": "hard", "highestTierAllowed": cap}


def _serving(draw: random.Random, name: str, tiers: int) -> Gang:
    """Draw a serving whose objects a controller makes."""
    backend = draw.choice(BACKENDS)
    workers, engines, replicas = draw.randint(1, 2), draw.randint(1, 2), draw.randint(1, 2)
    policies: Body = {}
    for key in ("group", "role"):
        if draw.random() < 0.6:
            cap = draw.randint(1, max(1, tiers))
            policies[key] = {"mode": "hard", "highest_tier_allowed": cap}
    args = serving(name, backend, workers=workers, engines=engines, replicas=replicas, **policies)
    bodies = [dict(body) for body in manifests(args)]
    return Gang(bodies=bodies, pods=(workers + 1) * engines * replicas, kind=backend)


def _spec(draw: random.Random, gpus: int) -> Body:
    """Draw a pod spec."""
    cpu = draw.choice(("1", "1", "1", "8"))
    container = {"name": "serve", "image": "serve", "resources": limited(gpus, cpu)}
    spec: Body = {"schedulerName": "volcano", "containers": [container]}
    if draw.random() < 0.15:
        spec["nodeSelector"] = {PRODUCT: draw.choice(PRODUCTS)}
    if draw.random() < 0.25:
        spec["tolerations"] = [{**TAINT, "operator": "Equal"}]
    return with_asked(spec, ask_others(draw)) if draw.random() < 0.12 else spec


def _pod(name: str, role: str, engine: str, number: int, spec: Body) -> Body:
    app = APPS[int(role[-1]) % len(APPS)]
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": f"{name}-{role}-{engine}-{number}", "namespace": NAMESPACE,
            "labels": {"gang": name, "role": role, ENGINE: engine, "app": app},
            "annotations": {naming.POD_GROUP: name, naming.TASK_SPEC: role},
        },
        "spec": spec,
    }  # fmt: skip


def _total(pods: list[Body]) -> Body:
    """Return what some pods request."""
    total = {"cpu": 0, "nvidia.com/gpu": 0}
    for pod in pods:
        requests = pod["spec"]["containers"][0]["resources"]["requests"]
        for key in total:
            total[key] += int(requests.get(key, 0))
    return {key: str(amount) for key, amount in total.items() if amount}
