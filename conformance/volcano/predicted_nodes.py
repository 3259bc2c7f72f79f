"""Compares the nodes that `doctor` predicts for a pod with the choice of Volcano's scheduler.

Nodes get random labels and taints, and pods get random selectors, affinities and tolerations. Each
pod is created once per node, and may run only on that node.
"""

import random
from collections.abc import Iterator
from typing import Any

from conformance.support.cluster import NAMESPACE, Scene
from kthena_components.cluster.objects import condition_of, name_of
from kthena_components.core.topology.node_fit import obstacles

NUMBER = 40
"""Number of pods. Each one is tried on every node."""
HOST = "kubernetes.io/hostname"
KEYS, VALUES = ("gpu", "team"), ("h100", "a100", "8")
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
Body = dict[str, Any]


def hold(scene: Scene, seed: int, number: int) -> None:
    """Create every pod, and compare."""
    draw = random.Random(f"placing {seed}")  # noqa: S311 - to repeat, not to hide
    nodes = list(scene.api.list("v1", "Node"))
    for node in nodes:
        _change(scene, node, {key: _value(draw) for key in KEYS}, list(_taints(draw)))
    nodes = list(scene.api.list("v1", "Node"))
    tried = [
        (_pod(f"p{n}-{node['metadata']['name']}", spec, node), node)
        for n in range(number)
        for spec in [_spec(draw)]
        for node in nodes
    ]
    taken = {
        pod["metadata"]["name"] for pod, node in tried if not any(obstacles(pod["spec"], node))
    }
    try:
        with scene.of(f"{number} pods on {len(nodes)} nodes"):
            scene.settle()
            scene.make(pod for pod, _ in tried)
            names = {pod["metadata"]["name"] for pod, _ in tried}

            def tried_all() -> bool:
                return names <= _refused(scene) | set(scene.bound())

            scene.until("the scheduler has tried each pod", tried_all)
            scene.until("it binds the predicted pods", lambda: taken <= set(scene.bound()))
            scene.stays("and no others", lambda: set(scene.bound()) <= taken)
    finally:
        for node in nodes:
            _change(scene, node, dict.fromkeys(KEYS), [])
    scene.check("some are accepted, and some are not", holds=0 < len(taken) < len(tried),
                seen=len(taken))  # fmt: skip
    scene.part.count("pods that a node accepts, as predicted", len(taken))
    scene.part.count("pods that it does not accept, as predicted", len(tried) - len(taken))


def _refused(scene: Scene) -> set[str]:
    """Return the names of the pods for which the scheduler found no node."""
    return {
        name_of(pod)
        for pod in scene.pods()
        if condition_of(pod, "PodScheduled").get("status") == "False"
    }


def _change(scene: Scene, node: Body, labels: Body, taints: list[Body]) -> None:
    scene.api.patch(node, {"metadata": {"labels": labels}, "spec": {"taints": taints}})


def _value(draw: random.Random) -> str | None:
    return draw.choice((None, *VALUES))


def _taints(draw: random.Random) -> Iterator[Body]:
    for key in KEYS:
        if draw.random() < 0.4:
            value = {"value": draw.choice(VALUES)} if draw.random() < 0.7 else {}
            yield {"key": key, "effect": draw.choice(EFFECTS), **value}


def _pod(name: str, spec: Body, node: Body) -> Body:
    selector = {**spec.get("nodeSelector", {}), HOST: node["metadata"]["name"]}
    container = {"name": "engine", "image": "engine", "resources": {"requests": {"cpu": "1m"}}}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {**spec, "nodeSelector": selector, "schedulerName": "volcano",
                 "containers": [container]},
    }  # fmt: skip


def _spec(draw: random.Random) -> Body:
    tolerations = [_toleration(draw) for _ in range(draw.randrange(3))]
    spec: Body = {"tolerations": tolerations}
    if draw.random() < 0.3:
        spec["nodeSelector"] = {draw.choice(KEYS): draw.choice(VALUES)}
    if draw.random() < 0.5:
        terms = [_term(draw) for _ in range(draw.randint(1, 2))]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        spec["affinity"] = {"nodeAffinity": required}
    return spec


def _toleration(draw: random.Random) -> Body:
    if draw.random() < 0.2:
        return {"operator": "Exists"}
    effect = draw.choice(({}, {"effect": draw.choice(EFFECTS)}))
    form = draw.choice(({"operator": "Exists"}, {"value": draw.choice(VALUES)},
                        {"operator": "Equal", "value": draw.choice(VALUES)}, {}))  # fmt: skip
    return {"key": draw.choice(KEYS), **form, **effect}


def _term(draw: random.Random) -> Body:
    if draw.random() < 0.1:
        return {}
    operator = draw.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    values: dict[str, list[str]] = {
        "In": [*draw.sample(VALUES, 2)], "NotIn": [draw.choice(VALUES)],
        "Gt": [str(draw.randint(7, 8))], "Lt": [str(draw.randint(8, 9))],
    }  # fmt: skip
    stated = {"values": values[operator]} if operator in values else {}
    return {"matchExpressions": [{"key": draw.choice(KEYS), "operator": operator, **stated}]}
