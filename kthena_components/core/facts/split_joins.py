"""Joins an engine whose head and workers are objects of their own, such as two StatefulSets.

The workers look for the head by a name: that of a Service that selects it, of its StatefulSet's
`serviceName`, or its own. Engines are joined only if the files show all of their pods, because
others may be elsewhere.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.split_engines import EnginePart, is_head
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
    sizes = {each.pod.command.nnodes for each in (head, *workers) if each.pod.command is not None}
    return 1 + sum(each.count for each in workers) in sizes


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
    if command is None or not isinstance(command.nnodes, int):
        return pod
    rank = command.node_rank
    if not isinstance(rank, int) or not 0 < rank < command.nnodes:
        return pod
    return replace(pod, command=replace(command, node_rank=_COMPARED_ALONE))
