"""The rule wait-ends: no pod waits for what starts only when it has waited."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kthena_components.core import naming
from kthena_components.core.facts.wait_loops import hook_of, required_by, wait_loops
from kthena_components.core.facts.wait_programs import ITSELF, Ready, WaitLoop
from kthena_components.core.findings import Finding, advise, refuse
from kthena_components.core.objects.cluster_objects import ClusterObjects, selects
from kthena_components.core.objects.object import MODEL_SERVING, Object, PodSet
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    first_unknown,
    is_name,
    mapping,
    sequence,
    unknown_inside,
    whole,
)
from kthena_components.core.values.regex import regex
from kthena_components.systems.kubernetes.rules.services_and_routers import has_engine
from kthena_components.systems.kubernetes.selectors_and_routers import owner_title

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
    StatefulSet: that one waits for itself. Nor does it wait for a worker that LWS creates later, by
    LeaderReady, a pod of a clique that Grove starts later, or a role of RBG that depends on its own
    role. The same applies to a loop in front of a server in its script. A name in DNS is there
    before that with publishNotReadyAddresses only, and for a later pod of a StatefulSet with
    podManagementPolicy Parallel only. Checked are `until` and `while !` loops, and `while true`
    with one break, that run in any case and do not count, in pods with accelerators or an engine's
    image.

    Pass: an init container with `until nc -z redis 6379`, or an init container of a worker that
    waits for the head's Service; a loop that breaks after some tries.
    Fail: `until nc -z chat 8000` in an init container of Deployment chat, and a Service chat that
    selects its pods; `until curl localhost:8000/health` before `vllm serve`; `until nslookup
    chat-1.chat` in StatefulSet chat with OrderedReady; k8s-wait-for with `service chat`; a
    postStart hook with `until curl chat:8000/health`; `until nslookup chat-0-1.chat` in the leader
    of LeaderWorkerSet chat with LeaderReady.
    Level: mandatory; advisory for a Service whose labels other pods may have.
    Source: Kubernetes documentation, Init Containers; kubernetes
    pkg/kubelet/kuberuntime/kuberuntime_container.go (computeInitContainerActions,
    startContainer: the hook before the next container and the state Running),
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

    A container whose own script waits is running, so its pod may be ready.
    """
    later = None if when == _ALONE else created_later(pods, loop.host)
    return None if later is None else _Never(later)


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
        return found or _of_service(cluster, pods, loop, first, rest)
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
    number = _number_in(pods, first)
    if number is None:
        return None
    if loop.port is not None:
        return _Never(f"and {first} waits for itself")
    ordered = owner.spec.get("podManagementPolicy") in (None, "OrderedReady")
    if ordered and number > 0:
        return _Never(f"but {first} is created when the pods before it are ready")
    found = cluster.named(_SERVICE).get((str(owner.namespace), str(service)))
    return _Never(f"{_LATE} {display(service)}") if _is_late(found) else None


def _number_in(pods: PodSet, name: str) -> int | None:
    """Return how many pods of a StatefulSet are before the one with a name; None for another."""
    numbered = re.fullmatch(rf"{re.escape(str(pods.owner.name))}-(\d{{1,9}})", name)
    start, count = whole(mapping(pods.owner.spec.get("ordinals")).get("start", 0)), pods.count
    if numbered is None or not isinstance(start, int) or not isinstance(count, int):
        return None
    number = int(numbered[1]) - start
    return number if 0 <= number < count else None


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
    if not _has(pods, wanted):
        return None
    if any(selects(wanted, each) is not False for each in _others(cluster, pods)):
        return None
    if loop.port is None and not _is_late(service):
        return None
    own = _own_labels(owner)
    sure = cluster.complete or (bool(own) and all(wanted.get(k) == v for k, v in own.items()))
    why = f"and that Service only selects the pods of {owner_title(pods)} themselves"
    return _Never(why, sure)


def _of_ready(cluster: ClusterObjects, pods: PodSet, wanted: Ready) -> _Never | None:
    """Explain why pods that are ready only after it are never ready."""
    owner, kind, name = pods.owner, wanted.kind, wanted.name
    if wanted.namespace not in {"", owner.namespace}:
        return None
    if kind == "pod" and wanted.labels:
        return _Never("but these are among them") if _has(pods, wanted.labels) else None
    if kind == "Service":
        service = cluster.named(_SERVICE).get((str(owner.namespace), name))
        selector = None if service is None else service.spec.get("selector")
        own = selector and not unknown_inside(selector) and _has(pods, mapping(selector))
        return _Never("but that Service selects these pods, too") if own else None
    if kind == "pod" and owner.group_kind == _STATEFUL_SET and _number_in(pods, name) is not None:
        return _Never(f"and {name} waits for itself")
    is_owner = owner.kind == kind and owner.group in {"apps", "batch"} and owner.name == name
    return _Never("and these are its pods") if is_owner else None


def _has(pods: PodSet, wanted: Mapping[str, Any]) -> bool:
    """Return whether pods surely have some labels."""
    stated = pods.added is not None or wanted.keys() <= pods.labels.keys()
    return (stated or not pods.by_controller) and selects(wanted, pods) is True


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


def _finding(pods: PodSet, at: str, loop: WaitLoop, found: _Never, when: str) -> Finding:
    what = f"{loop.host} is in DNS" if loop.port is None else f"{loop.host}:{loop.port} answers"
    what = what if loop.ready is None else _readiness(loop.ready)
    seen = f"{when}waits until {what}, {found.why}: {_THEN[when]}, so these pods never start"
    remedy = "remove the loop, or break it after some tries"
    if loop.ready is not None:
        remedy = "remove it, or wait for other pods"
    return (refuse if found.sure else advise)(pods.at(at), seen, remedy)


def _readiness(wanted: Ready) -> str:
    if wanted.labels:
        shown = ",".join(f"{key}={value}" for key, value in wanted.labels.items())
        return f"all pods with {shown} are ready"
    if wanted.kind == "Service":
        return f"all pods of Service {display(wanted.name)} are ready"
    done = {"Job": "has ended", "pod": "is ready"}.get(wanted.kind, "is rolled out")
    return f"{wanted.kind} {display(wanted.name)} {done}"


_CLIQUES = ("grove.io", "PodCliqueSet")
_ROLES = ("workloads.x-k8s.io", "RoleBasedGroup")
_OWN_NAME = r"\$[({]?(?:HOSTNAME|POD_NAME)[)}]?"
_CLIQUE = regex(r"\.cliques\[(\d{1,4})\]")


def created_later(pods: PodSet, host: str) -> str | None:
    """Explain that the pod with a name is created when the pods of a template are ready.

    Args:
        pods: The pods of the template.
        host: A name in DNS, with variables that are not known as $NAME.

    Source: kubernetes-sigs/lws pkg/controllers/pod_controller.go Reconcile: the StatefulSet of
    the workers, `<name>-<group>`, comes when the leader is ready; ai-dynamo/grove
    operator/initc/internal/wait.go: an init container of each later clique waits until the pods of
    the others are ready, and their names are `<set or group>-<number>-<clique>-<number>`;
    sgl-project/rbg pkg/dependency/dependency.go CheckDependencyReady, and api/workloads/v1alpha2
    helper.go: a role's pods are `<group>-<role>-<number>`, and its Service `s-<group>-<role>`.
    """
    owner, first = pods.owner, host.partition(".")[0]
    if owner.group_kind == _LWS:
        return _of_group(pods, first)
    if owner.group_kind == _ROLES:
        return _of_roles(pods, host)
    return _of_cliques(pods, first) if owner.group_kind == _CLIQUES else None


def _of_roles(pods: PodSet, host: str) -> str | None:
    """Explain that a pod or a Service is of a role that depends on the pods' own role."""
    stated = sequence(pods.owner.spec.get("roles"))
    roles = list(map(mapping, stated))
    if first_unknown(*stated, *(role.get("name") for role in roles)):
        return None
    before = {
        str(role.get("name")): [
            name for name in sequence(role.get("dependencies")) if isinstance(name, str)
        ]
        for role in roles
        if is_name(role.get("name"))
    }
    labels = host.split(".")[:2]
    for role in sorted(before, key=len, reverse=True):
        made = rf"(?:s-)?{re.escape(f'{pods.owner.name}-{role}')}(?:-\d+)*"
        if any(re.fullmatch(made, label) for label in labels):
            waits = pods.name in _before(role, before)
            created = f"but RBG creates role '{role}' when the pods of '{pods.name}' are ready"
            return created if waits else None
    return None


def _of_group(pods: PodSet, first: str) -> str | None:
    owner, template = pods.owner, mapping(pods.owner.spec.get("leaderWorkerTemplate"))
    if owner.spec.get("startupPolicy") != "LeaderReady":
        return None
    if not pods.path.endswith("leaderTemplate") or not mapping(template.get("leaderTemplate")):
        return None
    group = rf"(?:{re.escape(str(owner.name))}-\d+|{_OWN_NAME})"
    worker = re.fullmatch(rf"{group}-[1-9]\d*", first)
    return None if worker is None else "but LWS creates that worker when the leader is ready"


def _of_cliques(pods: PodSet, first: str) -> str | None:
    """Explain that a pod is of a clique that waits for the pods' own clique."""
    found = _CLIQUE.search(pods.path)
    names, before = _cliques(pods.owner)
    if found is None or int(found[1]) >= len(names):
        return None
    own = names[int(found[1])]
    fitting = [n for n in names if re.fullmatch(rf".+-{re.escape(n)}-\d+", first)]
    other = max(fitting, key=len, default=None)
    if other is None or own not in _before(other, before):
        return None
    return f"but Grove starts clique '{other}' when the pods of '{own}' are ready"


def _cliques(owner: Object) -> tuple[list[str], Mapping[str, list[str]]]:
    """Return the names of the cliques, and the cliques that each waits for at once."""
    template = mapping(owner.spec.get("template"))
    cliques = list(map(mapping, sequence(template.get("cliques"))))
    names = [clique.get("name") for clique in cliques]
    if not all(isinstance(name, str) for name in names):
        return [], {}
    given = [str(name) for name in names]
    kind = template.get("cliqueStartupType", "CliqueStartupTypeAnyOrder")
    if kind == "CliqueStartupTypeInOrder":
        return given, {name: given[:at] for at, name in enumerate(given)}
    if kind != "CliqueStartupTypeExplicit":
        return given, {}
    return given, {name: list(_after(clique)) for name, clique in zip(given, cliques, strict=True)}


def _after(clique: Mapping[str, Any]) -> Iterator[str]:
    named = sequence(mapping(clique.get("spec")).get("startsAfter"))
    return (name for name in named if isinstance(name, str))


def _before(name: str, before: Mapping[str, list[str]]) -> set[str]:
    """Return the cliques that one waits for, at once or by others."""
    seen = set[str]()
    left = list(before.get(name, ()))
    while left:
        at = left.pop()
        if at not in seen:
            seen.add(at)
            left += before.get(at, ())
    return seen
