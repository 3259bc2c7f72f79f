"""Finds what the files of charts state about servings and no rendering of theirs contains.

Templates state objects by their kinds. Definitions, values and other files of a chart hold objects,
too, which a template may include. Whether it does is seen by objects in the renderings that no
template states itself.
"""

import os
import tarfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import field
from pathlib import Path

from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping, sequence
from kthena_components.reading.files import MOST_BYTES, Unreadable, read_text
from kthena_components.reading.folders import CHART, PACKED, SUBCHARTS, SUFFIXES
from kthena_components.reading.layout import Layout
from kthena_components.reading.settings import parse_kube_map
from kthena_components.rendering.servings import is_hinted
from kthena_components.rendering.templates import Template, kinds_of, read_template, with_pods

_PARTIAL = "_"
"""Helm renders no template whose name begins with this."""
_NOTES = "NOTES.txt"
"""Source: helm pkg/action/action.go, notesFileSuffix: it is not an object."""
_VALUES = ("values.yaml", "values.yml")
_MOST = 20_000
"""Maximum number of files in a chart, packed or not."""
_OBJECT, _CHART = "object", "chart"


@dataclass(slots=True)
class _Group:
    """A chart with those inside it, which are rendered together."""

    templates: dict[str, tuple[str, Template]] = field(default_factory=dict)
    """By the real path: the path to show, and what is stated."""
    beside: dict[str, tuple[str, Counter[str]]] = field(default_factory=dict)
    """The other files with objects."""
    unreadable: dict[str, tuple[str, str]] = field(default_factory=dict)
    packed: list[str] = field(default_factory=list)
    """The packed charts with signs of which nothing is rendered."""
    is_hinted: bool = False
    reads_files: bool = False


@dataclass(slots=True)
class ChartSources:
    """The files of all charts."""

    layout: Layout
    seen: Mapping[str, Counter[str]]
    """How many objects of each kind come from a file, by its real path."""
    lines: Mapping[str, AbstractSet[str]]
    """The lines of what is rendered from a template, by its real path."""
    failed: AbstractSet[str]
    """Real paths of the charts that are not rendered."""

    def unchecked(self) -> Iterator[tuple[str, str]]:
        """Yield the files with an object that no rendering contains, and why."""
        for folder in [*(chart.folder for chart in self.layout.charts), *self._libraries()]:
            group = self._read(folder)
            yield from ((file, _no_values([_CHART])) for file in group.packed)
            if group.is_hinted:
                yield from self._of_templates(group)
                yield from self._of_sources(group)

    def _libraries(self) -> list[str]:
        return list(self.layout.libraries.values())

    def _read(self, folder: str) -> _Group:
        """Read all files of a chart, up to a number, in the order of their names."""
        group, count = _Group(), 0
        for above, folders, names in os.walk(folder):
            folders[:] = sorted(each for each in folders if each != ".git")
            for name in sorted(names):
                count += 1
                if count > _MOST:
                    return group  # the copy of the chart is refused for its size, which is reported
                self._add(str(Path(above, name)), group)
        return group

    def _add(self, file: str, group: _Group) -> None:
        """Add a file to its chart: a template, values, or what cannot be read."""
        real = os.path.realpath(file)
        text = read_text(real, named=False)
        chart = self.layout.chart_of(real)
        if chart is not None and self._is_reported(chart):
            return
        if isinstance(text, Unreadable):
            if file.endswith(PACKED) and Path(file).parent.name == SUBCHARTS:
                self._add_packed(file, group)
            elif chart is not None:
                group.is_hinted = True
                group.unreadable[real] = (file, text.because)
            return
        group.is_hinted = group.is_hinted or is_hinted(text)
        if chart is not None:
            if not file.endswith(_NOTES):
                found = read_template(text)
                group.templates[real] = (file, found)
                group.reads_files |= found.reads_files
                group.is_hinted |= found.decodes and (found.is_open or _states_pods(found.own))
        elif Path(file).name in _VALUES or not file.lower().endswith(SUFFIXES):
            kinds = Counter(kind for kind in kinds_of(text) if kind in with_pods())
            if kinds and is_hinted(text):
                group.beside[real] = (file, kinds)

    def _add_packed(self, file: str, group: _Group) -> None:
        """Read a packed chart, which conditions may leave out of all renderings."""
        names, is_hinted_inside = set[str](), False
        try:
            for path, text in _texts_of_packed(file):
                names.add(path.partition("/")[0])
                is_hinted_inside = is_hinted_inside or is_hinted(text)
        except _PackedError:
            is_hinted_inside = True
        above = Path(os.path.realpath(Path(file).parent))
        names |= {alias for name in names for alias in _aliases(above.parent, name)}
        folders = tuple(f"{above / name}{os.sep}" for name in names)
        if is_hinted_inside and not any(real.startswith(folders) for real in self.seen):
            group.packed.append(file)

    def _is_reported(self, chart: str) -> bool:
        above = map(str, (Path(chart), *Path(chart).parents))
        return not self.failed.isdisjoint(above)

    def _seen(self, real: str) -> Counter[str]:
        return self.seen.get(real, Counter())

    def _of_templates(self, group: _Group) -> Iterator[tuple[str, str]]:
        """List templates that no rendering contains in full, each with the reason."""
        for real, (file, because) in group.unreadable.items():
            if not self._seen(real):
                yield file, f"it {because}"
        for real, (file, template) in group.templates.items():
            lost = self._lost(real, template)
            chart = self.layout.chart_of(real) or ""
            if not lost:
                continue
            if chart in self.layout.libraries:
                shown = self.layout.libraries[chart]
                yield file, f"{shown} is a library chart, which Helm does not render"
            elif Path(real).name.startswith(_PARTIAL):
                yield file, f"Helm renders no template whose name begins with {_PARTIAL}"
            else:
                yield file, _no_values(lost)

    def _lost(self, real: str, template: Template) -> list[str]:
        """List the kinds of objects in a template that no rendering contains."""
        seen = self._seen(real)
        lost = [name for name in template.own - seen if name in with_pods()]
        lines = self.lines.get(real, frozenset())
        for name, own in template.lines if lines else ():
            if name in with_pods() and name not in lost and own and own.isdisjoint(lines):
                lost.append(name)
        may_serve = template.has_signs or template.decodes or template.reads_files
        if not seen and may_serve and (template.own[""] or template.is_open):
            lost.append(_OBJECT)
        return lost

    def _of_sources(self, group: _Group) -> Iterator[tuple[str, str]]:
        """Yield the files whose objects other templates include, if fewer are seen than stated."""
        stated: dict[str, tuple[str, Counter[str]]] = {
            real: (file, +template.defined) for real, (file, template) in group.templates.items()
        }
        stated |= {
            real: (file, kinds)
            for real, (file, kinds) in group.beside.items()
            if group.reads_files or Path(file).name in _VALUES
        }
        needed = sum((kinds for _, kinds in stated.values()), Counter[str]())
        more = Counter[str]()
        for real, (_, template) in group.templates.items():
            more += self._seen(real) - template.own
        for real, (file, kinds) in stated.items():
            if self.layout.chart_of(real) in self.layout.libraries:
                continue  # it is included by another chart
            lost = [name for name in kinds if name in with_pods() and more[name] < needed[name]]
            if lost:
                yield file, _no_values(lost)


def _aliases(chart: Path, name: str) -> Iterator[str]:
    """Yield the names that a chart gives to one inside it."""
    text = read_text(str(chart / CHART), named=False)
    content = text if isinstance(text, Unreadable) else parse_kube_map(text, CHART)
    if not isinstance(content, Unreadable):
        for each in map(mapping, sequence(content.get("dependencies"))):
            if each.get("name") == name and isinstance(each.get("alias"), str):
                yield each["alias"]


def _states_pods(kinds: Counter[str]) -> bool:
    return any(name in with_pods() or not name for name in kinds)


def _no_values(lost: list[str]) -> str:
    return (
        f"no values of the chart render the {' and the '.join(sorted(lost))} in it: add a file "
        "ci/NAME-values.yaml to the chart that does, or remove it"
    )


def may_have_pods(folder: str) -> bool:
    """Return whether a file of a chart may state a kind with pods."""
    for above, _, names in os.walk(folder):
        for name in names:
            text = read_text(str(Path(above, name)), named=False)
            if isinstance(text, Unreadable):
                if name.endswith(PACKED):
                    return True
            elif _states_pods(Counter(kinds_of(text))) or read_template(text).decodes:
                return True
    return False


class _PackedError(ValueError):
    """A packed chart cannot be read, or is too large."""


def _texts_of_packed(file: str) -> Iterator[tuple[str, str]]:
    """Yield the paths of the files in a packed chart, each with its text, without unpacking it.

    Source: helm v3.19.0 pkg/chart/loader/archive.go: all files are in one folder, named as the
    chart.
    """
    left, count = MOST_BYTES, 0
    try:
        with tarfile.open(file, "r|gz") as packed:
            for member in packed:
                count += 1
                left -= member.size
                if count > _MOST or left < 0:
                    raise _PackedError
                content = packed.extractfile(member) if member.isfile() else None
                if content is not None:
                    yield member.name, content.read().decode(errors="replace")
    except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
        raise _PackedError("it cannot be read") from error
