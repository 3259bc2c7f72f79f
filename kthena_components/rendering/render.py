"""Renders each chart and each kustomization of some folders by itself."""

import os
import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from pathlib import Path

from kthena_components.core.values.dataclass import dataclass
from kthena_components.reading.folders import CHART
from kthena_components.reading.layout import Chart, Layout
from kthena_components.rendering import helm, kustomize
from kthena_components.rendering.isolation import Cage, checkouts_around, find_program, why_missing
from kthena_components.rendering.result import Origin, Rendered, Rendering
from kthena_components.rendering.servings import Known, is_output_hinted, may_serve
from kthena_components.rendering.templates import (
    asked_versions,
    circumstances,
    find_objects,
    unknown,
)

_AT_ONCE = 4
_ASKED_NOT_TO = "--no-render was given"


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """Paths of the programs. None: not available, for the reason `missing`."""

    kustomize: str | None
    helm: str | None
    missing: str = ""
    untrusted: tuple[str, ...] = ()
    """Folders that must not decide which program runs."""

    def missing_for(self, names: Iterable[str]) -> str:
        """Explain why a program is not available."""
        return self.missing or why_missing(names, self.untrusted)


NOTHING = Programs(kustomize=None, helm=None, missing=_ASKED_NOT_TO)


def find_programs(folders: Iterable[str]) -> Programs:
    """Find the programs on PATH, outside the checked folders and the checkouts around them."""
    strangers = tuple(checkouts_around(folders))
    return Programs(
        kustomize=find_program(kustomize.PROGRAMS, strangers),
        helm=find_program(helm.PROGRAMS, strangers),
        untrusted=strangers,
    )


def render(layout: Layout, programs: Programs, cage: Cage) -> Rendered:
    """Render all charts and kustomizations. There is a note for each one that fails."""
    made = Rendered()
    with ThreadPoolExecutor(min(_AT_ONCE, os.cpu_count() or 1)) as pool:
        try:
            charts = pool.map(lambda chart: _chart(chart, programs, cage), layout.charts)
            _Kustomizations(layout, programs, cage, made).build(pool)
            for rendered in charts:
                made.renderings += rendered.renderings
                made.notes += rendered.notes
                made.charts_failed |= rendered.charts_failed
                made.failed += rendered.failed
        except BaseException:
            cage.ends = 0  # stops the programs, for which the pool would wait
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return made


@dataclass(slots=True)
class _Kustomizations:
    layout: Layout
    programs: Programs
    cage: Cage
    made: Rendered
    _tried: set[str] = field(default_factory=set)
    _serving: Known = field(default_factory=dict)
    """Whether a file may contain a serving, for each file that was read."""

    def build(self, pool: ThreadPoolExecutor) -> None:
        """Build the kustomizations that are not bases, and the bases of those that fail."""
        known = self.layout.entries()
        reached = {each for key in known for each in self.layout.built_of(key)}
        alone = [key for key in self.layout.walked if key not in reached]
        entries, alone = (list(filter(self._may_serve, each)) for each in (known, alone))
        tried = {each for key in (*entries, *alone) for each in self.layout.built_of(key)}
        self.made.idle.update(reached.union(self.layout.walked) - tried)
        if self.programs.kustomize is None:
            for key in (*entries, *alone):
                self.made.fail(self._name(key), self.programs.missing_for(kustomize.PROGRAMS))
            return
        waiting = entries
        while waiting:
            self._tried.update(waiting)
            failed = list(self._build(waiting, pool))
            below = (each for key in failed for each in sorted(self.layout.without(key)))
            fresh = (each for each in below if each not in self.made.covered | self._tried)
            waiting = list(dict.fromkeys(fresh))
        for key in alone:  # a component, or some that build on one another in a circle
            self.made.fail(self._name(key), "no kustomization that can be built builds on it")

    def _build(self, keys: list[str], pool: ThreadPoolExecutor) -> Iterator[str]:
        """Build some kustomizations. Yields those that failed."""
        outputs = [self.cage.folder / f"kustomize-{len(self._tried)}-{i}" for i in range(len(keys))]
        for key, output, why in zip(keys, outputs, pool.map(self._one, keys, outputs), strict=True):
            if why:
                self.made.fail(self._name(key), why, self.layout.kustomizations[key].boundary)
                yield key
                continue
            self.made.covered |= self.layout.built_of(key)
            self.made.renderings.append(
                Rendering(
                    name=self._name(key),
                    output=output,
                    origin=_by_annotation(output),
                    boundary=self.layout.kustomizations[key].boundary,
                    fallback=self.layout.kustomizations[key].file,
                )
            )

    def _one(self, key: str, output: Path) -> str:
        problem, program = self.layout.problem(key), self.programs.kustomize
        return problem or kustomize.build(str(program), key, self.cage, output)

    def _may_serve(self, key: str) -> bool:
        built_of = (self.layout.kustomizations[each] for each in self.layout.built_of(key))
        return may_serve(built_of, self._serving)

    def _name(self, key: str) -> str:
        made = self.layout.kustomizations[key]
        return made.file if made.folder == "." else made.folder


def _by_annotation(output: Path) -> Origin:
    return lambda body, _: kustomize.origin_of(body, output)


def _chart(chart: Chart, programs: Programs, cage: Cage) -> Rendered:
    """Render a chart with its default values, and with each of its other values files."""
    made, own = Rendered(), CHART if chart.folder == "." else chart.folder
    missing = "" if programs.helm else programs.missing_for(helm.PROGRAMS)
    if why := missing or cage.exhausted():
        made.fail(own, why)
        made.charts_failed.add(os.path.realpath(chart.folder))
        return made
    folder = cage.new_folder()
    copied = helm.Copied(chart, folder / "chart")
    try:
        copied.make()
        _with_all_values(copied, own, str(programs.helm), cage, made)
    except helm.CopyError as error:
        made.fail(own, str(error))
        made.charts_failed.add(os.path.realpath(chart.folder))
    finally:
        shutil.rmtree(copied.folder, ignore_errors=True)
    return made


def _with_all_values(
    copied: helm.Copied, own: str, program: str, cage: Cage, made: Rendered
) -> None:
    """Render a chart with its own values, and with each values file beside it."""
    chart, folder = copied.chart, copied.folder.parent
    if copied.left_out:
        made.leave_out(own, copied.left_out)
    done: list[tuple[str, str, Path]] = []
    for number, values in enumerate(("", *chart.values)):
        inside = os.path.relpath(values, chart.folder) if values else ""
        name = f"{own} with {inside}" if values else own
        output = folder / str(number)
        if why := copied.render(program, values, cage, output):
            made.fail(name, why, str(copied.folder))
            if not values:
                made.charts_failed.add(os.path.realpath(chart.folder))
            continue
        done.append((name, values, output))
        made.renderings.append(_of_chart(copied, name, values, output))
    if any(is_output_hinted(output) for _, _, output in done):
        for why in unknown(copied.folder):
            made.fail(own, why)
        _otherwise(copied, done, program, cage, made)


def _otherwise(
    copied: helm.Copied, done: list[tuple[str, str, Path]], program: str, cage: Cage, made: Rendered
) -> None:
    """Render a chart again under the circumstances for which it asks."""
    for number, other in enumerate(circumstances(copied.folder)):
        if other.finds_objects:
            find_objects(copied.folder)  # the last one
        for name, values, output in done:
            again = output.with_name(f"{output.name}-{number}")
            named = ("--values", copied.at(values)) if values else ()
            if why := copied.render_with(
                program, (*named, *other.options), cage, again, other.release
            ):
                made.fail(f"{name} {other.name}", why, str(copied.folder))
            elif not _is_same(output, again, other.release):
                made.renderings.append(_of_chart(copied, f"{name} {other.name}", values, again))


def _is_same(output: Path, again: Path, release: str) -> bool:
    """Return whether two outputs differ at most by the name of the release and its namespace."""
    first, second = output.read_bytes(), again.read_bytes()
    return first == second or first.replace(helm.RELEASE.encode(), release.encode()) == second


def _of_chart(copied: helm.Copied, name: str, values: str, output: Path) -> Rendering:
    """Describe a chart's rendering, whose comments name the template of each object."""
    chart = copied.chart
    return Rendering(
        name=name,
        output=output,
        origin=lambda _, comment: copied.source_of(comment),
        boundary=chart.boundary,
        fallback=str(Path(chart.folder, CHART)),
        asked=asked_versions(copied.folder),
        may_lack_values=not values,
    )
