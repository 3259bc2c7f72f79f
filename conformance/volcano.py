"""PodGroups, Queues and HyperNodes that Volcano takes, drawn at random, and ways to break them."""

import random
from collections.abc import Callable
from typing import Any

Body = dict[str, Any]
Change = Callable[[random.Random, Body], None]
SCHEDULING = "scheduling.volcano.sh/v1beta1"
PARENT: Body = {
    "apiVersion": SCHEDULING,
    "kind": "Queue",
    "metadata": {"name": "everything"},
    "spec": {
        "capability": dict.fromkeys(
            ("cpu", "memory", "pods", "nvidia.com/gpu", "ephemeral-storage"), 10**9
        )
    },
}
"""A real queue with room for whatever is drawn: others are its children."""
_HALF = 0.5


def _coin(draw: random.Random) -> bool:
    return draw.random() < _HALF


def _some(draw: random.Random, fields: Body) -> Body:
    return {name: value for name, value in fields.items() if _coin(draw)}


def _selector(draw: random.Random) -> Body:
    expression = {"key": "a", "operator": draw.choice(("In", "Exists", "Odd")), "values": ["b"]}
    return _some(draw, {"matchLabels": {"app": "chat"}, "matchExpressions": [expression]})


def _topology(draw: random.Random) -> Body:
    cap = draw.choice(({"highestTierAllowed": draw.choice((1, 2, 9))}, {"highestTierName": "rack"}))
    return {"mode": draw.choice(("hard", "soft")), **cap}


def pod_group(draw: random.Random) -> Body:
    """Draw a PodGroup that is right."""
    policies = [_policy(draw, f"p{index}") for index in range(draw.randint(0, 3))]
    member = draw.randint(0, 9)
    spec = _some(
        draw,
        {
            "minTaskMember": {"leader": draw.randint(0, member)},
            "queue": draw.choice(("default", "everything")),
            "priorityClassName": draw.choice(("high", "", "x" * 253)),
            "minResources": {"nvidia.com/gpu": draw.choice((8, "64")), "cpu": "500m"},
            "networkTopology": _topology(draw),
            "subGroupPolicy": policies,
        },
    )
    metadata = {"name": draw.choice(("chat-0", "9", "a.b", "c" * 253)), "namespace": "serving"}
    return {"apiVersion": SCHEDULING, "kind": "PodGroup", "metadata": metadata,
            "spec": {"minMember": member, **spec}}  # fmt: skip


def _policy(draw: random.Random, name: str) -> Body:
    given = _some(
        draw,
        {
            "labelSelector": _selector(draw),
            "subGroupSize": draw.randint(1, 4),
            "minSubGroups": draw.randint(0, 2),
            "networkTopology": _topology(draw),
        },
    )
    return {"name": name, "matchLabelKeys": ["volcano.sh/engine"], **given}


def queue(draw: random.Random) -> Body:
    """Draw a Queue that is right."""
    resources = draw.sample(("cpu", "memory", "nvidia.com/gpu", "pods"), draw.randint(0, 3))
    low = {name: draw.randint(0, 4) for name in resources}
    high = {name: low[name] + draw.randint(0, 4) for name in resources}
    spec = _some(
        draw,
        {
            "weight": draw.choice((1, 5, 65535)),
            "reclaimable": _coin(draw),
            "parent": draw.choice(("everything", "root")),
            "capability": {name: str(amount) for name, amount in high.items()},
            "priority": draw.choice((0, 5)),
            "dequeueStrategy": draw.choice(("fifo", "traverse")),
            "type": "a",
            "extendClusters": [{"name": "b", "weight": 1, "capacity": {"cpu": 1}}],
            "affinity": _affinity(draw),
        },
    )
    if _coin(draw):
        spec["deserved"] = dict(high)
        if _coin(draw):
            spec["guarantee"] = {"resource": low}
    metadata = {"name": draw.choice(("research", "9", "a.b", "q" * 253))}
    return {"apiVersion": SCHEDULING, "kind": "Queue", "metadata": metadata, "spec": spec}


def _affinity(draw: random.Random) -> Body:
    ending = "DuringSchedulingIgnoredDuringExecution"
    terms = {f"{word}{ending}": ["g"] for word in ("required", "preferred")}
    return _some(
        draw,
        {"nodeGroupAffinity": _some(draw, terms), "nodeGroupAntiAffinity": _some(draw, terms)},
    )


def hyper_node(draw: random.Random) -> Body:
    """Draw a HyperNode that is right."""
    spec: Body = {"tier": draw.choice((0, 1, 2, 2**40))}
    if _coin(draw):
        spec["tierName"] = draw.choice(("rack", "", "x" * 253))
    kind = draw.choice(("children", "names", "names", "labels", "pattern"))
    names = [f"n-{index}" for index in range(draw.randint(1, 4))]
    exact = [{"exactMatch": {"name": name}} for name in names]
    match kind:
        case "labels":
            chosen: list[Body] = [{"labelMatch": {"matchLabels": {"rack": "1"}}}]
        case "pattern":
            chosen = [{"regexMatch": {"pattern": draw.choice(("^gpu-[0-9]+$", "^a$", "^.*$"))}}]
        case _:
            chosen = exact
    of = "HyperNode" if kind == "children" else "Node"
    spec["members"] = [{"type": of, "selector": selector} for selector in chosen]
    metadata = {"name": draw.choice(("h-1", "9", "a.b", "h" * 253))}
    return {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode",
            "metadata": metadata, "spec": spec}  # fmt: skip


_OBJECT_NAMES = (
    "Chat", "a_b", "-a", "a..b", "a" * 254, "é", "a.", "", None, "a-b", "9.9", "a b", 5,
)  # fmt: skip
_QUEUE_NAMES = ("Research", "a_b", "", "a." * 200, "x y", "é", "-", None, 5, "a" * 254)


def name(draw: random.Random, body: Body) -> None:
    """Give the object a name at the edge of what is taken, or let the API server choose."""
    if draw.random() < _HALF / 4:
        del body["metadata"]["name"]
        body["metadata"]["generateName"] = draw.choice(("a-", "A-", "a" * 300, "", "a."))
        return
    body["metadata"]["name"] = draw.choice(_OBJECT_NAMES)


def labels(draw: random.Random, body: Body) -> None:
    """Write labels or annotations at the edge of what is taken."""
    kind = draw.choice(("labels", "annotations"))
    key = draw.choice(("a", "a b", "a/b", "/a", "x" * 64, "", "A/b", "-"))
    word = draw.choice(("a", "", "a b", "a" * 64, "é", None, 5))
    body["metadata"][kind] = draw.choice(({key: word}, [], "a", {"a": "b", key: word}))


def queue_named(draw: random.Random, body: Body) -> None:
    """Name a queue, or a parent, that no queue can be."""
    key = "queue" if body["kind"] == "PodGroup" else "parent"
    own = body["metadata"].get("name")
    body["spec"][key] = draw.choice((*_QUEUE_NAMES, own))


def numbers(draw: random.Random, body: Body) -> None:
    """Give a number at the edge of its range."""
    keys = {"PodGroup": ("minMember",), "Queue": ("weight", "weight", "priority"),
            "HyperNode": ("tier",)}  # fmt: skip
    odd = (
        0, -1, 1, 65535, 65536, 2**31, 2**31 - 1, 2**63 - 1, 2**63, "1", 1.0, 1.5, None, True, [],
    )  # fmt: skip
    body["spec"][draw.choice(keys[body["kind"]])] = draw.choice(odd)


def caps(draw: random.Random, body: Body) -> None:
    """Write a topology at the edge of what is taken, on the group or a subgroup."""
    topology = draw.choice(
        (
            {"highestTierAllowed": 1, "highestTierName": "rack"},
            {"highestTierAllowed": 1, "highestTierName": "rack"},
            {"highestTierAllowed": 1, "highestTierName": ""}, {"highestTierName": ""},
            {"highestTierAllowed": 0}, {"highestTierAllowed": 0, "mode": "soft"}, {},
            {"mode": "soft"},
            {"highestTierAllowed": -1}, {"mode": "Hard"}, {"highestTierAllowed": 2**63},
            {"highestTierAllowed": 2**40, "highestTierName": "rack"},
            {"highestTierName": "x" * 254},
            {"highestTierAllowed": "1"}, {"highestTierName": "é" * 253}, None, [],
        )
    )  # fmt: skip
    holder = draw.choice([body["spec"], *body["spec"].get("subGroupPolicy", [])])
    holder["networkTopology"] = topology


def policies(draw: random.Random, body: Body) -> None:
    """Write a subgroup policy that is not whole."""
    policy = draw.choice(
        (
            {"name": "a"}, {"name": "a", "minSubGroups": 1}, {"subGroupSize": 0},
            {"minSubGroups": -1},
            {"subGroupSize": 2**31}, {"matchLabelKeys": "a"}, {"matchLabelKeys": [1]},
            {"name": "p0"},
            {"labelSelector": {"matchLabels": {"a": 1}}}, {"labelSelector": []},
            {"matchPolicy": []},
            {"labelSelector": {"matchExpressions": [{"key": "a"}]}}, {"name": "x" * 254},
            {"labelSelector": {"matchExpressions": [{"operator": "In", "key": 5}]}}, {},
            {"labelSelector": {"matchExpressions": [{"operator": "x", "key": "", "values": "a"}]}},
        )
    )  # fmt: skip
    whole = {"matchLabelKeys": ["k"], "name": "extra"} if _coin(draw) else {}
    body["spec"].setdefault("subGroupPolicy", []).append({**whole, **policy})


_AMOUNTS = (
    0, 1, 8, -1, "-1", "1500m", "0.5", "1e3", "1E", "8Gi", "", "a", 1.5, 2**63, None, True, "+5",
    "1n",
    "0.1n", "1e1.5", "1.e2", "9223372036854775808", "99999999999E", [],
)  # fmt: skip
_RESOURCES = (
    "cpu", "memory", "pods", "nvidia.com/gpu", "ephemeral-storage", "hugepages-2Mi", "storage", "x",
    "count/pods", "requests.cpu", "requests.nvidia.com/gpu", "kubernetes.io/a",
    "attachable-volumes-x",
    "a b", "", "A/b", "example.com/Gpu_1",
)  # fmt: skip


def amounts(draw: random.Random, body: Body) -> None:
    """Write an amount of a resource that is no amount, or of no resource."""
    spec = body["spec"]
    if body["kind"] == "PodGroup":
        spec["minResources"] = {draw.choice(_RESOURCES): draw.choice(_AMOUNTS)}
        return
    resource, amount = draw.choice(_RESOURCES), draw.choice(_AMOUNTS)
    for key in draw.sample(("capability", "deserved", "guarantee"), draw.randint(1, 3)):
        listed = {resource: draw.choice((amount, amount, draw.choice(_AMOUNTS)))}
        spec[key] = {"resource": listed} if key == "guarantee" else listed


def tasks(draw: random.Random, body: Body) -> None:
    """Write minima of tasks that do not fit."""
    odd = ({"a": -1}, {"a": 99}, {"a": 2**31}, {"a": "1"}, {"": 1}, {"a": None}, {"a": 1.5}, [])
    body["spec"]["minTaskMember"] = draw.choice(odd)


def pods_asked(draw: random.Random, body: Body) -> None:
    """Ask for the room of more pods than start together."""
    body["spec"]["minResources"] = {"pods": body["spec"]["minMember"] + draw.randint(-1, 2)}


def more_of_queue(draw: random.Random, body: Body) -> None:
    """Write the rest of a queue's fields otherwise than they are."""
    key, odd = draw.choice(
        (
            ("reclaimable", "true"), ("reclaimable", 1), ("dequeueStrategy", "lifo"), ("type", 5),
            ("type", "x" * 254), ("extendClusters", {}), ("extendClusters", [5]),
            ("extendClusters", [{}]),
            ("extendClusters", [{"weight": "1"}]), ("extendClusters", [{"capacity": {"cpu": "x"}}]),
            ("affinity", []), ("affinity", {"nodeGroupAffinity": []}),
            ("guarantee", {"resource": []}),
            ("affinity",
             {"nodeGroupAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": "a"}}),
            ("affinity",
             {"nodeGroupAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [1]}}),
            ("guarantee", {"cpu": 1}), ("extendClusters", [{"name": 5}]),
        )
    )  # fmt: skip
    body["spec"][key] = odd


def hierarchy(draw: random.Random, body: Body) -> None:
    """Write the annotations of queues in a hierarchy."""
    path = draw.choice(("root/a", "root", "", "root/a/b"))
    weights = draw.choice(
        ("1/2", "1", "", "1/x", "0/1", "1/-1", "1/2/3", "1/0.5", "1/1e3", "1/inf")
    )
    annotations = {"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights}
    body["metadata"]["annotations"] = {k: v for k, v in annotations.items() if draw.random() < 0.8}


def members(draw: random.Random, body: Body) -> None:
    """Write a member that is not whole."""
    selector = draw.choice(
        (
            {}, None, [], {"exactMatch": {}}, {"exactMatch": {"name": ""}}, {"exactMatch": None},
            {"exactMatch": {"name": draw.choice(_OBJECT_NAMES)}}, {"exactMatch": {"name": 5}},
            {"exactMatch": {"name": "a"}, "labelMatch": {"matchLabels": {"a": "b"}}},
            {"exactMatch": {"name": "a"}, "regexMatch": {"pattern": "^a$"}},
            {"exactMatch": {"name": "a"}, "labelMatch": None},
            {"exactMatch": {"name": "a"}, "labelMatch": {}},
            {"exactMatch": {"name": "a"}, "other": 1}, {"other": 1}, {"regexMatch": {}},
            {"regexMatch": {"pattern": pattern_of(draw)}}, {"labelMatch": {}}, {"labelMatch": []},
            {"regexMatch": {"pattern": pattern_of(draw)}},
            {"labelMatch": {"matchLabels": {"a": 1}}}, {"labelMatch": {"matchLabels": []}},
            {"labelMatch": {"matchLabels": {"a": None}}},
            {"labelMatch": {"matchExpressions": [{"key": "a"}]}},
            {"labelMatch": {"matchLabels": {"a b": "c d"}}},
            {"labelMatch": {"matchExpressions": {}}},
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


_BITS = (
    "^", "$", "a", "(", ")", "[", "]", "*", "+", "?", "{2}", "{1001}", "{2,1}", "{,3}", "{", "}",
    "1", ",", "|", ".", "-",
    "(?:", "(?P<n>", "(?<m>", "(?i)", "(?-s:", "(?=", "\\", "\\d", "\\pL", "\\p{Lu}", "\\1", "\\12",
    "\\x41", "\\Q", "\\E",
    "[:alpha:]", "[:x:]", "[^", "a-z", "z-a", "\\b", "\\z", "\\Z", "_", "é", "(a{40}){26}",
    "(a{2}){500}",
)  # fmt: skip


def pattern_of(draw: random.Random) -> str:
    """Draw a regular expression, or what is none."""
    if draw.random() < _HALF:
        return draw.choice(PATTERNS)
    return "^" + "".join(draw.choice(_BITS) for _ in range(draw.randint(1, 6))) + "$"


PATTERNS = (
    "^a$", "a", "", "^(a$", "^a)$", "^[a$", "^*$", "^a{2,1}$", "^a(?=b)$", "^(a)\\1$", "^(?P<n>a)$",
    "^\\d$",
    "^\\pL$", "^(?i)a$", "^a++$", "^(?#x)a$", "^a{1001}$", "^\\q$", "^(?<n>a)$", "^\\C$",
    "^\\Aa\\z$", "^[[:alpha:]]$",
    "^a**$", "^(?>a)$", "^\\u0041$", "^[^]a]$", "^[]$", "^(?x) a$", "^x{,3}$", "^\\Z$", "^[z-a]$",
    "^\\x{41}$", "^(?P=n)$",
    "^a|b$", "(^a$)", "^\\Qa$", "^\\8$",
)  # fmt: skip

GROUP_CHANGES: tuple[Change, ...] = (
    name, labels, queue_named, numbers, caps, caps, policies, policies, amounts, tasks, pods_asked,
)  # fmt: skip
QUEUE_CHANGES: tuple[Change, ...] = (
    name, labels, queue_named, numbers, amounts, amounts, amounts, more_of_queue, hierarchy,
)  # fmt: skip
HYPER_NODE_CHANGES: tuple[Change, ...] = (name, labels, numbers, members, members, members)
