"""Translates names and values between Python and the other languages of Pulumi, without Pulumi.

Fields are camelCase there and snake_case here; `provider/schema.json`, from which their SDKs are
generated, lists them. Keys of maps, such as labels, pod templates and backend options, belong to
the user and stay as they are. Values are written as TypeScript.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

from kthena_components.core.findings import Finding, join_path
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import printable

Schema = Mapping[str, Any]
Rename = Callable[[Schema], Mapping[str, str]]
"""From the fields of an object by the names of other languages, to new names by old ones."""
_WORD = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_STEP = re.compile(r"(\[\d+\])|\.?([^.\[\]]+)")
_INDEX = "#/types/"


@cache
def read_schema() -> dict[str, Any]:
    """Return the schema that the package was released with."""
    schema: dict[str, Any] = json.loads(schema_text())
    return schema


@cache
def schema_text() -> str:
    """Return the text of the schema."""
    return files(__package__).joinpath("provider", "schema.json").read_text(encoding="utf-8")


def snake_case(name: str) -> str:
    """Return our name of a field: `workerReplicas` is `worker_replicas`."""
    return _CAPITAL.sub("_", name).lower()


def camel_case(name: str) -> str:
    """Return the name of another language: `worker_replicas` is `workerReplicas`."""
    first, *others = name.rstrip("_").split("_")
    return first + "".join(word.capitalize() for word in others)


@dataclass(frozen=True, slots=True)
class Names:
    """The fields of one component."""

    resource: Schema

    @classmethod
    def of(cls, token: str) -> "Names":
        """Find a component by its type token.

        Raises:
            KeyError: If the package has no such component.
        """
        return cls(read_schema()["resources"][token])

    @property
    def inputs(self) -> Schema:
        """The fields of the args, by the names of other languages."""
        fields: Schema = self.resource["inputProperties"]
        return fields

    @property
    def outputs(self) -> dict[str, str]:
        """Our name of each output."""
        return {name: snake_case(name) for name in self.resource["properties"]}

    def to_args(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return inputs with our names.

        A field that does not exist stays as it is: the specs refuse it.
        """
        return _fields(inputs, self.inputs, _ours)

    def to_inputs(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return args with the names of other languages: the opposite of `to_args`."""
        return _fields(args, self.inputs, _theirs)

    def shown(self, finding: Finding) -> Finding:
        """Return a finding about our args with the names of other languages."""
        return replace(
            finding,
            path=_path(finding.path, self.inputs),
            seen=in_words(finding.seen),
            remedy=in_words(finding.remedy),
        )


def in_words(text: str) -> str:
    """Write the names of fields in a string as other languages do."""
    return write_names(text, _camel_names())


def write_names(text: str, known: Mapping[str, str]) -> str:
    """Write the names of fields in a string as other languages do, by our names."""
    return _WORD.sub(lambda found: known.get(found[0], found[0]), text)


@cache
def _camel_names() -> dict[str, str]:
    return camel_names(read_schema())


def camel_names(schema: Schema) -> dict[str, str]:
    """Return the names of other languages by ours, where they differ."""
    parts = (
        *(made.get("properties", {}) for made in schema["types"].values()),
        *(made["inputProperties"] for made in schema["resources"].values()),
    )
    return {snake: name for part in parts for name in part if (snake := snake_case(name)) != name}


def _object(field: Schema) -> Schema | None:
    """Return the fields of the object that a field has; None if it has none."""
    token = str(field.get("$ref", "")).removeprefix(_INDEX)
    found: Schema | None = read_schema()["types"].get(token, {}).get("properties")
    return found


def _ours(known: Schema) -> dict[str, str]:
    """Return our names of fields, by theirs."""
    return {name: snake_case(name) for name in known}


def _theirs(known: Schema) -> dict[str, str]:
    """Return their names of fields, by ours."""
    return {snake_case(name): name for name in known}


def _fields(value: Mapping[str, Any], known: Schema, rename: Rename) -> dict[str, Any]:
    """Rename the known fields, and those of the objects in them."""
    names, made = rename(known), {}
    for key, item in value.items():
        field = known.get(key) or known.get(names.get(key, key), {})
        made[names.get(key, key)] = _value(item, field, rename) if key in names else item
    return made


def _value(value: Any, field: Schema, rename: Rename) -> Any:
    inside = _object(field)
    if inside is not None and isinstance(value, Mapping):
        return _fields(value, inside, rename)
    if "items" in field and isinstance(value, list | tuple):
        return [_value(item, field["items"], rename) for item in value]
    return value


def _path(path: str, known: Schema) -> str:
    """Translate a path as far as it leads through fields."""
    written, position = "", 0
    field: Schema = {"$fields": known}
    while step := _STEP.match(path, position):
        index, name = step.groups()
        inside = field.get("$fields", _object(field))
        if index and "items" in field:
            written, field = written + index, field["items"]
        elif name and inside is not None:
            theirs = _theirs(inside).get(str(name), str(name))
            written, field = join_path(written, theirs), inside.get(theirs, {})
        else:
            break
        position = step.end()
    return written + path[position:]


WIDTH = 96
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PROTOTYPE = "__proto__"
"""The only key that is not a property in an object literal, unless it is computed."""
_TOKEN = re.compile(
    rf"""(?P<text>"(?:[^"\\]|\\.)*")|\["(?P<computed>{_PROTOTYPE})"\](?=:)|(?P<name>{_NAME.pattern})(?=:)"""
    r"|(?P<comma>,(?=\s*[\]}]))"
)


def write(value: Any, depth: int = 0) -> str:
    """Write plain data as a literal, on one line if it fits.

    Args:
        value: Data as in JSON.
        depth: How far the line on which it starts is indented, in steps of 4.
    """
    if isinstance(value, Mapping) and value:
        items = [f"{_key(str(key))}: {write(item, depth + 1)}" for key, item in value.items()]
        return listed("{", items, "}", " ", depth)
    if isinstance(value, list | tuple) and value:
        return listed("[", [write(item, depth + 1) for item in value], "]", "", depth)
    return _quoted(value)


def read(text: str) -> Any:
    """Read what `write` has written.

    Raises:
        ValueError: The text is something else.
    """
    return json.loads(_TOKEN.sub(_as_json, text))


def _as_json(found: re.Match[str]) -> str:
    """Return a token of TypeScript as JSON writes it."""
    name = found["name"] or found["computed"]
    return f'"{name}"' if name else found["text"] or ""


def _key(key: str) -> str:
    if key == _PROTOTYPE:
        return f'["{key}"]'
    return key if _NAME.fullmatch(key) else _quoted(key)


def _quoted(value: Any) -> str:
    """Write a value without parts. What does not show in a string is escaped as in JSON."""
    return printable(json.dumps(value, ensure_ascii=False), lambda char: json.dumps(char)[1:-1])


def listed(opens: str, items: list[str], closes: str, pad: str, depth: int) -> str:
    """Write a list or a map, on one line if it fits."""
    line = f"{opens}{pad}{', '.join(items)}{pad}{closes}"
    if "\n" not in line and len(line) + 4 * depth <= WIDTH:
        return line
    space = "    " * (depth + 1)
    inner = "".join(f"{space}{item},\n" for item in items)
    return f"{opens}\n{inner}{'    ' * depth}{closes}"
