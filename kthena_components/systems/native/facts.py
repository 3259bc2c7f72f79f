"""Reads natively emitted objects back into facts: the inverse of systems/native/emit.py.

Entry and worker StatefulSets of an engine become one engine, and the PodGroup becomes the gang.
Everything else is ignored. Each object is read alone, so callers need not keep many of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from itertools import zip_longest
from typing import Any

from kthena_components.core import naming
from kthena_components.core.facts.context import NO_CONTEXT, Context
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, GangFacts, ServingFacts
from kthena_components.core.facts.workload import group_size, relocated
from kthena_components.core.findings import join_path
from kthena_components.core.objects.object import Object, read_object
from kthena_components.core.values.dataclass import dataclass, replace
from kthena_components.core.values.read import count_or_unknown, group_kind, is_name, mapping
from kthena_components.core.values.unknown import MaybeInt, Unknown
from kthena_components.systems.kubernetes.facts import read_pods_of
from kthena_components.systems.volcano import emit as volcano

_STATEFUL_SET, _POD_GROUP = ("apps", "StatefulSet"), ("scheduling.volcano.sh", "PodGroup")
Instance = tuple[str, str]
"""A role, and the number of one of its instances."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """The part of one object in its ServingGroup: an entry, workers, or the gang."""

    group: tuple[str, str]
    """Namespace and name."""
    serving: str
    instance: Instance = ("", "")
    entry: EngineFacts | None = None
    workers: tuple[MaybeInt, PodFacts] | None = None
    gang: GangFacts | None = None


def is_part(body: Mapping[str, Any]) -> bool:
    """Return whether an object is a part of a ServingGroup."""
    return _group_of(body) is not None


def read_part(found: Object, path: str) -> GroupMember | None:
    """Read a StatefulSet or a PodGroup of a ServingGroup; None for anything else.

    Args:
        path: Its path among the objects of the cluster.
    """
    body = found.body
    group = _group_of(body)
    if group is None:
        return None
    labels = mapping(mapping(body.get("metadata")).get("labels"))
    part = GroupMember(group=group, serving=str(labels.get(naming.NAME, "")))
    if group_kind(body) == _POD_GROUP:
        return replace(part, gang=volcano.read_gang(body, path))
    instance = (str(labels.get(naming.ROLE)), str(labels.get(naming.ROLE_ID)))
    spec, at = mapping(body.get("spec")), join_path(path, "spec.template")
    template = mapping(spec.get("template"))
    pod = _at(read_pods_of(found)[0], found, path)
    if naming.WORKER in mapping(mapping(spec.get("selector")).get("matchLabels")):
        number = count_or_unknown(spec.get("replicas"), "replicas", 1)
        return replace(part, instance=instance, workers=(number, pod))
    size = group_size(template)
    engine = EngineFacts(
        path=at,
        name=instance[0],
        pods=1 if size is None else size,
        replicas=1,
        entry=pod,
        worker=None,
    )
    return replace(part, instance=instance, entry=engine)


def _at(pod: PodFacts, found: Object, path: str) -> PodFacts:
    """Return the facts of a pod with the path of its object among others."""
    if path == found.path:
        return pod
    return relocated(pod, lambda at: join_path(path, at.removeprefix(found.path).removeprefix(".")))


def _group_of(body: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the namespace and name of an object's group, if it belongs to one."""
    metadata = mapping(body.get("metadata"))
    name = mapping(metadata.get("labels")).get(naming.GROUP_NAME)
    if not is_name(name) or group_kind(body) not in {_STATEFUL_SET, _POD_GROUP}:
        return None
    return str(metadata.get("namespace", "")), name


@dataclass(slots=True)
class _Group:
    """The parts of one ServingGroup, collected as they are read."""

    serving: str = ""
    entries: dict[Instance, EngineFacts] = field(default_factory=dict)
    workers: dict[Instance, tuple[MaybeInt, PodFacts]] = field(default_factory=dict)
    gang: GangFacts | None = None

    def add(self, part: GroupMember) -> None:
        """Add one part."""
        self.serving = part.serving
        if part.gang is not None:
            self.gang = part.gang
        if part.workers is not None:
            self.workers[part.instance] = part.workers
        if part.entry is not None:
            self.entries[part.instance] = part.entry

    def facts(self) -> ServingFacts:
        """Return the facts of the collected objects. Engines with a missing part are left out."""
        whole = [found for key in self.entries if (found := self._engine(key)) is not None]
        gang, roles = self.gang, {engine.name for engine in whole}
        if gang is not None:
            needed = {role for role, minimum in gang.minima.items() if minimum != 0}
            gang = gang if needed <= roles and len(whole) == len(self.entries) else None
        return ServingFacts(
            path="",
            name=self.serving,
            engines=_by_role(whole),
            gang=gang,
            gang_expected=self.gang is not None,
        )

    def _engine(self, key: tuple[str, str]) -> EngineFacts | None:
        engine, found = self.entries[key], self.workers.get(key)
        if found is None:
            return engine if engine.pods == 1 else None
        workers, pod = found
        pods = workers if isinstance(workers, Unknown) else workers + 1
        return replace(engine, pods=pods, worker=pod)


def join_parts(parts: Iterable[GroupMember]) -> list[ServingFacts]:
    """Return one ServingFacts for each ServingGroup that has an entry."""
    groups: dict[tuple[str, str], _Group] = {}
    for part in parts:
        groups.setdefault(part.group, _Group()).add(part)
    return [group.facts() for _, group in sorted(groups.items()) if group.entries]


def read_group(
    bodies: Iterable[Mapping[str, Any]], paths: Sequence[str] = (), context: Context = NO_CONTEXT
) -> list[ServingFacts]:
    """Return one ServingFacts for each ServingGroup.

    Args:
        bodies: Objects of one cluster.
        paths: Their paths in the caller's input; none if left out.
    """
    found = zip_longest(bodies, paths, fillvalue="")
    objects = ((read_object(mapping(body), path, context), path) for body, path in found)
    read = (read_part(each, path) for each, path in objects)
    return join_parts(part for part in read if part is not None)


def _by_role(engines: list[EngineFacts]) -> tuple[EngineFacts, ...]:
    """Count equal engines of one role as its replicas."""
    counted: dict[EngineFacts, int] = {}
    for engine in engines:
        counted[engine] = counted.get(engine, 0) + 1
    return tuple(replace(engine, replicas=count) for engine, count in counted.items())
