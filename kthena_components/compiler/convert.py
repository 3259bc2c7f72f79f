"""Converts the servings among some objects for another backend. Pure.

An object is described by the arguments of a ModelServing. What they do not say is found by writing
the object again for its own backend, and by comparing the two.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kthena_components import systems
from kthena_components.compiler.changes import SAME, Changes, with_changes
from kthena_components.compiler.compile import Compiled, compile_serving
from kthena_components.compiler.gangs import gained_gang, lost_gang
from kthena_components.compiler.kept import Moved, filled_service, keep, read_front
from kthena_components.compiler.losses import Loss, find_additions, find_losses
from kthena_components.core import naming
from kthena_components.core.findings import Finding, SpecError
from kthena_components.core.objects.object import GroupKind
from kthena_components.core.plan.lws_names import with_kthena_names
from kthena_components.core.values.read import group_kind, mapping, name_of
from kthena_components.judge.waivers import annotated
from kthena_components.systems.contract import Body, Describer, Emitter

SERVICE: GroupKind = ("", "Service")
Backend = tuple[str, Emitter, Describer]
_NAMES = frozenset({"apiVersion", "kind"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """One serving, and what its conversion loses, adds and rewrites."""

    source: Body
    backend: str
    """The backend that the source was written for."""
    args: Mapping[str, Any]
    """Arguments of a ModelServing that give the result."""
    compiled: Compiled
    losses: tuple[Loss, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """An object with others that are written with it."""

    source: Body
    whole: Body
    indices: frozenset[int]
    """Places of the others in the files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """An object that is no serving, and how it is changed to find the pods of one."""

    source: Body
    body: Body
    """The object with these changes."""
    losses: tuple[Loss, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """All objects, in the order of the source. An exposing Service is part of its serving."""

    parts: tuple[Converted | Kept, ...]
    errors: tuple[SpecError, ...]

    @property
    def servings(self) -> list[Converted]:
        """The servings that were converted."""
        return [part for part in self.parts if isinstance(part, Converted)]


def title_of(body: Body) -> str:
    """Return the kind, the namespace and the name of an object."""
    namespace = mapping(body.get("metadata")).get("namespace")
    return f"{group_kind(body)[1]} {f'{namespace}/' if namespace else ''}{name_of(body)}"


def describers() -> Iterator[Backend]:
    """List the backends whose objects can be described."""
    for name in systems.EMITTERS:
        emitter = systems.find_emitter(name)
        if emitter is not None and emitter.describer is not None:
            yield name, emitter, emitter.describer


def readable_kinds() -> list[str]:
    """List the kinds that can be described."""
    return list(dict.fromkeys(kind for _, _, d in describers() for _, kind in d.kinds))


def kinds_to_read() -> list[GroupKind]:
    """List the kinds of which servings consist, for a cluster that has more than these."""
    found = (kind for _, _, d in describers() for kind in (*d.kinds, *d.beside))
    return list(dict.fromkeys((*found, SERVICE)))


def convert(objects: Sequence[Body], changes: Changes) -> Conversion:
    """Convert every serving among some objects, and keep the others."""
    found = {i: backend for i, body in enumerate(objects) if (backend := _backend_of(body))}
    others = {i: body for i, body in enumerate(objects) if i not in found}
    errors: list[SpecError] = []
    parts: dict[int, Converted | Kept] = {}
    moved: list[Moved] = []
    shared: set[int] = set()
    for index, backend in found.items():
        merged = _merged(objects[index], others, backend[2])
        shared |= merged.indices
        try:
            part, front = _convert(merged, backend, others, changes)
        except SpecError as error:
            errors.append(error)
            continue
        parts[index] = part
        moved.append(_moved(part, changes.target))
        if front is not None:
            del others[front]
    for index, body in others.items():
        unread = [] if index in shared else list(_unread(body))
        errors += unread
        if unread or index in shared:
            continue
        result, losses, notes = keep(body, moved)
        parts[index] = Kept(source=body, body=result, losses=losses, notes=notes)
    return Conversion(parts=tuple(parts[i] for i in sorted(parts)), errors=tuple(errors))


def _backend_of(body: Body) -> Backend | None:
    return next((found for found in describers() if group_kind(body) in found[2].kinds), None)


def _unread(body: Body) -> Iterator[SpecError]:
    """Reject servings that cannot be described yet: kept as they are, they would serve twice."""
    kind = systems.find_kind(group_kind(body))
    serves = kind is not None and kind.facts is not None
    if serves and systems.INDEX.get(group_kind(body)) in systems.EMITTERS:
        known = ", ".join(readable_kinds())
        finding = Finding(
            path="kind",
            seen=f"is {group_kind(body)[1]}, which convert does not read yet; it reads {known}",
            remedy="remove it from the file, and write its serving by hand",
            rule="convertible",
        )
        yield SpecError([finding], title_of(body))


def _convert(
    merged: Merged, found: Backend, others: Mapping[int, Body], changes: Changes
) -> tuple[Converted, int | None]:
    backend, _, describer = found
    body, same = merged.source, changes.target in {SAME, backend}
    source = describer.filled(merged.whole)
    args = {**describer.arguments(source), "backend": backend}
    if same and describer.same_name is not None:
        args = describer.same_name(source, args)
    waivers = {entry.rule: entry.text for entry in annotated(body)}
    labels = _own_labels(source)
    args |= {**({"labels": labels} if labels else {}), **({"waivers": waivers} if waivers else {})}
    kept = same or bool(describer.only_here)
    given = {k: v for k, v in args.items() if kept or k != "backend_options"}
    rest = {index: other for index, other in others.items() if index not in merged.indices}
    own, args, front = _exposed(args, given, rest, title_of(body), changes)
    result = describer.filled(_written(own, describer))
    if not same:
        source, result = _unnamed(source), _unnamed(result)
    for_target, notes = _for_target(args, found, changes)
    compiled = compile_serving(for_target, title_of(body), today=changes.today)
    options = [] if same else _lost_options(args, describer, changes.target)
    losses = [*find_losses(source, result), *options, *lost_gang(own, compiled)]
    added = [f"adds {path}" for path in find_additions(source, result)]
    converted = Converted(
        source=body,
        backend=backend,
        args=for_target,
        compiled=compiled,
        losses=tuple(losses),
        notes=(
            *_included([others[index] for index in sorted(merged.indices)], compiled),
            *added,
            *notes,
            *gained_gang(own, compiled),
        ),
    )
    return converted, front


def _own_labels(source: Body) -> dict[str, Any]:
    """Return the labels of an object that are not those of the package."""
    labels = mapping(mapping(source.get("metadata")).get("labels"))
    return {key: value for key, value in labels.items() if key not in naming.KTHENA_LABELS}


def _merged(body: Body, others: Mapping[int, Body], describer: Describer) -> Merged:
    if describer.merged is None:
        return Merged(source=body, whole=body, indices=frozenset())
    places = list(others)
    whole, used = describer.merged(body, list(others.values()))
    return Merged(source=body, whole=whole, indices=frozenset(places[index] for index in used))


def _included(merged: Sequence[Body], compiled: Compiled) -> list[str]:
    """Name the objects that are part of the result, except those that are written again."""
    titles = {title_of(manifest.body) for manifest in compiled.manifests}
    return [f"includes {title_of(body)}" for body in merged if title_of(body) not in titles]


def _written(own: Compiled, describer: Describer) -> Body:
    """Return the only object of the describer's kinds, with what is written beside it."""
    bodies = [manifest.body for manifest in own.manifests]
    (written,) = (body for body in bodies if group_kind(body) in describer.kinds)
    beside = {index: body for index, body in enumerate(bodies) if body is not written}
    return _merged(written, beside, describer).whole


def _lost_options(args: Mapping[str, Any], describer: Describer, target: str) -> list[Loss]:
    """List options as losses where the comparison has to use them."""
    return [
        Loss(name=f"backend_options.{name}", seen=f"is not kept: {target} has no such option")
        for name in mapping(args.get("backend_options"))
        if name in describer.only_here
    ]


def _unnamed(body: Body) -> dict[str, Any]:
    """Leave out what another kind of object states in another way."""
    metadata = {k: v for k, v in mapping(body.get("metadata")).items() if k != "name"}
    return {**{k: v for k, v in body.items() if k not in _NAMES}, "metadata": metadata}


def _exposed(
    args: dict[str, Any],
    given: Mapping[str, Any],
    others: Mapping[int, Body],
    title: str,
    changes: Changes,
) -> tuple[Compiled, dict[str, Any], int | None]:
    """Compile a description for its own backend, with the Service that `expose` would write."""
    for index, body in others.items():
        expose = read_front(body, args)
        if expose is None:
            continue
        try:
            own = compile_serving({**given, "expose": expose}, title, today=changes.today)
        except SpecError:
            continue
        service = next(m.body for m in own.manifests if m.kind == "Service")
        there, here = filled_service(body), filled_service(service)
        if not [*find_losses(there, here), *find_additions(there, here)]:
            return own, {**args, "expose": expose}, index
    return compile_serving(given, title, today=changes.today), args, None


def _for_target(
    args: dict[str, Any], found: Backend, changes: Changes
) -> tuple[dict[str, Any], list[str]]:
    """Return the arguments for the target, and notes about what was rewritten."""
    backend, emitter, describer = found
    if changes.target in {SAME, backend}:
        return with_changes(args, changes.arguments), []
    args = args if describer.elsewhere is None else describer.elsewhere(args)
    target = systems.find_emitter(changes.target)
    foreign = {"backend_options", *(() if changes.target == "kthena" else ("kthena_version",))}
    result = {key: value for key, value in args.items() if key not in foreign}
    result["backend"] = changes.target
    notes: list[str] = []
    lacks = target is not None and naming.LWS_GROUP_SIZE not in target.sizes
    if lacks and naming.LWS_GROUP_SIZE in emitter.sizes:
        result["roles"] = [_with_kthena_names(*pair, notes) for pair in _roles(args)]
    return with_changes(result, changes.arguments), notes


def _roles(args: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    return [(f"roles[{index}]", role) for index, role in enumerate(args["roles"])]


def _with_kthena_names(path: str, role: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    result = dict(role)
    for field in ("entry_template", "worker_template"):
        if field in role:
            result[field], told = with_kthena_names(role[field])
            notes += [
                f"rewrites {name} to {naming.LWS_ENV[name]} in {path}.{field}.{place}"
                for place, name in told
            ]
    return result


def _moved(part: Converted, target: str) -> Moved:
    return Moved(
        source=part.source,
        backend=part.backend,
        target=part.backend if target == SAME else target,
        name=part.compiled.plan.name,
        bodies=tuple(manifest.body for manifest in part.compiled.manifests),
    )
