"""Converts the servings among some objects for another backend. Pure.

An object is described by the arguments of a ModelServing. They are compiled for the object's own
backend, and the result is compared with the object: what differs is a loss.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field, replace
from functools import partial
from typing import Any

from kthena_components import systems
from kthena_components.checker.waivers import annotated
from kthena_components.compiler.compile import Compiled, compile_serving
from kthena_components.convert.argument_sources import origin, read_beside
from kthena_components.convert.compare import gained_gang, lost_gang, lost_pods, planned_gang_size
from kthena_components.convert.conversion import (
    SAME,
    TEMPLATES,
    Changes,
    Conversion,
    Converted,
    Kept,
    check_head,
    title_of,
    types_reported,
    with_changes,
)
from kthena_components.convert.describe_engines import context_of, is_sketched
from kthena_components.convert.from_engines import convert_engines
from kthena_components.convert.from_pods import convert_pods
from kthena_components.convert.lost_fields import (
    Loss,
    changed_by_adoption,
    find_additions,
    find_losses,
)
from kthena_components.convert.sources_and_kept import (
    Backend,
    Merged,
    Moved,
    find_servings,
    keep,
    runs_engines,
    written_as_one,
)
from kthena_components.core import naming
from kthena_components.core.facts.context import Context
from kthena_components.core.findings import Finding, SpecError
from kthena_components.core.naming import DNS_1035
from kthena_components.core.plan.lws_variables import with_kthena_names
from kthena_components.core.plan.read_back import split_name
from kthena_components.core.plan.templates import mirror_requests
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import (
    group_kind,
    mapping,
    name_of,
    namespace_or_default,
    sequence,
)
from kthena_components.languages import snake_case
from kthena_components.systems.emitter import Converter
from kthena_components.systems.system import Body

_NAMES = frozenset({"apiVersion", "kind"})


def convert(objects: Sequence[Body], changes: Changes) -> Conversion:
    """Convert every serving among some objects, and keep the others."""
    try:
        with types_reported(*objects):
            return _converted(objects, changes)
    except SpecError as error:
        return Conversion(parts=(), errors=(error,))


def _converted(objects: Sequence[Body], changes: Changes) -> Conversion:
    described = find_servings(objects)
    parts_of_others = {place for merged, _ in described.values() for place in merged.others}
    taken = described.keys() | parts_of_others
    others = {index: body for index, body in enumerate(objects) if index not in taken}
    context = context_of(objects)
    undescribed = {index: body for index, body in others.items() if _serves(body, context)}

    result = _Result(changes)
    unused = result.add_described(described, others)
    result.add_undescribed(undescribed, objects)
    result.add_kept({i: body for i, body in unused.items() if i not in undescribed})
    return result.conversion()


@dataclass(slots=True)
class _Result:
    """What has been converted so far."""

    changes: Changes
    parts: dict[int, Converted | Kept] = field(default_factory=dict)
    """The parts by the places of their first objects."""
    moved: list[Moved] = field(default_factory=list)
    errors: list[SpecError] = field(default_factory=list)

    def add_described(
        self, servings: Mapping[int, tuple[Merged, Backend]], others: Mapping[int, Body]
    ) -> dict[int, Body]:
        """Convert the servings that a backend describes. Return the others that none writes."""
        names = Counter(_first_name(merged) for merged, _ in servings.values())
        unused = dict(others)
        for index, (merged, backend) in servings.items():
            bodies = (merged.source, *merged.others.values())
            try:
                for body in bodies:
                    check_head(body, self.changes.arguments)
                shared = names[_first_name(merged)] > 1
                with types_reported(*bodies):
                    part, used = _convert(merged, backend, unused, self.changes, shared=shared)
            except SpecError as error:
                self.errors.append(error)
                continue
            self._add(index, part, merged)
            unused = {place: body for place, body in unused.items() if place not in used}
        return unused

    def add_undescribed(self, bodies: Mapping[int, Body], objects: Sequence[Body]) -> None:
        """Convert the servings that no backend describes, by their engines or by their pods."""
        for index, body in bodies.items():
            try:
                check_head(body, self.changes.arguments)
                with types_reported(body):
                    if is_sketched(body):
                        part = convert_engines(body, self.changes, objects)
                    else:
                        part = convert_pods(body, self.changes)
            except SpecError as error:
                self.errors.append(error)
                continue
            self._add(index, part, Merged(source=body, whole=body, others={}))

    def add_kept(self, bodies: Mapping[int, Body]) -> None:
        """Keep the objects that are not servings, with selectors of the converted servings."""
        for index, body in bodies.items():
            kept, losses, notes = keep(body, self.moved)
            self.parts[index] = Kept(source=body, body=kept, losses=losses, notes=notes)

    def conversion(self) -> Conversion:
        """Return the parts in the order of the objects."""
        parts = tuple(self.parts[index] for index in sorted(self.parts))
        return Conversion(parts=parts, errors=tuple(self.errors))

    def _add(self, index: int, part: Converted, merged: Merged) -> None:
        self.parts[index] = part
        self.moved.append(_moved(part, merged, self.changes.target))


def _serves(body: Body, context: Context) -> bool:
    """Return whether an object runs engines, itself or through its controller.

    If such an object were kept, its model would be served twice.
    """
    kind = systems.find_kind(group_kind(body))
    if kind is None or kind.facts is None:
        return False
    return systems.INDEX[group_kind(body)] in systems.EMITTERS or runs_engines(body, context)


def _first_name(merged: Merged) -> tuple[str, str | None]:
    """Return the namespace of an object, and its name up to the last dash."""
    namespace = namespace_or_default(merged.whole)
    split = split_name(name_of(merged.whole))
    return str(namespace), split and split[0]


def _convert(
    merged: Merged, found: Backend, others: Mapping[int, Body], changes: Changes, *, shared: bool
) -> tuple[Converted, tuple[int, ...]]:
    """Convert one object; also return the indexes of other objects that the result contains."""
    backend, _, converter = found
    body, same = merged.source, changes.target in {SAME, backend}
    source = converter.filled(merged.whole)
    args = {**converter.arguments(source), "backend": backend}
    if same and converter.same_name is not None:
        args = converter.same_name(source, args, shared)
    waivers = {entry.rule: entry.text for each in (body, *merged.others.values())
               for entry in annotated(each)}  # fmt: skip
    if same and any(map(_lacks_requests, sequence(args.get("roles")))):
        args["fill_requests"] = False
    labels, kept = _own_labels(source), same or bool(converter.only_here)
    args |= (renamed := _renamed(args, changes))
    args |= {**({"labels": labels} if labels else {}), **({"waivers": waivers} if waivers else {})}
    given = {k: v for k, v in args.items() if kept or k != "backend_options"}
    beside = read_beside(args, given, others, title_of(body), changes)
    own, args = beside.compiled, beside.args
    result = converter.filled(written_as_one([made.body for made in own.manifests], converter))
    if renamed or not same:
        source, result = _unnamed(source), _unnamed(result)
    for_target, notes = _for_target(args, found, changes)
    defaults = _specified(source) - _specified(merged.whole)
    behind = partial(origin, merged.whole, converter.filled, converter.arguments)
    compiled = _compile(for_target, title_of(body), changes, defaults, behind)
    losses = list(find_losses(source, result))
    losses += [] if same else _lost_options(args, converter, changes.target, behind)
    losses += [*lost_gang(planned_gang_size(own), compiled), *([] if same else lost_pods(compiled))]
    losses += changed_by_adoption(source, result) if changes.adopts and same else []
    converted = Converted(
        source=body,
        backend=backend,
        args=for_target,
        compiled=compiled,
        losses=tuple(losses),
        notes=(
            *_included(list(merged.others.values()), compiled),
            *(f"adds {path}" for path in find_additions(source, result)),
            *notes,
            *gained_gang(planned_gang_size(own), compiled),
        ),
    )
    return converted, beside.used


def _renamed(args: Mapping[str, Any], changes: Changes) -> dict[str, Any]:
    """Return the given name, if no serving can have the name of the object."""
    fits, given = DNS_1035.fullmatch(str(args.get("name"))), changes.arguments
    return {} if fits or "name" not in given else {"name": given["name"]}


def _lacks_requests(role: object) -> bool:
    """Return whether a role's pods have limits without requests, which the package would add."""
    templates = (mapping(mapping(role).get(field)) for field in TEMPLATES)
    return any(mirror_requests(dict(template))[1] for template in templates)


def _own_labels(source: Body) -> dict[str, Any]:
    """Return the labels of an object that the package does not set itself."""
    labels = mapping(mapping(source.get("metadata")).get("labels"))
    return {key: value for key, value in labels.items() if key not in naming.KTHENA_LABELS}


def _included(merged: Sequence[Body], compiled: Compiled) -> list[str]:
    """Name the merged objects that no manifest of the result replaces."""
    titles = {title_of(manifest.body) for manifest in compiled.manifests}
    return [f"includes {title_of(body)}" for body in merged if title_of(body) not in titles]


def _specified(body: Body) -> set[str]:
    """Return the fields of an object's spec by the names of arguments."""
    return {snake_case(str(name)) for name in mapping(body.get("spec"))}


def _compile(
    args: Mapping[str, Any],
    title: str,
    changes: Changes,
    defaults: AbstractSet[str],
    behind: Callable[[str], str],
) -> Compiled:
    """Compile the arguments. A refusal says which field of the object states what is refused."""
    try:
        return compile_serving(args, title, today=changes.today)
    except SpecError as error:
        findings = [
            replace(finding, seen=f"{finding.seen} (by default: the object does not state it)")
            if finding.path in defaults - changes.arguments.keys()
            else _from(finding, behind)
            for finding in error.findings
        ]
        raise SpecError(findings, error.subject) from None


def _from(finding: Finding, behind: Callable[[str], str]) -> Finding:
    cause = behind(finding.path) if finding.path else ""
    return replace(finding, seen=f"{finding.seen} ({cause})") if cause else finding


def _assumed(args: Mapping[str, Any], changes: Changes) -> list[str]:
    """Say which release of Kthena the arguments state, because an older one is not a default."""
    version = args.get("kthena_version")
    if version is None or "kthena_version" in changes.arguments:
        return []
    return [f"states kthena_version: {version!r}, the newest release that accepts the object"]


def _lost_options(
    args: Mapping[str, Any], converter: Converter, target: str, behind: Callable[[str], str]
) -> list[Loss]:
    """List options as losses where the comparison has to use them."""
    found: list[Loss] = []
    for option in map(str, mapping(args.get("backend_options"))):
        if option in converter.only_here:
            name = f"backend_options.{option}"
            cause = behind(name)
            what = f"is not kept ({cause})" if cause else "is not kept"
            found.append(Loss(name=name, seen=f"{what}: {target} has no such option"))
    return found


def _unnamed(body: Body) -> dict[str, Any]:
    """Leave out apiVersion, kind and name, which differ between kinds of objects."""
    metadata = {k: v for k, v in mapping(body.get("metadata")).items() if k != "name"}
    return {**{k: v for k, v in body.items() if k not in _NAMES}, "metadata": metadata}


def _for_target(
    args: dict[str, Any], found: Backend, changes: Changes
) -> tuple[dict[str, Any], list[str]]:
    """Return the arguments for the target, and notes about what was rewritten."""
    backend, emitter, converter = found
    if changes.target in {SAME, backend}:
        return with_changes(args, changes.arguments), _assumed(args, changes)
    args = args if converter.elsewhere is None else converter.elsewhere(args)
    target = systems.find_emitter(changes.target)
    versions = () if target is None else target.kthena_versions
    own = {} if args.get("kthena_version") in versions else {"kthena_version"}
    result = {k: v for k, v in args.items() if k not in {"backend_options", *own}}
    result["backend"] = changes.target
    notes = _assumed(result, changes)
    lacks = target is not None and naming.LWS_GROUP_SIZE not in target.sizes
    if lacks and naming.LWS_GROUP_SIZE in emitter.sizes:
        result["roles"] = [_with_kthena_names(*pair, notes) for pair in _roles(args)]
    return with_changes(result, changes.arguments), notes


def _roles(args: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the roles of a serving's arguments, each with its path."""
    return [(f"roles[{index}]", role) for index, role in enumerate(args["roles"])]


def _with_kthena_names(path: str, role: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    """Rename LWS's variables in a role's templates to Kthena's, and add a note for each."""
    result = dict(role)
    for template in TEMPLATES:
        if template in role:
            result[template], renamed = with_kthena_names(role[template])
            notes += [
                f"rewrites {name} to {naming.LWS_ENV[name]} in {path}.{template}.{place}"
                for place, name in renamed
            ]
    return result


def _moved(part: Converted, merged: Merged, target: str) -> Moved:
    """Describe a conversion that may change names, for the notes about what else refers to it."""
    return Moved(
        sources=(merged.source, *merged.others.values()),
        was=name_of(merged.whole),
        backend=part.backend,
        target=part.backend if target == SAME else target,
        name=part.compiled.plan.name,
        bodies=tuple(manifest.body for manifest in part.compiled.manifests),
    )
