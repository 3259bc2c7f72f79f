"""The example of each component: all languages, of which Python and YAML state the same."""

import re
from typing import Any

import pulumi
import pytest
import yaml

import kthena_components
from kthena_components.languages import Names, read_schema
from tests.support.recorder import attempt

LANGUAGES = ["typescript", "python", "go", "csharp", "java", "yaml"]
COMPONENTS = [token.rpartition(":")[2] for token in read_schema()["resources"]]


def blocks(component: str) -> dict[str, str]:
    """Return the example in each language."""
    description = read_schema()["resources"][f"kthena:index:{component}"]["description"]
    found = re.findall(r"^```(\w+)\n(.*?)^```$", description, re.DOTALL | re.MULTILINE)
    assert [language for language, _ in found] == LANGUAGES
    return dict(found)


@pytest.mark.parametrize("component", COMPONENTS)
def test_python_runs_and_is_the_program_in_yaml(
    component: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = blocks(component)
    ((name, stated),) = yaml.safe_load(shown["yaml"])["resources"].items()
    seen: dict[str, Any] = {}
    made = getattr(kthena_components, component)

    def construct(given: str, args: Any) -> Any:
        seen[given] = args
        return made(given, args)

    monkeypatch.setattr(kthena_components, component, construct)
    monkeypatch.setattr(pulumi, "export", lambda *_: None)
    recorded = attempt(lambda: exec(shown["python"], {}))  # noqa: S102 - our own example
    assert recorded.error is None
    names = Names.of(f"kthena:index:{component}")
    assert seen == {name: names.to_args(stated["properties"])}


@pytest.mark.parametrize("component", COMPONENTS)
def test_each_language_has_each_value(component: str) -> None:
    shown = blocks(component)
    ((_, stated),) = yaml.safe_load(shown["yaml"])["resources"].items()
    values = set(_leaves(stated["properties"])) - {"vllm", "hard"}  # which are enums elsewhere
    for language, text in shown.items():
        assert [value for value in values if value.lower() not in text.lower()] == [], language


def _leaves(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in _leaves(item)]
    if isinstance(value, list):
        return [leaf for item in value for leaf in _leaves(item)]
    return [str(value)]
