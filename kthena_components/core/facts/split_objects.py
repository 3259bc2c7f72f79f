"""Finds the parts of engines and their Services by what they have in common, and joins them.

Each part and each Service is compared with those that share a name or a label with it only, so
that the work grows as the number of objects.

Source: Kubernetes DNS-Based Service Discovery 1.1.0, 2.3 and 2.4; the search domains of a pod in
kubernetes pkg/kubelet/network/dns/dns.go.

Joins an engine whose head and workers are objects of their own, such as two StatefulSets.

The workers look for the head by a name: a Service that selects it, its StatefulSet's
`serviceName`, or its own. Engines are joined only if the files show all of their pods, because
others may be elsewhere.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.split_engines import (
    NUMBERED,
    SERVICE,
    Address,
    EnginePart,
    Group,
    group_of_head,
    group_of_worker,
    is_head,
    is_other,
    may_have,
    names_asked,
    selects,
    spreads_copies,
    starts_first,
)
from kthena_components.core.facts.workload import label_pairs, may_have_ranks, only_template
from kthena_components.core.findings import join_path
from kthena_components.core.values.read import (
    group_kind,
    mapping,
    may_be_in,
    name_of,
    namespace_of,
    unknown_inside,
)
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import Unknown

_SVC, _NUMBERS = "svc", regex(r"[\d.]+")
_Key = TypeVar("_Key")
Label = tuple[str, str]
_COMPARED_ALONE = Unknown("the ranks of workers in several objects are compared by themselves")


class Service(NamedTuple):
    """A Service, and its path in the caller's input."""

    path: str
    body: Mapping[str, Any]


class SplitObjects:
    """The engines whose pods are in several objects, as far as the objects show them."""

    def __init__(
        self,
        parts: Sequence[EnginePart],
        named: Mapping[str, Mapping[str, Any]],
        *,
        complete: bool = False,
        files: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Take the objects.

        Args:
            parts: The parts of engines among them.
            named: All objects, by their paths.
            complete: Whether the cluster has no other objects.
            files: The file of each object, by its path; one file if left out.
        """
        self.parts = [part for part in parts if part.count and not part.pod.idle]
        self.sleeping = [part for part in parts if part.count and part.pod.idle]
        """The parts whose pods do nothing."""
        self.stopped = [part for part in parts if not part.count]
        """The parts that are scaled to nothing."""
        self.named, self.complete, self._files = named, complete, files
        self.services = [Service(*each) for each in named.items() if group_kind(each[1]) == SERVICE]

    def are_together(self, first: EnginePart, second: EnginePart) -> bool:
        """Return whether two parts surely are in one cluster: files may be alternatives."""
        return self.complete or self._file_of(first) == self._file_of(second)

    def _file_of(self, part: EnginePart) -> str:
        path = part.path
        while path and path not in self._files:
            path = path.rpartition(".")[0]
        return self._files.get(path, "")

    # By the names in addresses.

    @cached_property
    def _parts_by_name(self) -> Mapping[tuple[str, str], EnginePart]:
        found: dict[tuple[str, str], EnginePart] = {}
        for part in self.parts:
            first = found.setdefault((part.namespace, part.name), part)
            if part.kind > first.kind:
                found[part.namespace, part.name] = part
        return found

    @cached_property
    def _services_by_name(self) -> Mapping[tuple[str, str], Service]:
        first = reversed(self.services)
        return {(namespace_of(each.body), name_of(each.body)): each for each in first}

    @cached_property
    def services_are_named(self) -> bool:
        """Whether the names and namespaces of all Services are known."""
        return all(unknown_inside(each.body.get("metadata")) is None for each in self.services)

    @cached_property
    def namespaces(self) -> set[str]:
        """The namespaces that the objects state."""
        return {namespace_of(body) for body in self.named.values()}

    def part_named(self, pod: str, namespace: str) -> EnginePart | None:
        """Return the part that the name of a pod begins with, a StatefulSet if there are two."""
        found = NUMBERED.fullmatch(pod)
        return self._parts_by_name.get((namespace, found[1])) if found else None

    def service_of(self, asked: Address) -> Service | None:
        """Return the Service that an address names; None if it is not among the objects."""
        return self._services_by_name.get((asked.namespace, asked.name))

    def asked_by(self, part: EnginePart) -> Address | None:
        """Return what a part asks; None if its address may name something else."""
        first, *rest = part.asks.split(".")
        if _NUMBERS.fullmatch(part.asks):
            return None
        if not rest:
            return Address(first, part.namespace)
        if rest[1:2] == [_SVC]:
            return Address(first, rest[0])
        if rest[2:3] == [_SVC]:
            return Address(rest[0], rest[1], first)
        # The name of a Service and its namespace look like the name of a pod and its Service.
        service, *namespace = rest
        if self.part_named(first, part.namespace) is None or len(namespace) > 1:
            return None
        return Address(service, namespace[0] if namespace else part.namespace, first)

    # By labels.

    @cached_property
    def _by_label(self) -> Mapping[tuple[str, Label], list[EnginePart]]:
        return _listed(
            ((part.namespace, label), part) for part in self.parts for label in part.labels
        )

    def labelled(self, namespace: str, wanted: Collection[Label]) -> list[EnginePart]:
        """Return the parts whose pods have some labels; none if no label is wanted."""
        having = (self._by_label.get((namespace, label), []) for label in wanted)
        return [part for part in min(having, key=len, default=[]) if part.labels >= {*wanted}]

    @cached_property
    def _selected(self) -> Mapping[str, list[EnginePart]]:
        found = {}
        for path, body in self.services:
            wanted = label_pairs(mapping(body.get("spec")).get("selector"))
            candidates = self.labelled(namespace_of(body), wanted)
            found[path] = [part for part in candidates if selects(body, part)]
        return found

    @cached_property
    def _unread(self) -> list[tuple[Mapping[str, Any], set[Label] | None]]:
        """The objects and labels of pods whose command lines are not read. None: not known."""
        read = {part.path for part in (*self.parts, *self.sleeping)}
        found = list[tuple[Mapping[str, Any], set[Label] | None]]()
        for path, body in self.named.items():
            made = only_template(body)
            if made is None or join_path(path, made.path) in read or not may_have_ranks(made):
                continue
            metadata = made.body.get("metadata")
            stated = mapping(mapping(metadata).get("labels"))
            labels = None if unknown_inside(metadata, stated) else label_pairs(stated)
            found.append((body, labels))
        return found

    def has_unread_pods(self, namespace: str) -> bool:
        """Return whether a namespace may have pods whose command lines are not read."""
        return any(may_be_in(body, namespace) for body, _ in self._unread)

    def may_select_unread(self, service: Service) -> bool:
        """Return whether a Service may select pods whose command lines are not read."""
        wanted = label_pairs(mapping(service.body.get("spec")).get("selector"))
        space = namespace_of(service.body)
        near = (labels for body, labels in self._unread if may_be_in(body, space))
        return any(labels is None or wanted <= labels for labels in near)

    @cached_property
    def _reached(self) -> Mapping[EnginePart, set[str]]:
        found: dict[EnginePart, set[str]] = defaultdict(set)
        for each in self.services:
            for part in self.selected_by(each):
                found[part].add(name_of(each.body))
        return found

    def selected_by(self, service: Service) -> list[EnginePart]:
        """Return the parts whose pods a Service selects."""
        return self._selected[service.path]

    def reached(self, head: EnginePart) -> set[str]:
        """Return the names of the Services that select a part."""
        return self._reached.get(head, set())

    # Heads and workers of one group.

    @cached_property
    def ray_heads(self) -> Mapping[tuple[str, str], list[EnginePart]]:
        """The parts that start a Ray cluster, by namespace and the Services that lead to them."""
        heads = [p for p in self.parts if p.pod.command and p.pod.command.ray_role == "head"]
        named = ((p, {*self.reached(p), str(p.service or "")} - {""}) for p in heads)
        return _listed(((p.namespace, name), p) for p, names in named for name in names)

    @cached_property
    def _heads(self) -> Mapping[Group, list[EnginePart]]:
        first = filter(starts_first, self.parts)
        return _listed((group, part) for part in first if (group := group_of_head(part)))

    @cached_property
    def _workers(self) -> Mapping[Group, list[EnginePart]]:
        return _listed((group, part) for part in self.parts if (group := group_of_worker(part)))

    @cached_property
    def asking(self) -> Mapping[tuple[Group, Address], list[EnginePart]]:
        """The parts without a first rank, by what they ask."""
        return _listed(
            ((group, asked), part)
            for group, listed in self._workers.items()
            for part in filter(is_other, listed)
            if (asked := self.asked_by(part))
        )

    def heads_of(self, group: Group) -> list[EnginePart]:
        """Return the parts with a first rank for which the workers of a group may look."""
        return self._heads.get(group, [])

    def workers_of(self, head: EnginePart) -> Iterator[EnginePart]:
        """Return the other parts that may look for a head."""
        group = group_of_head(head)
        listed = self._workers.get(group, ()) if group is not None else ()
        return (part for part in listed if part is not head)

    # Heads and workers by the address in which they agree.

    @cached_property
    def _positions(self) -> Mapping[EnginePart, int]:
        return {part: position for position, part in enumerate(self.parts)}

    @cached_property
    def _by_names(self) -> Mapping[tuple[Group, str], list[EnginePart]]:
        return _listed(
            ((group, name), part)
            for group, listed in self._workers.items()
            for part in listed
            for name in names_asked(part)
        )

    @cached_property
    def _pods_asked(self) -> Mapping[EnginePart, list[Address]]:
        """The addresses of pods, by the part that surely has the pod."""
        found: dict[EnginePart, list[Address]] = defaultdict(list)
        for asked in {asked: None for _, asked in self.asking if asked.pod}:
            part = self.part_named(asked.pod, asked.namespace)
            if part is not None and part.service == asked.name and may_have(part, asked.pod):
                found[part].append(asked)
        return found

    def in_order(self, parts: Iterable[EnginePart]) -> list[EnginePart]:
        """Sort parts as they were given."""
        return sorted(parts, key=self._positions.__getitem__)

    def joining(self, head: EnginePart) -> list[EnginePart]:
        """Return the other parts whose pods look for a head, in the way that it is reached."""
        group, names = group_of_head(head), head.names | self.reached(head)
        if group is None:
            return []
        found = {part for name in names for part in self._by_names.get((group, name), ())}
        return self.in_order(found - {head})

    def meeting(self, head: EnginePart) -> Iterator[tuple[Address, list[EnginePart]]]:
        """Yield each address that leads to a head, with the parts without a first rank that ask it.

        It is the name of its pod, or of a Service that selects the pod.
        """
        group = group_of_head(head)
        by_service = (Address(name, head.namespace) for name in sorted(self.reached(head)))
        for asked in (*by_service, *self._pods_asked.get(head, ())):
            service = self.service_of(asked)
            leads = bool(asked.pod) or (service is not None and selects(service.body, head))
            if group is not None and leads and (parts := self.asking.get((group, asked))):
                yield asked, parts


def is_one(first: EnginePart, second: EnginePart) -> bool:
    """Return whether two parts are one object, or two that exclude each other in a cluster."""
    return (first.kind, first.namespace, first.name) == (second.kind, second.namespace, second.name)


def _listed(found: Iterable[tuple[_Key, EnginePart]]) -> Mapping[_Key, list[EnginePart]]:
    listed: dict[_Key, list[EnginePart]] = {}
    for key, part in found:
        listed.setdefault(key, []).append(part)
    return listed


def join_engines(objects: SplitObjects) -> Iterator[ServingFacts]:
    """Yield each engine whose parts are all in these objects."""
    for head, workers in joined(objects):
        yield from (_together(head, worker, workers) for worker in workers)


def joined(objects: SplitObjects) -> Iterator[tuple[EnginePart, list[EnginePart]]]:
    """Yield the head and the workers of each engine whose parts are all in these objects."""
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
    """Join a head and its workers, which are separate objects, to a serving with one engine."""
    pod = worker.pod if len(workers) == 1 else _without_rank(worker.pod)
    engine = EngineFacts(
        path=head.path,
        name=head.name,
        pods=1 + sum(each.count for each in workers),
        replicas=1,
        entry=head.pod,
        worker=pod,
    )
    return ServingFacts(path="", name=head.name, engines=(engine,), controller_env=())


def _without_rank(pod: PodFacts) -> PodFacts:
    """Return a pod without its rank, if the rank belongs to some worker."""
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
