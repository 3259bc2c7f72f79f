"""Compares a picture with what the API server lists, read without the package's readers."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from kthena_components.cluster.client import Cluster
from kthena_components.cluster.fetch_servings_and_inventory import POD, listed, look_at_servings
from kthena_components.drawing.from_outcomes_and_servings import picture_of_servings
from kthena_components.drawing.page import draw_page
from kthena_components.drawing.picture import Picture

GPU = "nvidia.com/gpu"
_SERVING = "modelserving.volcano.sh/name"
Body = dict[str, Any]


def drawn(api: Cluster, namespace: str | None = None) -> Picture:
    """Draw the servings of a cluster as `status --html` does."""
    return picture_of_servings(look_at_servings(api, namespace), listed(api, POD))


def differences(
    picture: Picture, pods: Sequence[Body], nodes: Sequence[Body], hyper_nodes: Sequence[Body]
) -> list[str]:
    """List where a picture and its page differ from listed objects; empty if they are equal.

    The picture must be of all namespaces, and all pods of servings must have the label with the
    serving's name.
    """
    alive = [p for p in pods if p.get("status", {}).get("phase") not in {"Succeeded", "Failed"}]
    shown = {node.name: node for rack in picture.racks for node in rack.nodes}
    told: list[str] = []
    boxes = Counter(node.name for rack in picture.racks for node in rack.nodes)
    told += _compare("number of nodes", boxes, Counter(map(_name, nodes)))
    sizes = {_name(n): int(n["status"].get("allocatable", {}).get(GPU, 0)) for n in nodes}
    told += _compare("GPUs", {name: node.gpus for name, node in shown.items()}, sizes)
    used = dict.fromkeys(sizes, 0)
    for pod in alive:
        if node := pod["spec"].get("nodeName"):
            used[node] = used.get(node, 0) + _gpus(pod)
    told += _compare("used GPUs", {name: node.used for name, node in shown.items()}, used)
    where = {
        _key(pod): (pod["spec"].get("nodeName", ""), _gpus(pod))
        for pod in alive
        if _SERVING in pod["metadata"].get("labels", {})
    }
    told += _compare("pods", dict(_pods(picture)), where)
    counts = {_name(h): h["status"].get("nodeCount") for h in hyper_nodes if _is_leaf(h)}
    told += _compare("racks", {r.name: len(r.nodes) for r in picture.racks if r.name}, counts)
    page = draw_page(picture)
    return told + [f"{key} is not on the page" for key in where if key.split("/")[1] not in page]


def _pods(picture: Picture) -> Iterator[tuple[str, tuple[str, int]]]:
    for rack in picture.racks:
        for node in rack.nodes:
            for pod in node.pods:
                yield f"{pod.group.partition('/')[0]}/{pod.name}", (node.name, pod.gpus)
    for group in picture.groups:
        for pod in group.unplaced:
            yield f"{pod.group.partition('/')[0]}/{pod.name}", ("", pod.gpus)


def _compare(what: str, seen: dict[Any, Any], listed_: dict[Any, Any]) -> list[str]:
    return [
        f"{what} of {key}: drawn {seen.get(key)}, listed {listed_.get(key)}"
        for key in sorted({*seen, *listed_})
        if seen.get(key) != listed_.get(key)
    ]


def _gpus(pod: Body) -> int:
    """Sum the requests of containers. The pods of sandboxes have no init containers with GPUs."""
    asked = (one.get("resources", {}) for one in pod["spec"]["containers"])
    return sum(int((r.get("requests") or r.get("limits") or {}).get(GPU, 0)) for r in asked)


def _is_leaf(hyper_node: Body) -> bool:
    return all(member.get("type") == "Node" for member in hyper_node["spec"].get("members", []))


def _key(body: Body) -> str:
    return f"{body['metadata']['namespace']}/{_name(body)}"


def _name(body: Body) -> str:
    return str(body["metadata"]["name"])
