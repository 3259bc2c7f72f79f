"""The rule pod-ranks, for an engine whose head and workers are objects of their own."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from kthena_components.checker.leaders_apart_and_published import may_have_others
from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.network import PORT_OPTIONS
from kthena_components.core.facts.split_engines import (
    Address,
    EnginePart,
    group_of_worker,
    has_selector,
    is_head,
    spreads_copies,
    starts_first,
)
from kthena_components.core.facts.split_objects import SplitObjects, copies_of, first_copies, is_one
from kthena_components.core.findings import Finding, advise, count_of, refuse
from kthena_components.core.rules.pod_ranks import repeats_rank
from kthena_components.core.rules.support.engine_pods import is_itself
from kthena_components.core.values.display import display

_RULE = "pod-ranks"
_SIZE, _START = "--data-parallel-size", "--data-parallel-start-rank"
_RANK, _ADDRESS = "--data-parallel-rank", "--data-parallel-address"
_OUTSIDE = frozenset({"external", "hybrid"})
"""Kinds of load balancing in which each pod answers requests for its own copies."""
_ONE_RANK_EACH = frozenset({"--data-parallel-multi-port-external-lb", "--api-server-count"})
"""Options with which a pod may start other copies than its rank says."""
_SAME_SIZES = "leader-worker-same-parallelism"
_LISTED = 8
_MOST = 4096
_COMPARED = 2
"""The least number of objects with workers whose ranks are compared."""


def pod_ranks_of_parts(objects: SplitObjects) -> Iterator[Finding]:
    """Report pods of several objects that have one rank, or that are not as many as are counted.

    Missing ones may be in other files, unless these are all objects. The rule is documented in
    core/rules/pod_ranks.py.
    """
    for head in filter(is_head, objects.parts):
        command = head.pod.command
        if command is not None and spreads_copies(command):
            yield from _copies(objects, head, command)
            continue
        nodes = command.nnodes if command is not None else None
        workers = _workers(objects, head)
        ranks = [rank for worker in workers for rank in _ranks(worker)]
        if not isinstance(nodes, int) or not workers or None in ranks:
            continue
        yield from _missing(objects, head, workers, {0, *filter(None, ranks)})
        if len(workers) < _COMPARED:
            continue
        shown = ", ".join(map(str, [0, *ranks][:_LISTED]))
        if len({*ranks}) < len(ranks) or len(ranks) >= nodes:
            seen = (
                f"meets the pods of {display(head.name)}, whose --nnodes {nodes} needs the ranks "
            )
            seen += f"0 to {nodes - 1}, but the pods of all its objects have {shown}"
            remedy = "give each pod a --node-rank of its own, and each engine an address of its own"
            yield refuse(workers[-1].pod.command_path, seen, remedy, _RULE)
    for where, parts in _apart(objects).items():
        yield from _answering(objects, where, parts)


def _missing(
    objects: SplitObjects, head: EnginePart, workers: Sequence[EnginePart], ranks: set[int]
) -> Iterator[Finding]:
    """Report an engine if its objects start some of its ranks, each once, but not all."""
    parts, nodes = [head, *workers], _nodes(head)
    pods = sum(part.count for part in parts)
    if {_nodes(part) for part in parts} != {nodes} or not isinstance(nodes, int):
        return
    if pods >= nodes or len(ranks) < pods or max(ranks) >= nodes:
        return
    lacking = [str(rank) for rank in range(min(nodes, _MOST)) if rank not in ranks]
    shown = ", ".join(lacking[:_LISTED]) + (", …" if len(lacking) > _LISTED else "")
    seen = f"meets the pod of {display(head.name)}, whose --nnodes {nodes} needs the ranks 0 to "
    seen += f"{nodes - 1}, but the pods of all its objects are {pods}, and none has rank {shown}"
    remedy = (
        f"start {count_of(nodes, 'pod')} in all objects together, each with another --node-rank"
    )
    report = refuse if objects.complete and not may_have_others(objects) else advise
    yield report(workers[-1].pod.command_path, seen, remedy, _RULE)


def _nodes(part: EnginePart) -> object:
    return part.pod.command.nnodes if part.pod.command is not None else None


def _apart(objects: SplitObjects) -> dict[tuple[object, ...], list[EnginePart]]:
    """Return the parts with copies of an engine, by where they meet.

    Those behind the first pod of such an engine are compared with it instead.
    """
    found: dict[tuple[object, ...], list[EnginePart]] = defaultdict(list)
    option, default = PORT_OPTIONS[_ADDRESS]
    for part in objects.parts:
        command = part.pod.command
        if command is None or command.nnodes not in {None, 1}:
            continue
        group = group_of_worker(part) if command.headless is True else None
        behind = group is not None and not objects.heads_of(group)
        if command.data_mode not in _OUTSIDE and not behind:
            continue
        host, port = command.options.get(_ADDRESS), command.options.get(option, default)
        if isinstance(host, str) and not is_itself(host) and isinstance(port, int):
            asked = objects.asked_by(replace(part, asks=host)) or (part.namespace, host)
            found[(*asked, port)].append(part)
    return found


def _started(part: EnginePart) -> list[tuple[int, int]] | None:
    """Return the first copy of each pod and the one after its last; None if not known."""
    found = []
    for command in part.commands:
        outside = command.data_mode == "external"
        first = command.data_rank if outside else command.data_start_rank or 0
        number = 1 if outside else command.data_local
        if not isinstance(first, int) or not isinstance(number, int) or command.hidden is not None:
            return None
        if not _ONE_RANK_EACH.isdisjoint(command.options):
            return None
        found.append((first, first + number))
    # Equal pods of one object are reported by themselves.
    return found if found and len(found) == part.count else None


def _answering(
    objects: SplitObjects, where: tuple[object, ...], parts: Sequence[EnginePart]
) -> Iterator[Finding]:
    """Report copies that two objects start, or none, of an engine whose pods all answer."""
    known = [(part, started) for part in parts if (started := _started(part))]
    if len(known) < _COMPARED:
        return
    first, data = known[0][0], _data(known[0][0])
    other = next((part for part, _ in known if _data(part) != data), None)
    if other is not None:
        seen = f"states {_SIZE} {_data(other)}, but {display(first.name)}, whose ranks meet at the "
        seen += f"same address, states {data}; all pods of an engine must state the same"
        yield refuse(other.pod.command_path, seen, f"write {_SIZE} {data} in both", _SAME_SIZES)
    elif isinstance(data, int):
        yield from _once_each(objects, where, known, data, whole=len(known) == len(parts))


def _once_each(
    objects: SplitObjects,
    where: tuple[object, ...],
    known: Sequence[tuple[EnginePart, list[tuple[int, int]]]],
    data: int,
    *,
    whole: bool,
) -> Iterator[Finding]:
    """Report copies of an engine that no object starts, or that two objects start."""
    by_copy: dict[int, EnginePart] = {}
    twice: tuple[EnginePart, EnginePart] | None = None
    for part, started in known:
        for copy in (n for begin, end in started for n in range(begin, min(end, data))):
            owner = by_copy.setdefault(copy, part)
            twice = twice or ((owner, part) if not is_one(owner, part) else None)
    missing = [copy for copy in range(min(data, _MOST)) if copy not in by_copy]
    beyond = any(end > data for _, started in known for _, end in started)
    if twice is None and (beyond or not missing or not whole):
        return  # The rule data-parallel-layout reports a rank of no copy.
    part = twice[1] if twice is not None else known[-1][0]
    option = _RANK if _mode(part) == "external" else _START
    ranges = sorted(each for _, started in known for each in started)
    seen = f"starts copies of the engine that meets at port {where[-1]} of {display(_host(part))}: "
    seen += f"{_SIZE} {data} needs each of 0 to {data - 1} once, but the pods of its "
    seen += f"{len(known)} objects start {_listed(ranges)}"
    if twice is not None:
        seen += f", of which {display(twice[0].name)} has the same"
    remedy = f"write another {option}, or another address for another engine"
    if missing:
        shown = ", ".join(map(str, missing[:_LISTED]))
        remedy = f"let one pod start each of the copies {shown} ({option})"
    sure = objects.complete if twice is None else objects.are_together(*twice)
    report = refuse if sure else advise
    yield report(part.pod.command_path, seen, remedy, _RULE)


def _mode(part: EnginePart) -> object:
    return part.pod.command.data_mode if part.pod.command is not None else None


def _host(part: EnginePart) -> object:
    return part.pod.command.options.get(_ADDRESS) if part.pod.command is not None else None


def _copies(objects: SplitObjects, head: EnginePart, command: CommandFacts) -> Iterator[Finding]:
    """Report pods of several objects that start one copy twice, or other copies than are counted.

    Copies that no pod starts may be in other files, unless these are all objects.
    """
    workers, data = _workers(objects, head), command.data
    parts = [head, *workers]
    started = [first_copies(part) for part in parts]
    if not workers or not isinstance(data, int) or None in started:
        return
    if any(_is_reported(part, data) for part in workers):
        return
    other = next((part for part in workers if _data(part) != data), None)
    if other is not None:
        seen = f"states {_SIZE} {_data(other)}, but the first pod in {display(head.name)}, which "
        seen += f"it meets, {data}, and all pods of an engine must state the same"
        remedy = f"write {_SIZE} {data} in both"
        yield refuse(other.pod.command_path, seen, remedy, _SAME_SIZES)
        return
    ranges = sorted((first, first + number) for found in started for first, number in found or ())
    ranges = [(first, end) for first, end in ranges if end > first]
    twice = any(end > following for (_, end), (following, _) in pairwise(ranges))
    total = sum(map(copies_of, parts))
    if not twice and total == data and ranges[-1][1] == data:
        return
    certain = twice or ranges[-1][1] > data or objects.complete
    seen = f"starts copies of the engine whose first pod is in {display(head.name)}: {_SIZE} "
    seen += f"{data} needs each of 0 to {data - 1} once, but its pods start {_listed(ranges)}"
    remedy = _remedy(parts, total, data)
    report = refuse if certain else advise
    yield report(workers[-1].pod.command_path, seen, remedy, _RULE)


def _is_reported(part: EnginePart, data: int) -> bool:
    """Return whether the rule reports the pods of an object alone."""
    command = part.pod.command
    if part.count == 1 or command is None:
        return False
    ranks = [first for first, _ in first_copies(part) or ()]
    goes_on = min(ranks) > 0 and max(ranks) < data and len({*ranks}) == len(ranks)
    return repeats_rank(command) or not goes_on


def _remedy(parts: Sequence[EnginePart], total: int, data: int) -> str:
    """Say how to count the copies of data parallelism over objects: in each, or from which on."""
    if total != data:
        return (
            f"start {count_of(data, 'copy')} in all pods together, or count {total} in "
            f"the {_SIZE} of each"
        )
    begin, starts = 0, []
    for part in parts:
        starts.append(f"{begin} in {display(part.name)}")
        begin += copies_of(part)
    return f"let the copies begin ({_START}) at {', '.join(starts[1:])}"


def _data(part: EnginePart) -> object:
    return part.pod.command.data if part.pod.command is not None else None


def _listed(ranges: Sequence[tuple[int, int]]) -> str:
    shown = [str(a) if a + 1 == end else f"{a} to {end - 1}" for a, end in ranges]
    return ", ".join(shown[:_LISTED]) + (", …" if len(shown) > _LISTED else "")


def _ranks(part: EnginePart) -> list[int | None]:
    """Return the ranks of the pods of a part; None for each that is not known."""
    found = [command.node_rank for command in part.commands]
    known = [rank if isinstance(rank, int) else None for rank in found]
    return known if len(known) == part.count else known * part.count


def _workers(objects: SplitObjects, head: EnginePart) -> list[EnginePart]:
    """Return the parts whose address surely belongs to one head."""
    found = (
        part
        for asked, parts in objects.meeting(head)
        if asked.pod or _is_only_first(objects, asked, head)
        for part in parts
    )
    return objects.in_order(found)


def _is_only_first(objects: SplitObjects, asked: Address, head: EnginePart) -> bool:
    """Return whether a Service selects no other pod with a first rank."""
    service = objects.service_of(asked)
    if service is None or not has_selector(service.body):
        return False
    first = filter(starts_first, objects.selected_by(service))
    return next(first, None) is head and next(first, None) is None
