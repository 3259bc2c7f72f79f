"""Draws a sandbox in random states, and compares each picture with what the API server lists."""

import random
from collections.abc import Iterator

from conformance.__main__ import Context
from conformance.report import Part
from conformance.support.pictures import GPU, Body, differences, drawn
from conformance.support.waiting import wait
from kthena_components.cluster.client import Cluster
from kthena_components.cluster.fetch_servings_and_inventory import NODE, POD
from kthena_components.cluster.requirements import HYPER_NODE
from kthena_components.core import naming

STATES = 100
NAMESPACE = "pictures"
_SECONDS = 30
"""The longest that the lists of one state may change. A wrong picture stays wrong."""


def draw_random(context: Context, api: Cluster) -> None:
    """Change pods and nodes, and draw, as often as the scale says. Then delete the pods."""
    part, drawing = context.part, random.Random(f"{context.seed} pictures")  # noqa: S311
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    account = ("v1", "ServiceAccount", NAMESPACE)
    wait(lambda: list(api.list(*account)))
    there: list[Body] = []
    for number in range(context.many(STATES)):
        nodes = [node["metadata"]["name"] for node in api.list(*NODE)]
        for body in _pods(drawing, number, nodes):
            api.create(body)
            there.append(body)
        for _ in range(min(len(there), drawing.randint(0, 4))):
            api.delete(there.pop(drawing.randrange(len(there))))
        cordoned = {"spec": {"unschedulable": drawing.random() < 1 / 2}}
        node = {"apiVersion": NODE[0], "kind": NODE[1]}
        api.patch({**node, "metadata": {"name": drawing.choice(nodes)}}, cordoned)
        _compare(part, api, number)
    for body in there:
        api.delete(body)
    for name in nodes:
        api.patch({**node, "metadata": {"name": name}}, {"spec": {"unschedulable": False}})


def _compare(part: Part, api: Cluster, number: int) -> None:
    wrong: list[str] = []

    def is_equal() -> bool:
        picture = drawn(api)
        lists = (list(api.list(*kind)) for kind in (POD, NODE, HYPER_NODE))
        wrong[:] = differences(picture, *lists)
        return not wrong

    equal = wait(is_equal, _SECONDS)
    part.count("states drawn")
    part.check(f"picture {number} equals what the API server lists", holds=equal, seen=wrong)


def _pods(drawing: random.Random, number: int, nodes: list[str]) -> Iterator[Body]:
    """Make pods of servings and of others, with and without a node and GPUs."""
    for index in range(drawing.randint(1, 5)):
        serving = drawing.choice(("chat", "code", ""))
        labels = {
            naming.NAME: serving, naming.GROUP_NAME: f"{serving}-{drawing.randint(0, 2)}",
            naming.ROLE_ID: f"serve-{drawing.randint(0, 1)}",
        }  # fmt: skip
        gpus = drawing.choice(("0", "1", "4", "8"))
        resources = {"limits": {GPU: gpus}} if gpus != "0" else {}
        spec: Body = {
            "containers": [{"name": "engine", "image": "none", "resources": resources}],
            "schedulerName": "none",
        }
        if drawing.random() < 3 / 4:
            spec["nodeName"] = drawing.choice(nodes)
        name = f"pod-{number}-{index}"
        metadata: Body = {"name": name, "namespace": NAMESPACE, "labels": labels if serving else {}}
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
