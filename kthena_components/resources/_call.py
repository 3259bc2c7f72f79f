"""Says what is wrong with the arguments and the options of a component's call.

Pulumi applies most options to the component alone, which has no object. What each one does is in
docs/own-program.md, and tests/pulumi/test_options.py shows it with the engine.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, get_type_hints

import pulumi

from kthena_components.core.findings import Finding, nearest, path_of
from kthena_components.core.plan.manifest import Manifest

_ORDER = ("name", "args", "opts")
_DEEPEST = 250
"""As in documents (reading/loader.py): Python's own limit ends deeper walks."""
_EXAMPLE = '("chat", {…}, pulumi.ResourceOptions(…))'


def refuse_call(
    init: Callable[..., None], kind: str, stated: tuple[Any, ...], named: Mapping[str, Any]
) -> Iterator[Finding]:
    """Report arguments that a component does not take, misses, or takes in another place.

    Args:
        init: Its `__init__`, whose hints name the fields of `args`.
        kind: The name of its class.
        stated: The arguments by position, without the component.
        named: Those by keyword.
    """
    given = {**dict(zip(_ORDER, stated, strict=False)), **named}
    example = f"write {kind}{_EXAMPLE}"
    if len(stated) > len(_ORDER):
        seen = f"{kind} takes name, args and opts, but the call has {len(stated)} arguments"
        yield Finding(path="", seen=seen, remedy=example, rule="type")
    for name in named:
        if name not in _ORDER:
            yield _unknown(init, kind, name)
        elif name in _ORDER[: len(stated)]:
            seen = "is given twice, by position and by keyword"
            yield _refused(name, seen, "keep one of the two")
    yield from _missing(given, kind, example)
    yield from _endless(given.get("args"))
    opts = given.get("opts")
    if opts is not None and not isinstance(opts, pulumi.ResourceOptions):
        if isinstance(given.get("args"), pulumi.ResourceOptions):
            yield _refused("opts", "is in the place of args", example)
        else:
            what = "a map" if isinstance(opts, Mapping) else f"of the type {type(opts).__name__}"
            seen = f"is {what}, but must be pulumi.ResourceOptions"
            yield _refused("opts", seen, _options(opts))


def _unknown(init: Callable[..., None], kind: str, name: str) -> Finding:
    """Say where an argument belongs that the component does not take."""
    fields = get_type_hints(init)["args"].__annotations__
    close = nearest(name, _ORDER)
    field = name if name in fields else nearest(name, fields)
    seen = f"{kind} has no argument of this name; it takes name, args and opts"
    if name not in fields and close is not None:
        remedy = f"write {close}"
    elif field is None:
        remedy = f"remove it; fields of args are {', '.join(sorted(fields))}"
    else:
        remedy = f'write it as a field of args: {kind}("chat", {{"{field}": …}})'
    return Finding(path=name, seen=seen, remedy=remedy, rule="unknown-field")


def _missing(given: Mapping[str, Any], kind: str, example: str) -> Iterator[Finding]:
    """Report a missing name or args, or args in the place of the name."""
    if isinstance(given.get("name"), Mapping) and "args" not in given:
        seen = "is a map, but must be text; args come after it"
        yield _refused("name", seen, example)
        return
    for needed in ("name", "args"):
        if needed not in given:
            what = "the name of the resource" if needed == "name" else "a map of fields"
            seen = f"is missing: {kind} needs {what}"
            yield Finding(path=needed, seen=seen, remedy=example, rule="required")


def _endless(args: object) -> Iterator[Finding]:
    """Report a map or a list that contains itself, or is too deep: no walk through it would end."""
    start: tuple[str | int, ...] = ()
    walk, within, done = [(args, _members(args), start)], {id(args)}, set[int]()
    while walk:
        value, members, path = walk[-1]
        key, item = next(members, (None, None))
        if key is None:
            within.discard(id(value))
            done.add(id(value))
            walk.pop()
            continue
        below = (*path, key)
        if id(item) in within:
            yield _refused(path_of(below), "contains itself", "write a copy of its fields, or less")
            return
        if len(below) > _DEEPEST:
            seen = f"is more than {_DEEPEST} maps and lists deep"
            yield _refused(str(path[0]), seen, "write less of them into each other")
            return
        if isinstance(item, Mapping | list | tuple) and id(item) not in done:
            within.add(id(item))
            walk.append((item, _members(item), below))


def _members(value: object) -> Iterator[tuple[str | int, object]]:
    """Return the members of a map or a list with their keys; none of another value."""
    if isinstance(value, Mapping):
        return ((str(key), item) for key, item in value.items())
    return enumerate(value) if isinstance(value, list | tuple) else iter(())


def _options(stated: object) -> str:
    names = list(stated) if isinstance(stated, Mapping) else []
    known = inspect.signature(pulumi.ResourceOptions).parameters
    if names and not known.keys() & names:
        return "put its fields into args"
    written = ", ".join(f"{key}=…" for key in names if key in known)
    return f"write pulumi.ResourceOptions({written or '…'})"


def _refused(path: str, seen: str, remedy: str) -> Finding:
    return Finding(path=path, seen=seen, remedy=remedy, rule="type")


RULE = "component-option"
_TRANSFORM = "remove it, and set it on the objects with transforms (docs/own-program.md, Options)"
_RESTART = "remove it; to replace the engines, change an annotation in the overlay of the role"
_WITHOUT_EFFECT: Mapping[str, str] = {
    "ignore_changes": _TRANSFORM,
    "replace_on_changes": _TRANSFORM,
    "hide_diffs": _TRANSFORM,
    "delete_before_replace": "remove it: what an update replaces is deleted first already",
    "replacement_trigger": _RESTART,
    "replace_with": _RESTART,
    "additional_secret_outputs": "remove it, and pass pulumi.Output.secret as args, which stay "
    "secret in the objects",
    "import_": "remove it, and import the objects: docs/convert.md, From a cluster",
    "id": "remove it",
    "urn": "remove it",
    "env_var_mappings": "remove it, and set it on the provider",
}
"""What to do instead of each option that reaches no object."""
_OF_PODS = frozenset({"spec.template", "inference.template", "inference.preset"})
"""Fields of a StatefulSet and of KAITO's kinds that have the pods, or choose them."""


def refuse_options(
    opts: pulumi.ResourceOptions | None, manifests: Iterable[Manifest]
) -> Iterator[Finding]:
    """Report the options that a component cannot have."""
    for option, remedy in _WITHOUT_EFFECT.items() if opts is not None else ():
        value = getattr(opts, option, None)
        # A component of another language gets empty lists and False for what is not set.
        if value is None or value is False or value == []:
            continue
        seen = "is given, but Pulumi applies it to the component and not to its objects"
        yield Finding(path=f"opts.{option}", seen=seen, remedy=remedy, rule=RULE)
    replaced = _replaced(manifests)
    if replaced is not None and opts is not None:
        yield from _refuse_keeping(opts, replaced)


def is_of_option(finding: Finding) -> bool:
    """Return whether a finding is about one of Pulumi's options, and not about args."""
    return finding.rule == RULE


def _replaced(manifests: Iterable[Manifest]) -> Manifest | None:
    """Return an object that another image replaces; None if the backend updates it in place."""
    return next((each for each in manifests if each.delete_first and _has_pods(each)), None)


def _has_pods(manifest: Manifest) -> bool:
    return any(path in _OF_PODS for path in manifest.replace_on)


def _refuse_keeping(opts: pulumi.ResourceOptions, replaced: Manifest) -> Iterator[Finding]:
    """Reject options that keep an object which an update must delete."""
    why = f"is true, but another image replaces {replaced.title}"
    parent = getattr(opts.parent, "_protect", None)
    if opts.protect or (opts.protect is None and parent):
        yield Finding(
            path="opts.protect",
            seen=f"{why}, and Pulumi replaces no protected object: each such update would fail",
            remedy="write protect=False, in an update without other changes; backends kthena and "
            "lws update their objects in place",
            rule=RULE,
        )
    if opts.retain_on_delete:
        yield Finding(
            path="opts.retain_on_delete",
            seen=f"{why}, and Pulumi would keep the old one under the name of the new one",
            remedy="remove it; 'pulumi state delete --target-dependents' takes the component out "
            "of the stack and leaves its objects",
            rule=RULE,
        )
