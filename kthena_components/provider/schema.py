"""Writes schema.json from the args types: `python -m kthena_components.provider.schema`.

Pulumi's own analyzer reads the types. It needs four corrections, because it writes what a Python
component would get from its own mapping, which this package does not use (host.py).
"""

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pulumi.provider.experimental.analyzer import Analyzer
from pulumi.provider.experimental.schema import generate_schema

from kthena_components import __version__
from kthena_components.core.spec import enums as words
from kthena_components.languages import camel_names, write_names
from kthena_components.resources.components import (
    HyperNodeTopology,
    ModelServing,
    Queue,
    Role,
    ServingGroup,
)
from kthena_components.resources.role_args import RoleArgs, RoleFields, StandaloneRoleArgs
from kthena_components.systems import EMITTERS

Schema = dict[str, Any]
PACKAGE = "kthena"
COMPONENTS = (ModelServing, ServingGroup, Role, HyperNodeTopology, Queue)
RENAMED = {"RoleArgs": "ServingRole"}
"""Go would have two types RoleArgs: the fields of the component Role, and a role of a serving."""
AMOUNTS = {"maxUnavailable", "maxSurge", "partition", "capability", "deserved", "guarantee"}
"""Counts or quantities as text, also as values of a map. The analyzer knows no union."""
EXAMPLES = Path(__file__).parent / "examples"
_REFERENCE = f"#/types/{PACKAGE}:index:"
_ANY = "pulumi.json#/Any"


def render() -> str:
    """Write the schema."""
    return json.dumps(build(), indent=2, ensure_ascii=False) + "\n"


def build() -> Schema:
    """Read the args types of all components."""
    found = ArgsAnalyzer(PACKAGE).analyze(list(COMPONENTS))
    read = generate_schema(
        PACKAGE, __version__, None, found["component_definitions"], found["type_definitions"], []
    ).to_json()
    schema: Schema = _tidy(read)
    types = {_renamed(token): made for token, made in schema["types"].items()}
    schema["types"] = dict(sorted({**types, f"{PACKAGE}:index:Backend": _backends()}.items()))
    for resource in schema["resources"].values():
        _correct_all(resource["properties"], is_input=False)
        _correct_all(resource["inputProperties"], is_input=True)
    for made in schema["types"].values():
        _correct_all(made.get("properties", {}), is_input=True)
    return _with_examples({**_in_words(schema, camel_names(schema)), **_ABOUT})


def _with_examples(schema: Schema) -> Schema:
    """Add an example in each language to each component.

    Pulumi's generators keep the part for their language between these marks, and the Registry shows
    all.
    """
    for token, resource in schema["resources"].items():
        example = (EXAMPLES / f"{token.rpartition(':')[2]}.md").read_text(encoding="utf-8")
        resource["description"] += (
            "\n\n{{% examples %}}\n## Example Usage\n{{% example %}}\n"
            f"{example}{{{{% /example %}}}}\n{{{{% /examples %}}}}"
        )
    return schema


class ArgsAnalyzer(Analyzer):
    """Pulumi's analyzer, which also finds the docstrings of inherited fields.

    Before Python 3.12 a TypedDict does not know its bases.
    """

    def get_docstring(self, typ: type, name: str) -> str | None:
        """Return the docstring of a field, from the class that states it."""
        own = super().get_docstring(typ, name)
        if own is None and typ in {RoleArgs, StandaloneRoleArgs}:
            return super().get_docstring(RoleFields, name)
        return own


_ABOUT: Schema = {
    "displayName": "Kthena components",
    "description": "Components for multi-node LLM serving on Kubernetes, checked before anything "
    "is applied.",
    "license": "Apache-2.0",
    "keywords": [
        "category/cloud",
        "kind/component",
        "gpu",
        "kthena",
        "kubernetes",
        "llm",
        "vllm",
        "volcano",
    ],
}


def _tidy(value: Any) -> Any:
    """Put each description into one line, and drop what is empty."""
    if isinstance(value, Mapping):
        return {key: _tidied(key, item) for key, item in value.items() if item not in (None, [])}
    return [_tidy(item) for item in value] if isinstance(value, list) else value


def _tidied(key: str, value: Any) -> Any:
    """Return one value of the schema: strings on one line, references by the package's name."""
    if key == "description" and isinstance(value, str):
        return " ".join(value.split())
    if key == "$ref" and value.startswith(_REFERENCE):
        return _renamed(value)
    return _tidy(value)


def _in_words(value: Any, known: Mapping[str, str]) -> Any:
    """Write the names of fields in descriptions as other languages do."""
    if isinstance(value, Mapping):
        return {
            key: write_names(item, known)
            if key == "description" and isinstance(item, str)
            else _in_words(item, known)
            for key, item in value.items()
        }
    return [_in_words(item, known) for item in value] if isinstance(value, list) else value


def _renamed(token: str) -> str:
    """Drop the suffix of args types: generators append their own."""
    package, _, name = token.rpartition(":")
    return f"{package}:{RENAMED.get(name, re.sub(r'Args$', '', name))}"


def _backends() -> Schema:
    values = [{"name": name.upper(), "value": name} for name in EMITTERS]
    return {"type": "string", "description": "What runs the pods.", "enum": values}


def _correct_all(fields: Schema, *, is_input: bool) -> None:
    for name, field in fields.items():
        _correct(name, field, is_input=is_input)


def _correct(name: str, field: Schema, *, is_input: bool) -> None:
    """Correct a field of the generated schema: the backend's type, amounts, and open maps."""
    _drop_repeated(field)
    if name == "backend":
        del field["type"]
        field["$ref"] = f"{_REFERENCE}Backend"
    if name in AMOUNTS:
        _amount(field.get("additionalProperties", field))
    if is_input:
        _open(field)


def _drop_repeated(field: Schema) -> None:
    """Drop the description of a field from its items."""
    for inner in ("items", "additionalProperties"):
        if inner in field:
            field[inner].pop("description", None)
            _drop_repeated(field[inner])


def _amount(field: Schema) -> None:
    """State that a value is a number or a string."""
    del field["$ref"]
    field["oneOf"] = [{"type": "integer"}, {"type": "string"}]


def _open(field: Schema) -> bool:
    """Let objects hold Outputs, and return whether the field is or holds an object or an Output.

    In a plain object generators take no Output anywhere, not even where a field allows one. Counts,
    enums, and lists and maps of them stay plain: the compiler of another language then refuses an
    Output where the package would.
    """
    inner = field.get("items", field.get("additionalProperties"))
    if inner is not None:
        is_open = _open(inner)
    else:
        reference = field.get("$ref", "")
        is_open = not field.get("plain") or reference.startswith(_REFERENCE)
        is_open = is_open and reference.removeprefix(_REFERENCE) not in _ENUMS
    if is_open:
        field.pop("plain", None)
    return is_open


_ENUMS = frozenset(name for name in vars(words) if name[0].isupper()) | {"Backend"}


if __name__ == "__main__":
    sys.stdout.write(render())
