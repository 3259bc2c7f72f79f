"""Changes that make a PodGroup, a Queue or a HyperNode violate one rule."""
# ruff: noqa: E501 - long lines keep the tables of values readable

import random
from collections.abc import Callable
from typing import Any

from conformance.support.random_servings import coin
from conformance.validation.random_patterns import pattern_of

Body = dict[str, Any]
Change = Callable[[random.Random, Body], None]
_HALF = 0.5


_OBJECT_NAMES = (
    "Chat",
    "a_b",
    "-a",
    "a..b",
    "a" * 254,
    "é",
    "a.",
    "",
    None,
    "a-b",
    "9.9",
    "a b",
    5,
)
_QUEUE_NAMES = ("Research", "a_b", "", "a." * 200, "x y", "é", "-", None, 5, "a" * 254)


def name(draw: random.Random, body: Body) -> None:
    """Set a name near the limits, or let the API server generate one."""
    if draw.random() < _HALF / 4:
        del body["metadata"]["name"]
        body["metadata"]["generateName"] = draw.choice(("a-", "A-", "a" * 300, "", "a."))
        return
    body["metadata"]["name"] = draw.choice(_OBJECT_NAMES)


def labels(draw: random.Random, body: Body) -> None:
    """Set labels or annotations near the limits."""
    kind = draw.choice(("labels", "annotations"))
    key = draw.choice(("a", "a b", "a/b", "/a", "x" * 64, "", "A/b", "-"))
    word = draw.choice(("a", "", "a b", "a" * 64, "é", None, 5))
    body["metadata"][kind] = draw.choice(({key: word}, [], "a", {"a": "b", key: word}))


def queue_named(draw: random.Random, body: Body) -> None:
    """Set the name of a queue or of a parent to an invalid one."""
    key = "queue" if body["kind"] == "PodGroup" else "parent"
    own = body["metadata"].get("name")
    body["spec"][key] = draw.choice((*_QUEUE_NAMES, own))


def numbers(draw: random.Random, body: Body) -> None:
    """Set a number near the limits of its range."""
    keys = {"PodGroup": ("minMember",), "Queue": ("weight", "weight", "priority"),
            "HyperNode": ("tier",)}  # fmt: skip
    odd: tuple[Any, ...] = (
        0,
        -1,
        1,
        65535,
        65536,
        2**31,
        2**31 - 1,
        2**63 - 1,
        2**63,
        "1",
        1.0,
        1.5,
        None,
        True,
        [],
    )
    body["spec"][draw.choice(keys[body["kind"]])] = draw.choice(odd)


def caps(draw: random.Random, body: Body) -> None:
    """Set a topology near the limits, on the group or on a subgroup."""
    topology: Any = draw.choice(
        (
            {"highestTierAllowed": 1, "highestTierName": "rack"},
            {"highestTierAllowed": 1, "highestTierName": "rack"},
            {"highestTierAllowed": 1, "highestTierName": ""}, {"highestTierName": ""},
            {"highestTierAllowed": 0}, {"highestTierAllowed": 0, "mode": "soft"}, {}, {"mode": "soft"},
            {"highestTierAllowed": -1}, {"mode": "Hard"}, {"highestTierAllowed": 2**63},
            {"highestTierAllowed": 2**40, "highestTierName": "rack"}, {"highestTierName": "x" * 254},
            {"highestTierAllowed": "1"}, {"highestTierName": "é" * 253}, None, [],
        )
    )  # fmt: skip
    holder = draw.choice([body["spec"], *body["spec"].get("subGroupPolicy", [])])
    holder["networkTopology"] = topology


def policies(draw: random.Random, body: Body) -> None:
    """Set an incomplete subgroup policy."""
    policy: Body = draw.choice(
        (
            {"name": "a"}, {"name": "a", "minSubGroups": 1}, {"subGroupSize": 0}, {"minSubGroups": -1},
            {"subGroupSize": 2**31}, {"matchLabelKeys": "a"}, {"matchLabelKeys": [1]}, {"name": "p0"},
            {"labelSelector": {"matchLabels": {"a": 1}}}, {"labelSelector": []}, {"matchPolicy": []},
            {"labelSelector": {"matchExpressions": [{"key": "a"}]}}, {"name": "x" * 254},
            {"labelSelector": {"matchExpressions": [{"operator": "In", "key": 5}]}}, {},
            {"labelSelector": {"matchExpressions": [{"operator": "x", "key": "", "values": "a"}]}},
        )
    )  # fmt: skip
    whole = {"matchLabelKeys": ["k"], "name": "extra"} if coin(draw) else {}
    body["spec"].setdefault("subGroupPolicy", []).append({**whole, **policy})


_AMOUNTS: tuple[Any, ...] = (
    0, 1, 8, -1, "-1", "1500m", "0.5", "1e3", "1E", "8Gi", "", "a", 1.5, 2**63, None, True, "+5", "1n",
    "0.1n", "1e1.5", "1.e2", "9223372036854775808", "99999999999E", [],
)  # fmt: skip
_RESOURCES = (
    "cpu", "memory", "pods", "nvidia.com/gpu", "ephemeral-storage", "hugepages-2Mi", "storage", "x",
    "count/pods", "requests.cpu", "requests.nvidia.com/gpu", "kubernetes.io/a", "attachable-volumes-x",
    "a b", "", "A/b", "example.com/Gpu_1",
)  # fmt: skip


def amounts(draw: random.Random, body: Body) -> None:
    """Set an invalid quantity, or an invalid resource name."""
    spec = body["spec"]
    if body["kind"] == "PodGroup":
        spec["minResources"] = {draw.choice(_RESOURCES): draw.choice(_AMOUNTS)}
        return
    resource, amount = draw.choice(_RESOURCES), draw.choice(_AMOUNTS)
    for key in draw.sample(("capability", "deserved", "guarantee"), draw.randint(1, 3)):
        listed = {resource: draw.choice((amount, amount, draw.choice(_AMOUNTS)))}
        spec[key] = {"resource": listed} if key == "guarantee" else listed


def tasks(draw: random.Random, body: Body) -> None:
    """Set minima of tasks that do not match."""
    odd: tuple[Any, ...] = (
        {"a": -1},
        {"a": 99},
        {"a": 2**31},
        {"a": "1"},
        {"": 1},
        {"a": None},
        {"a": 1.5},
        [],
    )
    body["spec"]["minTaskMember"] = draw.choice(odd)


def pods_asked(draw: random.Random, body: Body) -> None:
    """Set minResources for more pods than start together."""
    body["spec"]["minResources"] = {"pods": body["spec"]["minMember"] + draw.randint(-1, 2)}


def more_of_queue(draw: random.Random, body: Body) -> None:
    """Change another field of a queue."""
    key, odd = draw.choice(
        (
            ("reclaimable", "true"), ("reclaimable", 1), ("dequeueStrategy", "lifo"), ("type", 5),
            ("type", "x" * 254), ("extendClusters", {}), ("extendClusters", [5]), ("extendClusters", [{}]),
            ("extendClusters", [{"weight": "1"}]), ("extendClusters", [{"capacity": {"cpu": "x"}}]),
            ("affinity", []), ("affinity", {"nodeGroupAffinity": []}), ("guarantee", {"resource": []}),
            ("affinity", {"nodeGroupAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": "a"}}),
            ("affinity", {"nodeGroupAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [1]}}),
            ("guarantee", {"cpu": 1}), ("extendClusters", [{"name": 5}]),
        )
    )  # fmt: skip
    body["spec"][key] = odd


def hierarchy(draw: random.Random, body: Body) -> None:
    """Set the annotations of queues in a hierarchy."""
    path = draw.choice(("root/a", "root", "", "root/a/b"))
    weights = draw.choice(
        ("1/2", "1", "", "1/x", "0/1", "1/-1", "1/2/3", "1/0.5", "1/1e3", "1/inf")
    )
    annotations = {"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights}
    body["metadata"]["annotations"] = {k: v for k, v in annotations.items() if draw.random() < 0.8}


def members(draw: random.Random, body: Body) -> None:
    """Set an incomplete member."""
    selector: Any = draw.choice(
        (
            {}, None, [], {"exactMatch": {}}, {"exactMatch": {"name": ""}}, {"exactMatch": None},
            {"exactMatch": {"name": draw.choice(_OBJECT_NAMES)}}, {"exactMatch": {"name": 5}},
            {"exactMatch": {"name": "a"}, "labelMatch": {"matchLabels": {"a": "b"}}},
            {"exactMatch": {"name": "a"}, "regexMatch": {"pattern": "^a$"}},
            {"exactMatch": {"name": "a"}, "labelMatch": None}, {"exactMatch": {"name": "a"}, "labelMatch": {}},
            {"exactMatch": {"name": "a"}, "other": 1}, {"other": 1}, {"regexMatch": {}},
            {"regexMatch": {"pattern": pattern_of(draw)}}, {"labelMatch": {}}, {"labelMatch": []},
            {"regexMatch": {"pattern": pattern_of(draw)}},
            {"labelMatch": {"matchLabels": {"a": 1}}}, {"labelMatch": {"matchLabels": []}},
            {"labelMatch": {"matchLabels": {"a": None}}}, {"labelMatch": {"matchExpressions": [{"key": "a"}]}},
            {"labelMatch": {"matchLabels": {"a b": "c d"}}}, {"labelMatch": {"matchExpressions": {}}},
            {"labelMatch": {"matchExpressions": [{"key": "a", "operator": "Odd"}]}},
            {"labelMatch": {"matchExpressions": [{"key": "a", "operator": "In", "values": [1]}]}},
        )
    )  # fmt: skip
    kind = draw.choice(("Node", "Node", "HyperNode", "HyperNode", "node", "", None, 5))
    member: Body = {"type": kind, "selector": selector}
    if draw.random() < _HALF / 4:
        del member[draw.choice(("type", "selector"))]
    where = draw.choice(("alone", "alone", "last", "first"))
    listed = body["spec"]["members"] if where != "alone" else []
    listed.insert(0 if where == "first" else len(listed), member)
    body["spec"]["members"] = draw.choice((listed, listed, listed, listed, [], None, {}, [None]))


GROUP_CHANGES: tuple[Change, ...] = (
    name, labels, queue_named, numbers, caps, caps, policies, policies, amounts, tasks, pods_asked,
)  # fmt: skip
QUEUE_CHANGES: tuple[Change, ...] = (
    name, labels, queue_named, numbers, amounts, amounts, amounts, more_of_queue, hierarchy,
)  # fmt: skip
HYPER_NODE_CHANGES: tuple[Change, ...] = (name, labels, numbers, members, members, members)
