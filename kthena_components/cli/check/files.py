"""Checks the objects in some paths: first file by file, then all objects together."""

import os
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from kthena_components.checker.check_cluster_objects import StackOptions
from kthena_components.checker.levels import Settings
from kthena_components.checker.manifest import CheckedObject, check_whole
from kthena_components.cli.check.context import (
    Changing,
    LateConfigMaps,
    LateDefinitions,
    Texts,
    add_from_files,
    may_mend,
    shared_by_all,
)
from kthena_components.cli.check.kept_objects import AllObjects, KeptObjects, LocatedFinding
from kthena_components.cli.check.results import Result, Summary, merge
from kthena_components.cli.check.workers import jobs_for, side_by_side
from kthena_components.cli.sources import (
    KubeObject,
    Place,
    RenderedSource,
    Source,
    is_checked,
    is_wanted,
    objects_of,
)
from kthena_components.core.facts.context import NO_CONTEXT, Context, ReferencedObjects
from kthena_components.core.facts.pod_policies_and_sharing import AROUND, LimitRanges, PodPolicies
from kthena_components.core.findings import READING, Finding, Level, fault
from kthena_components.core.models import ModelShape
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping
from kthena_components.reading.documents import read_documents
from kthena_components.reading.files import Unreadable, shown_name
from kthena_components.reading.folders import FoundFiles, find_files
from kthena_components.reading.kustomization import Patch
from kthena_components.reading.layout import Layout, arrange
from kthena_components.reading.releases.find import states_releases, texts_of
from kthena_components.reading.releases.operators import near
from kthena_components.rendering.result import Rendered
from kthena_components.rendering.unchecked import unchecked, values_alone
from kthena_components.systems import COMPLETING, NAMED_BY


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions:
    """The options of `check`."""

    settings: Settings = field(default_factory=Settings)
    """The levels of the rules and the version of Kthena."""
    today: date | None = None
    """The date for expiring waivers. Without it, no waiver applies."""
    asked: StackOptions = field(default_factory=StackOptions)
    """The options for checking all objects together."""
    shapes: Mapping[str, ModelShape] = field(default_factory=dict)
    """Shapes of models by lower-case name."""
    render: bool | None = None
    """Whether to render charts and kustomizations. None: as far as possible."""
    jobs: int | None = 1
    """Processes that check files. None: one per processor, where there is enough to check."""
    strict_read: bool = False
    """Whether the run fails for files that the user did not name and that cannot be read."""


def check(
    paths: Iterable[str], given: CheckOptions, summary: Summary
) -> Iterator[Result | Unreadable]:
    """Check every object in some paths, and update the summary.

    All files are checked together. Each chart and each overlay is checked as a separate cluster,
    unless `--whole` says that everything is one cluster.

    Args:
        paths: Files, folders, or `-` for standard input. Every object can use every ConfigMap.
        given: The options.
        summary: The counts to update.
    """
    found = find_files(paths)
    summary.pass_over(found)
    layout = arrange(found)
    unread: set[Unreadable] = set()
    texts = Texts(found.named)
    with rendered_in(layout, found, given, texts) as rendered:
        for result in _each_once(found, layout, rendered, given, summary, texts=texts):
            if isinstance(result, Result):
                summary.count(result.finding)
                yield result
            elif result not in unread:
                unread.add(result)
                yield _weighed(result, found, rendered, given, summary)


@contextmanager
def rendered_in(
    layout: Layout, found: FoundFiles, given: CheckOptions, texts: Texts
) -> Iterator[Rendered]:
    """Render the charts and kustomizations. The output is deleted when the context ends."""
    files = (*_walked(found), *found.deploying)
    stating = {each for each in files if states_releases(each, texts.read)}
    if not (layout.charts or layout.kustomizations or stating):
        yield Rendered()
        return
    # Imported here, because most runs render nothing.
    from kthena_components.rendering.isolation import cage  # noqa: PLC0415
    from kthena_components.rendering.releases import render_releases  # noqa: PLC0415
    from kthena_components.rendering.render import NOTHING, find_programs, render  # noqa: PLC0415

    programs = NOTHING if given.render is False else find_programs(found.folders)
    with cage() as made:
        rendered = render(layout, programs, made)
        kept = (*layout.objects(_walked(found), rendered.covered), *found.deploying)
        render_releases(texts_of(kept, found.folders, stating), layout, programs, made, rendered)
        yield rendered


def _walked(found: FoundFiles) -> list[str]:
    return [each for each in found.files if isinstance(each, str) and each not in found.named]


def _each_once(
    found: FoundFiles,
    layout: Layout,
    rendered: Rendered,
    given: CheckOptions,
    summary: Summary,
    *,
    texts: Texts,
) -> Iterator[Result | Unreadable]:
    """Yield all results, and each rendered object once, however often it is rendered."""
    yield from rendered.notes
    yield from layout.unreadable
    yield from (each for each in found.files if isinstance(each, Unreadable))
    files = [each for each in found.files if isinstance(each, str)]
    walked = _walked(found)
    kept = found.named.union(layout.objects(walked, rendered.covered))
    yield from unchecked(layout, rendered, walked, kept)
    bases, patched = layout.built_upon(), layout.patched(rendered.covered)
    charts = {os.path.realpath(chart.folder) for chart in layout.charts}
    charts.update(layout.libraries)
    plain = [_plain(each, found, bases, charts, patched) for each in files if each in kept]
    make = partial(RenderedSource, folders=found.folders, patched=patched)
    built = [make(str(each.output), (each.name,), rendering=each) for each in rendered.renderings]
    summary.renderings = len(built)
    clusters: list[Sequence[Source]] = [plain, *([each] for each in built)]
    if given.asked.whole:
        alone = rendered.of_released_charts()
        together = [each for each in built if each.rendering not in alone]
        clusters = [[*plain, *together], *([each] for each in built if each.rendering in alone)]
    results: list[Result] = []
    paths = [*files, *(each.path for each in built)]
    others = (*found.deploying, *found.scripts)
    around = shared_by_all(paths, given.settings.versions, others, texts.read)
    for sources in clusters:
        for each in check_sources(sources, texts, given, summary, around, released=rendered.values):
            if isinstance(each, Result) and each.rendered_by:
                results.append(each)
            else:
                yield each
    yield from merge(results)


def _plain(
    file: str,
    found: FoundFiles,
    bases: Container[str],
    charts: Collection[str],
    patched: Mapping[str, Collection[Patch]],
) -> Source:
    """Describe where a file comes from: a folder, a kustomization's base, or a chart."""
    is_walked = file not in found.named
    real = os.path.realpath(file) if "\0" not in file and (is_walked or charts) else file
    above = map(str, Path(real).parents) if charts else ()
    return Source(
        file,
        is_walked=is_walked,
        is_base=is_walked and real in bases,
        patched={real: patched[real]} if is_walked and real in patched else {},
        is_of_chart=any(folder in charts for folder in above),
    )


def _weighed(
    unread: Unreadable, found: FoundFiles, rendered: Rendered, given: CheckOptions, summary: Summary
) -> Unreadable:
    """Count something that was not read, and decide whether the run fails."""
    is_rendering = unread in rendered.notes
    strict = given.strict_read or (is_rendering and given.render is True)
    is_named = unread.file in found.folders or unread.file in map(shown_name, found.named)
    if strict or unread.is_object or (is_named and not (is_rendering or unread.is_note)):
        summary.unreadable += 1
        return replace(unread, is_note=False)
    if is_rendering:
        summary.not_rendered = rendered.failed
    else:
        summary.not_read += 1
    return replace(unread, is_note=True)


def check_sources(
    sources: Sequence[Source],
    texts: Texts,
    given: CheckOptions,
    summary: Summary,
    around: Context,
    *,
    released: Container[str] = frozenset(),
) -> Iterator[Result | Unreadable]:
    """Check the objects of some files one by one, and then all of them together."""
    paths = [source.path for source in sources]
    maps, limits = LateConfigMaps(paths, texts.read), LimitRanges()
    policies = PodPolicies(complete=given.asked.whole)
    completing = ReferencedObjects(COMPLETING, NAMED_BY, beyond=around.referenced)
    adds = {
        "LimitRange": limits.add,
        **{kind: completing.add for _, kind in (*COMPLETING, *NAMED_BY)},
        **dict.fromkeys(AROUND if given.settings.levels.asked else (), policies.add),
    }
    jobs = jobs_for(given.jobs, add_from_files(adds, paths, texts.read))
    context = replace(
        around,
        config_maps=maps,
        limits=limits,
        shapes=given.shapes,
        gpus=given.settings.gpus,
        gpu_option="--gpu",
        pod_policies=policies,
        referenced=completing,
    )
    beside = _Beside(given, texts, context, released)
    together = AllObjects(sources, _for_all(given, context, sources), given.today, read=texts.read)
    for checked in side_by_side(
        lambda number: _file(number, sources[number], beside), len(sources), jobs
    ):
        summary.files += checked.files
        summary.objects += checked.objects
        summary.others += checked.others
        summary.definitions |= checked.definitions
        together.add(checked.kept)
        yield from checked.results
    for result in together.check():
        yield from _of_all(result, together.source(result.kept), given)


def _of_all(located: LocatedFinding, source: Source, given: CheckOptions) -> Iterator[Result]:
    body = {} if located.of_all else located.kept.body
    for finding in given.settings.levels.apply([located.finding]):
        left = _left_open(finding, may_mend(source.patched, located.file, body, finding))
        yield _result(source, (located.file, located.line), body, left)


def _for_all(given: CheckOptions, context: Context, sources: Sequence[Source]) -> StackOptions:
    """Return the options for all objects together, with the installed releases that hold."""
    above = {os.path.dirname(source.name) for source in sources}  # noqa: PTH120 - of each file
    folders = {str(Path(folder)) for folder in above}
    is_plain = not any(source.rendered_by for source in sources)
    if not is_plain or len({Path(folder).is_absolute() for folder in folders}) != 1:
        return replace(given.asked, pins=context.pins)
    place = str(Path(os.path.commonpath(folders)) / "objects")
    return replace(given.asked, pins=near(context.pins, place))


@dataclass(frozen=True, slots=True)
class _Beside:
    """State that all files share."""

    given: CheckOptions
    texts: Texts
    context: Context
    released: Container[str]
    """The contents of values files that releases state, which are rendered with them."""


@dataclass(slots=True)
class _Checked:
    """The results of one source, and the counts of what was read from it."""

    kept: KeptObjects
    results: list[Result | Unreadable] = field(default_factory=list)
    files: int = 0
    objects: int = 0
    others: int = 0
    definitions: frozenset[tuple[str, str]] = frozenset()
    """Kinds that were checked with a CRD of the files, and the file."""


def _file(number: int, source: Source, beside: _Beside) -> _Checked:
    """Check the objects of one source by themselves. It may run in another process."""
    of = beside.context
    named = Context(gpus=of.gpus, referenced=of.referenced, config_maps=of.config_maps)
    made = _Checked(KeptObjects(number, beside.given.asked.whole, named))
    text = beside.texts.read(source.path)
    if isinstance(text, Unreadable):
        made.results.append(text)
        return made
    made.files += not source.rendered_by
    for document in read_documents(text, source.name, is_wanted):
        if isinstance(document, Unreadable):
            made.results.append(document)
            continue
        for item in map(source.opened, objects_of(document)):
            _object(source, document.shift, item, beside, made)
    if not (made.objects or made.others or made.results or source.rendered_by):
        made.results += _values_alone(source, text, beside)
    definitions = beside.context.definitions
    if isinstance(definitions, LateDefinitions):
        made.definitions = definitions.used
    return made


def _values_alone(source: Source, text: str, beside: _Beside) -> list[Unreadable]:
    """Return a note if a file has the values of a chart that is elsewhere, and no object."""
    if source.is_of_chart or text in beside.released:
        return []
    problem = values_alone(source.name, text)
    return [problem] if problem is not None else []


def _object(source: Source, shift: int, item: KubeObject, beside: _Beside, made: _Checked) -> None:
    """Check one object, and keep it for the rules over all objects."""
    if not is_checked(item.body.get("apiVersion"), item.body.get("kind")):
        made.others += 1
        made.kept.pass_over(source.about(item), shift, item)
        findings = check_safely(item.body, beside.given).findings
    else:
        made.objects += 1
        findings = _checked(source, shift, item, beside, made.kept)
    changes = source.patched and source.patched.get(os.path.realpath(source.place(item, "")[0]))
    changing = Changing(changes or (), item.body, partial(_mandatory, beside))
    for finding in beside.given.settings.levels.apply(findings):
        place = source.place(item, finding.path)
        why = changing.why(finding) or source.left_open(item, finding)
        made.results.append(_result(source, place, item.body, _left_open(finding, why)))


def _mandatory(beside: _Beside, body: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what is mandatory in an object by itself."""
    found = check_safely(body, beside.given, beside.context).findings
    weighed = beside.given.settings.levels.apply(found)
    return (each for each in weighed if each.level is Level.MANDATORY)


def _checked(
    source: Source, shift: int, item: KubeObject, beside: _Beside, kept: KeptObjects
) -> list[Finding]:
    """Check one object, and keep what the rules over all objects read of it."""
    partial = source.part_of_object(item)
    if partial is not None:
        return [partial]
    asked = frozenset[str]() if source.is_base else beside.given.settings.levels.asked
    context = beside.context
    if context.pins:
        context = replace(context, pins=near(context.pins, source.place(item, "")[0]))
    checked = check_safely(item.body, beside.given, context, asked)
    about, may = source.about(item), source.may_be_placed
    failed = kept.keep(about, shift, item, checked, may_be_placed=may)
    return checked.findings + [finding for finding in failed if finding not in checked.findings]


def _left_open(finding: Finding, why: str) -> Finding:
    seen = f"{why}, so it was not checked"
    return replace(finding, seen=seen, remedy="", level=Level.UNKNOWN) if why else finding


def check_safely(
    body: Mapping[str, Any],
    given: CheckOptions,
    context: Context = NO_CONTEXT,
    asked: Collection[str] = (),
) -> CheckedObject:
    """Check an object. An exception outside of the rules becomes a finding, too."""
    try:
        return check_whole(
            body, context=context, today=given.today, versions=given.settings.versions, asked=asked
        )
    except Exception as error:  # noqa: BLE001 - a mistake of ours must not hide other findings
        return CheckedObject(findings=[fault(READING, error)])


def _result(source: Source, place: Place, body: Mapping[str, Any], finding: Finding) -> Result:
    """Say where a finding is: file, line and object."""
    metadata = mapping(body.get("metadata"))
    namespace, name, stem = (metadata.get(key) for key in ("namespace", "name", "generateName"))
    return Result(
        file=place[0],
        line=place[1],
        kind=str(body.get("kind", "")),
        namespace=namespace if isinstance(namespace, str) else "",
        name=next((text for text in (name, stem) if isinstance(text, str)), ""),
        finding=finding,
        rendered_by=source.rendered_by,
    )
