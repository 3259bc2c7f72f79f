"""Passes Outputs through pure code as text tokens, and hides secrets in findings.

Nothing here decides where an Output is allowed: the type or pattern of a field that must be known
rejects the token. To hide secrets, no Output is read.
"""

import json
import operator
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextvars import ContextVar
from enum import Enum
from inspect import isawaitable
from pathlib import PurePath
from typing import Any, TypeAlias

import pulumi
from pulumi import _types

from kthena_components.checker.secrecy import conceal, hide
from kthena_components.core.findings import Finding, Level, SpecError, path_of
from kthena_components.core.values.display import SECRET, display
from kthena_components.core.values.unknown import OUTPUT_CLOSE, OUTPUT_OPEN, OUTPUT_TOKEN

Path: TypeAlias = tuple[str | int, ...]


def to_tokens(args: object) -> "tuple[dict[str, Any], Outputs]":
    """Convert a component's args to plain data: Outputs become tokens, enum members their text.

    Raises:
        SpecError: With every value that is not data, such as an args object of another package.
    """
    hiding = _Hiding(args)
    plain = hiding.visit(args, ())
    if not isinstance(plain, dict):
        hiding.refuse((), args, "a map of fields", "write a map")
    if hiding.findings:
        raise SpecError(hiding.findings)
    return plain, Outputs(hiding.outputs)


def without_tokens(text: str) -> str:
    """Write a string with tokens for a reader."""
    return OUTPUT_TOKEN.sub("<Output>", text)


class Outputs:
    """The Outputs of one component, by token."""

    def __init__(self, outputs: Mapping[int, pulumi.Output[Any]]) -> None:
        self._outputs = outputs
        self._restoren: dict[str, pulumi.Output[Any]] = {}

    def restore(self, value: Any) -> Any:
        """Restore the Outputs; a value without tokens is returned as is, not copied."""
        return self._restore(value) if self._outputs else value

    def _restore(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value) if OUTPUT_OPEN in value else value
        if isinstance(value, Mapping):
            return {key: self._restore(item) for key, item in value.items()}
        if isinstance(value, Sequence):
            return [self._restore(item) for item in value]
        return value

    def _text(self, text: str) -> pulumi.Output[Any]:
        """Return the Output of a single token, or an Output of the whole text."""
        known = self._restoren.get(text)
        if known is None:
            parts: list[Any] = OUTPUT_TOKEN.split(text)
            parts[1::2] = [self._outputs[int(number)] for number in parts[1::2]]
            alone = len(parts) == 3 and not parts[0] and not parts[2]  # noqa: PLR2004
            known = parts[1] if alone else pulumi.Output.all(*parts).apply(_join)
            self._restoren[text] = known
        return known


def _join(parts: Sequence[object]) -> str:
    """Join a string whose odd parts were Outputs. Never shows a value."""
    wrong = [type(part).__name__ for part in parts if not isinstance(part, str)]
    if wrong:
        around = "<Output>".join(str(part) for part in parts[::2])
        around = SECRET if holds_secret(around, config_secrets()) else around
        raise pulumi.RunError(
            f"an Output inside the text '{around[:200]}' gave a {wrong[0]}, but only text can be "
            "part of a string. Convert it to text, for a number with .apply(str)."
        )
    return "".join(str(part) for part in parts)


class _Hiding:
    """One walk over args."""

    def __init__(self, root: object) -> None:
        self.root = root  # keeps every value alive, so that its id stays unique
        self.outputs: dict[int, pulumi.Output[Any]] = {}
        self.findings: list[Finding] = []
        self._tokens: dict[int, str] = {}

    def visit(self, value: Any, path: Path) -> Any:
        """Return the plain form of a value."""
        if isinstance(value, Enum):
            value = value.value
        if isinstance(value, str):
            return self._text(value, path)
        if value is None or isinstance(value, int | float):
            # Pulumi's engine sends every number to a remote component as a float.
            return int(value) if isinstance(value, float) and value.is_integer() else value
        if isinstance(value, Mapping):
            return self._mapping(value, path)
        if isinstance(value, list | tuple):
            return [self.visit(item, (*path, index)) for index, item in enumerate(value)]
        if isinstance(value, pulumi.Output) or isawaitable(value):
            return self._token(value, path)
        wanted = "plain data: a map, a list, text or a number"
        self.refuse(path, value, wanted, _instead_of(value))
        return None

    def _mapping(self, mapping: Mapping[Any, Any], path: Path) -> dict[str, Any]:
        """Replace Outputs in a map by tokens; a key that is not a string is refused."""
        plain = {}
        for key in mapping:
            word = key.value if isinstance(key, Enum) else key
            if isinstance(word, str):
                plain[self._text(word, path)] = self.visit(mapping[key], (*path, word))
            else:
                self.refuse((*path, "<key>"), key, "text, as every key is", "write it as text")
        return plain

    def refuse(self, path: Path, value: object, wanted: str, remedy: str) -> None:
        """Record a value that cannot be read."""
        seen = f"is {_shown(value)}, but must be {wanted}"
        self.findings.append(Finding(path=path_of(path), seen=seen, remedy=remedy, rule="type"))

    def _token(self, value: Any, path: Path) -> str:
        """Return the token of an Output; equal paths get equal tokens in every run."""
        known = self._tokens.get(id(value))
        if known is None:
            number = zlib.crc32(self._address(path).encode())
            while number in self.outputs:
                number += 1
            is_output = isinstance(value, pulumi.Output)
            self.outputs[number] = value if is_output else pulumi.Output.from_input(value)
            known = self._tokens[id(value)] = f"{OUTPUT_OPEN}{number}{OUTPUT_CLOSE}"
        return known

    def _address(self, path: Path) -> str:
        """Write a path with names instead of indices, if items have names.

        The token is part of the pod template, and so of its hash. If its number changed when
        another Output or role is added or removed, running engines would be replaced.
        """
        node: Any = self.root
        parts: list[object] = []
        for part in path:
            node = node[part]
            name = node.get("name") if isinstance(part, int) and isinstance(node, Mapping) else None
            parts.append(name if isinstance(name, str) else part)
        return "/".join(map(str, parts))

    def _text(self, text: str, path: Path) -> str:
        if OUTPUT_OPEN in text or OUTPUT_CLOSE in text:
            wanted = "text without the characters U+E000 and U+E001, which mark Outputs here"
            self.refuse(path, without_tokens(text), wanted, "remove them")
        return str(text)


def _instead_of(value: object) -> str:
    """Say what to pass in place of an object: a resource has a name, other objects have fields."""
    if isinstance(value, PurePath):
        return "convert it to text with str(…)"
    if isinstance(value, Iterable) and not isinstance(value, bytes | type):
        return "convert it to a list with list(…), or a set with sorted(…)"
    if not isinstance(value, pulumi.Resource):
        return "write its fields as a map"
    if hasattr(type(value), "metadata"):
        return "pass its name, not the object: .metadata.name, or the text"
    return "pass one of its outputs, not the object"


def _shown(value: object) -> str:
    if isinstance(value, pulumi.Output):
        return "an Output"
    if value is None or isinstance(value, str | int | float | list | tuple):
        return display(value)
    return f"of the type {type(value).__name__}"


# Messages of components.


worded: ContextVar[Callable[[Finding], Finding]] = ContextVar("worded", default=lambda found: found)
"""Writes a finding in the names of the program's language. Default: as it is, for Python."""


def report(component: pulumi.ComponentResource, findings: Iterable[Finding]) -> None:
    """Log non-blocking findings, duplicates once; waived mandatory findings as warnings."""
    word = worded.get()
    for line, level in {str(word(finding)): finding.level for finding in findings}.items():
        log = pulumi.log.warn if level is Level.WAIVED else pulumi.log.info
        log(without_tokens(line), resource=component)


# Writes pod templates that are args objects of pulumi-kubernetes as maps.
#
# The names of their fields become those of Kubernetes: `node_selector` is `nodeSelector`.
# Everything else stays, so that its type is refused where it is read.


_TEMPLATES = frozenset({"entry_template", "worker_template", "overlay"})
_TYPES = frozenset({"PodTemplateSpecArgs", "PodTemplateSpecPatchArgs"})


def without_objects(args: Any) -> Any:
    """Return args in which each pod template, and each part of one, is a map.

    Raises:
        SpecError: With every template that is another object.
    """
    findings: list[Finding] = []
    plain = _role(args, (), findings)
    if isinstance(plain, Mapping) and isinstance(plain.get("roles"), list | tuple):
        roles = [_role(role, ("roles", i), findings) for i, role in enumerate(plain["roles"])]
        plain = {**plain, "roles": roles}
    if findings:
        raise SpecError(findings)
    return plain


def _role(role: Any, path: Path, findings: list[Finding]) -> Any:
    """Replace typed pod templates by plain maps, and refuse objects of other types."""
    if not isinstance(role, Mapping) or not _TEMPLATES.intersection(role):
        return role
    templates = {field: role[field] for field in role if field in _TEMPLATES}
    findings += [
        _refused((*path, field), type(value).__name__)
        for field, value in templates.items()
        if _is_object(value) and type(value).__name__ not in _TYPES
    ]
    return {**role, **{field: _plain(value) for field, value in templates.items()}}


def _refused(path: Path, name: str) -> Finding:
    return Finding(
        path=path_of(path),
        seen=f"is of the type {name}, but must be a pod template",
        remedy="write a PodTemplateSpecArgs, or its fields as a map, with the names that "
        "Kubernetes uses",
        rule="type",
    )


def _plain(value: Any) -> Any:
    """Convert objects; other values, such as Outputs, stay the same object."""
    if _is_object(value):
        value = _types.input_type_to_dict(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _is_object(value: object) -> bool:
    return _types.is_input_type(type(value))


_SHORT = 4
"""Secret strings shorter than this are only hidden as whole values, not inside longer strings."""


def hide_values(values: Mapping[str, str], keys: Collection[str]) -> dict[str, str]:
    """Hide the config values of some keys, but not whether they exist."""
    return {key: _hidden(text) if key in keys else text for key, text in values.items()}


def _hidden(text: str) -> str:
    value = _structure(text)
    return json.dumps(hide(value)) if isinstance(value, list | dict) else SECRET if text else ""


def _structure(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def shown_of_args(
    findings: Sequence[Finding], check: Callable[[Any], Iterable[Finding]], args: Any
) -> Sequence[Finding]:
    """Return the findings of a component's args without secrets read as plain text.

    `config.get` returns the value of a secret key like any other string.
    """
    shadow = _without(args, config_secrets()) if findings else args
    return findings if shadow is args else conceal(findings, check, shadow)


def config_secrets() -> frozenset[str]:
    """Return every string and number among the secret config values of the running program."""
    values = pulumi.runtime.get_config_env()
    keys = pulumi.runtime.get_config_secret_keys_env()
    stated = [values[key] for key in keys if key in values]
    return frozenset(leaf for text in stated for leaf in (text, *_leaves(_structure(text)))) - {""}


def holds_secret(text: str, secrets: Iterable[str]) -> bool:
    """Return whether a string is or contains one of some secret strings."""
    return any(text == secret or (len(secret) >= _SHORT and secret in text) for secret in secrets)


def _leaves(value: Any) -> list[str]:
    if isinstance(value, list | dict):
        items = value.values() if isinstance(value, dict) else value
        return [leaf for item in items for leaf in _leaves(item)]
    return [] if value is None or isinstance(value, bool) else [str(value)]


def _without(value: Any, secrets: frozenset[str]) -> Any:
    """Hide strings and numbers that contain a secret, including keys; return other values as is."""
    if isinstance(value, Mapping):
        fields = {
            _without_secrets(key, secrets): _without(item, secrets) for key, item in value.items()
        }
        same = fields.keys() == value.keys() and all(fields[key] is value[key] for key in fields)
        return value if same else fields
    if isinstance(value, list | tuple):
        items = [_without(item, secrets) for item in value]
        return value if all(map(operator.is_, items, value)) else items
    return _without_secrets(value, secrets)


def _without_secrets(value: Any, secrets: frozenset[str]) -> Any:
    known = isinstance(value, str | int | float) and not isinstance(value, bool)
    return SECRET if known and holds_secret(str(value), secrets) else value
