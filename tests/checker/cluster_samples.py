"""A stack of objects that fit together, and what is said when some of them change."""

from typing import Any

from kthena_components.checker.cluster_rules import compare_objects
from tests.support.specs import REMOVED, Args, changed
from tests.systems.volcano.samples import POD_GROUP, QUEUE, TREE, lines, pods, secret_env

SERVICE: Args = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "chat", "namespace": "serving"},
    "spec": {"clusterIP": "None"},
}
SECRET: Args = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "hf", "namespace": "serving"},
    "data": {"token": "c2VjcmV0"},
}
ALL_QUEUE = changed(QUEUE, {"metadata.name": "all", "spec.parent": REMOVED})
STACK: dict[str, Args] = {
    "gang": POD_GROUP,
    "queue": QUEUE,
    "all": ALL_QUEUE,
    "leader": pods("chat-a", 1, task="leader", env=secret_env("token")),
    "worker": pods("chat-b", 1),
    "other": pods("chat-c", 2, engine="b"),
    "service": SERVICE,
    "secret": SECRET,
    "rack-1": TREE[0],
    "rack-2": TREE[1],
    "spine": TREE[2],
}
TEMPLATE = "spec.template"
ENV = f"{TEMPLATE}.spec.containers[0].env"
GANG_TOPOLOGY = "spec.networkTopology.highestTierAllowed"
TIER_NAME = "spec.networkTopology"
ENOUGH = "Make labelSelector, matchLabelKeys and subGroupSize fit the pods. [subgroup-has-pods]"


def said(budget: int | None = None, **changes: Any) -> list[str]:
    """Check the stack with some objects changed, added (a whole one) or removed."""
    stack = dict(STACK)
    for name, change in changes.items():
        key = name.replace("_", "-")
        if change is REMOVED:
            del stack[key]
        elif "kind" in change:
            stack[key] = change
        else:
            stack[key] = changed(stack[key], change)
    return lines(compare_objects(list(stack.values()), list(stack), budget=budget))
