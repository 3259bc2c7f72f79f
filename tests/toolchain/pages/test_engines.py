"""docs/engines.md is what the tables say."""

from pathlib import Path

import pytest

from toolchain.pages.engines import render

ROOT = Path(__file__).parents[3]


def test_the_page_of_engines_is_current() -> None:
    """`make engine-tables` writes it."""
    assert (ROOT / "docs" / "engines.md").read_text() == render()


def test_the_page_names_the_newest_release_and_what_went() -> None:
    page = render()

    assert "| 0.18.0 | 227 | 6 | `--swap-space`" in page


@pytest.mark.parametrize(
    "rule",
    ["pp-with-ray", "ray-over-pods", "ray-in-image", "kv-connector-known", "executor-stated"],
)
def test_the_page_lists_the_rules_whose_release_stands_anywhere_in_them(rule: str) -> None:
    assert f"\n| [{rule}](policies.md#{rule}) | " in render()


@pytest.mark.parametrize("rule", ["tp-divides-heads", "pp-within-layers", "world-size-equals-gpus"])
def test_the_page_leaves_out_rules_of_every_release(rule: str) -> None:
    assert f"[{rule}](" not in render()
