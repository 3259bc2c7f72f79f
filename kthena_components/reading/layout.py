"""Sorts files into objects, and sources that a program renders objects from.

Templates of a chart are not YAML, and a patch is not an object. The base of an overlay may be
incomplete, so it is checked as the overlay builds it.
"""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path

from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping
from kthena_components.core.values.regex import regex
from kthena_components.reading.files import Unreadable
from kthena_components.reading.folders import CHART, FoundFiles
from kthena_components.reading.kustomization import (
    Kustomization,
    Patch,
    find_kustomization,
    patches_of,
    read_kustomization,
)
from kthena_components.reading.settings import parse_kube_map, read_below

_TEMPLATES, _CRDS, _SUBCHARTS = "templates", "crds", "charts"
_OTHER_VALUES = (
    *("ci/*-values.y*ml", "*-values.y*ml", "values-*.y*ml", "values.*.y*ml"),
    *("*_values.y*ml", "values_*.y*ml"),
)
_LIBRARY = "library"
_LOOSENING = {"nameprefix": "name", "namesuffix": "name", "namespace": "namespace"}
_GIT, _SUBMODULES = ".git", ".gitmodules"
_PATH = regex(r"^[ \t]*path[ \t]*=[ \t]*\"?([^\"\n\0]+?)\"?[ \t]*$", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A Helm chart. Paths are as the folder was named."""

    folder: str
    boundary: str
    """The real path of the folder that nothing may lead out of."""
    values: tuple[str, ...] = ()
    """Files with other values. The chart is also rendered with each of them."""


@dataclass(slots=True)
class Layout:
    """The content of some folders. The key of a kustomization is the real path of its folder."""

    charts: list[Chart] = field(default_factory=list)
    kustomizations: dict[str, Kustomization] = field(default_factory=dict)
    """Kustomizations in the folders, and their bases elsewhere."""
    walked: list[str] = field(default_factory=list)
    """Keys of the kustomizations in the folders."""
    unreadable: list[Unreadable] = field(default_factory=list)
    libraries: dict[str, str] = field(default_factory=dict)
    """Charts that only have functions for others: real paths, each with the folder as named."""
    _known: set[str] = field(default_factory=set)
    _charts: set[str] = field(default_factory=set)
    """The real paths of all charts."""
    _templates: set[str] = field(default_factory=set)

    def add_charts(self, folders: Mapping[str, str]) -> None:
        """Add charts, each with its boundary. A chart inside another one is rendered with it."""
        named = {os.path.realpath(folder): folder for folder in folders}
        fresh = {real: folder for real, folder in named.items() if real not in self._charts}
        self._charts.update(fresh)
        self._templates |= {str(Path(real, n)) for real in fresh for n in (_TEMPLATES, _CRDS)}
        for real, folder in fresh.items():
            if _is_library(Path(folder), folders[folder]):
                self.libraries[real] = folder
        whole = self._charts - set(self.libraries)  # helm renders no library
        for real, folder in fresh.items():
            above = Path(real).parent
            inner = above.name == _SUBCHARTS and str(above.parent) in whole
            if not inner and real in whole:
                files = {str(file) for glob in _OTHER_VALUES for file in Path(folder).glob(glob)}
                values = tuple(sorted(files))
                self.charts.append(Chart(folder=folder, boundary=folders[folder], values=values))

    def add_kustomization(self, file: str, boundary: str, *, walked: bool) -> None:
        """Add a kustomization and its bases."""
        waiting = [(file, walked)]
        while waiting:
            file, walked = waiting.pop()
            key = os.path.realpath(Path(file).parent)
            if key not in self._known:
                self._known.add(key)
                read = read_kustomization(file, boundary)
                if isinstance(read, Kustomization):
                    self.kustomizations[key] = read
                    found = (find_kustomization(base) for base in read.bases)
                    waiting += [(each, False) for each in found if each is not None]
                elif read is not None:
                    self.unreadable.append(read)
            if walked and key in self.kustomizations and key not in self.walked:
                self.walked.append(key)

    def entries(self) -> list[str]:
        """List the kustomizations in the folders that are no base of another one there."""
        used = {each for key in self.walked for each in self._bases_of(key)}
        return [
            key
            for key in self.walked
            if key not in used and not self.kustomizations[key].is_component
        ]

    def _bases_of(self, key: str) -> set[str]:
        """List the bases of a kustomization."""
        named = map(os.path.realpath, self.kustomizations[key].bases)
        return {each for each in named if each in self.kustomizations}

    def built_of(self, key: str) -> set[str]:
        """List a kustomization, its bases, their bases, and so on."""
        found, waiting = {key}, [key]
        while waiting:
            further = self._bases_of(waiting.pop()) - found
            waiting += further
            found |= further
        return found

    def without(self, key: str) -> set[str]:
        """List the bases to build by themselves if a kustomization cannot be built."""
        found, passed, waiting = set[str](), set[str](), [key]
        while waiting:
            for each in self._bases_of(waiting.pop()) - passed:
                passed.add(each)
                if self.kustomizations[each].is_component:
                    waiting.append(each)
                elif each in self.walked:
                    found.add(each)
        return found

    def problem(self, key: str) -> str:
        """Explain why a kustomization must not be built; empty if it may be built."""
        made = [self.kustomizations[each] for each in (key, *sorted(self.built_of(key)))]
        problem_text = next((each.problem for each in made if each.problem), "")
        bases = (base for each in made for base in each.bases)
        unread = (base for base in bases if os.path.realpath(base) not in self.kustomizations)
        return problem_text or next(
            (f"it builds on {each}, which cannot be read" for each in unread), ""
        )

    def built_upon(self) -> set[str]:
        """List the real paths of the files whose objects a kustomization may patch."""
        return _objects_of(self.kustomizations.values())

    def patched(self, built: Collection[str]) -> dict[str, list[Patch]]:
        """List the real paths of files with objects that patches may change, which nothing built.

        Args:
            built: Keys of the kustomizations that were built.

        Returns:
            The patches of each file, which a rendering of it lacks, too. A component changes all
            objects of what it is a part of.
        """
        stacks = {key: self.built_of(key) for key in self.kustomizations if key not in built}
        used = {each for around in stacks.values() for each in around if each not in built}
        parts = {key: stacks.get(key) or self.built_of(key) for key in used}
        patches = {key: [*patches_of(self.kustomizations[key])] for key in used}
        found: dict[str, list[Patch]] = {}
        for around in stacks.values():
            loose = _looseness(self.kustomizations[each] for each in around)
            for each in sorted(filter(patches.get, around)):
                is_component = self.kustomizations[each].is_component
                below = around if is_component else parts[each]
                mine = [replace(patch, loose=loose) for patch in patches[each]]
                for file in self.built_from(below):
                    found.setdefault(file, []).extend(mine)
        return found

    def objects(self, files: Iterable[str], rendered: Iterable[str]) -> Iterator[str]:
        """Yield the files with objects, except those that are checked in a rendering.

        Args:
            files: The files in the folders.
            rendered: Keys of the kustomizations that were built, and of their bases.
        """
        parts = {os.path.realpath(p) for each in self.kustomizations.values() for p in each.parts}
        taken = (parts - self.built_upon()) | self.built_from(rendered)
        if not taken and not self._templates:
            yield from files
            return
        for file in files:
            real = os.path.realpath(file)
            if real not in taken and self.chart_of(real) is None:
                yield file

    def built_from(self, keys: Iterable[str]) -> set[str]:
        """List the real paths of the files with objects that some kustomizations build on."""
        return _objects_of(self.kustomizations[key] for key in keys)

    def chart_of(self, real: str) -> str | None:
        """Return the real folder of the chart that has a file as a template; None if none has."""
        above = (folder for folder in Path(real).parents if str(folder) in self._templates)
        return next((str(folder.parent) for folder in above), None)


def arrange(found: FoundFiles) -> Layout:
    """Sort the files of some folders."""
    layout = Layout()
    layout.add_charts({folder: boundary_of(root) for folder, root in found.charts.items()})
    for file, root in found.kustomizations.items():
        layout.add_kustomization(file, boundary_of(root), walked=True)
    for root in found.folders:
        _look_above(root, layout)
        layout.unreadable += _missing_submodules(root)
    return layout


def _missing_submodules(root: str) -> Iterator[Unreadable]:
    """Yield a note for each submodule below a folder that is not checked out.

    Source: git-scm.com/docs/gitmodules: `path` is relative to the folder of the file.
    """
    boundary, real = boundary_of(root), Path(os.path.realpath(root))
    text = read_below(Path(boundary, _SUBMODULES), Path(boundary))
    for found in () if isinstance(text, Unreadable) else _PATH.finditer(text):
        place = Path(os.path.realpath(Path(boundary, found[1])))
        if not place.is_relative_to(real) or not place.is_relative_to(boundary):
            continue
        names = [each.name for each in place.iterdir()] if place.is_dir() else []
        if not {*names} - {_GIT}:
            shown = str(Path(root, place.relative_to(real)))
            message = "is a submodule that is not here: fetch it by `git submodule update --init`"
            yield Unreadable(file=shown, because=message, is_note=True)


def _objects_of(made: Iterable[Kustomization]) -> set[str]:
    """List the real paths of the files with objects that some kustomizations build on."""
    return {os.path.realpath(file) for each in made for file in each.objects}


def _look_above(root: str, layout: Layout) -> None:
    """Find out whether a folder belongs to a chart or a kustomization above it."""
    boundary, real = boundary_of(root), Path(os.path.realpath(root))
    for above in real.parents:
        if not above.is_relative_to(boundary):
            return
        if (above / CHART).is_file() and real.is_relative_to(above / _TEMPLATES):
            layout.add_charts({os.path.relpath(above): boundary})
        elif (file := find_kustomization(str(above))) is not None:
            layout.add_kustomization(file, boundary, walked=False)


def boundary_of(folder: str) -> str:
    """Return the real path of the checkout around a folder, or else of the folder."""
    real = Path(os.path.realpath(folder))
    return str(next((each for each in (real, *real.parents) if (each / _GIT).exists()), real))


def _looseness(made: Iterable[Kustomization]) -> frozenset[str]:
    """Return the keys of targets that some kustomizations change in their objects."""
    found = (_LOOSENING.get(str(key).casefold()) for each in made for key in each.stated)
    return frozenset(key for key in found if key)


def _is_library(folder: Path, boundary: str) -> bool:
    """Return whether a chart only has functions for other charts."""
    text = read_below(folder / CHART, Path(boundary))
    content = text if isinstance(text, Unreadable) else parse_kube_map(text, CHART)
    return not isinstance(content, Unreadable) and mapping(content).get("type") == _LIBRARY
