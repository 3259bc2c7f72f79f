"""Reads Grove's PodCliqueSet, and what is kept of it; never raises."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kthena_components.core.objects.object import GroupKind, Object, read_object
from kthena_components.core.objects.retained_fields import kept_pods, kept_spec
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping, sequence, text, unknown_in
from kthena_components.core.values.unknown import MaybeText, Unknown

GROVE = "grove.io"
SET: GroupKind = (GROVE, "PodCliqueSet")
TEMPLATE = "spec.template"
EXPLICIT = "CliqueStartupTypeExplicit"
IN_ORDER = "CliqueStartupTypeInOrder"
Name = MaybeText | None
"""The name of a clique; None if it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clique:
    """Pods of one template."""

    path: str
    name: MaybeText | None
    fields: Mapping[str, Any]
    """Its name, its spec, and the labels and annotations of its pods."""
    spec: Mapping[str, Any]
    pod: object
    """Its podSpec, as written."""

    @property
    def at(self) -> str:
        """Path of its spec."""
        return f"{self.path}.spec"

    @property
    def replicas(self) -> object:
        """Number of pods: 1 if left out or 0, as the operator sets it."""
        given = self.spec.get("replicas")
        return 1 if given is None or (given == 0 and not isinstance(given, bool)) else given


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingGroup:
    """Cliques that are created and scaled together."""

    path: str
    name: MaybeText | None
    fields: Mapping[str, Any]
    cliques: tuple[object, ...]
    """The names of its cliques, as written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CliqueSet:
    """A PodCliqueSet."""

    object: Object
    template: Mapping[str, Any]
    cliques: tuple[Clique, ...]
    groups: tuple[ScalingGroup, ...]

    @property
    def grouped(self) -> frozenset[str]:
        """The names of cliques in scaling groups."""
        names = (name for group in self.groups for name in group.cliques)
        return frozenset(name for name in names if isinstance(name, str))

    def together(self) -> Iterator[tuple[ScalingGroup | None, list[Clique]]]:
        """Return the cliques of each scaling group, and each other clique by itself."""
        alone = {clique.name: clique for clique in self.cliques if isinstance(clique.name, str)}
        for group in self.groups:
            names = [name for name in group.cliques if isinstance(name, str)]
            yield group, [alone.pop(name) for name in dict.fromkeys(names) if name in alone]
        for clique in alone.values():
            yield None, [clique]

    def waiting(self) -> Callable[[Name, Name], bool]:
        """Return whether a clique waits for another one, by name, at once or by others."""
        named = [clique for clique in self.cliques if isinstance(clique.name, str)]
        places = {clique.name: at for at, clique in enumerate(named)}
        kind = self.template.get("cliqueStartupType")
        if kind == IN_ORDER:
            return lambda late, first: places.get(first, len(named)) < places.get(late, 0)
        if kind != EXPLICIT:
            return lambda _late, _first: False
        given = {
            clique.name: [
                name
                for name in sequence(clique.spec.get("startsAfter"))
                if isinstance(name, str) and name in places
            ]
            for clique in named
        }

        def waits(late: Name, first: Name) -> bool:
            left, seen = deque(given.get(late, ())), set[str]()
            while left and first not in seen:
                at = left.popleft()
                if at not in seen:
                    seen.add(at)
                    left += given[at]
            return first in seen

        return waits

    @property
    def gap(self) -> Unknown | None:
        """Why the cliques or their groups are unknown; None if they are known."""
        given = (self.template.get("cliques"), self.template.get("podCliqueScalingGroups"))
        names = [clique.name for clique in self.cliques]
        inside = [name for group in self.groups for name in (group.fields.get("cliqueNames"),)]
        members = [name for group in self.groups for name in group.cliques]
        every = (*given, *names, *inside, *members)
        return next((gap for gap in map(unknown_in, every) if gap), None)


def read_clique_set(found: Object) -> CliqueSet:
    """Read the cliques of a PodCliqueSet, and how they are grouped."""
    template = mapping(found.spec.get("template"))
    return CliqueSet(
        object=found,
        template=template,
        cliques=tuple(_cliques(template)),
        groups=tuple(_groups(template)),
    )


def _cliques(template: Mapping[str, Any]) -> Iterator[Clique]:
    """List the cliques of a set with their pod templates."""
    for index, item in enumerate(sequence(template.get("cliques"))):
        fields = mapping(item)
        spec = mapping(fields.get("spec"))
        yield Clique(
            path=f"{TEMPLATE}.cliques[{index}]",
            name=text(fields.get("name")),
            fields=fields,
            spec=spec,
            pod=spec.get("podSpec"),
        )


def _groups(template: Mapping[str, Any]) -> Iterator[ScalingGroup]:
    """List the scaling groups of a set with the names of their cliques."""
    for index, item in enumerate(sequence(template.get("podCliqueScalingGroups"))):
        fields = mapping(item)
        yield ScalingGroup(
            path=f"{TEMPLATE}.podCliqueScalingGroups[{index}]",
            name=text(fields.get("name")),
            fields=fields,
            cliques=tuple(sequence(fields.get("cliqueNames"))),
        )


def kept_cliques(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Keep what the rules over a stack compare; everything if a claim is mounted.

    Whether the pods that share a claim are one engine depends on their command lines.
    """
    cliques = read_clique_set(read_object(body)).cliques
    return kept_spec(body) if any(map(_mounts_claim, cliques)) else kept_pods(body)


def _mounts_claim(clique: Clique) -> bool:
    volumes = sequence(mapping(clique.pod).get("volumes"))
    return any("persistentVolumeClaim" in mapping(volume) for volume in volumes)
