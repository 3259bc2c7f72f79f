"""Finds objects in folders that are checked neither as they are nor in a rendering.

A template, a patch and the base of an overlay are left to the renderings. If no rendering contains
what is in them, nothing would be checked, without a word. Only files count that may have an object
that serves a model: a repository has many patches and optional templates of other things.
"""

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from kthena_components.core.objects.engine_detection import may_hold_signs
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import group_kind, mapping, sequence
from kthena_components.core.values.regex import regex
from kthena_components.reading.documents import read_documents
from kthena_components.reading.files import Unreadable, read_text
from kthena_components.reading.layout import Layout
from kthena_components.rendering.chart_sources import ChartSources
from kthena_components.rendering.result import Rendered, Rendering
from kthena_components.rendering.servings import KUBERNETES_GROUPS, holds_serving
from kthena_components.rendering.templates import has_pods, kinds_of
from kthena_components.systems import find_kind

_SOURCE = "# Source: "
_SELECTING = frozenset({"DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"})
"""Kinds that the API server rejects without a selector."""


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
    yield from (_note(file, why) for file, why in reach.of_charts())
    known = left.keys() | {os.path.realpath(file) for file in kept if "\0" not in file}
    for file, because in reach.of_others(known):
        yield _note(file, because)


_VALUES_NAME = regex(r"(?:.*[-_.])?values(?:[-_.].*)?\.ya?ml")
_TOP_KEY = regex(r"^([A-Za-z][\w-]*):", re.MULTILINE)
_CHARTS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    "vllm-stack": (frozenset({"servingEngineSpec"}), frozenset()),
    "llm-d-modelservice": (frozenset({"modelArtifacts"}), frozenset({"decode", "prefill"})),
}
"""Charts with the keys that their values have, and others of which they have one.

Source: vllm-project/production-stack helm/values.yaml; llm-d-incubation/llm-d-modelservice
charts/llm-d-modelservice/values.yaml.
"""


def values_alone(name: str, text: str) -> Unreadable | None:
    """Return a note for a values file that serves a model and lies without its chart.

    Args:
        name: Its name in messages.
        text: Its text, which has no object.
    """
    keys = frozenset(_TOP_KEY.findall(text))
    found = (c for c, (all_of, any_of) in _CHARTS.items() if all_of <= keys)
    chart = next((c for c in found if not _CHARTS[c][1] or _CHARTS[c][1] & keys), "")
    if not chart and not (keys and _VALUES_NAME.fullmatch(Path(name).name)):
        return None
    if not chart and not may_hold_signs(text):
        return None
    what = f"of the chart {chart}" if chart else "of a Helm chart"
    return _note(
        name,
        f"it has values {what} and is not in that chart's folder: check the chart's folder with "
        "this file in it, or the output of `helm template` with it",
    )


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
    _names: set[tuple[str, str]] = field(default_factory=set)
    """The kinds and names of the objects that Kustomize built."""
    _lines: dict[str, set[str]] = field(default_factory=dict)
    """The lines that are rendered from each template."""
    _is_counted: bool = False

    def __post_init__(self) -> None:
        """Look up all paths once."""
        self._built = self.layout.built_from(self.rendered.covered)
        for key, made in self.layout.kustomizations.items():
            for real in map(os.path.realpath, made.parts):
                self._users.setdefault(real, []).append(key)

    def of_file(self, real: str) -> str:
        """Explain why a file in the folders is not checked; empty if it is, or has no serving."""
        if self.layout.chart_of(real) is not None:
            return ""  # it is reported with its chart
        reason = self._of_object(real) if real in self._built else self._of_part(real)
        return reason if reason and holds_serving(real) else ""

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

    def of_charts(self) -> Iterator[tuple[str, str]]:
        """Yield the files of charts that no rendering contains, and why."""
        sources = ChartSources(
            self.layout, self._counted(), self._lines, self.rendered.charts_failed
        )
        yield from sources.unchecked()

    def _of_object(self, real: str) -> str:
        lost = Counter(kind for kind, _ in _objects_in(real)) - self._seen(real)
        parts = " and the ".join(sorted(lost))
        return f"no kustomization that builds on it keeps the {parts} in it" if lost else ""

    def _of_part(self, real: str) -> str:
        users = {key: self.layout.kustomizations[key] for key in self._users.get(real, ())}
        built = [key for key in users if key in self.rendered.covered]
        if built:
            return self._of_built_part(real, built)
        other = [each.file for key, each in users.items() if key not in self.rendered.idle]
        return f"it is a patch or a part of {other[0]}, which is not rendered" if other else ""

    def _of_built_part(self, real: str, built: Iterable[str]) -> str:
        """Explain why a part with a serving is not an object of what was built."""
        for key in built:
            made = self.layout.kustomizations[key]
            if real in map(os.path.realpath, made.texts):
                return f"it is a string of a ConfigMap or a Secret of {made.file}"
            if real not in map(os.path.realpath, made.patches):
                return f"{made.file} names it, and builds no object from it"
            if any(self._is_whole(kind, body) for kind, body in _objects_in(real)):
                return f"it is a patch of {made.file}, and an object by itself"
        return ""

    def _is_whole(self, kind: str, body: Mapping[str, Any]) -> bool:
        """Return whether an object has all that it needs without another one.

        A patch of a custom resource may have all fields. It is one if an object of its name is
        built.
        """
        if not any(map(_has_image, _containers(body))):
            return False
        if group_kind(body)[0] in KUBERNETES_GROUPS:
            return kind not in _SELECTING or "selector" in mapping(body.get("spec"))
        self._counted()
        name = str(mapping(body.get("metadata")).get("name"))
        return not any(kind == each and name in other for each, other in self._names)

    def _seen(self, real: str) -> Counter[str]:
        return self._counted().get(real, Counter())

    def _counted(self) -> Mapping[str, Counter[str]]:
        if not self._is_counted:
            self._is_counted = True
            for rendering in self.rendered.renderings:
                for file, found in _count(rendering, self._names, self._lines).items():
                    self._counts[file] = self._counts.get(file, Counter()) | found
        return self._counts


def _count(
    rendering: Rendering, names: set[tuple[str, str]], lines: dict[str, set[str]]
) -> dict[str, Counter[str]]:
    """Count the objects of a rendering by the real path of their file, and by kind."""
    found: dict[str, Counter[str]] = {}
    text = read_text(str(rendering.output), named=False)
    if isinstance(text, Unreadable):
        return found
    if _SOURCE not in text:
        for kind, body in _kinds_in(text):
            names.add((kind, str(mapping(body.get("metadata")).get("name"))))
            real = rendering.origin(body, "")
            if real is not None:
                found.setdefault(real, Counter())[kind] += 1
        return found
    for part in text.split(f"\n{_SOURCE}"):
        comment, _, rest = part.removeprefix("---\n").partition("\n")
        real = rendering.origin({}, _SOURCE + comment.removeprefix(_SOURCE))
        if real is not None:
            found.setdefault(real, Counter()).update(kinds_of(rest))
            lines.setdefault(real, set()).update(map(str.strip, rest.split("\n")))
    return found


def _objects_in(file: str) -> list[tuple[str, Any]]:
    """Return what `_kinds_in` reads from a file; nothing if it cannot be read."""
    text = read_text(file, named=False)
    return [] if isinstance(text, Unreadable) else list(_kinds_in(text))


def _containers(value: object) -> Iterator[Mapping[str, Any]]:
    """Yield the containers of all pod templates in an object."""
    waiting, seen = [value], set[int]()
    for part in waiting:
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, Mapping):
            yield from map(mapping, sequence(part.get("containers")))
            waiting += part.values()
        else:
            waiting += sequence(part)


def _has_image(container: Mapping[str, Any]) -> bool:
    return isinstance(container.get("image"), str)


def _kinds_in(text: str) -> Iterator[tuple[str, Any]]:
    """Yield the objects whose kinds have pods, and their kinds."""
    for document in read_documents(text, "", _is_wanted):
        waiting = [] if isinstance(document, Unreadable) else [document.body]
        for body in waiting:
            waiting += sequence(mapping(body).get("items"))
            kind = find_kind(group_kind(mapping(body)))
            if kind is not None and has_pods(kind):
                yield group_kind(body)[1], body


def _is_wanted(version: object, name: object, _text: str) -> bool:
    kind = find_kind(group_kind({"apiVersion": version, "kind": name}))
    return str(name).endswith("List") or (kind is not None and has_pods(kind))
