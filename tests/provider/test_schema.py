"""The committed schema: what programs in other languages see of the args."""

from pathlib import Path
from typing import Any

import pytest

from kthena_components import __version__
from kthena_components.core.spec import enums as words
from kthena_components.languages import read_schema, schema_text, snake_case
from kthena_components.provider.schema import COMPONENTS, render
from kthena_components.systems import EMITTERS

ROOT = Path(__file__).parents[2]
SCHEMA = read_schema()
TYPES: dict[str, Any] = SCHEMA["types"]
RESOURCES: dict[str, Any] = SCHEMA["resources"]
ARGS: dict[type, Any] = {
    component: component.__init__.__annotations__["args"] for component in COMPONENTS
}


def field(kind: str, name: str) -> dict[str, Any]:
    return dict(TYPES[f"kthena:index:{kind}"]["properties"][name])


def test_it_is_what_the_args_say() -> None:
    assert schema_text() == render(), "run `make language-schema`"


def test_it_has_the_version_of_the_package() -> None:
    assert SCHEMA["version"] == __version__


def test_type_tokens_are_those_of_python_programs() -> None:
    assert set(RESOURCES) == {f"kthena:index:{component.__name__}" for component in COMPONENTS}


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda component: component.__name__)
def test_every_input_of_a_component_is_there_under_its_own_name(component: type) -> None:
    made = RESOURCES[f"kthena:index:{component.__name__}"]
    assert {snake_case(name) for name in made["inputProperties"]} == set(
        ARGS[component].__annotations__
    )
    required = {snake_case(name) for name in made.get("requiredInputs", [])}
    assert required == ARGS[component].__required_keys__


def test_every_field_is_described_in_the_words_of_other_languages() -> None:
    ours = {
        snake_case(name)
        for made in [*TYPES.values(), *RESOURCES.values()]
        for group in ("properties", "inputProperties")
        for name in made.get(group, {})
        if snake_case(name) != name
    }
    for token, made in [*TYPES.items(), *RESOURCES.items()]:
        for group in ("properties", "inputProperties"):
            for name, stated in made.get(group, {}).items():
                assert stated["description"], f"{token}.{name}"
                assert not ours & set(stated["description"].split()), f"{token}.{name}"


def test_words_with_few_values_are_enums() -> None:
    enums = {token.rpartition(":")[2]: made for token, made in TYPES.items() if "enum" in made}
    assert set(enums) == {"Backend"} | {name for name in vars(words) if name[0].isupper()} - {
        "StrEnum"
    }
    assert [value["value"] for value in enums["Backend"]["enum"]] == list(EMITTERS)


def test_outputs_are_taken_where_python_takes_them() -> None:
    plain = {name for name in ("image", "kind", "port") if field("Engine", name).get("plain")}
    assert plain == {"kind", "port"}
    serving = RESOURCES["kthena:index:ModelServing"]["inputProperties"]
    assert "plain" not in serving["roles"] | serving["roles"]["items"]
    assert (
        "plain"
        not in field("HyperNode", "labels") | field("HyperNode", "labels")["additionalProperties"]
    )
    assert serving["waivers"]["plain"]


def test_amounts_are_numbers_or_texts() -> None:
    both = [{"type": "integer"}, {"type": "string"}]
    queue = RESOURCES["kthena:index:Queue"]["inputProperties"]
    amounts = [
        field("RollingUpdate", "partition"),
        field("ServingRole", "maxUnavailable"),
        queue["deserved"]["additionalProperties"],
    ]
    assert [each["oneOf"] for each in amounts] == [both, both, both]


def test_examples_and_their_page_name_the_version_of_the_package() -> None:
    page = (ROOT / "docs" / "languages.md").read_text()
    assert f"pulumi plugin install resource kthena {__version__} --file" in page
    for path in (ROOT / "examples" / "languages").glob("*/Pulumi.yaml"):
        assert f"  kthena: kthena@{__version__}\n" in path.read_text(), path
