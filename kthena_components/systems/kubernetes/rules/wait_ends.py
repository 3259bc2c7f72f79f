"""The rule wait-ends: no pod waits for what starts only when it has waited."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kthena_components.core import naming
from kthena_components.core.facts.wait_loops import ITSELF, WaitLoop, wait_loops
from kthena_components.core.findings import Finding, advise, refuse
from kthena_components.core.objects.cluster_objects import ClusterObjects, selects
from kthena_components.core.objects.object import MODEL_SERVING, Object, PodSet
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    is_name,
    mapping,
    sequence,
    unknown_inside,
    whole,
)
from kthena_components.core.values.regex import regex
from kthena_components.systems.kubernetes.rules.services import has_engine
from kthena_components.systems.kubernetes.selectors import owner_title

_SERVICE, _STATEFUL_SET = ("", "Service"), ("apps", "StatefulSet")
_LWS = ("leaderworkerset.x-k8s.io", "LeaderWorkerSet")
_LEADER = {
    _LWS: (regex(r"\$\(?LWS_LEADER_ADDRESS\)?"), "leaderTemplate"),
    MODEL_SERVING: (regex(r"\$\(?ENTRY_ADDRESS\)?"), "entryTemplate"),
}
"""The variable with the address of an engine's first pod, and the field with its template."""
_OWNER_LABELS = {_LWS: "leaderworkerset.sigs.k8s.io/name", MODEL_SERVING: naming.NAME}


def wait_ends(cluster: ClusterObjects) -> Iterator[Finding]:
    """No container of an engine's pod waits for what starts only after it.

    The containers of a pod start when its init containers have ended. So none of these waits for a
    port of its own pod, of a Service that selects only such pods, or of a pod of its own
    StatefulSet: that one waits for itself. The same applies to a loop in front of a server in its
    script. A name in DNS is there before that with publishNotReadyAddresses only, and for a later
    pod of a StatefulSet with podManagementPolicy Parallel only. Checked are `until` and `while !`
    loops, and `while true` with one break, that run in any case and do not count, in pods with
    accelerators or an engine's image.

    Pass: an init container with `until nc -z redis 6379`, or that of a worker that waits for the
    head's Service; a loop that breaks after some tries.
    Fail: `until nc -z chat 8000` in an init container of Deployment chat, and a Service chat that
    selects its pods; `until curl localhost:8000/health` before `vllm serve`; `until nslookup
    chat-1.chat` in StatefulSet chat with OrderedReady.
    Level: mandatory; advisory for a Service whose labels other pods may have.
    Source: Kubernetes documentation, Init Containers; kubernetes
    pkg/kubelet/kuberuntime/kuberuntime_container.go (computeInitContainerActions),
    pkg/controller/statefulset/stateful_set_control.go and
    staging/src/k8s.io/endpointslice/utils.go (ready).
    """
    for pods in cluster.pods:
        if pods.count == 0 or not _may_wait(pods) or not has_engine(pods):
            continue
        for at, container, is_init in _before_servers(pods):
            for loop in wait_loops(container):
                found = _never(cluster, pods, loop)
                if found is not None:
                    yield _finding(pods, at, loop, found, is_init=is_init)
                    break


def _may_wait(pods: PodSet) -> bool:
    spec = pods.spec
    hidden = unknown_inside(spec.get("initContainers")) or spec.get("hostNetwork")
    return not hidden and isinstance(pods.owner.namespace, str)


def _before_servers(pods: PodSet) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    """Return the containers that run while no other container of the pod serves."""
    for index, container in enumerate(map(mapping, sequence(pods.spec.get("initContainers")))):
        if container.get("restartPolicy") is not None:
            return
        yield f"spec.initContainers[{index}]", container, True
    listed = sequence(pods.spec.get("containers"))
    only = mapping(listed[0]) if len(listed) == 1 else {}
    if only and not only.get("lifecycle"):
        yield "spec.containers[0]", only, False


class _Never(NamedTuple):
    """Why a wait never ends."""

    why: str
    """As a clause."""
    sure: bool = True


def _never(cluster: ClusterObjects, pods: PodSet, loop: WaitLoop) -> _Never | None:
    if ITSELF.fullmatch(loop.host):
        return _Never("which is its own pod") if loop.port is not None else None
    variable, field = _LEADER.get(pods.owner.group_kind, (None, ""))
    if variable is not None and variable.fullmatch(loop.host):
        others = cluster.pods_of.get(pods.owner.index, ())
        is_first = pods.path.endswith(field) or all(each.path == pods.path for each in others)
        is_own = is_first and loop.port is not None
        return _Never("which is its own pod in the first pod of each group") if is_own else None
    first, *rest = loop.host.split(".")
    if not is_name(first) or not all(map(is_name, rest)):
        return None
    return _of_set(cluster, pods, loop, first, rest) or _of_service(
        cluster, pods, loop, first, rest
    )


def _of_set(
    cluster: ClusterObjects, pods: PodSet, loop: WaitLoop, first: str, rest: list[str]
) -> _Never | None:
    """Explain why a pod of a StatefulSet never finds another one, or itself."""
    owner, service = pods.owner, pods.owner.spec.get("serviceName")
    numbered = re.fullmatch(rf"{re.escape(str(owner.name))}-(\d{{1,9}})", first)
    start = whole(mapping(owner.spec.get("ordinals")).get("start", 0))
    if owner.group_kind != _STATEFUL_SET or numbered is None or rest[:1] != [service]:
        return None
    if not _is_here(owner, rest[1:]) or not isinstance(start, int):
        return None
    number, count = int(numbered[1]), pods.count
    if not isinstance(count, int) or not start <= number < start + count:
        return None
    if loop.port is not None:
        return _Never(f"and {first} waits for itself")
    ordered = owner.spec.get("podManagementPolicy") in (None, "OrderedReady")
    if ordered and number > start:
        return _Never(f"but {first} is created when the pods before it are ready")
    found = cluster.named(_SERVICE).get((str(owner.namespace), str(service)))
    return _Never(f"{_LATE} {display(service)}") if _is_late(found) else None


_LATE = "but only ready pods have a name below the Service"


def _is_late(service: Object | None) -> bool:
    """Return whether a Service names pods only when they are ready."""
    if service is None or unknown_inside(service.spec) is not None:
        return False
    headless = service.spec.get("clusterIP") == "None"
    return headless and service.spec.get("publishNotReadyAddresses") is not True


def _is_here(owner: Object, rest: list[str]) -> bool:
    """Return whether what follows the name of a Service is the namespace of an object."""
    return not rest or (rest[0] == owner.namespace and rest[1:2] in ([], ["svc"]))


def _of_service(
    cluster: ClusterObjects, pods: PodSet, loop: WaitLoop, first: str, rest: list[str]
) -> _Never | None:
    """Explain that a Service only selects pods that wait alike."""
    owner = pods.owner
    service = cluster.named(_SERVICE).get((str(owner.namespace), first))
    if service is None or not _is_here(owner, rest):
        return None
    selector = service.spec.get("selector")
    wanted = mapping(selector)
    if service.spec.get("type") == "ExternalName" or not wanted or unknown_inside(selector):
        return None
    stated = pods.added is not None or wanted.keys() <= pods.labels.keys()
    if not (stated or not pods.by_controller) or selects(wanted, pods) is not True:
        return None
    if any(selects(wanted, each) is not False for each in _others(cluster, pods)):
        return None
    if loop.port is None and not _is_late(service):
        return None
    own = _own_labels(owner)
    sure = cluster.complete or (bool(own) and all(wanted.get(k) == v for k, v in own.items()))
    why = f"and that Service only selects the pods of {owner_title(pods)} themselves"
    return _Never(why, sure)


def _own_labels(owner: Object) -> Mapping[str, Any]:
    """Return labels that no pods of another object have; empty if none are known."""
    if owner.group_kind in _OWNER_LABELS:
        return {_OWNER_LABELS[owner.group_kind]: owner.name}
    return mapping(mapping(owner.spec.get("selector")).get("matchLabels"))


def _others(cluster: ClusterObjects, pods: PodSet) -> Iterator[PodSet]:
    """Return the pods of other templates in the namespace."""
    for each in cluster.pods:
        is_same = each.owner is pods.owner and each.path == pods.path
        if not is_same and each.owner.namespace == pods.owner.namespace and each.count != 0:
            yield each


def _finding(pods: PodSet, at: str, loop: WaitLoop, found: _Never, *, is_init: bool) -> Finding:
    what = f"{loop.host} is in DNS" if loop.port is None else f"{loop.host}:{loop.port} answers"
    role = "is an init container, and " if is_init else ""
    then = "the other containers start when it has ended" if is_init else "it starts nothing before"
    seen = f"{role}waits until {what}, {found.why}: {then}, so these pods never start"
    remedy = "remove the loop, or break it after some tries"
    return (refuse if found.sure else advise)(pods.at(at), seen, remedy)
