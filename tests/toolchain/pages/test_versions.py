"""docs/versions.md is what the tables of releases say."""

from pathlib import Path

from kthena_components.core.schema.versions import TITLES
from toolchain.pages.versions import render

PAGE = Path(__file__).parents[3] / "docs" / "versions.md"


def test_the_page_is_current_and_has_every_system() -> None:
    """`make policies-docs` writes it."""
    page = PAGE.read_text(encoding="utf-8")
    assert page == render()
    assert [title for title in TITLES.values() if f"\n| {title} | " not in page] == []


def test_each_program_that_is_said_to_run_has_a_version() -> None:
    """A name that is not in versions.json would leave an empty cell."""
    run = {
        line.split("|")[1].strip(): line.split("|")[3].strip()
        for line in render().splitlines()
        if line.startswith("| ")
    }
    wanted = {"Kthena", "Volcano", "LWS", "KServe", "KAITO", "Pulumi", "Kubernetes"}
    assert {title for title in wanted if not run[title]} == set()
