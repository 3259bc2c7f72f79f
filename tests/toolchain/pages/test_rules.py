"""docs/policies.md is what the docstrings of the rules say."""

from pathlib import Path

from toolchain.pages.rules import render

ROOT = Path(__file__).parents[3]


def test_the_page_of_rules_is_current() -> None:
    """`make policies-docs` writes it."""
    assert (ROOT / "docs" / "policies.md").read_text() == render()
