"""A release: all places state one version, and its notes come from the changelog."""

import shutil
from pathlib import Path

import pytest

from kthena_components import __version__
from toolchain.release import ROOT, disagreements, notes, stated_versions


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Copy the files that state versions."""
    for name in (*stated_versions(), "CHANGELOG.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_all_places_state_the_version_of_the_package() -> None:
    assert list(disagreements(__version__, None)) == []
    assert len(stated_versions()) >= 4


def test_another_version_is_named_with_its_place(copy: Path) -> None:
    policy = copy / "policies/PulumiPolicy.yaml"
    policy.write_text(policy.read_text().replace(__version__, "9.9.9"))
    assert list(disagreements(__version__, None, copy)) == [
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
    assert notes("0.1.0", copy) == "- old"
    assert notes("Unreleased", copy) == "- new"
