"""The examples of fields on the pages of the components: each field, in each language."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest
import tree_sitter_c_sharp
import yaml
from mypy import api
from tree_sitter import Language, Parser

from kthena_components.languages import read_schema, snake_case
from tests.support.for_each import for_each
from toolchain.site.in_languages import LANGUAGES, example_values, examples

PREFIX = "kthena:index:"
NAMES = {"ServingRole": "RoleArgs", "Role": "StandaloneRoleArgs"}
"""The types whose names in Python are others."""


def kinds() -> dict[str, tuple[dict[str, Any], list[str]]]:
    """Return the fields of each component and type, and which of them are required."""
    schema = read_schema()
    objects = {
        name: (one["properties"], one.get("required", []))
        for name, one in schema["types"].items()
        if "enum" not in one
    }
    components = {
        name: (one["inputProperties"], one.get("requiredInputs", []))
        for name, one in schema["resources"].items()
    }
    return {name.removeprefix(PREFIX): one for name, one in {**objects, **components}.items()}


def shown(name: str) -> dict[str, list[str]]:
    """Return the lines of the example of a type, by language."""
    text = "\n".join(examples(name, *kinds()[name]))
    found = re.findall(r'=== "(.*?)"\n\n    ```\w+\n(.*?)\n    ```', text, re.DOTALL)
    return {language: [line[4:] for line in code.split("\n")] for language, code in found}


def test_each_type_has_examples() -> None:
    assert set(example_values()) == set(kinds())


@for_each("name", sorted(kinds()))
def test_each_field_has_an_example_in_each_language(name: str) -> None:
    fields = kinds()[name][0]
    assert set(fields) <= set(example_values()[name])
    lines = shown(name)
    assert list(lines) == [language.name for language in LANGUAGES]
    for written in lines.values():
        assert len(written) == len(fields)
    assert yaml.safe_load("\n".join(lines["YAML"])) == {
        field: example_values()[name][field] for field in fields
    }
    python = ast.literal_eval("{" + "".join(lines["Python"]) + "}")
    assert list(python) == [snake_case(field) for field in fields]


@pytest.mark.programs
def test_the_examples_in_python_have_the_types_of_the_package(tmp_path: Path) -> None:
    parts = [
        f"{name.lower()}: {NAMES.get(name, f'{name}Args')} = {{{' '.join(shown(name)['Python'])}}}"
        for name in kinds()
    ]
    program = tmp_path / "program.py"
    program.write_text("\n".join(["from kthena_components.resources.args import *", *parts, ""]))
    printed, errors, status = api.run(["--strict", "--no-error-summary", str(program)])
    assert (printed + errors, status) == ("", 0)


def test_the_examples_in_csharp_can_be_parsed() -> None:
    """No compiler of C# is among the tools of this repository, but a grammar finds broken ones."""
    parser = Parser(Language(tree_sitter_c_sharp.language()))

    def is_broken(program: str) -> bool:
        return parser.parse(program.encode()).root_node.has_error

    programs = {
        name: re.findall(r"^```csharp\n(.*?)^```$", one["description"], re.DOTALL | re.MULTILINE)
        for name, one in read_schema()["resources"].items()
    }
    assert [name for name, found in programs.items() if len(found) != 1] == []
    fields = {name: "\n".join(shown(name)["C#"]) for name in kinds()}
    written = {name: f"var it = new It\n{{\n{text}\n}};\n" for name, text in fields.items()}
    written |= {name: only for name, (only,) in programs.items()}
    assert [name for name, text in written.items() if is_broken(text)] == []
    assert [name for name, text in written.items() if not is_broken(text.replace("}", "", 1))] == []
