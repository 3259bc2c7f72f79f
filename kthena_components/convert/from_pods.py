"""Converts an object of a system without a backend. Pure.

No backend writes it again, so what is lost is found in another way: a field that the description
does not depend on is a loss (convert/lost_fields.py). And what the checks read from the result
must be what they read from the object.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from kthena_components.checker.waivers import annotated
from kthena_components.compiler.compile import Compiled, compile_serving
from kthena_components.convert.compare import gained_gang, gang_size, lost_gang, lost_pods
from kthena_components.convert.conversion import (
    SAME,
    TEMPLATES,
    Changes,
    Converted,
    no_backend,
    title_of,
    with_changes,
)
from kthena_components.convert.describe_pods import Described, PodRole, describe, known_paths
from kthena_components.convert.lost_fields import Loss, find_unread
from kthena_components.core import naming
from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.serving import EngineFacts, GangFacts
from kthena_components.core.findings import Finding, SpecError
from kthena_components.core.plan.controller_variables import rewrite
from kthena_components.core.plan.facts import facts_from_plan
from kthena_components.core.values.display import display
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.unknown import Unknown, Varying, product
from kthena_components.systems.system import Body

_APART = frozenset({"where", "options", "problems", "missing_files"})
"""Facts that quote the command line: its variables get other names."""
_ANY_PODS = "native"
_COUNTED = ("roles", "replicas")
"""Arguments that decide which engines there are."""


def convert_pods(body: Body, changes: Changes) -> Converted:
    """Convert an object by its pods.

    Raises:
        SpecError: It cannot be described, or the target cannot express it.
    """
    replicas = changes.arguments.get("replicas")
    title, described = title_of(body), describe(body, replicas)
    if changes.target == SAME:
        raise SpecError([no_backend(body)], title)
    waivers = {entry.rule: entry.text for entry in annotated(body)}
    notes: list[str] = []
    args = {
        **described.args,
        **({"waivers": waivers} if waivers else {}),
        "backend": changes.target,
        "roles": _rewritten(described, notes, title),
    }
    own, compiled, args = _compiled(args, title, changes)
    differences = list(_differences(described, own))
    if differences:
        raise SpecError(differences, title)
    before, known = (
        gang_size(described.facts, _largest(described)),
        list(known_paths(body, described)),
    )
    known += [entry.path for entry in annotated(body)]
    gang = facts_from_plan(compiled.plan).gang
    unread = find_unread(body, lambda other: _meaning(other, gang, replicas), known)
    return Converted(
        source=body,
        backend="",
        args=args,
        compiled=compiled,
        losses=(
            *(Loss(name=path, seen="is not kept") for path in unread),
            *lost_gang(before, compiled),
            *lost_pods(compiled),
        ),
        notes=(*notes, *gained_gang(before, compiled)),
    )


def _compiled(
    args: dict[str, Any], title: str, changes: Changes
) -> tuple[Compiled, Compiled, dict[str, Any]]:
    """Compile the described roles, and once more with the user's changes.

    The target may refuse what the changes mend, so the roles alone are compiled for a backend that
    takes any pods.
    """
    outside = {k: v for k, v in changes.arguments.items() if not k.startswith(_COUNTED)}
    own, changed = with_changes(args, outside), with_changes(args, changes.arguments)
    compiled = compile_serving(changed, title, today=changes.today)
    if changed == own:
        return compiled, compiled, changed
    plain = {**args, "backend": _ANY_PODS}
    return compile_serving(plain, title, today=changes.today), compiled, changed


def _meaning(body: Body, gang: GangFacts | None, replicas: object) -> object:
    """Describe an object, to compare it with another one; None if it cannot be described.

    The size of its gang counts if the result has a gang of the same size.
    """
    try:
        described = describe(body, replicas)
    except SpecError:
        return None
    own = described.facts.gang
    kept = own is not None and gang is not None and own.min_member == gang.min_member
    return described.args, kept


def _largest(described: Described) -> int:
    return max((role.pods for role in described.roles), default=0)


def _rewritten(described: Described, notes: list[str], title: str) -> list[dict[str, Any]]:
    """Return the roles with Kthena's variables.

    Raises:
        SpecError: Pods use a variable that only the controller of the object sets.
    """
    roles, unset = list[dict[str, Any]](), list[Finding]()
    for index, (role, args) in enumerate(
        zip(described.roles, described.args["roles"], strict=True)
    ):
        result = dict(args)
        for name in (name for name in TEMPLATES if name in args):
            after = role.after if name == "worker_template" else 0
            made = rewrite(args[name], described.variables, after=after, pods=role.pods)
            result[name], at = made.template, f"roles[{index}].{name}"
            notes += [_placed_note(note, at) for note in made.notes]
            unset += [_unset(f"{at}.{path}", what) for path, what in made.unset]
        roles.append(result)
    unset += _without_volumes(roles)
    if unset:
        raise SpecError(list(dict.fromkeys(unset)), title)
    return roles


def _without_volumes(roles: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """Report mounts of volumes that no template has: claims of a StatefulSet make them."""
    for index, role in enumerate(roles):
        for name in (name for name in TEMPLATES if name in role):
            spec = mapping(role[name].get("spec"))
            known = [mapping(volume).get("name") for volume in sequence(spec.get("volumes"))]
            for kind in ("initContainers", "containers"):
                for number, container in enumerate(sequence(spec.get(kind))):
                    mounts = map(mapping, sequence(mapping(container).get("volumeMounts")))
                    for mount in (m for m in mounts if m.get("name") not in known):
                        yield _no_volume(f"roles[{index}].{name}.spec.{kind}[{number}]", mount)


def _no_volume(path: str, mount: Mapping[str, Any]) -> Finding:
    return Finding(
        path=f"{path}.volumeMounts",
        seen=f"mounts {display(mount.get('name'))}, which is not a volume of the template",
        remedy="mount a PersistentVolumeClaim that all engines may share, or an emptyDir",
        rule="convertible",
    )


def _placed_note(note: str, at: str) -> str:
    change, _, place = note.rpartition(" in ")
    return f"rewrites {change} in {at}.{place}"


def _unset(path: str, what: str) -> Finding:
    return Finding(
        path=path,
        seen=f"uses {what}, which only the controller of the object gives to its pods",
        remedy="write it with GROUP_SIZE, ENTRY_ADDRESS or WORKER_INDEX, or as a value",
        rule="convertible",
    )


def _differences(described: Described, compiled: Compiled) -> Iterator[Finding]:
    """Report engines of the result whose facts differ from the object's engines."""
    plan = compiled.plan
    made = facts_from_plan(plan).engines
    for role, engine, planned in zip(described.roles, made, plan.roles, strict=True):
        source = role.engine
        if source is None:
            continue
        number = product(source.replicas, described.facts.copies)
        pairs = [("the number of engines", number, plan.groups * planned.replicas)]
        for what, before, after in (*pairs, *_compared(role, source, engine)):
            if not _alike(before, after):
                yield Finding(
                    path=planned.path,
                    seen=f"differs from its object: {what} would be {after}, and is {before}",
                    remedy="write this role of a ModelServing by hand",
                    rule="convertible",
                )


def _compared(
    role: PodRole, source: EngineFacts, made: EngineFacts
) -> Iterator[tuple[str, object, object]]:
    """List what must be equal before and after: pods, GPUs and engines, each with a name."""
    pairs = [("entry", source.entry, made.entry)]
    if source.worker is not None and made.worker is not None:
        pairs.append(("worker", source.worker, made.worker))
    yield "the pods of an engine", role.pods, made.pods
    for name, before, after in pairs:
        yield f"the GPUs of the {name}", before.gpus, after.gpus
        yield f"all GPUs of the {name}", before.all_gpus, after.all_gpus
        yield f"the GPU model of the {name}", before.gpu, after.gpu
        own, new = before.command, after.command
        new = _as_first(own, new) if name == "entry" else new
        yield f"the engine of the {name}", *_first_difference(own, new)


def _as_first(before: CommandFacts | None, after: CommandFacts | None) -> CommandFacts | None:
    """Return the new command of the first pod, whose WORKER_INDEX is 0."""
    rank = None if after is None else after.node_rank
    own = isinstance(rank, Varying) and rank.name == naming.WORKER_INDEX
    if own and before is not None and after is not None and before.node_rank == 0:
        return replace(after, node_rank=0)
    return after


def _first_difference(before: object, after: object) -> tuple[object, object]:
    """Return the first fields of two commands that differ, to name them."""
    if is_dataclass(before) and is_dataclass(after):
        for each in fields(before):
            one, other = getattr(before, each.name), getattr(after, each.name)
            if each.compare and each.name not in _APART and not _alike(one, other):
                return f"{each.name} {one}", f"{each.name} {other}"
        return None, None
    said = ("none" if command is None else "one that is read" for command in (before, after))
    return next(said), next(said)


def _alike(before: object, after: object) -> bool:
    """Return whether two facts are equal. Two unknown facts count as equal."""
    both = isinstance(before, Unknown) and isinstance(after, Unknown)
    return both or before == after
