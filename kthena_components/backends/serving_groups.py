"""Put what was emitted natively together again: the inverse of native.py."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

from kthena_components.backends import volcano
from kthena_components.backends.workloads import group_kind, group_size, is_name, pods_in
from kthena_components.core import naming
from kthena_components.core.facts import (
    EngineFacts,
    GangFacts,
    PodFacts,
    ServingFacts,
    as_count,
    as_map,
)
from kthena_components.core.findings import join_path
from kthena_components.core.known import MaybeInt, Unknown


@dataclass(slots=True)
class _Group:
    """The objects of one ServingGroup, as they are found."""

    serving: str = ""
    entries: dict[tuple[str, str], EngineFacts] = field(default_factory=dict)
    workers: dict[tuple[str, str], tuple[MaybeInt, PodFacts]] = field(default_factory=dict)
    gang: GangFacts | None = None

    def add(self, body: Mapping[str, Any], path: str) -> None:
        """Take in one StatefulSet or PodGroup."""
        labels = as_map(as_map(body.get("metadata")).get("labels"))
        self.serving = str(labels.get(naming.NAME, ""))
        if group_kind(body) == ("scheduling.volcano.sh", "PodGroup"):
            self.gang = volcano.read_gang(body, path)
            return
        key = (str(labels.get(naming.ROLE)), str(labels.get(naming.ROLE_ID)))
        spec, at = as_map(body.get("spec")), join_path(path, "spec.template")
        template = as_map(spec.get("template"))
        pod = pods_in(template, at)[0]
        if naming.WORKER in as_map(as_map(spec.get("selector")).get("matchLabels")):
            self.workers[key] = (as_count(spec.get("replicas"), "replicas", 1), pod)
        else:
            size = group_size(template)
            self.entries[key] = EngineFacts(
                path=at,
                name=key[0],
                pods=1 if size is None else size,
                replicas=1,
                entry=pod,
                worker=None,
            )

    def facts(self) -> ServingFacts:
        """Put the objects together. What has lost a part, because it is not here, is left out."""
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


def read_group(
    bodies: Iterable[Mapping[str, Any]], paths: Sequence[str] = ()
) -> list[ServingFacts]:
    """Put what was emitted natively together again: one ServingFacts for each ServingGroup.

    This is the inverse of backends/native.py: entry and worker StatefulSets of an engine become
    one engine, and the PodGroup becomes the gang. Everything else is ignored.

    Args:
        bodies: objects of one cluster.
        paths: where each of them stands, in the caller's coordinates; none if left out.
    """
    groups: dict[tuple[str, str], _Group] = {}
    for body, path in zip_longest(bodies, paths, fillvalue=""):
        key = _group_key(as_map(body))
        if key is not None:
            groups.setdefault(key, _Group()).add(as_map(body), path)
    return [group.facts() for _, group in sorted(groups.items()) if group.entries]


def _group_key(body: Mapping[str, Any]) -> tuple[str, str] | None:
    """Give the namespace and the name of an object's group, if it belongs to one."""
    metadata = as_map(body.get("metadata"))
    name = as_map(metadata.get("labels")).get(naming.GROUP_NAME)
    kinds = {("apps", "StatefulSet"), ("scheduling.volcano.sh", "PodGroup")}
    if not is_name(name) or group_kind(body) not in kinds:
        return None
    return str(metadata.get("namespace", "")), name


def _by_role(engines: list[EngineFacts]) -> tuple[EngineFacts, ...]:
    """Count equal engines of one role as its replicas."""
    counted: dict[EngineFacts, int] = {}
    for engine in engines:
        counted[engine] = counted.get(engine, 0) + 1
    return tuple(replace(engine, replicas=count) for engine, count in counted.items())
