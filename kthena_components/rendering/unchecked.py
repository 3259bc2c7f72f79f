"""Finds objects in folders that are checked neither as they are nor in a rendering.

A template, a patch and the base of an overlay are left to the renderings. If no rendering contains
what is in them, nothing would be checked, without a word. Only files count that may have an object
that serves a model: a repository has many patches and optional templates of other things.
"""

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Any

from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import group_kind, mapping, sequence
from kthena_components.core.values.regex import regex
from kthena_components.reading.documents import read_documents
from kthena_components.reading.files import Unreadable, read_text
from kthena_components.reading.layout import Layout
from kthena_components.rendering.result import Rendered, Rendering
from kthena_components.rendering.servings import holds_serving, is_hinted
from kthena_components.systems import all_systems, find_kind
from kthena_components.systems.system import Kind

_SOURCE = "# Source: "
_VALUE = r"[ \t]*:[ \t]*[\"']?([A-Za-z]+)?"
_KIND = regex(rf"^([\"']?)kind\1{_VALUE}", re.MULTILINE)
"""The kind of an object in a template; a kind that the template computes has no name here."""
_INNER_KIND = regex(rf"(?<![\w.])([\"']?)kind\1{_VALUE}")
"""The same if no line begins with one, as in JSON and in indented YAML."""
_DEFINE = regex(r"\{\{-?\s*define\b")
_PARTIAL = "_"
"""Helm renders no template whose name begins with this."""


def unchecked(
    layout: Layout, rendered: Rendered, walked: Iterable[str], kept: Collection[str]
) -> Iterator[Unreadable]:
    """Yield a note for each file with an object that nothing checks.

    Args:
        layout: What the folders contain.
        rendered: What was rendered of them.
        walked: The files in the folders.
        kept: Those that are checked as they are.
    """
    left = {os.path.realpath(file): file for file in walked if file not in kept}
    reach = _Reach(layout, rendered)
    for real, file in left.items():
        if because := reach.of_file(real):
            yield _note(file, because)
    known = left.keys() | {os.path.realpath(file) for file in kept if "\0" not in file}
    for file, because in reach.of_others(known):
        yield _note(file, because)


def _note(file: str, because: str) -> Unreadable:
    return Unreadable(file=file, because=f"is not checked: {because}", is_note=True)


@dataclass(slots=True)
class _Reach:
    """What the renderings contain."""

    layout: Layout
    rendered: Rendered
    _built: set[str] = field(init=False)
    """Real paths of the files with objects that were built."""
    _users: dict[str, list[str]] = field(default_factory=dict)
    """The kustomizations that name a file as a part, by its real path."""
    _counts: dict[str, Counter[str]] = field(default_factory=dict)
    """How many objects of each kind come from a file, in the rendering with most of them."""
    _is_counted: bool = False

    def __post_init__(self) -> None:
        """Look up all paths once."""
        self._built = self.layout.built_from(self.rendered.covered)
        for key, made in self.layout.kustomizations.items():
            for real in map(os.path.realpath, made.parts):
                self._users.setdefault(real, []).append(key)

    def of_file(self, real: str) -> str:
        """Explain why a file in the folders is not checked; empty if it is, or has no serving."""
        chart = self.layout.chart_of(real)
        if chart is not None:
            return self._of_template(real, chart)
        told = self._of_object(real) if real in self._built else self._of_part(real)
        return told if told and holds_serving(real) else ""

    def of_others(self, known: Collection[str]) -> Iterator[tuple[str, str]]:
        """Yield the other files that a kustomization is made of and that is not built.

        They are outside the folders, or have names of another form.
        """
        for key in self.layout.walked:
            if key in self.rendered.covered | self.rendered.idle:
                continue
            made = self.layout.kustomizations[key]
            for file in dict.fromkeys((*made.objects, *made.parts)):
                if os.path.realpath(file) not in known and holds_serving(file):
                    yield file, f"it is a part of {made.file}, which is not rendered"

    def _of_template(self, real: str, chart: str) -> str:
        above = map(str, (Path(chart), *Path(chart).parents))
        if not self.rendered.charts_failed.isdisjoint(above):
            return ""  # the chart has a note
        text = read_text(real, named=False)
        if isinstance(text, Unreadable) or not is_hinted(text) or _DEFINE.search(text):
            return ""
        if chart in self.layout.libraries:
            return f"{self.layout.libraries[chart]} is a library chart, which Helm does not render"
        stated = Counter(_kinds_of(text)) - self._seen(real)
        lost = [name for name in stated if name in _with_pods()]
        if stated[""] and not self._seen(real):
            lost.append("object")
        if not lost:
            return ""
        if Path(real).name.startswith(_PARTIAL):
            return f"Helm renders no template whose name begins with {_PARTIAL}"
        return (
            f"no values of the chart render the {' and the '.join(sorted(lost))} in it: add a file "
            "ci/NAME-values.yaml to the chart that does, or remove it"
        )

    def _of_object(self, real: str) -> str:
        text = read_text(real, named=False)
        documents = [] if isinstance(text, Unreadable) else _kinds_in(text)
        lost = Counter(kind for kind, _ in documents) - self._seen(real)
        told = " and the ".join(sorted(lost))
        return f"no kustomization that builds on it keeps the {told} in it" if lost else ""

    def _of_part(self, real: str) -> str:
        users = {key: self.layout.kustomizations[key] for key in self._users.get(real, ())}
        built = [key for key in users if key in self.rendered.covered]
        texts = [users[key].file for key in built if self._is_text(real, key)]
        if built:
            return f"it is a text of a ConfigMap or a Secret of {texts[0]}" if texts else ""
        other = [each.file for key, each in users.items() if key not in self.rendered.idle]
        return f"it is a patch or a part of {other[0]}, which is not rendered" if other else ""

    def _is_text(self, real: str, key: str) -> bool:
        return real in map(os.path.realpath, self.layout.kustomizations[key].texts)

    def _seen(self, real: str) -> Counter[str]:
        if not self._is_counted:
            self._is_counted = True
            for rendering in self.rendered.renderings:
                for file, found in _count(rendering).items():
                    self._counts[file] = self._counts.get(file, Counter()) | found
        return self._counts.get(real, Counter())


def _count(rendering: Rendering) -> dict[str, Counter[str]]:
    """Count the objects of a rendering by the real path of their file, and by kind."""
    found: dict[str, Counter[str]] = {}
    text = read_text(str(rendering.output), named=False)
    if isinstance(text, Unreadable):
        return found
    if _SOURCE not in text:
        for kind, body in _kinds_in(text):
            real = rendering.origin(body, "")
            if real is not None:
                found.setdefault(real, Counter())[kind] += 1
        return found
    for part in text.split(f"\n{_SOURCE}"):
        comment, _, rest = part.removeprefix("---\n").partition("\n")
        real = rendering.origin({}, _SOURCE + comment.removeprefix(_SOURCE))
        if real is not None:
            found.setdefault(real, Counter()).update(_kinds_of(rest))
    return found


def _kinds_of(template: str) -> list[str]:
    """List the kinds of the objects in a template or in its output, without reading it as YAML."""
    found = _KIND.findall(template) or _INNER_KIND.findall(template)
    return [kind for _, kind in found]


def _kinds_in(text: str) -> Iterator[tuple[str, Any]]:
    """Yield the objects whose kinds have pods, and their kinds."""
    for document in read_documents(text, "", _is_wanted):
        waiting = [] if isinstance(document, Unreadable) else [document.body]
        for body in waiting:
            waiting += sequence(mapping(body).get("items"))
            kind = find_kind(group_kind(mapping(body)))
            if kind is not None and _has_pods(kind):
                yield group_kind(body)[1], body


def _is_wanted(version: object, name: object, _text: str) -> bool:
    kind = find_kind(group_kind({"apiVersion": version, "kind": name}))
    return str(name).endswith("List") or (kind is not None and _has_pods(kind))


def _has_pods(kind: Kind[Any]) -> bool:
    return bool(kind.is_checked and (kind.facts or kind.pods or kind.demand))


@cache
def _with_pods() -> frozenset[str]:
    """Return the names of the kinds with pods: a template need not state the group of its kind."""
    every = (kind for system in all_systems() for kind in system.kinds)
    return frozenset(kind.name for kind in every if _has_pods(kind))
