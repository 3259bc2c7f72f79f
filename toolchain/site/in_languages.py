"""Writes an example of each field of a type in six languages, in the names of their SDKs."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from kthena_components.languages import read_schema, snake_case

Schema = Mapping[str, Any]
_TYPES = "#/types/"
_WORDS_OF_JAVA = frozenset({"interface"})
"""Names of fields after which the generated SDK writes an underscore."""
_ANY: Schema = {"$ref": "pulumi.json#/Any", "plain": True}


@cache
def example_values() -> Mapping[str, Mapping[str, Any]]:
    """Return the example of each field, by type."""
    text = Path(__file__).with_name("examples.yaml").read_text(encoding="utf-8")
    values: Mapping[str, Mapping[str, Any]] = yaml.safe_load(text)
    return values


@dataclass(frozen=True, slots=True)
class Language:
    """How one language writes values. `{}` stands for what is inside."""

    name: str
    fence: str
    field: str
    """A field, by `name`, `Name` or `python_name`, and its `value`."""
    inline: str
    """An object of a `type` inside another one."""
    between: str = ", "
    array: str = "[{}]"
    mapping: str = "{{{}}}"
    entry: str = "{key}: {value}"
    true: str = "true"
    false: str = "false"

    def fields(self, schema: Schema, required: Sequence[str], values: Schema) -> Iterator[str]:
        """Write each field of an object that has a value."""
        for name, field in schema.items():
            if name in values:
                value = self.value(field, values[name], required=name in required)
                java = f"{name}_" if name in _WORDS_OF_JAVA else name
                names = {"name": name, "java": java, "Name": name[0].upper() + name[1:]}
                yield self.field.format(**names, python_name=snake_case(name), value=value)

    def value(self, field: Schema, value: Any, *, required: bool = False) -> str:
        """Write the value of a field."""
        token = str(field.get("$ref", "")).removeprefix(_TYPES)
        kind = read_schema()["types"].get(token)
        if kind and "enum" in kind:
            word = next(one["name"] for one in kind["enum"] if one["value"] == value)
            return self.word(token.rpartition(":")[2], word, value, required=required)
        if kind:
            made = (
                line.removesuffix(",")
                for line in self.fields(kind["properties"], kind.get("required", ()), value)
            )
            return self.inline.format(self.between.join(made), type=token.rpartition(":")[2])
        if isinstance(value, list):
            items = [self.value(field.get("items", _ANY), one, required=True) for one in value]
            return self.listed(field, ", ".join(items))
        if isinstance(value, dict):
            return self.mapped(field, value)
        return self.simple(field, value, required=required)

    def listed(self, field: Schema, items: str) -> str:  # noqa: ARG002 - Go and Java read it
        """Write a list."""
        return self.array.format(items)

    def mapped(self, field: Schema, value: Schema) -> str:
        """Write a map, whose keys are the user's."""
        inside = field.get("additionalProperties", _ANY)
        made = (
            self.entry.format(key=json.dumps(key), value=self.value(inside, one, required=True))
            for key, one in value.items()
        )
        return self.mapping.format(", ".join(made))

    def word(self, kind: str, word: str, value: str, *, required: bool) -> str:  # noqa: ARG002
        """Write a value of an enum."""
        return json.dumps(value)

    def simple(self, field: Schema, value: Any, *, required: bool) -> str:  # noqa: ARG002
        """Write a string, a number or a truth."""
        if isinstance(value, bool):
            return self.true if value else self.false
        return json.dumps(value)


class _CSharp(Language):
    def word(self, kind: str, word: str, value: str, *, required: bool) -> str:  # noqa: ARG002
        return f"{kind}.{word}"

    def mapped(self, field: Schema, value: Schema) -> str:
        written = super().mapped(field, value)
        return (
            written
            if "additionalProperties" in field
            else f"new Dictionary<string, object> {written}"
        )

    def listed(self, field: Schema, items: str) -> str:
        if "items" in field:
            return super().listed(field, items)
        return f"new List<object> {{ {items} }}"

    def simple(self, field: Schema, value: Any, *, required: bool) -> str:
        written = super().simple(field, value, required=required)
        if "oneOf" not in field or required:
            return written
        return f"(Input<{'int' if isinstance(value, int) else 'string'}>){written}"


class _Java(Language):
    def word(self, kind: str, word: str, value: str, *, required: bool) -> str:  # noqa: ARG002
        return f"{kind}.{word}"

    def simple(self, field: Schema, value: Any, *, required: bool) -> str:
        written = super().simple(field, value, required=required)
        if "oneOf" not in field or not required:
            return written
        return f"Either.of{'Left' if isinstance(value, int) else 'Right'}({written})"

    def listed(self, field: Schema, items: str) -> str:
        return items if "items" in field else f"List.of({items})"


class _Go(Language):
    def word(self, kind: str, word: str, value: str, *, required: bool) -> str:  # noqa: ARG002
        constant = f"kthena.{kind}{'_' if '_' in word else ''}{word}"
        return constant if required else f"new({constant})"

    def simple(self, field: Schema, value: Any, *, required: bool) -> str:
        written = super().simple(field, value, required=required)
        kind = {"string": "String", "integer": "Int", "boolean": "Bool"}.get(str(field.get("type")))
        if kind is None or (field.get("plain") and required):
            return written
        return f"pulumi.{kind}Ref({written})" if field.get("plain") else f"pulumi.{kind}({written})"

    def listed(self, field: Schema, items: str) -> str:
        inside = field.get("items", _ANY)
        token = str(inside.get("$ref", "")).rpartition(":")[2]
        kind = "[]string" if inside.get("type") == "string" else f"kthena.{token}Array"
        return f"{'[]any' if inside is _ANY else kind}{{{items}}}"

    def mapped(self, field: Schema, value: Schema) -> str:
        inside = field.get("additionalProperties", _ANY)
        plain = {"string": "string", "integer": "int"}.get(str(inside.get("type")), "any")
        kind = f"map[string]{plain}" if inside.get("plain") else "pulumi.StringMap"
        return kind + super().mapped(field, value)


LANGUAGES: Sequence[Language] = (
    Language("Python", "python", '"{python_name}": {value},', "{{{}}}",
             true="True", false="False"),
    Language("TypeScript", "typescript", "{name}: {value},", "{{ {} }}"),
    _Go("Go", "go", "{Name}: {value},", "kthena.{type}Args{{{}}}"),
    _CSharp("C#", "csharp", "{Name} = {value},", "new {type}Args {{ {} }}",
            array="{{ {} }}", mapping="{{ {} }}", entry="{{ {key}, {value} }}"),
    _Java("Java", "java", ".{java}({value})", "{type}Args.builder(){}.build()",
          between="", mapping="Map.of({})", entry="{key}, {value}"),
    Language("YAML", "yaml", "{name}: {value}", "{{{}}}"),
)  # fmt: skip


def examples(name: str, schema: Schema, required: Sequence[str]) -> Iterator[str]:
    """Write a tab for each language, with a line for each field of a type."""
    values = example_values()[name]
    for language in LANGUAGES:
        yield tab(language, language.fields(schema, required, values))


def tab(language: Language, lines: Iterable[str]) -> str:
    """Write the tab of one language. Tabs that follow each other are one block."""
    code = (f"    {line}".rstrip() for line in (f"```{language.fence}", *lines, "```"))
    return "\n".join([f'=== "{language.name}"\n', *code, ""])
