"""A release: all places state one version, and its notes come from the changelog."""

import re
import shutil
from pathlib import Path

import pytest

from kthena_components import __version__
from toolchain.release import ROOT, disagreements, notes, stated_versions


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Copy the files that state versions."""
    for name in {*dict(stated_versions()), "CHANGELOG.md"}:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_all_places_state_the_version_of_the_package() -> None:
    assert list(disagreements(__version__, None)) == []


def test_a_wrong_version_in_any_place_is_refused(copy: Path) -> None:
    """Each place of each file is made wrong, one after the other."""
    places = [
        (path, found.span())
        for path in dict(stated_versions())
        for found in re.finditer(
            rf"(?<![\d.]v)(?<![\d.]){re.escape(__version__)}(?![\d.])", (copy / path).read_text()
        )
    ]
    assert len(places) > 12
    wrong = {}
    for path, (start, end) in places:
        text = (copy / path).read_text()
        (copy / path).write_text(f"{text[:start]}9.9.9{text[end:]}")
        wrong[path, text[:start].count("\n") + 1] = list(disagreements(__version__, None, copy))
        (copy / path).write_text(text)
    assert {place: said for place, said in wrong.items() if not said} == {}
    assert wrong["policies/PulumiPolicy.yaml", 2] == [
        f"policies/PulumiPolicy.yaml states 9.9.9, but the package is {__version__}"
    ]


def test_a_tag_needs_the_version_and_its_notes(copy: Path) -> None:
    (copy / "CHANGELOG.md").write_text(
        "# Changelog\n\n## Unreleased\n\n- new\n\n## 0.1.0\n\n- old\n"
    )
    assert list(disagreements(__version__, "v9.9.9", copy)) == [
        f"the tag is v9.9.9, but the package is {__version__}: tag v{__version__}",
        f"CHANGELOG.md has no section '## {__version__}': rename '## Unreleased'",
    ]
    *_, said = disagreements("0.1.0", "v0.1.0", copy)
    assert said.startswith("CHANGELOG.md has changes below '## Unreleased'")
    assert notes("0.1.0", copy) == "- old"
    assert notes("Unreleased", copy) == "- new"
