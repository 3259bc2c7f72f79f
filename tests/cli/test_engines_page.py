"""docs/engines.md is what the tables say."""

from pathlib import Path

from kthena_components.cli.engines_page import render

ROOT = Path(__file__).parents[2]


def test_the_page_of_engines_is_current() -> None:
    """`make engine-tables` writes it."""
    assert (ROOT / "docs" / "engines.md").read_text() == render()


def test_the_page_names_the_newest_release_and_what_went() -> None:
    page = render()

    assert "| 0.18.0 | 227 | 6 | `--swap-space`" in page
