"""References between the objects of a stack: names, queues, Services, Secrets, and the budget."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core import naming
from kthena_components.core.checks.kthena_reading import (
    first_gap,
    gap_of,
    mapping,
    not_checked,
    show,
    text,
)
from kthena_components.core.checks.stack_reading import Entry, Key, Pods, Stack, gpus_of
from kthena_components.core.checks.volcano_reading import (
    JOB,
    MODEL_SERVING,
    POD_GROUP,
    QUEUE,
    advise,
    items,
    pairs,
)
from kthena_components.core.findings import Finding, count_of, join_path, suggest
from kthena_components.core.known import MaybeText, Unknown

_ALWAYS = frozenset({"default", "root"})
"""Queues that Volcano's scheduler makes for itself."""
_SERVICE, _SECRET, _STATEFUL_SET = ("", "Service"), ("", "Secret"), ("apps", "StatefulSet")
_MANY = 20


def object_twice(stack: Stack) -> Iterator[Finding]:
    """No two objects of a stack have one apiVersion, kind, namespace and name.

    Pass: a StatefulSet and a Service that are both named chat.
    Fail: two Services named chat in one namespace: the second overwrites the first.
    Level: mandatory.
    Source: Kubernetes documentation, Object Names and IDs.
    """
    first: dict[tuple[str, str, str, str], Entry] = {}
    for entry in stack.entries:
        name, namespace, version = entry.name, entry.namespace, entry.version
        if not (isinstance(name, str) and isinstance(namespace, str) and name and entry.kind):
            continue
        if not isinstance(version, str) or gap_of(version) or gap_of(entry.kind):
            continue
        other = first.setdefault((version, entry.kind, namespace, name), entry)
        if other is not entry:
            where = f" in namespace {show(namespace)}" if namespace else ""
            before = other.path or f"object {other.index + 1}"
            yield Finding(
                path=entry.at("metadata.name"),
                seen=f"is {show(name)}, which is also the {entry.kind}{where} of {before}, and the "
                "second would overwrite the first",
                remedy="rename or remove one of the two",
                rule="object-twice",
            )


def queue_exists(stack: Stack) -> Iterator[Finding]:
    """The queue that pods wait in is in the stack and is open; a parent is as well.

    Pass: a Queue research, and a PodGroup with queue research; the queue default.
    Fail: a queue whose status is Closed: Volcano's webhook refuses the PodGroup.
    Level: mandatory for a closed queue; not checked for one that is not in the stack.
    Source: Volcano v1.14 pkg/webhooks/admission/podgroups/validate/validate_podgroup.go
    checkQueueState.
    """
    queues = stack.named(QUEUE)
    for entry, path, name in _queues_named(stack):
        if name in _ALWAYS or name in {None, ""}:
            continue
        if isinstance(name, Unknown):
            yield not_checked(entry.at(path), name, "queue-exists")
            continue
        queue = queues.get(("", str(name)))
        state = mapping(queue.manifest.get("status")).get("state") if queue else None
        missing = Unknown(f"the queue {show(name)} is not in this stack")
        if gap := gap_of(state) if queue else missing:
            yield not_checked(entry.at(path), gap, "queue-exists")
        elif state in ("Closed", "Closing"):
            yield Finding(
                path=entry.at(path),
                seen=f"is {show(name)}, a queue whose state is {state}, and Volcano takes nothing "
                "new into it",
                remedy="open the queue, or name another one",
                rule="queue-exists",
            )


def _queues_named(stack: Stack) -> Iterator[tuple[Entry, str, MaybeText | None]]:
    for kind in (POD_GROUP, JOB):
        for entry in stack.of(kind):
            yield entry, "spec.queue", text(entry.spec.get("queue"))
    for entry in stack.of(MODEL_SERVING):
        metadata = mapping(entry.manifest.get("metadata"))
        name = text(mapping(metadata.get("annotations")).get(naming.QUEUE_NAME))
        yield entry, f"metadata.annotations.{naming.QUEUE_NAME}", name
    for entry in stack.of(QUEUE):
        yield entry, "spec.parent", text(entry.spec.get("parent"))


def queue_cycle(stack: Stack) -> Iterator[Finding]:
    """No queue is above itself.

    Pass: night below research.
    Fail: night below research and research below night.
    Level: mandatory.
    Source: Volcano v1.14 pkg/scheduler/plugins/capacity/capacity.go updateAncestors.
    """
    queues = {name: entry for (_, name), entry in stack.named(QUEUE).items()}
    parents = {name: text(entry.spec.get("parent")) for name, entry in queues.items()}
    done: set[str] = set()
    for start in queues:
        walk: dict[str, int] = {}
        name: MaybeText | None = start
        while isinstance(name, str) and name in queues and name not in done and name not in walk:
            walk[name] = len(walk)
            name = parents[name]
        if isinstance(name, str) and name in walk and parents[name] != name:
            cycle = [*list(walk)[walk[name] :], name]
            shown = cycle if len(cycle) <= _MANY else [*cycle[:_MANY], "…", name]
            yield Finding(
                path=queues[cycle[0]].at("spec.parent"),
                seen=f"the parents go in a cycle, {' -> '.join(shown)}, and each queue needs its "
                "parent first",
                remedy="remove the parent of one of them",
                rule="queue-cycle",
            )
        done.update(walk)


def headless_service(stack: Stack) -> Iterator[Finding]:
    """The Service that a StatefulSet names is in the stack, in its namespace, and is headless.

    It gives each pod its name in DNS, by which the pods of an engine find one another.

    Pass: serviceName chat and a Service chat with clusterIP None.
    Fail: serviceName chat and no Service chat, or one with an address of its own.
    Level: advisory.
    Source: Kubernetes documentation, StatefulSet Basics and Headless Services.
    """
    services, gap = stack.named(_SERVICE), stack.names_gap(_SERVICE)
    for entry in stack.of(_STATEFUL_SET):
        name, namespace = text(entry.spec.get("serviceName")), entry.namespace
        path, rule = entry.at("spec.serviceName"), "headless-service"
        if name in {None, ""} or namespace is None:
            continue
        service = services.get((str(namespace), str(name)))
        address = service.spec.get("clusterIP") if service else None
        if late := first_gap(name, namespace, address) or (gap if service is None else None):
            yield not_checked(path, late, rule)
        elif service is None:
            seen = f"is {show(name)}, but this stack has no Service of that name in namespace "
            seen += f"{show(namespace)}, and it is what gives the pods their names in DNS"
            yield advise(path, seen, "add the headless Service", rule)
        elif address is None or address == "":
            seen = f"is {show(name)}, a Service with an address of its own, which gives the pods "
            yield advise(path, f"{seen}no names in DNS", "write clusterIP: None there", rule)


def secret_key_exists(stack: Stack) -> Iterator[Finding]:
    """A key that a container takes from a Secret of the stack is in that Secret.

    Without it the container does not start. Secrets that are not in the stack are not judged, and
    values are never shown.

    Pass: secretKeyRef hf-token, key token; a Secret hf-token with the key token.
    Fail: secretKeyRef hf-token, key HF_TOKEN; a Secret hf-token with the key token alone.
    Level: mandatory, except for optional keys.
    Source: Kubernetes documentation, Secrets; kubernetes pkg/kubelet/kubelet_pods.go
    makeEnvironmentVariables.
    """
    secrets = stack.named(_SECRET)
    for pods in stack.pods:
        for path, reference in _references(pods) if secrets else ():
            yield from _judge_reference(pods, path, reference, secrets)


def _references(pods: Pods) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for field in ("containers", "initContainers"):
        for i, container in enumerate(items(pods.spec.get(field))):
            for k, item in enumerate(items(mapping(container).get("env"))):
                reference = mapping(mapping(item).get("valueFrom")).get("secretKeyRef")
                if isinstance(reference, Mapping):
                    yield f"spec.{field}[{i}].env[{k}].valueFrom.secretKeyRef.key", reference


def _judge_reference(
    pods: Pods, path: str, reference: Mapping[str, Any], secrets: Mapping[Key, Entry]
) -> Iterator[Finding]:
    at, rule = pods.entry.at(join_path(pods.path, path)), "secret-key-exists"
    name, key, namespace = reference.get("name"), reference.get("key"), pods.entry.namespace
    if gap := first_gap(name, key, namespace, reference.get("optional")):
        yield not_checked(at, gap, rule)
        return
    secret = secrets.get((str(namespace), name)) if isinstance(name, str) else None
    if secret is None or not isinstance(key, str) or reference.get("optional") is True:
        return
    lists = [secret.manifest.get(field) for field in ("data", "stringData")]
    keys = [word for held in lists for word, _ in pairs(held) if isinstance(word, str)]
    if key in keys:
        return
    if gap := first_gap(*lists):
        yield not_checked(at, gap, rule)
        return
    near = [word for word in keys[:_MANY] if not gap_of(word)]
    seen = f"is {show(key)}, but the Secret {show(name)} of this stack has no such key, and the "
    yield Finding(
        path=at, seen=f"{seen}container does not start without it", rule=rule,
        remedy=suggest(key[:253], near),
    )  # fmt: skip


def gpu_budget(stack: Stack, budget: int) -> Iterator[Finding]:
    """The accelerators of all pods of a stack are within its budget.

    Pods, Deployments, StatefulSets, ReplicaSets, Jobs, Volcano Jobs and ModelServings are counted.

    Pass: a budget of 16, two pods of 8 GPUs.
    Fail: a budget of 8, two pods of 8 GPUs.
    Level: mandatory; not checked where a number is not known and the rest is within the budget.
    Source: the budget that the caller gives.
    """
    used, gap, rule = 0, None, "gpu-budget"
    for pods in stack.pods:
        each = gpus_of(pods)
        if isinstance(each, int) and isinstance(pods.count, int):
            used += each * pods.count
        elif each != 0 and pods.count != 0:
            gap = gap or next(v for v in (each, pods.count) if isinstance(v, Unknown))
    if used > budget:
        least = "at least " if gap else ""
        yield Finding(
            path="",
            seen=f"the pods of this stack ask for {least}{count_of(used, 'GPU')}, but its budget "
            f"is {budget}",
            remedy=f"give up {used - budget}, or ask for a larger budget",
            rule=rule,
        )
    elif gap:
        yield not_checked("", gap, rule)
