"""Checks namespaces, queues, Secrets, permissions, and the kinds of backends. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kthena_components.cluster.objects import known, name_of, status_of
from kthena_components.cluster.requirements import (
    POD_GROUP,
    READ,
    Kind,
    Requirements,
    Right,
    SecretKey,
)
from kthena_components.cluster.snapshot import Diagnostic, Snapshot, Status, serves
from kthena_components.core.findings import nearest
from kthena_components.core.values.display import shell_word
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems import EMITTERS, INDEX, find_emitter
from kthena_components.systems.prometheus.system import API_VERSION, INSTALL, KINDS

_ANY = "*"
_OPEN = "Open"


def allows(rules: Iterable[Mapping[str, Any]], right: Right) -> bool:
    """Return whether rules grant a right on every object of its kind."""
    return any(
        not rule.get("resourceNames")
        and {right.verb, _ANY} & set(sequence(rule.get("verbs")))
        and {right.group, _ANY} & set(sequence(rule.get("apiGroups")))
        and {right.resource, _ANY} & set(sequence(rule.get("resources")))
        for rule in map(mapping, rules)
    )


def check_namespaces(seen: Snapshot, need: Requirements) -> Iterator[Diagnostic]:
    """Report missing namespaces: no stack creates one."""
    for name in need.namespaces:
        there = seen.namespaces.get(name, Unknown("not checked"))
        if isinstance(there, Unknown):
            yield Diagnostic(Status.UNKNOWN, "namespace", f"{name}: unknown, {there.because}")
        elif not there:
            text = f"{name} does not exist. Run `kubectl create namespace {shell_word(name)}`"
            yield Diagnostic(Status.FAIL, "namespace", text)
        elif need.stack:
            yield Diagnostic(Status.OK, "namespace", f"{name} exists")


def check_queues(seen: Snapshot, need: Requirements) -> Iterator[Diagnostic]:
    """Report queues that are missing or not open: Volcano's admission rejects their PodGroups."""
    if not serves(seen, POD_GROUP):
        return
    if isinstance(seen.queues, Unknown):
        for name in need.queues:
            yield Diagnostic(Status.UNKNOWN, "queue", f"{name}: unknown, {seen.queues.because}")
        return
    states = {name_of(body): status_of(body).get("state") for body in known(seen.queues)}
    for name in need.queues:
        if name not in states:
            near = nearest(name, states)
            remedy = f"Write '{near}', or add" if near else "Add"
            text = f"{name} does not exist. {remedy} it to queues of the stack"
            yield Diagnostic(Status.FAIL, "queue", text)
        elif states[name] != _OPEN:
            text = f"{name} is {states[name] or 'without a state'}, so Volcano's admission rejects "
            yield Diagnostic(
                Status.FAIL, "queue", f"{text}its PodGroups. Open it, or use another one"
            )
        else:
            yield Diagnostic(Status.OK, "queue", f"{name} is open")


def check_secret_keys(seen: Snapshot, need: Requirements) -> Iterator[Diagnostic]:
    """Report Secrets that are missing or lack a key that pods use."""
    for taken in need.secrets:
        keys = seen.secrets.get((taken.namespace, taken.name), Unknown("not checked"))
        yield _secret(taken, keys)


def _secret(taken: SecretKey, keys: frozenset[str] | Unknown | None) -> Diagnostic:
    """Say whether a Secret exists and has the key that pods need, or how to create it."""
    if isinstance(keys, Unknown):
        return Diagnostic(Status.UNKNOWN, "secret", f"{taken}: unknown, {keys.because}")
    create = (
        f"`kubectl create secret generic {shell_word(taken.name)} -n {shell_word(taken.namespace)} "
        f"--from-file={shell_word(taken.key or 'KEY')}=FILE`"
    )
    if keys is None:
        text = f"{taken} does not exist, and pods that use it do not start. Run {create}"
        return Diagnostic(Status.FAIL, "secret", text)
    if taken.key and taken.key not in keys:
        near = nearest(taken.key, keys)
        remedy = f"Write '{near}', or add the key" if near else "Add the key"
        text = f"{taken} has no key '{taken.key}', and pods that use it do not start. {remedy}"
        return Diagnostic(Status.FAIL, "secret", text)
    has = f"has the key '{taken.key}'" if taken.key else "exists"
    return Diagnostic(Status.OK, "secret", f"{taken} {has}")


def check_rights(seen: Snapshot, need: Requirements) -> Iterator[Diagnostic]:
    """Report permissions that an update or a destroy needs and the user lacks."""
    places: dict[str, list[Right]] = {}
    for right in need.rights:
        places.setdefault(right.namespace, []).append(right)
    for namespace, rights in places.items():
        where = f"in {namespace}" if namespace else "in the whole cluster"
        refused = [right for right in rights if seen.rights.get(right) is False]
        unknown = [r for r in rights if isinstance(seen.rights.get(r, Unknown("")), Unknown)]
        if refused:
            text = f"you may not {_verbs(refused)} {where}. Ask for a role with these verbs"
            yield Diagnostic(Status.FAIL, "rights", text)
        elif unknown:
            yield Diagnostic(Status.UNKNOWN, "rights", f"whether you may {_verbs(unknown)} {where}")
        else:
            made = sorted({r.resource for r in rights if r.verb not in READ})
            text = f"you may create, change and delete {', '.join(made)} {where}"
            yield Diagnostic(Status.OK, "rights", text)


def _verbs(rights: Iterable[Right]) -> str:
    """List verbs by resource: `create, patch statefulsets`."""
    verbs: dict[str, list[str]] = {}
    for right in rights:
        verbs.setdefault(right.resource, []).append(right.verb)
    return "; ".join(f"{', '.join(listed)} {name}" for name, listed in sorted(verbs.items()))


# The kinds of backends with a controller of their own, and whether the cluster serves them.
#
# systems.py says more about Kthena: its schema shows its version.


_JUDGED_APART = "kthena"
MONITORING = tuple((API_VERSION, kind) for kind in KINDS)
"""What a serving with `monitoring` needs."""


def own_kinds(backend: str) -> Iterator[Kind]:
    """Yield the kinds of a backend's system that the backend writes."""
    emitter = find_emitter(backend)
    for made in emitter.resources if emitter else ():
        if INDEX.get((made.api_version.partition("/")[0], made.kind)) == backend:
            yield made.api_version, made.kind


def check_backends(seen: Snapshot, need: Requirements) -> Iterator[Diagnostic]:
    """Check that the cluster serves what the servings of a stack need.

    Without a stack, a system that the cluster does not have is optional.
    """
    needed = {kind for _, kind in need.kinds}
    for backend in EMITTERS:
        if backend not in need.backends or backend == _JUDGED_APART:
            continue
        kinds = [kind for kind in own_kinds(backend) if not need.stack or kind in needed]
        served = [f"{name} {version}" for version, name in kinds if serves(seen, (version, name))]
        missing = [f"{name} {version}" for version, name in kinds]
        missing = [kind for kind in missing if kind not in served]
        emitter = find_emitter(backend)
        if missing and need.stack and emitter:
            text = f"the cluster has no {' and no '.join(missing)}. {emitter.install}, or use "
            yield Diagnostic(Status.FAIL, backend, f"{text}backend: native")
        elif served:
            yield Diagnostic(Status.OK, backend, " and ".join(served))
            yield from _rivals(seen, backend) if need.stack else ()


def check_monitoring(seen: Snapshot, need: Requirements) -> Iterator[Diagnostic]:
    """Check that the cluster has the Prometheus Operator, if a serving is monitored."""
    if not any(plan.monitoring for plan in need.plans):
        return
    named = {kind: f"{kind[1]} {kind[0]}" for kind in MONITORING}
    missing = [name for kind, name in named.items() if not serves(seen, kind)]
    if missing:
        text = f"the cluster has no {' and no '.join(missing)}. {INSTALL}"
        yield Diagnostic(Status.FAIL, "monitoring", text)
    else:
        yield Diagnostic(Status.OK, "monitoring", " and ".join(named.values()))


def _rivals(seen: Snapshot, backend: str) -> Iterator[Diagnostic]:
    """Warn about controllers of other systems that take over what the backend writes."""
    emitter = find_emitter(backend)
    for (group, kind), how in (emitter.rivals if emitter else {}).items():
        if any(kind in kinds for at, kinds in seen.served.items() if at.startswith(f"{group}/")):
            yield Diagnostic(Status.WARN, backend, how)
