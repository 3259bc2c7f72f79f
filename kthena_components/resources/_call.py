"""Says what is wrong with the arguments of a component's call, in place of Python's TypeError."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_type_hints

import pulumi

from kthena_components.core.findings import Finding, nearest

_ORDER = ("name", "args", "opts")
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
            yield _wrong(name, seen, "keep one of the two")
    yield from _missing(given, kind, example)
    opts = given.get("opts")
    if opts is not None and not isinstance(opts, pulumi.ResourceOptions):
        if isinstance(given.get("args"), pulumi.ResourceOptions):
            yield _wrong("opts", "is in the place of args", example)
        else:
            what = "a map" if isinstance(opts, Mapping) else f"of the type {type(opts).__name__}"
            seen = f"is {what}, but must be pulumi.ResourceOptions"
            yield _wrong("opts", seen, _options(opts))


def _unknown(init: Callable[..., None], kind: str, name: str) -> Finding:
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
    if isinstance(given.get("name"), Mapping) and "args" not in given:
        seen = "is a map, but must be text; args come after it"
        yield _wrong("name", seen, example)
        return
    for needed in ("name", "args"):
        if needed not in given:
            what = "the name of the resource" if needed == "name" else "a map of fields"
            seen = f"is missing: {kind} needs {what}"
            yield Finding(path=needed, seen=seen, remedy=example, rule="required")


def _options(stated: object) -> str:
    names = list(stated) if isinstance(stated, Mapping) else []
    known = inspect.signature(pulumi.ResourceOptions).parameters
    if names and not known.keys() & names:
        return "put its fields into args"
    written = ", ".join(f"{key}=…" for key in names if key in known)
    return f"write pulumi.ResourceOptions({written or '…'})"


def _wrong(path: str, seen: str, remedy: str) -> Finding:
    return Finding(path=path, seen=seen, remedy=remedy, rule="type")
