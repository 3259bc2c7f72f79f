"""The objects of one cluster, read once for the rules that compare them.

A stack is read in one pass; each rule then looks things up by namespace and name. Nothing in a
manifest makes the reading raise.
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kthena_components.core.facts.totals import GpuDemand
from kthena_components.core.objects.object import GroupKind, Object, PodSet
from kthena_components.core.values.read import NOT_YET_KNOWN, identity, mapping, text
from kthena_components.core.values.unknown import Unknown

Key = tuple[str, str]

PodMaker = Callable[[Object], Iterator[PodSet]]
_ELSEWHERE = Unknown("pods that are not in this stack may belong to the gang")


@dataclass(slots=True)
class Stack:
    """All objects, and where to find them."""

    entries: list[Object] = field(default_factory=list)
    by_kind: dict[tuple[str, str], list[Object]] = field(default_factory=dict)
    pods: list[PodSet] = field(default_factory=list)
    gangs: dict[Key, list[PodSet]] = field(default_factory=dict)
    """Pods by the namespace and the name of the PodGroup that they ask for."""
    held: list[tuple[Object, GpuDemand]] = field(default_factory=list)
    """What objects ask for whose pods do not stand in them as templates."""
    unsure: Unknown | None = None
    """Why it is not known of some pods which PodGroup they ask for."""
    makers: frozenset[GroupKind] = frozenset()
    """The kinds whose objects hold pod templates, which are read."""
    complete: bool = True
    """Whether what is not here is nowhere in the cluster."""
    _named: dict[Key, dict[Key, Object]] = field(default_factory=dict)

    def of(self, kind: tuple[str, str]) -> list[Object]:
        """List the objects of a group and kind."""
        return self.by_kind.get(kind, [])

    def named(self, kind: tuple[str, str]) -> dict[Key, Object]:
        """Find the objects of a kind by namespace and name; the first of each name.

        That is for rules, when all objects are read: it is found once.
        """
        if kind not in self._named:
            found = self._named[kind] = {}
            for entry in self.of(kind):
                if isinstance(entry.name, str) and isinstance(entry.namespace, str):
                    found.setdefault((entry.namespace, entry.name), entry)
        return self._named[kind]

    def names_gap(self, kind: tuple[str, str]) -> Unknown | None:
        """Say why it is not known what all objects of a kind are called, if it is not."""
        for entry in self.of(kind):
            for value in (entry.name, entry.namespace):
                if isinstance(value, Unknown):
                    return value
        return None


def read_stack(
    manifests: Sequence[object],
    paths: Sequence[str],
    *,
    makers: Mapping[GroupKind, PodMaker] = {},
    cluster_wide: Container[GroupKind] = (),
    held: Mapping[int, GpuDemand] | None = None,
    complete: bool = True,
) -> Stack:
    """Read the objects of one cluster, in one pass.

    Args:
        manifests: The objects. What is not a map is passed over.
        paths: Where each of them stands; none if left out.
        makers: What gives the pods of an object, for each kind that holds templates of its own.
        cluster_wide: The kinds whose objects belong to no namespace.
        held: What objects ask for whose pods do not stand in them as templates, by their index.
        complete: Whether what is not here is nowhere in the cluster.
    """
    unsure = None if complete else _ELSEWHERE
    stack = Stack(complete=complete, unsure=unsure, makers=frozenset(makers))
    for index, manifest in enumerate(manifests):
        if not isinstance(manifest, Mapping):
            continue
        kind = identity(manifest)
        path = paths[index] if index < len(paths) else ""
        entry = _entry(index, manifest, path, kind, wide=kind in cluster_wide)
        stack.entries.append(entry)
        stack.by_kind.setdefault(kind, []).append(entry)
        asked = (held or {}).get(index)
        if asked is not None and kind not in makers:
            stack.held.append((entry, asked))
        for pods in makers[kind](entry) if kind in makers else ():
            stack.pods.append(pods)
            _add_to_gang(stack, pods)
    return stack


def _entry(
    index: int, manifest: Mapping[str, Any], path: str, kind: GroupKind, *, wide: bool
) -> Object:
    metadata = mapping(manifest.get("metadata"))
    return Object(
        index=index,
        path=path,
        manifest=manifest,
        version=manifest.get("apiVersion"),
        group=kind[0],
        kind=kind[1],
        name=text(metadata.get("name")),
        namespace="" if wide else text(metadata.get("namespace"), "default"),
    )


def _add_to_gang(stack: Stack, pods: PodSet) -> None:
    gang, namespace = pods.gang, pods.entry.namespace
    if pods.by_controller or gang is None:
        return
    if isinstance(gang, str) and isinstance(namespace, str):
        stack.gangs.setdefault((namespace, gang), []).append(pods)
    else:
        stack.unsure = stack.unsure or NOT_YET_KNOWN
