"""The schema for a registry has what its page shows."""

import json

import pytest

from kthena_components.languages import read_schema
from tests.support.for_each import for_each
from toolchain.registry_schema import main, publishable

REPOSITORY = "https://github.com/acme/kthena_components"
SHOWN = (
    "displayName", "description", "homepage", "repository", "publisher", "logoUrl", "keywords",
    "license", "language",
)  # fmt: skip


def test_it_has_all_that_a_page_shows() -> None:
    schema = publishable(f"{REPOSITORY}.git", "https://acme.example/logo.png")
    assert [name for name in SHOWN if not schema.get(name)] == []
    assert (schema["homepage"], schema["publisher"]) == (REPOSITORY, "acme")
    assert set(schema["language"]) == {"nodejs", "python", "go", "csharp", "java"}
    assert {**schema, **read_schema()} == schema


def test_without_a_logo_nothing_is_fetched() -> None:
    assert "logoUrl" not in publishable(REPOSITORY)
    assert "logoUrl" not in read_schema()


@for_each("address", ["", "acme/kthena", "https://github.com", "https://github.com/acme"])
def test_another_address_is_one_sentence(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([address])
    assert ended.value.code == 2
    assert "is not an address of a repository: write one such as" in capsys.readouterr().err


def test_it_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([REPOSITORY]) == 0
    assert json.loads(capsys.readouterr().out) == publishable(REPOSITORY)
