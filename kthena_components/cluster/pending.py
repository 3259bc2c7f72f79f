"""Explains with numbers why pods do not run yet, and which groups a partition holds back. Pure.

Source of the scheduler's messages: Volcano v1.14 pkg/scheduler/api/job_info.go FitError and
unschedule_info.go; seen on 1.14.1.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kthena_components.cluster.objects import (
    Body,
    condition_of,
    labels_of,
    name_of,
    namespace_of,
    status_of,
    title_of,
)
from kthena_components.core import naming
from kthena_components.core.findings import count_of
from kthena_components.core.objects.object import read_object
from kthena_components.core.values.display import shell_word
from kthena_components.core.values.read import mapping, sequence
from kthena_components.systems.kthena.view import Role, held_groups, read_serving

_SPLIT = re.compile(r"(?P<not>\d+) Unschedulable(?:, (?P<would>\d+) Schedulable)?")
_ORIGIN = re.compile(
    r"Origin reason is (?P<pod>[^:\s]+): (?:In hyperNode (?P<domain>\S+): )?"
    r"(?P<free>\d+)/(?P<all>\d+) nodes are unavailable: (?P<why>.*?)\.?\s*$",
    re.DOTALL,
)
_LACK = re.compile(r"(\d+) Insufficient ([\w./-]+)")
_LONGEST = 400


def why_gang_waits(group: Body, pods: Sequence[Body]) -> str:
    """Explain what a PodGroup needs, how many pods are placed, and what the scheduler says."""
    spec, placed = mapping(group.get("spec")), sum(1 for pod in pods if node_of(pod))
    least = int(spec.get("minMember") or 0)
    where = _where(mapping(spec.get("networkTopology")))
    needs = f"needs {count_of(least, 'pod')} at once{where}"
    if len(pods) < least:
        return f"{needs}, and {len(pods) or 'none'} of them exist{'s' if len(pods) == 1 else ''}"
    placed_of = f"{placed} of {count_of(len(pods), 'pod')} {'is' if placed == 1 else 'are'} placed"
    return f"{needs}; {placed_of}. {_scheduler(group, pods)}"


def why_pod_waits(pod: Body) -> str | None:
    """Explain why one pod does not run; None when it runs or the scheduler has not reported yet."""
    unbound = condition_of(pod, "PodScheduled")
    if unbound.get("status") == "False" and unbound.get("message"):
        return plain(str(unbound["message"]))
    for item in sequence(status_of(pod).get("containerStatuses")):
        held = mapping(mapping(mapping(item).get("state")).get("waiting"))
        reason, message = str(held.get("reason", "")), str(held.get("message", ""))
        if reason not in {"", "ContainerCreating", "PodInitializing"}:
            return short(f"container '{mapping(item).get('name')}': {reason}. {message}".strip())
    return None


def why_node_holds(pod: Body, node: Body | None) -> str | None:
    """Report that the pod's node does not answer, with the remedy; None when it does.

    Source: Kubernetes 1.34 docs, non-graceful node shutdown; tested by conformance's hung node.
    """
    if node is None or condition_of(node, "Ready").get("status") != "Unknown":
        return None
    name = name_of(node)
    if not is_ending(pod):
        return f"runs on {name}, which does not answer"
    taint = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
    return (
        f"is being deleted, but {name} does not answer, and only its kubelet can end its pods. "
        f"If the machine is off for certain, run `kubectl taint node {shell_word(name)} {taint}`"
    )


def is_ending(pod: Body) -> bool:
    """Return whether a pod is being deleted."""
    return bool(mapping(pod.get("metadata")).get("deletionTimestamp"))


def node_of(pod: Body) -> str:
    """Node of a pod, empty while it is not scheduled."""
    return str(mapping(pod.get("spec")).get("nodeName") or "")


def plain(message: str) -> str:
    """Simplify a message of the scheduler; unknown messages stay as they are."""
    origin, split = _ORIGIN.search(message), _SPLIT.search(message)
    if origin is None:
        return short(_lacks(message.strip().rstrip(".")))
    where = f" of {origin['domain']}" if origin["domain"] else ""
    total = int(origin["all"])
    nodes = (
        f"the only node{where}" if total == 1 else f"any of the {count_of(total, 'node')}{where}"
    )
    text = f"{origin['pod']} does not fit on {nodes}: {_lacks(origin['why'])}"
    would = int(split["would"] or 0) if split else 0
    return short(f"{count_of(would, 'pod')} would fit, but {text}" if would else text)


def _scheduler(group: Body, pods: Sequence[Body]) -> str:
    """Return what the scheduler says about a group or one of its pods."""
    status = status_of(group)
    said = condition_of(group, "Unschedulable")
    if said.get("status") == "True" and said.get("message"):
        return f"Scheduler: {plain(str(said['message']))}"
    reason = next(filter(None, (why_pod_waits(pod) for pod in pods)), None)
    if reason is not None:
        return f"Scheduler: {reason}"
    if not status.get("phase"):
        return "No scheduler has reported on it: is Volcano's scheduler running?"
    return "The scheduler has given no reason yet"


def _where(topology: Mapping[str, object]) -> str:
    if not topology or topology.get("mode") == "soft":
        return ""
    tier, named = topology.get("highestTierAllowed"), topology.get("highestTierName")
    if tier is None and named is None:
        return ""
    cap = f"tier {tier}" if named is None else f"tier '{named}'"
    return f" in one HyperNode of {cap} or lower"


def _lacks(text: str) -> str:
    """Write `4 Insufficient nvidia.com/gpu` in plain English."""

    def worded(found: re.Match[str]) -> str:
        verb = "has" if found[1] == "1" else "have"
        return f"{found[1]} {verb} too little {found[2]} free"

    return _LACK.sub(worded, text)


def short(text: str) -> str:
    """Write a message on one line, and cut a long one."""
    flat = " ".join(text.split())
    return flat if len(flat) <= _LONGEST else f"{flat[:_LONGEST]}…"


def missing_group(name: str, pods: Sequence[Body]) -> str:
    """Report that pods name a PodGroup that does not exist."""
    return (
        f"{count_of(len(pods), 'pod')} such as {name_of(pods[0])} name the PodGroup '{name}', "
        "which does not exist, so Volcano never places them"
    )


# Reports groups of a ModelServing that Kthena resized because a partition holds them back. Pure.
#
# Source: Kthena v1.0.0 pkg/model-serving-controller/controller/model_serving_controller.go
# syncRoleReplicas, checkServingGroupReady; run with Kthena 1.0.0.


def resized_groups(
    servings: Iterable[Body], groups: Mapping[tuple[str, str, str], Sequence[Body]]
) -> Iterator[tuple[str, str]]:
    """Report held groups with another number of engines than stated, and why.

    Kthena counts them as not ready, so the ModelServing does not become Available.

    Args:
        servings: ModelServings.
        groups: Pods by namespace, serving and group, in order.
    """
    for serving in servings:
        if condition_of(serving, "Available").get("status") == "True":
            continue
        view, owner = read_serving(read_object(serving)), (namespace_of(serving), name_of(serving))
        own = [(group, pods) for (*of, group), pods in groups.items() if (*of,) == owner]
        held = held_groups(view)
        for group, pods in own[: held if isinstance(held, int) else 0]:
            for role in view.roles:
                made = _engines(pods, role)
                if isinstance(role.replicas, int) and made != role.replicas:
                    yield title_of(serving), _resized(group, str(role.name), made, role.replicas)


def _engines(pods: Sequence[Body], role: Role) -> int:
    found = map(labels_of, pods)
    return len({own.get(naming.ROLE_ID) for own in found if own.get(naming.ROLE) == role.name})


def _resized(group: str, role: str, made: int, stated: int) -> str:
    return (
        f"group {group} has {count_of(made, 'engine')} of role '{role}', and the ModelServing "
        f"states {stated}. Kthena gives the groups that a partition holds back the number that it "
        "stored when it created groups, and the ModelServing does not become Available until the "
        "partition is removed"
    )
