"""The rule wait-ends: no pod waits for what starts only when it has waited."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kthena_components.core import naming
from kthena_components.core.facts.listening import Listening
from kthena_components.core.facts.split_engines import forwarded
from kthena_components.core.facts.wait_loops import hook_of, required_by, wait_loops
from kthena_components.core.facts.wait_programs import ITSELF, Ready, WaitLoop
from kthena_components.core.findings import Finding, advise, refuse
from kthena_components.core.objects.cluster_objects import (
    ClusterObjects,
    Selected,
    place_of,
    selected_by,
    several,
    surely_selects,
)
from kthena_components.core.objects.object import JOB, MODEL_SERVING, Object, PodSet
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    first_unknown,
    is_name,
    mapping,
    sequence,
    unknown_inside,
)
from kthena_components.core.values.regex import regex
from kthena_components.systems.kubernetes.facts import all_before, created_later, number_in
from kthena_components.systems.kubernetes.selectors_and_routers import has_engine, owner_title

_SERVICE, _STATEFUL_SET = ("", "Service"), ("apps", "StatefulSet")
_LWS = ("leaderworkerset.x-k8s.io", "LeaderWorkerSet")
_LEADER = {
    _LWS: (regex(r"\$\(?LWS_LEADER_ADDRESS\)?"), "leaderTemplate"),
    MODEL_SERVING: (regex(r"\$\(?ENTRY_ADDRESS\)?"), "entryTemplate"),
}
"""The variable with the address of an engine's first pod, and the field with its template."""
_OWNER_LABELS = {_LWS: naming.LWS_NAME, MODEL_SERVING: naming.NAME}


def wait_ends(cluster: ClusterObjects) -> Iterator[Finding]:
    """No container of an engine's pod waits for what starts only after it.

    The containers of a pod start when its init containers have ended. So an init container never
    waits for a port of its own pod, of a Service that selects only such pods, or of a pod of its
    own StatefulSet: it would wait for itself. Nor does it wait for a worker that LWS creates later,
    by LeaderReady, a pod of a clique that Grove starts later, a role of RBG that depends on its own
    role, or a task of a Volcano Job that depends on its own task; nor a worker for a Service of the
    server of its engine, pods for others that wait for them, or the first pod for a port of pods
    that only join its engine. The same applies to a loop in front of a server in its script. A name
    in DNS is there before that with publishNotReadyAddresses only, and for a later pod of a
    StatefulSet with podManagementPolicy Parallel only. Checked are `until` and `while !` loops, and
    `while true` with one break, that run in any case and do not count, in pods of engines.

    Pass: an init container with `until nc -z redis 6379`, or an init container of a worker that
    waits for the head's Service; a loop that breaks after some tries.
    Fail: `until nc -z chat 8000` in an init container of Deployment chat, and a Service chat that
    selects its pods; `until curl localhost:8000/health` before `vllm serve`; `until nslookup
    chat-1.chat` in StatefulSet chat with OrderedReady; k8s-wait-for with `service chat`; a
    postStart hook with `until curl chat:8000/health`; `until nslookup chat-0-1.chat` in the leader
    of LeaderWorkerSet chat with LeaderReady; `until nc -z chat 8000` in an init container of its
    workers, and a Service chat that selects its leaders; two StatefulSets that wait so for a port
    of each other.
    Level: mandatory; advisory for a Service whose labels other pods may have.
    Source: Kubernetes documentation, Init Containers; kubernetes
    pkg/kubelet/kuberuntime/kuberuntime_container.go (computeInitContainerActions, startContainer:
    the hook before the next container and the state Running),
    pkg/controller/statefulset/stateful_set_control.go; kubernetes-sigs/lws
    pkg/controllers/pod_controller.go; ai-dynamo/grove operator/initc/internal/wait.go;
    staging/src/k8s.io/endpointslice/utils.go (ready); groundnuty/k8s-wait-for wait_for.sh;
    vishnubob/wait-for-it wait-for-it.sh.
    """
    for pods in cluster.pods:
        if pods.count == 0 or not _may_wait(pods) or not has_engine(pods):
            continue
        for at, container, when in _before_servers(pods):
            waits = (*wait_loops(container), *(() if when == _ALONE else required_by(container)))
            for loop in waits:
                found = _by_order(pods, loop, when)
                found = found or _never(cluster, pods, loop, is_hook=when == _HOOK)
                if found is not None:
                    yield _finding(pods, at, loop, found, when)
                    break


def _may_wait(pods: PodSet) -> bool:
    spec = pods.spec
    hidden = unknown_inside(spec.get("initContainers")) or spec.get("hostNetwork")
    return not hidden and isinstance(pods.owner.namespace, str)


_INIT, _ALONE, _HOOK = (
    "is an init container, and ",
    "",
    "is run before its container is started, and ",
)
_THEN = {
    _INIT: "the other containers start only after it ends",
    _ALONE: "the container starts nothing before",
    _HOOK: "they are ready only after it ends",
}
"""When a container waits, as the beginning of a clause, and what follows."""


def _before_servers(pods: PodSet) -> Iterator[tuple[str, Mapping[str, Any], str]]:
    """Return the containers that run while no other container of the pod serves, and hooks."""
    inits = list(enumerate(map(mapping, sequence(pods.spec.get("initContainers")))))
    for index, container in inits:
        if container.get("restartPolicy") is not None:
            break
        yield f"spec.initContainers[{index}]", container, _INIT
    listed = list(map(mapping, sequence(pods.spec.get("containers"))))
    if (
        len(listed) == 1
        and not listed[0].get("lifecycle")
        and not any(container.get("restartPolicy") is not None for _, container in inits)
    ):
        yield "spec.containers[0]", listed[0], _ALONE
    for index, container in enumerate(listed):
        command = hook_of(container)
        if sequence(command):
            hook = {"command": command, "env": container.get("env")}
            yield f"spec.containers[{index}].lifecycle.postStart.exec.command", hook, _HOOK


class _Never(NamedTuple):
    """Why a wait never ends."""

    why: str
    """As a clause."""
    sure: bool = True


def _by_order(pods: PodSet, loop: WaitLoop, when: str) -> _Never | None:
    """Explain that what a pod waits for is created when that pod is ready.

    A container whose own script waits is running, so its pod may be ready, unless a probe asks one
    of its ports.
    """
    containers = list(map(mapping, sequence(pods.spec.get("containers"))))
    probed = any(_waits_for_port(container) for container in containers)
    if when == _ALONE and not probed:
        return None
    is_job = pods.owner.group_kind == JOB
    later = (_of_tasks if is_job else created_later)(pods, loop.host)
    return None if later is None else _Never(later)


_TASK = regex(r"\.tasks\[(\d{1,4})\]")


def _of_tasks(pods: PodSet, host: str) -> str | None:
    """Explain that a pod is of a task of a Volcano Job that depends on the pods' own task.

    Source: Volcano pkg/controllers/job/job_controller_actions.go isDependsOnPodsReady.
    """
    tasks = list(map(mapping, sequence(pods.owner.spec.get("tasks"))))
    first, names = host.partition(".")[0], [task.get("name") for task in tasks]
    found = _TASK.search(f".{pods.path}")
    if found is None or int(found[1]) >= len(names) or not all(map(is_name, names)):
        return None
    own, least = names[int(found[1])], tasks[int(found[1])].get("minAvailable")
    depends = (sequence(mapping(task.get("dependsOn")).get("name")) for task in tasks)
    before = {str(name): list(map(str, on)) for name, on in zip(names, depends, strict=True)}
    for name in names:
        its = re.fullmatch(rf"{re.escape(f'{pods.owner.name}-{name}')}-\d+", first)
        counts = least != 0 and first_unknown(least) is None
        if its and counts and own in all_before(str(name), before):
            return f"but Volcano creates task '{name}' when the pods of '{own}' are ready"
    return None


def _waits_for_port(container: Mapping[str, Any]) -> bool:
    """Return whether a container is ready only when something of it listens."""
    probes = (mapping(container.get(name)) for name in ("readinessProbe", "startupProbe"))
    return any(key in probe for probe in probes for key in ("httpGet", "tcpSocket", "grpc"))


def _never(
    cluster: ClusterObjects, pods: PodSet, loop: WaitLoop, *, is_hook: bool
) -> _Never | None:
    """Return why a loop of these pods never ends; None if it may end."""
    if loop.ready is not None:
        return _of_ready(cluster, pods, loop.ready)
    if ITSELF.fullmatch(loop.host):
        return _Never("which is its own pod") if loop.port is not None and not is_hook else None
    variable, field = _LEADER.get(pods.owner.group_kind, (None, ""))
    if variable is not None and variable.fullmatch(loop.host) and not is_hook:
        others = cluster.pods_of.get(pods.owner.index, ())
        is_first = pods.path.endswith(field) or all(each.path == pods.path for each in others)
        is_own = is_first and loop.port is not None
        return _Never("which is its own pod in the first pod of each group") if is_own else None
    first, *rest = loop.host.split(".")
    if not is_name(first) or not all(map(is_name, rest)):
        return None
    if not is_hook:
        found = _of_set(cluster, pods, loop, first, rest)
        found = found or _of_service(cluster, pods, loop, first, rest)
        return found or _of_others(cluster, pods, loop)
    # A hook runs beside its container, which a Service with pods that are not ready leads to.
    service = cluster.named(_SERVICE).get((str(pods.owner.namespace), first))
    early = service is None or service.spec.get("publishNotReadyAddresses") not in (None, False)
    return None if early else _of_service(cluster, pods, loop, first, rest)


def _of_set(
    cluster: ClusterObjects, pods: PodSet, loop: WaitLoop, first: str, rest: list[str]
) -> _Never | None:
    """Explain why a pod of a StatefulSet never finds another one, or itself."""
    owner, service = pods.owner, pods.owner.spec.get("serviceName")
    if owner.group_kind != _STATEFUL_SET or rest[:1] != [service] or not _is_here(owner, rest[1:]):
        return None
    number = number_in(pods, first)
    if number is None:
        return None
    if loop.port is not None:
        return _Never(f"and {first} waits for itself")
    ordered = owner.spec.get("podManagementPolicy") in (None, "OrderedReady")
    if ordered and number > 0:
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
    if not surely_selects(wanted, pods):
        return _of_engine(cluster, pods, service, loop)
    if selected_by(cluster, service).running - {place_of(pods)}:
        return None
    if loop.port is None and not _is_late(service):
        return None
    own = _own_labels(owner)
    sure = cluster.complete or (bool(own) and all(wanted.get(k) == v for k, v in own.items()))
    why = f"and that Service only selects the pods of {owner_title(pods)} themselves"
    return _Never(why, sure)


def _of_engine(
    cluster: ClusterObjects, pods: PodSet, service: Object, loop: WaitLoop
) -> _Never | None:
    """Explain that a Service only selects first pods, which answer when these pods have joined."""
    here = selected_by(cluster, service)
    if {index for index, _ in here.places} != {pods.owner.index}:
        return None
    if not here.sure or loop.port is None or not pods.spread:
        return None
    ports = [cluster.listening(each) for each in here.pods]
    if not all(port and _is_sent(service, loop.port, port) for port in ports):
        return None
    return _Never("which the first pod does when all pods of its engine have joined", sure=True)


def _is_sent(service: Object, number: int, ports: Listening) -> bool:
    """Return whether a Service sends a port to that on which pods answer, by number or name."""
    listed = map(mapping, sequence(service.spec.get("ports")))
    name = next((port.get("targetPort") for port in listed if port.get("port") == number), None)
    target = forwarded(service.body, number)
    if isinstance(name, str) and service.spec.get("clusterIP") != "None":
        target = dict(ports.named).get(name)
    return ports.answers is not None and ports.answers == target


def _of_others(cluster: ClusterObjects, pods: PodSet, loop: WaitLoop) -> _Never | None:
    """Explain that other pods open no port before these have one: each waits for the other."""
    awaited = _awaited(cluster, pods, loop.host)
    if loop.port is None or not awaited.pods or place_of(pods) in awaited.places:
        return None
    for each in awaited.pods:
        if not _waits_for(cluster, each, pods) and not _joins(cluster, each, pods):
            return None
    other = awaited.pods[0]
    named = owner_title(other) if other.owner is not pods.owner else "the other template"
    how = "wait for these before they start" if _waits_for(cluster, other, pods) else _JOIN
    return _Never(f"but the pods of {named} {how}")


_JOIN = "open no port before they have joined the engine of these pods"


def _waits_for(cluster: ClusterObjects, pods: PodSet, other: PodSet) -> bool:
    """Return whether pods wait for a port of other pods before anything of them listens."""
    return _may_wait(pods) and any(
        loop.port is not None and _only(_awaited(cluster, pods, loop.host), other)
        for _, container, when in _before_servers(pods)
        if when != _HOOK
        for loop in wait_loops(container)
    )


def _joins(cluster: ClusterObjects, pods: PodSet, other: PodSet) -> bool:
    """Return whether all that listens in pods are the ranks of an engine that other pods start."""
    ports = cluster.listening(pods)
    if ports is None or ports.answers is not None or not _may_wait(pods):
        return False
    if pods.owner is other.owner and pods.spread:
        return other.path.endswith(_LEADER.get(pods.owner.group_kind, ("", "?"))[1])
    return ports.asks is not None and _only(_awaited(cluster, pods, ports.asks[0]), other)


def _only(found: Selected, wanted: PodSet) -> bool:
    return found.places == {place_of(wanted)}


def _awaited(cluster: ClusterObjects, pods: PodSet, host: str) -> Selected:
    """Return the pods of which an address in these pods is one; none if that is not sure."""
    owner, (first, *rest) = pods.owner, host.split(".")
    same = cluster.pods_of.get(owner.index, ())
    variable, field = _LEADER.get(owner.group_kind, (None, ""))
    if variable is not None and variable.fullmatch(host):
        return several([each for each in same if each.path.endswith(field)])
    if owner.group_kind == _LWS and _WORKER.fullmatch(first.removeprefix(f"{owner.name}-")):
        is_own = rest[:1] == [owner.name] and _is_here(owner, rest[1:])
        return several([each for each in same if is_own and each.path.endswith("workerTemplate")])
    service = cluster.named(_SERVICE).get((str(owner.namespace), first))
    if service is not None and _is_here(owner, rest):
        found = selected_by(cluster, service)
        return found if found.sure else Selected()
    if not rest or not _is_here(owner, rest[1:]):
        return Selected()
    key = (owner.namespace, rest[0], first.rpartition("-")[0])
    sets = cluster.once(_sets)[0].get(key, ())
    return several([each for each in sets if number_in(each, first) is not None])


def _sets(cluster: ClusterObjects) -> Iterator[Mapping[tuple[object, ...], list[PodSet]]]:
    """Yield the pods of StatefulSets by namespace, Service and name."""
    found: dict[tuple[object, ...], list[PodSet]] = {}
    for pods in cluster.pods:
        name = pods.owner.spec.get("serviceName")
        if pods.owner.group_kind == _STATEFUL_SET and isinstance(name, str):
            found.setdefault((pods.owner.namespace, name, pods.owner.name), []).append(pods)
    yield found


_WORKER = regex(r"\d{1,9}-[1-9]\d{0,8}")


def _of_ready(cluster: ClusterObjects, pods: PodSet, wanted: Ready) -> _Never | None:
    """Explain why pods that are ready only after it are never ready."""
    owner, kind, name = pods.owner, wanted.kind, wanted.name
    if wanted.namespace not in {"", owner.namespace}:
        return None
    if kind == "pod" and wanted.labels:
        return _Never("but these are among them") if surely_selects(wanted.labels, pods) else None
    if kind == "Service":
        service = cluster.named(_SERVICE).get((str(owner.namespace), name))
        selector = None if service is None else service.spec.get("selector")
        own = selector and not unknown_inside(selector) and surely_selects(mapping(selector), pods)
        return _Never("but that Service selects these pods, too") if own else None
    if kind == "pod" and owner.group_kind == _STATEFUL_SET and number_in(pods, name) is not None:
        return _Never(f"and {name} waits for itself")
    is_owner = owner.kind == kind and owner.group in {"apps", "batch"} and owner.name == name
    return _Never("and these are its pods") if is_owner else None


def _own_labels(owner: Object) -> Mapping[str, Any]:
    """Return labels that no pods of another object have; empty if none are known."""
    if owner.group_kind in _OWNER_LABELS:
        return {_OWNER_LABELS[owner.group_kind]: owner.name}
    return mapping(mapping(owner.spec.get("selector")).get("matchLabels"))


def _finding(pods: PodSet, at: str, loop: WaitLoop, found: _Never, when: str) -> Finding:
    seen = f"{when}waits until {loop.title}, {found.why}: {_THEN[when]}, so these pods never start"
    remedy = "remove the loop, or break it after some tries"
    if loop.ready is not None:
        remedy = "remove it, or wait for other pods"
    return (refuse if found.sure else advise)(pods.at(at), seen, remedy)
