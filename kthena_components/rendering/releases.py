"""Renders the releases that files state, each by itself.

A release of what another one renders gives the same objects, and is rendered once. One whose files
show no engine and no accelerators comes last, and counts only if its objects show one.
"""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from kthena_components.core.objects.engine_detection import may_hold_signs
from kthena_components.core.objects.object import read_object
from kthena_components.core.values.read import group_kind
from kthena_components.core.values.regex import regex
from kthena_components.reading.files import Unreadable, read_text
from kthena_components.reading.kustomization import find_kustomization, patches_of
from kthena_components.reading.layout import Chart, Layout
from kthena_components.reading.releases.find import Text, Texts, find_releases, has_releases
from kthena_components.reading.releases.release import ChartRelease, Outside, Overlay, Statement
from kthena_components.rendering import helm, kustomize
from kthena_components.rendering.chart_sources import may_have_pods
from kthena_components.rendering.isolation import Cage
from kthena_components.rendering.render import Programs
from kthena_components.rendering.result import Origin, Rendered, Rendering
from kthena_components.rendering.servings import (
    Known,
    changes_kind,
    is_hinted,
    is_output_hinted,
    may_serve,
    texts_in,
)
from kthena_components.rendering.templates import asked_versions
from kthena_components.systems import find_kind

_VALUES = "values.yaml"
_VARIABLE = regex(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?:(:?[-=])([^}]*))?\}")
_MOST = 500
"""Maximum number of releases that are rendered."""
_ROUNDS = 3
"""A chart may contain releases of others, which may contain releases again."""
_TOO_DEEP = f"releases are rendered inside of {_ROUNDS - 1} others at most"
_NAME, _LONGEST_NAME = regex(r"[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?"), 53
_NAMESPACE = regex(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_GIT = ".git"


def render_releases(
    texts: Texts, layout: Layout, programs: Programs, cage: Cage, made: Rendered
) -> None:
    """Render the releases that some strings state, and those that the renderings state.

    Args:
        strings: The files that are checked as they are.
        layout: What the folders contain.
        cage: The cage for them.
        made: The renderings so far. Those of the releases are added.
    """
    rendering = _Releases(layout, programs, cage, made)
    waiting = [*texts.stating, *map(_text_of, made.renderings)]
    for _ in range(_ROUNDS):
        known = len(made.renderings)
        rendering.add(_stated_releases(waiting, texts, made))
        waiting = [_text_of(each) for each in made.renderings[known:]]
    rendering.refuse(_stated_releases(waiting, texts, made))
    rendering.tell()


def _stated_releases(
    waiting: list[Text], texts: Texts, made: Rendered
) -> Iterator[tuple[Statement, Mapping[str, Any]]]:
    """Yield the releases that some strings state, whose values may be in all others."""
    return find_releases(Texts(waiting, [*texts.all, *map(_text_of, made.renderings)]))


def _text_of(rendering: Rendering) -> Text:
    path = str(rendering.output)
    return Text(name=rendering.fallback, path=path, boundary=rendering.boundary)


class _Releases:
    """The rendering of releases."""

    def __init__(self, layout: Layout, programs: Programs, cage: Cage, made: Rendered) -> None:
        """Keep what is rendered already, so that each release is rendered once."""
        self._layout, self._programs, self._cage, self._made = layout, programs, cage, made
        self._entries = frozenset(layout.entries())
        self._keys: set[str] = set()
        self._serving: Known = {}
        self._charts: dict[str, bool] = {}
        self._signs: dict[str, bool] = {}
        self._running: dict[str, bool] = {}
        self._rendered = {
            os.path.realpath(Path(each.fallback).parent)
            for each in made.renderings
            if is_output_hinted(each.output)
        }
        """The real paths of what is rendered with signs, of which its files may have parts only."""
        self._problems: dict[str, list[str]] = {}

    def add(self, statements: Iterable[tuple[Statement, Mapping[str, Any]]]) -> None:
        """Render each release, unless the same objects are rendered already."""
        fresh: list[ChartRelease | Overlay] = []
        others: list[ChartRelease | Overlay] = []
        for statement in self._fresh(statements):
            if self._serves(statement):
                fresh.append(statement)
            elif self._may_compose(statement):
                others.append(statement)
        self._render(fresh)
        self._render(others, with_signs=True)

    def refuse(self, statements: Iterable[tuple[Statement, Mapping[str, Any]]]) -> None:
        """Tell of each release that add would render."""
        for statement in self._fresh(statements):
            if self._serves(statement):
                self._fail(statement, _TOO_DEEP)

    def _fresh(
        self, statements: Iterable[tuple[Statement, Mapping[str, Any]]]
    ) -> Iterator[ChartRelease | Overlay]:
        """Yield the releases of objects that are not rendered yet. Tell what is not known here."""
        for statement, body in statements:
            if isinstance(statement, Outside):
                if statement.body and self._is_read(statement):
                    continue
                if _may_matter(statement, body) or self._has_signs(statement.folder):
                    self._fail(statement, statement.why)
            elif statement.key not in self._keys:
                self._keys.add(statement.key)
                if isinstance(statement, ChartRelease):
                    self._made.values.update(statement.values)
                yield statement

    def _is_read(self, statement: Outside) -> bool:
        """Keep a release as an object if rules read its values; return whether they do.

        Patches of a kustomization may change what its chart makes, so it is not read then.
        """
        if not _has_engines(statement.body) or self._is_patched(statement.place.file):
            return False
        text = json.dumps(statement.body)
        if (key := f"{statement.place.name} {text}") not in self._keys:
            self._keys.add(key)
            output = self._cage.new_folder() / "objects"
            output.write_text(text)
            made = self._rendering(statement, output, lambda *_: None)
            self._made.renderings.append(made)
            self._made.values.update(statement.values)
        return True

    def _is_patched(self, file: str) -> bool:
        """Return whether a file is a kustomization, and one that builds on it has patches."""
        own, known = os.path.realpath(Path(file).parent), self._layout.kustomizations
        stacks = [self._layout.built_of(key) for key in known] if own in known else []
        around = {key for stack in stacks if own in stack for key in stack}
        return any(True for key in around for _ in patches_of(known[key]))

    def _render(self, fresh: list[ChartRelease | Overlay], *, with_signs: bool = False) -> None:
        """Render some releases.

        Args:
            with_signs: Whether only those with a sign of an engine in their objects count. Others
                serve no model.
        """
        for late in fresh[_MOST:]:
            self._fail(late, f"at most {_MOST} releases are rendered")
        with ThreadPoolExecutor(2) as pool:
            try:
                results = list(pool.map(self._one, fresh[:_MOST]))
            except BaseException:
                self._cage.ends = 0  # stops the programs, for which the pool would wait
                raise
        for statement, result in zip(fresh, results, strict=False):
            if isinstance(result, str):
                if not with_signs:
                    self._fail(statement, result)
            elif not with_signs or is_output_hinted(result.output):
                self._made.renderings.append(result)

    def tell(self) -> None:
        """Add one note for each file with releases that are not rendered."""
        for file, problems in self._problems.items():
            more = f"; and {len(problems) - 1} more" if len(problems) > 1 else ""
            self._made.fail(file, f"{problems[0]}{more}")

    def _fail(self, statement: Statement, why: str) -> None:
        problems = self._problems.setdefault(statement.place.file, [])
        if (line := f"{statement.place.what}: {why}") not in problems:
            problems.append(line)

    def _serves(self, statement: ChartRelease | Overlay) -> bool:
        """Return whether a release may contain a serving, or further releases."""
        if isinstance(statement, ChartRelease):
            texts = (*statement.values, *statement.options, *texts_in(statement.fields))
            return self._is_hinted(statement.folder) or any(map(is_hinted, texts))
        key = statement.folder
        if statement.is_plain and key in self._entries:
            return False  # it is built by itself
        file = find_kustomization(key)
        if file is not None and key not in self._layout.kustomizations:
            shown = os.path.relpath(file)
            self._layout.add_kustomization(shown, statement.place.boundary, walked=False)
        if key not in self._layout.kustomizations:
            return False  # it cannot be read, which is reported
        every = (self._layout.kustomizations[each] for each in self._layout.built_of(key))
        stated = (*texts_in(statement.fields), *statement.variables.values())
        return any(map(is_hinted, stated)) or may_serve(every, self._serving)

    def _may_compose(self, statement: ChartRelease | Overlay) -> bool:
        """Return whether a release may join words of an engine in pods from parts."""
        if isinstance(statement, Overlay):
            fields = texts_in(statement.fields)
            return bool(statement.variables) or any(map(changes_kind, fields))
        folder = statement.folder
        if folder not in self._running:
            self._running[folder] = may_have_pods(folder)
        return self._running[folder]

    def _has_signs(self, folder: str) -> bool:
        """Return whether a file of a folder has a sign of an engine."""
        if folder and folder not in self._signs:
            self._signs[folder] = folder in self._rendered or _any_text(folder, is_hinted)
        return folder != "" and self._signs[folder]

    def _is_hinted(self, folder: str) -> bool:
        """Return whether a file of a chart or a kustomization has a sign, or states releases."""
        if folder and folder not in self._charts:
            self._charts[folder] = self._has_signs(folder) or _any_text(folder, has_releases)
        return folder != "" and self._charts[folder]

    def _one(self, statement: ChartRelease | Overlay) -> Rendering | str:
        """Render one release, or return why it is not rendered."""
        if isinstance(statement, Overlay):
            return self._overlay(statement)
        if why := "" if self._programs.helm else self._programs.missing_for(helm.PROGRAMS):
            return why
        folder = self._cage.new_folder()
        chart = Chart(folder=statement.folder, boundary=statement.place.boundary)
        copied = helm.Copied(chart, folder / "chart")
        try:
            copied.make()
            if not statement.keeps_defaults:
                (copied.folder / _VALUES).write_text("{}\n")
            return self._chart(statement, copied, folder)
        except helm.CopyError as error:
            return str(error)
        except ValueError:  # a null byte, or half of a character
            return "its values have characters that no file and no option may have"
        finally:
            shutil.rmtree(copied.folder, ignore_errors=True)

    def _chart(self, stated: ChartRelease, copied: helm.Copied, folder: Path) -> Rendering | str:
        """Render the chart of a release with its values; return why it could not be rendered."""
        options = [*stated.options]
        if _NAMESPACE.fullmatch(stated.namespace):
            options.append(f"--namespace={stated.namespace}")
        for number, text in enumerate(stated.values):
            file = folder / f"values-{number}.yaml"
            file.write_text(text)
            options.append(f"--values={file}")
        output = folder / "objects"
        is_name = len(stated.name) <= _LONGEST_NAME and _NAME.fullmatch(stated.name)
        why = copied.render_with(
            str(self._programs.helm), options, self._cage, output, stated.name if is_name else ""
        )
        asked = asked_versions(copied.folder)
        if why or not stated.fields:
            return why.replace(f"{folder}/", "") or self._rendering(
                stated, output, lambda _, comment: copied.source_of(comment), asked
            )
        changed = folder / "changed"
        if why := self._missing() or kustomize.change(
            str(self._programs.kustomize), output, stated.fields, self._cage, changed
        ):
            return why
        return self._rendering(stated, changed, lambda *_: None, asked)

    def _overlay(self, stated: Overlay) -> Rendering | str:
        """Render a kustomization with a release's changes, or return why it is not."""
        output = self._cage.new_folder() / "objects"
        if why := (
            self._missing()
            or self._layout.problem(stated.folder)
            or kustomize.build(
                str(self._programs.kustomize), stated.folder, self._cage, output, stated.fields
            )
        ):
            return why
        if stated.variables or stated.closed:
            text = _replaced(output.read_text(errors="replace"), stated)
            output.write_text(text, errors="replace")
        return self._rendering(stated, output, lambda body, _: kustomize.origin_of(body, output))

    def _missing(self) -> str:
        known = self._programs.kustomize
        return "" if known else self._programs.missing_for(kustomize.PROGRAMS)

    def _rendering(
        self, stated: Statement, output: Path, origin: Origin, asked: frozenset[str] = frozenset()
    ) -> Rendering:
        """Describe a rendering, with the release's file as the place of findings."""
        return Rendering(
            name=stated.place.name,
            output=output,
            origin=origin,
            boundary=stated.place.boundary,
            fallback=stated.place.file,
            asked=asked,
            released=os.path.realpath(stated.folder) if isinstance(stated, ChartRelease) else "",
        )


def _replaced(text: str, stated: Overlay) -> str:
    """Replace the variables with a stated value, or with the default beside their name.

    Any other one may be set elsewhere. Source: fluxcd/pkg envsubst, with the operators of bash.
    """

    def value(found: re.Match[str]) -> str:
        name, operator, default = found.groups()
        known = stated.variables.get(name)
        if operator and stated.closed and (known is None or (known == "" and ":" in operator)):
            return str(default)
        return found[0] if known is None else known

    return _VARIABLE.sub(value, text)


def _may_matter(statement: Outside, body: Mapping[str, Any]) -> bool:
    """Return whether something that is not rendered may serve a model, and no rule reads it."""
    texts: list[str] = [*texts_in(body.get("spec"))]
    if not body:
        text = read_text(statement.place.file, named=False)
        texts = [] if isinstance(text, Unreadable) else [text]
    return not _has_engines(body) and any(is_hinted(text) or may_hold_signs(text) for text in texts)


def _has_engines(body: Mapping[str, Any]) -> bool:
    """Return whether rules read engines in an object."""
    kind = find_kind(group_kind(body))
    facts = kind.facts(kind.view(read_object(body))) if kind is not None and kind.facts else None
    return facts is not None and bool(facts.engines)


def _any_text(folder: str, test: Callable[[str], bool]) -> bool:
    """Return whether a file of a folder passes a test, or cannot be read and may be an object."""
    for above, folders, files in os.walk(folder):
        folders[:] = [each for each in folders if each != _GIT]
        for name in files:
            text = read_text(str(Path(above, name)), named=False)
            if text.is_object if isinstance(text, Unreadable) else test(text):
                return True
    return False
