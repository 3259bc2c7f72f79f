"""The rule leader-selected: workers in an object of their own find the pod with the first rank."""

from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from kthena_components.core.facts.network import ServiceAsked, service_asked
from kthena_components.core.facts.split_engines import (
    Address,
    EnginePart,
    Group,
    first_address,
    forwarded,
    group_of_head,
    group_of_worker,
    has_selector,
    is_head,
    is_headless,
    is_other,
    may_have,
    number_of,
    selects,
    spreads_copies,
    starts_first,
)
from kthena_components.core.facts.split_objects import Service, SplitObjects
from kthena_components.core.facts.workload import may_hold_ranks, only_template
from kthena_components.core.findings import Finding, advise, count_of, refuse
from kthena_components.core.rules.pod_ranks import repeats_rank
from kthena_components.core.values.caches import cached_last
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    group_kind,
    is_name,
    mapping,
    may_be_in,
    name_of,
    namespace_of,
)
from kthena_components.core.values.unknown import Unknown

_TWO = 2
_OTHER_PODS = "and that Service selects other pods"
_NO_SERVICE = "and there is no such Service"


def leader_selected(objects: SplitObjects) -> Iterator[Finding]:
    """Workers in an object of their own look for their engine's first pod where that pod is.

    The Service in the address is there, and selects that pod and no worker. The name of a pod is
    the name of the first one, below the serviceName of its StatefulSet. There is one first pod:
    each of several would be the first of another engine. If nothing shows that the address is
    another pod's, the first pod must need more GPUs than it has, be the only one in its namespace,
    and have no other workers. Then the workers of the same namespace are its own. Two first pods do
    not meet their workers at one address, and workers of Ray do not all join one of two heads, so
    that nothing is left for the other. The workers of a first pod that needs them have pods, which
    do not start a Ray cluster themselves at the same Service, and do not only sleep. Pods that
    sleep count as the workers if they are in the same namespace, have accelerators and the image of
    an engine or of Ray, and if no other pods join the first one. If these are all objects of a
    cluster, there are both: no first pod waits for workers that no object has. Otherwise, workers
    whose first pod no object has are not checked.

    Pass: `ray start --address=head:6379` and a Service head that selects the pods of Deployment
    head; --master-addr head-0.head in StatefulSet worker, and serviceName head in StatefulSet head.
    Fail: --address=heads:6379 without a Service heads; $HEAD_SERVICE_HOST with a headless Service;
    a Service head that selects other pods, or the workers or another engine's head, too;
    --address=head.default.svc:6379 in the namespace models; head-0.head, and serviceName heads;
    head-1.head, and one pod; a Deployment head with replicas 2; --node-rank 0 --master-addr
    head-0.head in two StatefulSets; replicas 0 of the workers; `ray start --head` in StatefulSets
    head and worker with one serviceName; `sleep infinity` in StatefulSet worker; head-0.head, and
    --node-rank 1 or --headless in that pod.
    Level: mandatory. Objects in several files may be alternatives, so these are advisory between
    them: first pods at one address, a second Ray cluster, pods that sleep, and replicas 0, which is
    not checked beside an autoscaler. Also advisory: a Service without a cluster IP that selects the
    workers, too, because some libraries try all of its addresses; several first pods of a
    StatefulSet whose other workers may be in other files; and pods that sleep and share no label,
    Service or first part of a name with the first pod.
    Source: Kubernetes documentation, DNS for Services and Pods; kubernetes
    pkg/controller/statefulset/stateful_set_utils.go (initIdentity, updateIdentity) and
    staging/src/k8s.io/endpointslice/utils.go (shouldSetHostname); ray
    python/ray/scripts/scripts.py (start, --address).
    """
    wrong = dict(
        found
        for (group, asked), parts in objects.asking.items()
        for found in _of_workers(objects, group, asked, parts)
    )
    yield from (wrong[part] for part in objects.parts if part in wrong)
    yield from _alone(objects, {part.path for part in wrong})
    yield from _several(objects)


_Found = Iterator[tuple[EnginePart, Finding]]


def may_have_workers(objects: SplitObjects, namespace: str) -> bool:
    """Return whether pods whose commands are not read may be the workers of a first pod."""
    others = _of_other_kinds(objects)
    return objects.has_unread_pods(namespace) or any(may_be_in(each, namespace) for each in others)


@cached_last  # asked for each first pod
def _of_other_kinds(objects: SplitObjects) -> list[Mapping[str, Any]]:
    """Return the objects whose kind has pods, but in which no part of an engine was found."""
    parts = (*objects.parts, *objects.sleeping, *objects.stopped)
    read = {(part.kind, part.namespace, part.name) for part in parts}
    return [
        body
        for body in objects.named.values()
        if only_template(body) is None and may_hold_ranks(body.get("spec"))
        if (group_kind(body)[1], namespace_of(body), name_of(body)) not in read
    ]


def _of_workers(
    objects: SplitObjects, group: Group, asked: Address, parts: Sequence[EnginePart]
) -> _Found:
    """Report the parts that ask an address that is shown to be no first pod's."""
    heads = objects.heads_of(group)
    if asked.namespace != group.namespace:
        return
    if not heads:
        yield from _at_worker(objects, group, asked, parts)
        return
    service = objects.service_of(asked)
    if service is not None and is_without_address(service.body):
        services = {part: service_asked(part.pod.joined or part.pod.command) for part in parts}
        yield from ((part, _without_address(part, by)) for part, by in services.items() if by)
        parts = [part for part, by in services.items() if by is None]
    if not asked.pod:
        yield from _by_service(objects, asked, parts, heads)
        return
    named = objects.part_named(asked.pod, group.namespace)
    if named is not None and (seen := _wrong_pod(objects, named, asked)):
        is_first = starts_first(named) and group_of_head(named) == group
        head = named if is_first else heads[0]
        for part in parts:
            yield part, _finding(objects, part, head, seen)


def _at_worker(
    objects: SplitObjects, group: Group, asked: Address, parts: Sequence[EnginePart]
) -> _Found:
    """Report the address of a pod here that states another rank, wherever the first one is."""
    named = worker_asked(objects, group, asked)
    if named is None:
        return
    for part in parts[:1]:
        seen = f"looks for its first rank at {display(part.asks)}, but {asked.pod} is a worker"
        remedy = f"give {named.kind} {display(named.name)} the first rank, without --headless, "
        remedy += "or write the address of the pod that has it"
        report = refuse if objects.are_together(named, part) else advise
        yield part, report(part.pod.command_path, seen, remedy)


def worker_asked(
    objects: SplitObjects, group: Group | None, asked: Address | None
) -> EnginePart | None:
    """Return the workers to which an address of the first pod leads; None if it may be right."""
    if group is None or asked is None or not asked.pod:
        return None
    named = objects.part_named(asked.pod, group.namespace)
    if named is None or named.service != asked.name or group_of_worker(named) != group:
        return None
    return named if is_other(named) and may_have(named, asked.pod) else None


def _wrong_pod(objects: SplitObjects, named: EnginePart, asked: Address) -> str:
    """Explain why a name leads to no first pod."""
    if named.kind != "StatefulSet":
        no_names = not named.own_names and number_of(asked.pod) < named.count
        return f"but the pods of a {named.kind} have no such names" if no_names else ""
    return _no_name(named, asked) or _wrong_service(objects, named, asked)


def _no_name(named: EnginePart, asked: Address) -> str:
    """Explain that a StatefulSet gives no pod a name."""
    title, service, first = f"StatefulSet {display(named.name)}", named.service, named.start
    if first is not None and not may_have(named, asked.pod):
        last = f" to {named.name}-{first + named.count - 1}" if named.count > 1 else ""
        return f"but the pods of {title} are {named.name}-{first}{last}"
    if service is None or service == "":
        return f"but {title} has no serviceName, without which its pods have no names"
    if is_name(service) and service != asked.name:
        return f"but {title} has serviceName {display(service)}, and its pods have no other names"
    return ""


def _wrong_service(objects: SplitObjects, named: EnginePart, asked: Address) -> str:
    """Explain that a pod is not a first one, or that no Service names it."""
    if is_other(named):
        return f"which is a worker, in StatefulSet {display(named.name)}"
    service = objects.service_of(asked)
    if service is None:
        known = is_name(named.service) and (objects.complete or objects.reached(named))
        return _NO_SERVICE if known and objects.services_are_named else ""
    body = service.body
    is_its = selects(body, named) or not has_selector(body) or not named.labelled
    return "" if is_its else _OTHER_PODS


def _by_service(
    objects: SplitObjects, asked: Address, parts: Sequence[EnginePart], heads: Sequence[EnginePart]
) -> _Found:
    """Report a Service that selects workers, or that forwards other ports only."""
    service = objects.service_of(asked)
    if service is None or not has_selector(service.body):
        return
    if not all(head.labelled for head in heads):
        return
    chosen, of_group = objects.selected_by(service), {*heads}
    workers, first = [*filter(is_other, chosen)], [p for p in chosen if p in of_group]
    several = [*filter(needs_workers, first)]
    if chosen and len(workers) == len(chosen):
        for part in parts:
            yield part, _finding(objects, part, heads[0], _OTHER_PODS)
    elif len(several) >= _TWO:
        shown = f"{display(several[0].name)} and {display(several[1].name)}"
        seen = f"selects the first pods of {count_of(len(several), 'engine')}, {shown}"
        remedy = "give each engine a Service of its own, whose selector matches its first pod only"
        for part in parts:
            yield part, refuse(part.pod.command_path, f"{_looks(part)} {seen}", remedy)
    elif first and workers:
        report = advise if is_headless(service.body) else refuse
        seen = f"selects the pods of {display(first[0].name)} with that rank, and those of "
        seen += f"{display(workers[0].name)} without it"
        remedy = _only(first[0], workers)
        for part in parts:
            yield part, report(part.pod.command_path, f"{_looks(part)} {seen}", remedy)
    elif first:
        yield from _by_port(service, parts, first[0])


def scaler_of(objects: SplitObjects, part: EnginePart) -> str:
    """Return an autoscaler that may change the number of pods of a part; empty if there is none."""
    for body in objects.named.values():
        target = mapping(body.get("spec")).get("scaleTargetRef")
        near = namespace_of(body) == part.namespace and target is not None
        if near and mapping(target).get("name", part.name) == part.name:
            return f"{group_kind(body)[1]} {display(name_of(body))}"
    return ""


def is_without_address(service: Mapping[str, Any]) -> bool:
    """Return whether Kubernetes sets no variables for a Service."""
    spec = mapping(service.get("spec"))
    return spec.get("clusterIP") == "None" or spec.get("type") == "ExternalName"


def _without_address(part: EnginePart, by: ServiceAsked) -> Finding:
    seen = f"takes the address of its first rank from {by.variable}, but Service "
    seen += f"{display(part.asks)} has no cluster IP, so Kubernetes sets no variables for it"
    return refuse(part.pod.command_path, seen, f"write {part.asks} as the host of the address")


def _looks(part: EnginePart) -> str:
    return f"looks for its first rank at {display(part.asks)}, and that Service"


def _by_port(service: Service, parts: Sequence[EnginePart], head: EnginePart) -> _Found:
    for part in parts:
        if seen := _wrong_port(service.body, part, head):
            remedy = f"give the Service port {part.port} with targetPort {head.port or part.port}"
            remedy += ", and name each of its ports"
            yield part, refuse(part.pod.command_path, seen, remedy)


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


def changes_port(objects: SplitObjects, part: EnginePart) -> bool:
    """Return whether a part asks a Service that changes the port."""
    asked = objects.asked_by(part)
    service = objects.service_of(asked) if asked is not None and not asked.pod else None
    if part.port is None or service is None:
        return False
    return forwarded(service.body, part.port) != part.port


def _only(head: EnginePart, workers: Sequence[EnginePart]) -> str:
    """Return the label that selects the first pod only."""
    theirs = frozenset[tuple[str, str]]().union(*(each.labels for each in workers))
    for key, value in sorted(head.labels - theirs):
        return f"add {key}: {value} to the selector of the Service"
    return "give the pod with the first rank a label of its own, and add it to the selector"


def _alone(objects: SplitObjects, named: Container[str]) -> Iterator[Finding]:
    """Report workers that look elsewhere than at the only pod to which they can belong."""
    heads = [*filter(is_head, objects.parts)]
    number = Counter(head.namespace for head in heads)
    for head in heads:
        if number[head.namespace] > 1 or not needs_workers(head) or not head.labelled:
            continue
        reached = objects.reached(head)
        known = frozenset(reached | head.names)
        if any(_asks(objects, part, known) for part in objects.joining(head)):
            continue
        for part in (each for each in objects.workers_of(head) if each.path not in named):
            if seen := _away(objects, part, known) or _no_service(objects, part, known, reached):
                yield _finding(objects, part, head, seen)


def needs_workers(head: EnginePart) -> bool:
    """Return whether an engine needs more GPUs, or copies, than its first pod has."""
    command, gpus = head.pod.command, head.pod.gpus
    if command is not None and spreads_copies(command):
        return True
    copy = command.per_rank_world if command is not None else None
    return isinstance(copy, int) and isinstance(gpus, int) and copy > gpus > 0


def _asks(objects: SplitObjects, part: EnginePart, known: frozenset[str]) -> bool:
    """Return whether a part may ask a Service of the head, in the namespace of both."""
    asked = objects.asked_by(part)
    return asked is None or (asked.name in known and not _away(objects, part, known))


def _away(objects: SplitObjects, part: EnginePart, known: frozenset[str]) -> str:
    """Explain that a part asks the right name in another namespace."""
    asked = objects.asked_by(part)
    if asked is None or asked.name not in known or not _is_away(asked, part):
        return ""
    return f"in the namespace {display(asked.namespace)}"


def _is_away(asked: Address, part: EnginePart) -> bool:
    return bool(part.namespace) and asked.namespace != part.namespace


def _no_service(
    objects: SplitObjects, part: EnginePart, known: frozenset[str], reached: set[str]
) -> str:
    """Say that a part asks a Service that is missing or selects other pods; empty if neither."""
    asked = objects.asked_by(part)
    if asked is None or asked.name in known or asked.namespace != part.namespace:
        return ""
    service = objects.service_of(asked)
    if service is None:
        return _NO_SERVICE if reached and objects.services_are_named else ""
    is_of_workers = any(map(is_other, objects.selected_by(service)))
    unclear = is_of_workers or objects.may_select_unread(service)
    return _OTHER_PODS if has_selector(service.body) and not unclear else ""


def _finding(objects: SplitObjects, part: EnginePart, head: EnginePart, seen: str) -> Finding:
    """Write the finding of workers that do not find their leader, with the address to write."""
    address, host = first_address(head, objects.reached(head)), part.asks
    asked = objects.asked_by(part)
    if address and not (host == address or host.startswith(f"{address}.")):
        remedy = f"write {address} as the host of the address"
    elif seen == _NO_SERVICE:
        remedy = "add a headless Service of that name, with the labels of that pod in its selector"
    elif asked is not None and _is_away(asked, part):
        name = address or host.partition(".")[0]
        remedy = f"write {name}.{part.namespace}.svc as the host of the address"
    else:
        remedy = "write the labels of that pod in the selector of the Service"
    advice = f"looks for its first rank at {display(host)}, {seen}"
    if not seen.startswith("but "):
        advice += f", but that rank is in the pod of {display(head.name)}"
    return refuse(part.pod.command_path, advice, remedy)


def _several(objects: SplitObjects) -> Iterator[Finding]:
    """Report several pods with the first rank, each of an engine of its own."""
    by_pod: dict[EnginePart, dict[int, EnginePart]] = defaultdict(dict)
    by_service: dict[tuple[Group, str], list[EnginePart]] = defaultdict(list)
    for (group, asked), parts in objects.asking.items():
        named = objects.part_named(asked.pod, group.namespace)
        if not asked.pod:
            by_service[group, asked.name] += parts[:1]
        elif named is not None and group_of_head(named) == group and may_have(named, asked.pod):
            by_pod[named].setdefault(number_of(asked.pod), parts[0])
    for head in objects.parts:
        command, its = head.pod.command, group_of_head(head)
        if head.count < _TWO or not starts_first(head) or command is None or its is None:
            continue
        if not needs_workers(head) or repeats_rank(command):
            continue
        names = objects.reached(head)
        by_name = objects.in_order(p for name in names for p in by_service.get((its, name), ()))
        numbers = by_pod.get(head, {})
        one = next(iter(by_name or numbers.values()), None)
        if one is None or (not by_name and len(numbers) >= head.count):
            continue
        report = refuse if by_name or objects.complete else advise
        seen = f"starts an engine of its own in each of the {count_of(head.count, 'pod')} of "
        seen += f"{display(head.name)}, but its workers only look for one at {display(one.asks)}"
        yield report(head.pod.command_path, seen, "write replicas: 1")
