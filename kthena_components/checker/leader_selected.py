"""The rule leader-selected: workers in an object of their own find the pod with the first rank."""

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kthena_components.core.facts.split_addresses import (
    Asked,
    asked_by,
    first_address,
    forwarded,
    has_selector,
    is_headless,
    may_have,
    named_by,
    number_of,
    selected_by,
    service_of,
)
from kthena_components.core.facts.split_engines import (
    SERVICE,
    EnginePart,
    is_head,
    is_other,
    joins,
    may_join,
    selects,
    starts_first,
)
from kthena_components.core.findings import Finding, advise, refuse
from kthena_components.core.rules.pod_ranks import repeats_rank
from kthena_components.core.values.display import display
from kthena_components.core.values.read import group_kind, is_name, unknown_inside
from kthena_components.core.values.unknown import Unknown

_TWO = 2
_OTHER_PODS = "and that Service selects other pods"
_NO_SERVICE = "and there is no such Service"


class Files(NamedTuple):
    """What the files show of the engines whose pods are objects of their own."""

    parts: Sequence[EnginePart]
    services: Sequence[Mapping[str, Any]]
    complete: bool
    """Whether the cluster has no other objects."""

    def reached(self, head: EnginePart) -> set[str]:
        """Return the names of the Services that select a part."""
        return {name for each in self.services if (name := selects(each, head))}

    @property
    def named(self) -> bool:
        """Whether the names and namespaces of all Services are known."""
        return all(unknown_inside(each.get("metadata")) is None for each in self.services)

    def heads(self, part: EnginePart) -> list[EnginePart]:
        """Return the parts with a first rank for which a part may look."""
        return [p for p in self.parts if p is not part and starts_first(p) and may_join(part, p)]


def leader_selected(
    parts: Sequence[EnginePart], bodies: Sequence[Mapping[str, Any]], *, complete: bool = False
) -> Iterator[Finding]:
    """Workers in an object of their own look for their engine's first pod where that pod is.

    The Service in the address is there, and selects that pod and no worker. The name of a pod is
    that of the first one, below the serviceName of its StatefulSet. There is one first pod: each of
    several would be the first of another engine. If nothing shows that the address is another
    pod's, the first pod must need more GPUs than it has, be the only one in its namespace, and
    have no other workers. Then the workers of the same namespace are its own. If these are all
    objects of a cluster, there are both: no first pod waits for workers that no object has.

    Pass: `ray start --address=head:6379` and a Service head that selects the pods of Deployment
    head; --master-addr head-0.head in StatefulSet worker, and serviceName head in StatefulSet head.
    Fail: --address=heads:6379 without a Service heads; a Service head that selects other pods, or
    the workers or another engine's head, too; --address=head.default.svc:6379 in the namespace
    models; head-0.head, and serviceName heads; head-1.head, and one pod; a Deployment head with
    replicas 2.
    Level: mandatory; advisory for a Service without a cluster IP that selects the workers, too,
    because some libraries try all of its addresses, and for several first pods of a StatefulSet
    whose other workers may be in other files.
    Source: Kubernetes documentation, DNS for Services and Pods; kubernetes
    pkg/controller/statefulset/stateful_set_utils.go (initIdentity, updateIdentity) and
    staging/src/k8s.io/endpointslice/utils.go (shouldSetHostname); ray
    python/ray/scripts/scripts.py (start, --address).
    """
    services = [body for body in bodies if group_kind(body) == SERVICE]
    files = Files(parts, services, complete)
    told: set[str] = set()
    for part in filter(is_other, parts):
        for finding in _of_workers(files, part):
            told.add(part.path)
            yield finding
    yield from _alone(files, told)
    yield from _several(files)


def _of_workers(files: Files, part: EnginePart) -> Iterator[Finding]:
    """Report an address that is shown to be no first pod's."""
    heads, asked = files.heads(part), asked_by(part, files.parts)
    if not heads or asked is None or asked.namespace != part.namespace:
        return
    if not asked.pod:
        yield from _by_service(files, part, asked, heads)
        return
    named = named_by(asked.pod, part.namespace, files.parts)
    if named is not None and (seen := _wrong_pod(files, named, asked)):
        head = named if named in heads else heads[0]
        yield _finding(part, head, seen, files.reached(head))


def _wrong_pod(files: Files, named: EnginePart, asked: Asked) -> str:
    """Explain why a name leads to no first pod."""
    if named.kind != "StatefulSet":
        no_names = not named.own_names and number_of(asked.pod) < named.count
        return f"but the pods of a {named.kind} have no such names" if no_names else ""
    return _no_name(named, asked) or _wrong_service(files, named, asked)


def _no_name(named: EnginePart, asked: Asked) -> str:
    """Explain that a StatefulSet gives no pod a name."""
    title, service, first = f"StatefulSet {display(named.name)}", named.service, named.start
    if first is not None and not may_have(named, asked.pod):
        last = f" to {named.name}-{first + named.count - 1}" if named.count > 1 else ""
        return f"but the pods of {title} are {named.name}-{first}{last}"
    if service is None or service == "":
        return f"but {title} has no serviceName, without which its pods have no names"
    if is_name(service) and service != asked.name:
        return f"but {title} has serviceName {display(service)}, and its pods no other names"
    return ""


def _wrong_service(files: Files, named: EnginePart, asked: Asked) -> str:
    """Explain that a pod is no first one, or that no Service names it."""
    if is_other(named):
        return f"which is a worker, in StatefulSet {display(named.name)}"
    found = service_of(asked, files.services)
    if found is None:
        known = is_name(named.service) and (files.complete or files.reached(named))
        return _NO_SERVICE if known and files.named else ""
    is_its = selects(found[1], named) or not has_selector(found[1]) or not named.labelled
    return "" if is_its else _OTHER_PODS


def _by_service(
    files: Files, part: EnginePart, asked: Asked, heads: Sequence[EnginePart]
) -> Iterator[Finding]:
    """Report a Service that selects workers, or that forwards other ports only."""
    found = service_of(asked, files.services)
    known = all(head.labelled for head in heads)
    if found is None or not has_selector(found[1]) or not known:
        return
    chosen = selected_by(found[1], files.parts)
    workers, first = [p for p in chosen if is_other(p)], [p for p in chosen if p in heads]
    looks = f"looks for its first rank at {display(part.asks)}"
    several = [head for head in first if needs_workers(head)]
    if chosen and len(workers) == len(chosen):
        yield _finding(part, heads[0], _OTHER_PODS, files.reached(heads[0]))
    elif len(several) >= _TWO:
        seen = f"{looks}, and that Service selects the first pods of {len(several)} engines, "
        seen += f"{display(several[0].name)} and {display(several[1].name)}"
        remedy = "give each engine a Service of its own, whose selector matches its first pod only"
        yield refuse(part.pod.command_path, seen, remedy)
    elif first and workers:
        report = advise if is_headless(found[1]) else refuse
        seen = f"{looks}, and that Service selects the pods of {display(first[0].name)} with that "
        seen += f"rank, and those of {display(workers[0].name)} without it"
        yield report(part.pod.command_path, seen, _only(first[0], workers))
    elif first and (seen := _wrong_port(found[1], part, first[0])):
        port = first[0].port or part.port
        yield refuse(
            part.pod.command_path, seen, f"let the Service send port {part.port} to {port}"
        )


def _wrong_port(service: Mapping[str, Any], part: EnginePart, head: EnginePart) -> str:
    """Explain that a Service does not lead to the port of the first rank."""
    if part.port is None:
        return ""
    looks = f"looks for its first rank at {display(f'{part.asks}:{part.port}')}, but that Service "
    target = forwarded(service, part.port)
    if target is None:
        return f"{looks}has a cluster IP and no port {part.port}"
    if isinstance(target, Unknown) or head.port in {None, target} or target == part.port:
        return ""  # If the Service changes no port, leader-ports-agree compares both.
    return f"{looks}sends that port to {target}, and the first rank is at {head.port}"


def changes_port(
    path: str, parts: Sequence[EnginePart], bodies: Sequence[Mapping[str, Any]]
) -> bool:
    """Return whether the workers with a command line ask a Service that changes the port."""
    services = [body for body in bodies if group_kind(body) == SERVICE]
    part = next((each for each in parts if each.pod.command_path == path), None)
    asked = asked_by(part, parts) if part is not None else None
    found = service_of(asked, services) if asked is not None and not asked.pod else None
    if part is None or part.port is None or found is None:
        return False
    return forwarded(found[1], part.port) != part.port


def _only(head: EnginePart, workers: Sequence[EnginePart]) -> str:
    """Return the label that selects the first pod only."""
    theirs = frozenset[tuple[str, str]]().union(*(each.labels for each in workers))
    for key, value in sorted(head.labels - theirs):
        return f"add {key}: {value} to the selector of the Service"
    return "give the pod with the first rank a label of its own, and add it to the selector"


def _alone(files: Files, told: Container[str]) -> Iterator[Finding]:
    """Report workers that look elsewhere than at the only pod to which they can belong."""
    heads = [part for part in files.parts if is_head(part)]
    for head in heads:
        alone = [each.namespace for each in heads].count(head.namespace) == 1
        workers = [part for part in files.parts if part is not head and may_join(part, head)]
        reached = files.reached(head)
        known = frozenset(reached | head.names)
        found = [p for p in workers if joins(p, head, known) and _asks(files, p, known)]
        if not alone or found or not needs_workers(head) or not head.labelled:
            continue
        for part in (each for each in workers if each.path not in told):
            if seen := _away(files, part, known) or _wrong(files, part, known, reached):
                yield _finding(part, head, seen, reached)


def needs_workers(head: EnginePart) -> bool:
    """Return whether an engine needs more GPUs than its first pod has."""
    command, gpus = head.pod.command, head.pod.gpus
    copy = command.per_rank_world if command is not None else None
    return isinstance(copy, int) and isinstance(gpus, int) and copy > gpus > 0


def _asks(files: Files, part: EnginePart, known: frozenset[str]) -> bool:
    """Return whether a part may ask a Service of the head, in the namespace of both."""
    asked = asked_by(part, files.parts)
    return asked is None or (asked.name in known and not _away(files, part, known))


def _away(files: Files, part: EnginePart, known: frozenset[str]) -> str:
    """Explain that a part asks the right name in another namespace."""
    asked = asked_by(part, files.parts)
    if asked is None or asked.name not in known or not part.namespace:
        return ""
    other = asked.namespace != part.namespace
    return f"in the namespace {display(asked.namespace)}" if other else ""


def _wrong(files: Files, part: EnginePart, known: frozenset[str], reached: set[str]) -> str:
    """Explain that a part asks a Service that is not there, or that selects other pods."""
    asked = asked_by(part, files.parts)
    if asked is None or asked.name in known or asked.namespace != part.namespace:
        return ""
    found = service_of(asked, files.services)
    if found is None:
        return _NO_SERVICE if reached and files.named else ""
    is_of_workers = any(map(is_other, selected_by(found[1], files.parts)))
    return _OTHER_PODS if has_selector(found[1]) and not is_of_workers else ""


def _finding(part: EnginePart, head: EnginePart, seen: str, reached: set[str]) -> Finding:
    address, host = first_address(head, reached), part.asks
    if address and not (host == address or host.startswith(f"{address}.")):
        remedy = f"write {address} in the address"
    elif seen == _NO_SERVICE:
        remedy = "add a headless Service of that name, with the labels of that pod in its selector"
    else:
        remedy = "write the labels of that pod in the selector of the Service"
    told = f"looks for its first rank at {display(host)}, {seen}"
    if not seen.startswith("but "):
        told += f", but that rank is in the pod of {display(head.name)}"
    return refuse(part.pod.command_path, told, remedy)


def _several(files: Files) -> Iterator[Finding]:
    """Report several pods with the first rank, each of an engine of its own."""
    for head in files.parts:
        command = head.pod.command
        if head.count < _TWO or not starts_first(head) or command is None:
            continue
        workers = [p for p in files.parts if is_other(p) and head in files.heads(p)]
        asked = [(p, a) for p in workers if (a := asked_by(p, files.parts))]
        if not needs_workers(head) or repeats_rank(command):
            continue
        reached = files.reached(head)
        by_name = [p for p, a in asked if a.name in reached and not a.pod]
        numbers = {number_of(a.pod): p for p, a in asked if _is_in(files, head, a)}
        one = next(iter(by_name or numbers.values()), None)
        if one is None or (not by_name and len(numbers) >= head.count):
            continue
        report = refuse if by_name or files.complete else advise
        seen = f"starts an engine of its own in each of the {head.count} pods of "
        seen += f"{display(head.name)}, but its workers only look for one at {display(one.asks)}"
        yield report(head.pod.command_path, seen, "write replicas: 1")


def _is_in(files: Files, head: EnginePart, asked: Asked) -> bool:
    named = named_by(asked.pod, head.namespace, files.parts) if asked.pod else None
    return named is head and may_have(head, asked.pod)
