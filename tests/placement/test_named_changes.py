"""A change that `fit` names is made literally, in the inventory or the manifest: then it fits."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import yaml

from kthena_components.placement.answer import answer, ask
from kthena_components.placement.inventory import parse_inventory
from kthena_components.placement.model import Outcome, Verdict
from tests.cluster.objects import by_name, hyper_node
from tests.placement.test_inventory import HEAD
from tests.support.for_each import for_each

Body = dict[str, Any]
Edit = Callable[[Body, list[Body]], None]
"""Changes the inventory, or the manifests."""
GPU = "nvidia.com/gpu"
RACK = {"name": "r", "nodes": [{"name": "a"}, {"name": "b"}]}
INVENTORY: Body = {**HEAD, "gpus": 8, "cpu": 64, "memory": "1Ti", "racks": [RACK],
                   "queues": [{"name": "default"}]}  # fmt: skip


def gang(
    pods: int = 1, queue: str = "default", topology: Body | None = None,
    volumes: list[Body] | None = None, limits: Mapping[str, Any] | None = None,
) -> list[Body]:  # fmt: skip
    spec: Body = {"minMember": pods, "queue": queue}
    spec |= {"networkTopology": topology} if topology else {}
    head: Body = {"namespace": "serving", "annotations": {"scheduling.k8s.io/group-name": "g"}}
    container = {"name": "e", "resources": {"limits": {GPU: 8, **(limits or {})}}}
    return [
        {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
         "metadata": {"name": "g", "namespace": "serving"}, "spec": spec},
        *({"apiVersion": "v1", "kind": "Pod", "metadata": {**head, "name": f"g-{n}"},
           "spec": {"schedulerName": "volcano", "containers": [deepcopy(container)],
                    "volumes": volumes or []}} for n in range(pods)),
    ]  # fmt: skip


def outcome(inventory: Body, objects: list[Body]) -> Outcome:
    (found,) = answer(ask(parse_inventory(yaml.safe_dump(inventory)), objects))
    return found


def limited(**limits: Any) -> Edit:
    def edit(_: Body, objects: list[Body]) -> None:
        for body in objects[1:]:
            body["spec"]["containers"][0]["resources"]["limits"] |= limits

    return edit


def node_with(**fields: Any) -> Edit:
    def edit(inventory: Body, _: list[Body]) -> None:
        inventory["racks"][0]["nodes"].append({"name": "new", **fields})

    return edit


def accepting(*names: str) -> Edit:
    """Let nodes of the first rack accept pods."""

    def edit(inventory: Body, _: list[Body]) -> None:
        for one in inventory["racks"][0]["nodes"]:
            if one["name"] in names:
                one.pop("cordoned", None)
                one.pop("ready", None)

    return edit


def queue(name: str) -> Edit:
    return lambda inventory, _: inventory["queues"].append({"name": name})


def named(name: str) -> Edit:
    return lambda _, objects: objects[0]["spec"].update(queue=name)


def opened(inventory: Body, _: list[Body]) -> None:
    inventory["queues"][1]["open"] = True


def without_member(name: str, child: str) -> Edit:
    """Remove the member of one of the HyperNodes among the manifests."""

    def edit(_: Body, objects: list[Body]) -> None:
        (spec,) = (body["spec"] for body in objects if body["metadata"]["name"] == name)
        spec["members"] = [one for one in spec["members"] if one != by_name(child, "HyperNode")]

    return edit


def without_hyper_node(name: str) -> Edit:
    """Remove one of the HyperNodes among the manifests."""

    def edit(_: Body, objects: list[Body]) -> None:
        objects[:] = [body for body in objects if body["metadata"]["name"] != name]

    return edit


RACK_CAP = {"mode": "hard", "highestTierAllowed": 1}
CAPPED = gang(topology=RACK_CAP)
PARENTS = [hyper_node(name, 2, by_name("r", "HyperNode")) for name in ("s", "t")]
LARGE_PARENT = hyper_node("t", 2, by_name("r", "HyperNode"), by_name("q", "HyperNode"))
TWO_RACKS = {**INVENTORY, "racks": [RACK, {"name": "q", "nodes": [{"name": "c"}]}]}


def volume(zone: str) -> Body:
    expression = {"key": "zone", "operator": "In", "values": [zone]}
    terms = [{"matchExpressions": [expression]}]
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"},
            "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}}  # fmt: skip


def in_zone(zone: str) -> Edit:
    return lambda inventory, _: inventory["volumes"].__setitem__(0, volume(zone))


CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "models", "namespace": "serving"},
    "spec": {"volumeName": "pv"},
}
ZONES = {**HEAD, "gpus": 8, "cpu": 64, "memory": "1Ti", "volumes": [volume("u"), CLAIM],
         "nodes": [{"name": "a", "gpus": 0, "labels": {"zone": "w"}},
                   {"name": "b", "labels": {"zone": "v"}}]}  # fmt: skip
CLAIMING = gang(volumes=[{"name": "m", "persistentVolumeClaim": {"claimName": "models"}}])
SHUT = {**INVENTORY, "queues": [{"name": "default"}, {"name": "shut", "open": False}]}
CLOSED = {**INVENTORY, "racks": [{"name": "r", "nodes": [
    {"name": "a", "cordoned": True}, {"name": "b", "ready": False}]}]}  # fmt: skip
HALF = {**INVENTORY, "racks": [{"name": "r", "nodes": [
    {"name": "a"}, {"name": "b", "cordoned": True}, {"name": "c", "cordoned": True}]}]}  # fmt: skip
CASES: list[tuple[str, Body, list[Body], dict[str, Edit]]] = [
    ("GPUs", INVENTORY, gang(limits={GPU: 16}), {
        "Request at most 8 GPUs per pod, as the node a has": limited(**{GPU: 8}),
        "Add one node like a to r with 16 GPUs": node_with(gpus=16)}),
    ("CPU", INVENTORY, gang(limits={"cpu": 96}), {
        "Request at most 64 cpu per pod, as the node a has": limited(cpu=64),
        "Add one node like a to r with 96 cpu": node_with(cpu=96)}),
    ("memory", INVENTORY, gang(limits={"memory": "2Ti"}), {
        "Request at most 1Ti memory per pod, as the node a has": limited(memory="1Ti"),
        "Add one node like a to r with 2Ti memory": node_with(memory="2Ti")}),
    ("a missing queue", INVENTORY, gang(queue="team"), {
        "Add the queue team": queue("team"),
        "Name the queue default in its place": named("default")}),
    ("a closed queue", SHUT, gang(queue="shut"), {
        "Open the queue shut": opened,
        "Name the queue default in its place": named("default")}),
    ("two parents", INVENTORY, [*CAPPED, *PARENTS], {
        "Remove the HyperNode t": without_hyper_node("t")}),
    ("two parents, of which one has more", TWO_RACKS, [*CAPPED, PARENTS[0], LARGE_PARENT], {
        "Remove the member r of the HyperNode t": without_member("t", "r")}),
    ("a volume in a zone without nodes", ZONES, CLAIMING, {
        "Bind its claim to a PersistentVolume with zone=v, in place of pv": in_zone("v")}),
    ("no node accepts pods", CLOSED, gang(2), {
        "Uncordon or repair 2 nodes in r: a, b": accepting("a", "b")}),
    ("some nodes do not accept pods", HALF, gang(2, topology=RACK_CAP), {
        "Uncordon or repair one node in r: b": accepting("b")}),
]  # fmt: skip


@for_each("name, inventory, objects, edits", CASES, ids=[name for name, *_ in CASES])
def test_a_change_that_is_made_literally_helps(
    name: str, inventory: Body, objects: list[Body], edits: dict[str, Edit]
) -> None:
    before = outcome(inventory, objects)
    assert before.verdict is Verdict.NEVER, name
    (obstacle,) = before.obstacles
    assert [change.text for change in obstacle.changes] == list(edits)
    for edit in edits.values():
        there, asked = deepcopy(inventory), deepcopy(objects)
        edit(there, asked)
        assert outcome(there, asked).verdict is Verdict.FITS
