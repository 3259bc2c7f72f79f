"""Writes one page for each component: its fields, in the names of each language, and its outputs.

Everything is read from the schema from which Pulumi generates the SDKs.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from toolchain.site.in_languages import LANGUAGES, examples, tab
from toolchain.site.staging import ROOT

Schema = Mapping[str, Any]
_SCHEMA = ROOT / "kthena_components/provider/schema.json"
_PREFIX = "kthena:index:"
_DEFAULT = re.compile(r"Default:? (?P<value>(?:[^.`]|`[^`]*`|\.(?=\S))+)\.")
_LONGEST_DEFAULT = 40
"""Characters beside the name of a field, in a column of few."""
_SIMPLE = {
    "integer": "whole number",
    "number": "number",
    "string": "text",
    "boolean": "true or false",
}


def write_components(site: Path) -> list[str]:
    """Write the pages of all components, and return their paths in the site, the list first."""
    schema: Schema = json.loads(_SCHEMA.read_text())
    folder = site / "components"
    folder.mkdir(parents=True)
    names = {token.removeprefix(_PREFIX): body for token, body in schema["resources"].items()}
    (folder / "index.md").write_text("\n".join(_index(names)) + "\n")
    for name, body in names.items():
        (folder / f"{name}.md").write_text("\n".join(_page(schema, name, body)) + "\n")
    return ["components/index.md", *(f"components/{name}.md" for name in names)]


def _index(names: Mapping[str, Schema]) -> Iterator[str]:
    yield "# Components\n"
    yield (
        "Field names are camelCase in TypeScript, Java and YAML, PascalCase in Go and C#, and "
        "snake_case in Python. The pages show the name in YAML, and below it the one in Python "
        "if it differs. Below each table is an example of each field. Some fields exclude each "
        "other: the text of the field says so.\n"
    )
    yield "| component | what it is |\n|---|---|"
    for name, body in names.items():
        yield f"| [{name}]({name}.md) | {_told(body)[0]} |"


def _page(schema: Schema, name: str, body: Schema) -> Iterator[str]:
    told, example = _told(body)
    yield f"# {name}\n\n{told}\n\n{example}\n"
    yield "## Fields\n"
    required = set(body.get("requiredInputs", ()))
    yield from _table(schema, body["inputProperties"], required)
    yield from examples(name, body["inputProperties"], list(required))
    yield "## Outputs\n"
    yield from _table(schema, body.get("properties", {}), set())
    for token in _used(schema, body["inputProperties"]):
        kind = schema["types"][f"{_PREFIX}{token}"]
        yield f"## {token}\n\n{kind.get('description', '')}\n"
        if "enum" in kind:
            yield "One of " + ", ".join(f"`{one['value']}`" for one in kind["enum"]) + ".\n"
        else:
            required = set(kind.get("required", ()))
            yield from _table(schema, kind["properties"], required)
            yield from examples(token, kind["properties"], list(required))


def _told(body: Schema) -> tuple[str, str]:
    """Split the description of a component: a sentence, and its example in each language."""
    told, _, shown = body["description"].partition("\n\n")
    (title,) = re.findall(r"^### (.*)$", shown, re.MULTILINE)
    programs = dict(re.findall(r"^```(\w+)\n(.*?)^```$", shown, re.DOTALL | re.MULTILINE))
    written = (tab(language, programs[language.fence].split("\n")[:-1]) for language in LANGUAGES)
    return told, "\n".join([f"## Example: {title}\n", *written])


def _table(schema: Schema, fields: Mapping[str, Schema], required: set[str]) -> Iterator[str]:
    if not fields:
        yield "None.\n"
        return
    yield "| field | meaning |\n|---|---|"
    for name, field in fields.items():
        told = field.get("description", "").replace("|", "\\|").replace("<", "&lt;")
        default = "required" if name in required else _default(told)
        parts = filter(None, (_names(name), _type(schema, field), default))
        yield f"| {'<br>'.join(parts)} | {told} |"
    yield ""


def _default(told: str) -> str:
    """Return the default that a description states; one word is code.

    What the description explains after it, or in many words, stays there alone.
    """
    stated = _DEFAULT.search(told)
    value = re.split(r"[:;] ", stated["value"])[0] if stated else ""
    if re.fullmatch(r"[\w./-]+", value):
        return f"default `{value}`"
    return f"default {value}" if 0 < len(value) <= _LONGEST_DEFAULT else ""


def _names(name: str) -> str:
    """Write the name of a field, and the one in Python where it is another."""
    python = snake(name)
    return f"`{name}`" if python == name else f"`{name}`<br>`{python}`"


def snake(name: str) -> str:
    """Return the name of a field in Python."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _type(schema: Schema, field: Schema) -> str:
    if "oneOf" in field:
        return " or ".join(dict.fromkeys(_type(schema, one) for one in field["oneOf"]))
    reference = str(field.get("$ref", ""))
    if reference.startswith("#/types/"):
        token = reference.removeprefix(f"#/types/{_PREFIX}")
        return f"[{token}](#{token.lower()})"
    if field.get("type") == "array":
        return f"list of {_type(schema, field.get('items', {}))}"
    if field.get("type") == "object":
        values = field.get("additionalProperties", {})
        return f"map of {_type(schema, values)}"
    return _SIMPLE.get(str(field.get("type")), "anything")


def _used(schema: Schema, fields: Mapping[str, Schema]) -> list[str]:
    """List the types that fields use, directly or inside others, in the order of their use."""
    found: dict[str, None] = {}
    waiting = list(fields.values())
    for field in waiting:
        reference = str(field.get("$ref", ""))
        if reference.startswith("#/types/"):
            token = reference.removeprefix(f"#/types/{_PREFIX}")
            if token not in found:
                found[token] = None
                waiting += schema["types"][f"{_PREFIX}{token}"].get("properties", {}).values()
        for nested in ("items", "additionalProperties"):
            if isinstance(field.get(nested), Mapping):
                waiting.append(field[nested])
        waiting += field.get("oneOf", ())
    return list(found)
