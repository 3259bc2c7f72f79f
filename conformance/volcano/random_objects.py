"""Random PodGroups, Queues and HyperNodes that Volcano accepts. invalid_objects.py breaks them."""

import random
from typing import Any

from conformance.support.random_servings import coin

Body = dict[str, Any]
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
"""A real queue with room for all random objects. Other queues are its children."""
_HALF = 0.5


def _some(draw: random.Random, fields: Body) -> Body:
    return {name: value for name, value in fields.items() if coin(draw)}


def _selector(draw: random.Random) -> Body:
    expression = {"key": "a", "operator": draw.choice(("In", "Exists", "Odd")), "values": ["b"]}
    return _some(draw, {"matchLabels": {"app": "chat"}, "matchExpressions": [expression]})


def _topology(draw: random.Random) -> Body:
    cap = draw.choice(({"highestTierAllowed": draw.choice((1, 2, 9))}, {"highestTierName": "rack"}))
    return {"mode": draw.choice(("hard", "soft")), **cap}


def pod_group(draw: random.Random) -> Body:
    """Generate a valid PodGroup."""
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
    """Generate a valid Queue."""
    resources = draw.sample(("cpu", "memory", "nvidia.com/gpu", "pods"), draw.randint(0, 3))
    low = {name: draw.randint(0, 4) for name in resources}
    high = {name: low[name] + draw.randint(0, 4) for name in resources}
    spec = _some(
        draw,
        {
            "weight": draw.choice((1, 5, 65535)),
            "reclaimable": coin(draw),
            "parent": draw.choice(("everything", "root")),
            "capability": {name: str(amount) for name, amount in high.items()},
            "priority": draw.choice((0, 5)),
            "dequeueStrategy": draw.choice(("fifo", "traverse")),
            "type": "a",
            "extendClusters": [{"name": "b", "weight": 1, "capacity": {"cpu": 1}}],
            "affinity": _affinity(draw),
        },
    )
    if coin(draw):
        spec["deserved"] = dict(high)
        if coin(draw):
            spec["guarantee"] = {"resource": low}
    metadata = {"name": draw.choice(("research", "9", "a.b", "q" * 253))}
    return {"apiVersion": SCHEDULING, "kind": "Queue", "metadata": metadata, "spec": spec}


def _affinity(draw: random.Random) -> Body:
    ending = "DuringSchedulingIgnoredDuringExecution"
    terms = {f"{word}{ending}": ["g"] for word in ("required", "preferred")}
    return _some(
        draw, {"nodeGroupAffinity": _some(draw, terms), "nodeGroupAntiAffinity": _some(draw, terms)}
    )


def hyper_node(draw: random.Random) -> Body:
    """Generate a valid HyperNode."""
    spec: Body = {"tier": draw.choice((0, 1, 2, 2**40))}
    if coin(draw):
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
