"""The rules leader-selected and first-pod-published, where first pods are objects."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.checker.leader_selected import (
    may_have_workers,
    needs_workers,
    scaler_of,
    worker_asked,
)
from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.engine_grouping import is_bare_head, is_second_head
from kthena_components.core.facts.listening import waits_for_engine
from kthena_components.core.facts.network import PORT_OPTIONS
from kthena_components.core.facts.split_engines import (
    Address,
    EnginePart,
    first_address,
    group_of_head,
    group_of_worker,
    is_head,
    is_other,
    names_asked,
    selects,
    spreads_copies,
    starts_first,
)
from kthena_components.core.facts.split_objects import Service, SplitObjects, is_one, joined
from kthena_components.core.facts.workload import may_have_ranks, only_template
from kthena_components.core.findings import (
    Finding,
    advise,
    count_of,
    join_path,
    not_checked,
    refuse,
)
from kthena_components.core.remedies import write
from kthena_components.core.rules.support.engine_pods import is_itself, meeting_of, port_of
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    first_unknown,
    group_kind,
    mapping,
    name_of,
    namespace_of,
)
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import MaybeInt, Unknown, product, total

_RULE, _RAY, _TWO = "leader-selected", "ray", 2
_DATA, _MASTER = "--data-parallel-address", "--master-addr"
_HOST = regex(r"(?:tcp://)?([A-Za-z0-9][A-Za-z0-9.-]*)(?::\d+)?")
_OF_SET = regex(r"[a-z0-9-]+-\d+\.([a-z0-9-]+)")
"""The name of a StatefulSet's pod. Otherwise the end may be a namespace."""
_TEMPLATE = regex(r"\.(?:leaderWorkerTemplate\..*|template)$")
"""The end of the path of a template, in the spec that states the number of its pods."""
_WITHOUT_PODS = frozenset(
    {
        *("Service", "ConfigMap", "Secret", "PersistentVolumeClaim", "PersistentVolume"),
        *("Namespace", "ServiceAccount", "Ingress", "HTTPRoute", "Gateway", "PodDisruptionBudget"),
        *("NetworkPolicy", "Role", "RoleBinding", "StorageClass", "PriorityClass", "PodGroup"),
        *("Queue", "ServiceMonitor", "PodMonitor", "ClusterRole", "ClusterRoleBinding"),
    }
)
"""Kinds that make no pods."""


def leader_alone(objects: SplitObjects) -> Iterator[Finding]:
    """Report first pods without workers, and workers without a first pod.

    Nothing is reported if an object that is not read here may have the others. The rule is
    documented in checker/leader_selected.py.
    """
    if may_have_others(objects):
        return
    unclear = {part.namespace for part in objects.parts if _may_be_first(part)}
    for part in objects.parts:
        shown = display(part.name)
        if _lacks_workers(objects, part):
            more = "needs more GPUs than its pod has"
            if part.pod.command is not None and spreads_copies(part.pod.command):
                more = "counts more copies than its pod starts"
            seen = f"starts the first rank of {shown}, which {more}, but no object has its other "
            seen += "ranks"
            yield refuse(part.pod.command_path, seen, "add pods with the other ranks", _RULE)
        elif part.namespace in unclear or not part.asks:
            continue
        elif _lacks_first(objects, part) and _asks_inside(objects, part):
            seen = f"looks for its first rank at {display(part.asks)}, but no object has it"
            yield refuse(part.pod.command_path, seen, "add a pod with the first rank", _RULE)


def may_have_others(objects: SplitObjects) -> bool:
    """Return whether an object may have pods of an engine, although no part was found in it."""
    every = (*objects.parts, *objects.stopped)
    read = {(part.kind, part.namespace, part.name) for part in every}
    return any(_key(body) not in read and _may_have_ranks(body) for body in objects.named.values())


def leader_elsewhere(objects: SplitObjects) -> Iterator[Finding]:
    """Report workers without a first pod as not checked: it may be in an object not given here.

    The rule is documented in checker/leader_selected.py.
    """
    unclear = {part.namespace for part in objects.parts if _may_be_first(part)}
    for part in objects.parts:
        if part.namespace in unclear or not part.asks or not _lacks_first(objects, part):
            continue
        if _asks_inside(objects, part):
            why = (
                f"no object here starts the first rank, for which it looks at {display(part.asks)}"
            )
            yield not_checked(part.pod.command_path, Unknown(why), _RULE)


def _lacks_workers(objects: SplitObjects, part: EnginePart) -> bool:
    if not (is_head(part) and needs_workers(part)) or next(objects.workers_of(part), None):
        return False
    command = part.pod.command
    if any(each.namespace == part.namespace and _asks_unread(each) for each in objects.parts):
        return False
    if next(_in_place_of_workers(objects, part), None) is not None:
        return False
    joins = (each for each in objects.parts if each is not part and _may_join(each))
    return command is None or not spreads_copies(command) or next(joins, None) is None


def leader_left_alone(objects: SplitObjects) -> Iterator[Finding]:
    """Report first pods whose workers are scaled to nothing, or start a Ray cluster themselves.

    The rule is documented in checker/leader_selected.py.
    """
    unread = {part.namespace for part in objects.parts if _asks_unread(part)}
    for head in objects.parts:
        if head.namespace in unread or not (is_head(head) and needs_workers(head)):
            continue
        if next(objects.workers_of(head), None) is None:
            yield from _in_place_of_workers(objects, head)


def _in_place_of_workers(objects: SplitObjects, head: EnginePart) -> Iterator[Finding]:
    """Report the objects that have no pods, or pods that join nothing, beside a head."""
    needs = _shortage(head)
    names = head.names | objects.reached(head)
    for part in objects.stopped:
        spec = _TEMPLATE.sub("", part.path)
        at = join_path(spec, "parallelism" if part.kind == "Job" else "replicas")
        joins = group_of_worker(part) == group_of_head(head) and not starts_first(part)
        if part.kind == "Pod" or not (joins and names_asked(part) & names):
            continue
        if scaler := scaler_of(objects, part):
            yield not_checked(at, Unknown(f"{scaler} may change it"), _RULE)
            continue
        report = refuse if objects.are_together(head, part) else advise
        yield report(at, f"is 0, but {needs}", write(_missing(head, part)), _RULE)
    # Pods whose commands are not read may be the workers.
    for part in () if may_have_workers(objects, head.namespace) else objects.sleeping:
        if part.namespace == head.namespace and part.kind != "Pod":
            seen = f"runs `{part.pod.idle}`, but {needs}, and no pods join it"
            is_its = objects.are_together(head, part) and _belongs(head, part)
            report = refuse if is_its else advise
            yield report(part.pod.command_path, seen, _join(objects, head), _RULE)
    for part in _second_heads(objects, head):
        seen = f"starts a Ray cluster of its own, but {needs}, and no pods join it"
        report = refuse if objects.are_together(head, part) else advise
        yield report(part.pod.command_path, seen, _join(objects, head), _RULE)


def _belongs(head: EnginePart, part: EnginePart) -> bool:
    """Return whether two objects share a label of their pods, a Service, or the start of a name."""
    starts = {each.name.rpartition("-")[0] for each in (head, part)}
    services = {str(each.service or "") for each in (head, part)}
    one = (len(names) == 1 and "" not in names for names in (starts, services))
    return bool(head.labels & part.labels) or any(one)


def _join(objects: SplitObjects, head: EnginePart) -> str:
    """Say what pods run to join the engine of a head."""
    group, command = group_of_head(head), head.pod.command
    if group is not None and group.way == _RAY:
        address = first_address(head, objects.reached(head)) or f"ADDRESS of {head.name}"
        return f"run only `ray start --address={address}:{head.port or 'PORT'} --block`"
    copies = command is not None and spreads_copies(command)
    rank = f"the {'first copy' if copies else 'rank'} of each pod as "
    rank += "--data-parallel-start-rank" if copies else "--node-rank"
    headless = " --headless," if command is not None and command.engine == "vllm" else ""
    message = f"start the engine in these pods, too, with the options of {display(head.name)}"
    return f"{message},{headless} and {rank}"


def _second_heads(objects: SplitObjects, head: EnginePart) -> Iterator[EnginePart]:
    """Return other parts at an address of a head that start a Ray cluster, too."""
    group, names = group_of_head(head), {*objects.reached(head), str(head.service or "")}
    near = (each for name in names for each in objects.ray_heads.get((head.namespace, name), ()))
    for part in objects.in_order({*near}) if group is not None and group.way == _RAY else ():
        bare = is_bare_head(part.pod.command) and part.pod.gpus != 0
        later = objects.in_order((head, part))[0] is head and is_second_head(head.pod, part.pod)
        if (bare or later) and not is_one(part, head):
            yield part


def _shortage(head: EnginePart) -> str:
    """Say what an engine needs, and what its first pod has."""
    command, needed, has = head.pod.command, _needed(head), head.pod.gpus
    what = f"the engine of {head.kind} {display(head.name)} "
    if command is not None and spreads_copies(command) and isinstance(command.data, int):
        copies = count_of(command.data, "copy")
        return f"{what}has {copies} and its first pod starts {command.data_local}"
    shown = count_of(needed, "GPU") if isinstance(needed, int) else "more GPUs"
    return f"{what}needs {shown} and its first pod has {has}"


def _missing(head: EnginePart, part: EnginePart) -> int:
    """Return how many pods of a part an engine needs besides its first one."""
    command, other = head.pod.command, part.pod.command
    if command is not None and isinstance(command.nnodes, int) and command.nnodes > 1:
        return command.nnodes - 1
    needed, own, each = _needed(head), head.pod.gpus, part.pod.gpus
    if command is not None and other is not None and spreads_copies(command):
        needed, own, each = command.data, command.data_local or 0, other.data_local or 0
    if not (isinstance(needed, int) and isinstance(own, int) and isinstance(each, int) and each):
        return 1
    return max(1, -(-(needed - own) // each))


def _asks_unread(part: EnginePart) -> bool:
    """Return whether it is not known where the workers of a part look for their first rank."""
    return is_other(part) and not part.asks


def _may_join(part: EnginePart) -> bool:
    """Return whether a part may have copies of an engine in another object."""
    return not part.commands or any(command.headless is not False for command in part.commands)


def _lacks_first(objects: SplitObjects, part: EnginePart) -> bool:
    group = group_of_worker(part)
    if worker_asked(objects, group, objects.asked_by(part)) is not None:
        return False  # leader_selected reports it
    return is_other(part) and (group is None or not objects.heads_of(group))


def _may_be_first(part: EnginePart) -> bool:
    """Return whether it is unclear if a part has the first copies of an engine."""
    return any(
        command.engine == "vllm"
        and command.headless is not True
        and command.data_local is not None
        and not starts_first(part)
        for command in part.commands
    )


def _asks_inside(objects: SplitObjects, part: EnginePart) -> bool:
    """Return whether a part surely asks for something in its own namespace."""
    asked = objects.asked_by(part)
    if asked is not None:
        return asked.namespace == part.namespace
    found = _OF_SET.fullmatch(part.asks)
    return found is not None and found[1] not in objects.namespaces


def _key(body: Mapping[str, Any]) -> tuple[str, str, str]:
    return group_kind(body)[1], namespace_of(body), name_of(body)


def _may_have_ranks(body: Mapping[str, Any]) -> bool:
    """Return whether an object may have pods of an engine."""
    made = only_template(body)
    return may_have_ranks(made) if made else group_kind(body)[1] not in _WITHOUT_PODS


def leaders_apart(objects: SplitObjects) -> Iterator[Finding]:
    """Report first pods of two engines at one address, and workers that all join one of two.

    The rule is documented in checker/leader_selected.py.
    """
    first: dict[tuple[object, ...], EnginePart] = {}
    for part in objects.parts:
        where, shown = next(_places(objects, part), ((), ""))
        other = first.setdefault(where, part) if where else part
        if is_one(other, part) or _is_reported(objects, part, other):
            continue
        is_its = objects.part_named(str(where[3]), part.namespace) is part
        wrong, right = (other, part) if is_its else (part, other)
        seen = f"starts the first rank of an engine that meets at {shown}, and so does "
        seen += f"{display(right.name)}, but that address leads to one pod only"
        remedy = "write the address of its own first pod in this engine, or another rank if it "
        remedy += f"belongs to {display(right.name)}"
        report = refuse if objects.are_together(other, part) else advise
        yield report(wrong.pod.command_path, seen, remedy, _RULE)
    yield from _left_alone(objects)


def _places(objects: SplitObjects, part: EnginePart) -> Iterator[tuple[tuple[object, ...], str]]:
    """Return where the first ranks of a part meet the others, and how that is written."""
    for command in part.commands:
        if command.data_mode != "internal" or not starts_first(replace(part, commands=(command,))):
            continue
        option, address = _address(command)
        found = _HOST.fullmatch(address) if isinstance(address, str) else None
        if found is None or is_itself(address):
            continue
        port: object = port_of(str(address))
        if option in PORT_OPTIONS:
            port = command.options.get(*PORT_OPTIONS[option])
        if isinstance(port, int):
            asked = objects.asked_by(replace(part, asks=found[1]))
            asked = asked or Address(found[1], part.namespace)
            yield (command.engine, *asked, port), f"port {port} of {display(found[1])}"


def _address(command: CommandFacts) -> tuple[str, object]:
    """Return the option with which an engine names its first pod, and the stated address."""
    if spreads_copies(command):
        return _DATA, command.options.get(_DATA) or command.options.get(_MASTER)
    meeting = meeting_of(command)
    return (meeting.option, meeting.address) if meeting is not None else ("", None)


def _is_reported(objects: SplitObjects, part: EnginePart, other: EnginePart) -> bool:
    """Return whether another rule reports that two pods have one address."""
    both = (
        asked
        for name in objects.reached(part) & objects.reached(other)
        for asked, _ in objects.meeting(other)
        if asked.name == name and not asked.pod
    )
    one = any(head is other and part in workers for head, workers in joined(objects))
    return one or next(both, None) is not None


def _left_alone(objects: SplitObjects) -> Iterator[Finding]:
    """Report workers of Ray that join an engine which has enough, and not another one."""
    heads = [head for head in objects.parts if is_head(head) and needs_workers(head)]
    heads = [head for head in heads if (group := group_of_head(head)) and group.way == _RAY]
    joining = {head: objects.joining(head) for head in heads}
    for head in (head for head in heads if not joining[head]):
        if any(objects.asked_by(part) is None for part in objects.workers_of(head)):
            continue
        for other in (each for each in heads if each.namespace == head.namespace):
            workers = [each for each in joining[other] if objects.are_together(head, each)]
            if len(workers) < _TWO or not objects.are_together(head, other):
                continue
            part, needed = workers[-1], _needed(other)
            held, own = _gpus([other, *workers]), _gpus([part])
            if not (isinstance(held, int) and isinstance(own, int) and own > 0):
                continue
            if isinstance(needed, int) and held - own >= needed:
                seen = f"joins {display(other.name)}, which then has {count_of(held, 'GPU')} and "
                seen += f"needs {needed}, but no pods join {display(head.name)}, which needs "
                seen += f"{_needed(head)} and has {head.pod.gpus}"
                remedy = f"write the address of {display(head.name)}"
                yield refuse(part.pod.command_path, seen, remedy, _RULE)
                break


def _gpus(parts: list[EnginePart]) -> MaybeInt:
    return total([product(part.pod.gpus, part.count) for part in parts])


def _needed(head: EnginePart) -> object:
    return head.pod.command.per_rank_world if head.pod.command is not None else None


_PUBLISHED = "first-pod-published"


def leader_published(objects: SplitObjects) -> Iterator[Finding]:
    """Report a Service that names a first pod only when its workers have found it.

    The rule is documented in systems/kubernetes/rules/first_pod.py.
    """
    reported: set[str] = set()
    for head in filter(is_head, objects.parts):
        if not waits_for_engine(head.pod) or not needs_workers(head):
            continue
        for asked, _ in objects.meeting(head):
            service = objects.service_of(asked)
            if service is None or not selects(service.body, head) or service.path in reported:
                continue
            reported.add(service.path)
            yield from _check(service, head)


def _check(service: Service, head: EnginePart) -> Iterator[Finding]:
    """Report a Service of first pods whose address is not published before they are ready."""
    stated = service.body.get("spec")
    spec = mapping(stated)
    published = spec.get("publishNotReadyAddresses")
    at = join_path(service.path, "spec.publishNotReadyAddresses")
    if gap := first_unknown(published, stated):
        yield not_checked(at, gap, _PUBLISHED)
    elif published is not True:
        seen = f"is not true, but the workers of {head.kind} {display(head.name)} look for its pod "
        seen += "by this Service, and that is ready only when all pods of the engine have met"
        yield refuse(at, seen, write(value=True), _PUBLISHED)
