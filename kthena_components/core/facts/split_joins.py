"""Joins an engine whose head and workers are objects of their own, such as two StatefulSets.

The workers look for the head by a name: that of a Service that selects it, of its StatefulSet's
`serviceName`, or its own. Engines are joined only if the files show all of their pods, because
others may be elsewhere.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.split_engines import EnginePart, is_head, spreads_copies
from kthena_components.core.facts.split_objects import SplitObjects
from kthena_components.core.values.unknown import Unknown

_COMPARED_ALONE = Unknown("the ranks of workers in several objects are compared by themselves")


def join_engines(objects: SplitObjects) -> Iterator[ServingFacts]:
    """Yield each engine of which some objects are all parts."""
    for head, workers in joined(objects):
        yield from (_together(head, worker, workers) for worker in workers)


def joined(objects: SplitObjects) -> Iterator[tuple[EnginePart, list[EnginePart]]]:
    """Yield the head and the workers of each engine of which some objects are all parts."""
    for head in filter(is_head, objects.parts):
        workers = objects.joining(head)
        if workers and _are_all(head, workers):
            yield head, workers


def _are_all(head: EnginePart, workers: Sequence[EnginePart]) -> bool:
    """Return whether no other pods of the engine are missing, as far as its commands tell."""
    command = head.pod.command
    if command is None or command.ray_role == "head":
        return len(workers) == 1
    if spreads_copies(command):
        return _are_all_copies(command, [head, *workers])
    sizes = {each.pod.command.nnodes for each in (head, *workers) if each.pod.command is not None}
    return 1 + sum(each.count for each in workers) in sizes


def _are_all_copies(command: CommandFacts, parts: Sequence[EnginePart]) -> bool:
    """Return whether equal pods start all copies of an engine, each once."""
    found = [each for part in parts for each in first_copies(part) or [(-1, -1)]]
    local = command.data_local
    sizes = {each.data for part in parts for each in part.commands}
    if not isinstance(local, int) or not local or sizes != {local * len(found)}:
        return False
    return sorted(found) == [(rank * local, local) for rank in range(len(found))]


def first_copies(part: EnginePart) -> list[tuple[int, int]] | None:
    """Return the first copy of each pod of a part, and how many it starts; None if not known."""
    found = []
    every = part.commands if len(part.commands) == part.count else part.commands * part.count
    for command in every:
        first, local = command.data_start_rank or 0, command.data_local
        if not spreads_copies(command) or not isinstance(first, int) or not isinstance(local, int):
            return None
        found.append((first, local))
    return found or None


def copies_of(part: EnginePart) -> int:
    """Return how many copies of an engine the pods of a part start, if that is known."""
    return sum(number for _, number in first_copies(part) or ())


def _together(head: EnginePart, worker: EnginePart, workers: Sequence[EnginePart]) -> ServingFacts:
    pod = worker.pod if len(workers) == 1 else _without_rank(worker.pod)
    engine = EngineFacts(
        path=head.path,
        name=head.name,
        pods=1 + sum(each.count for each in workers),
        replicas=1,
        entry=head.pod,
        worker=pod,
    )
    return ServingFacts(path="", name=head.name, engines=(engine,), told=())


def _without_rank(pod: PodFacts) -> PodFacts:
    """Return a pod without its rank, if this is that of some worker."""
    command = pod.command
    if command is None:
        return pod
    if spreads_copies(command):
        return replace(pod, command=replace(command, data_start_rank=_COMPARED_ALONE))
    if not isinstance(command.nnodes, int):
        return pod
    rank = command.node_rank
    if not isinstance(rank, int) or not 0 < rank < command.nnodes:
        return pod
    return replace(pod, command=replace(command, node_rank=_COMPARED_ALONE))
