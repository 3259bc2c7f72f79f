"""A provider of another release than the tested one is named, with its remedy."""

import json
import os
import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import version

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from kthena_components.resources import _access
from tests.resources.build import serving
from tests.support.engine import ROOT
from tests.support.recorder import record
from tests.support.specs import ENGINE_RAY, NATIVE_8B

SAID = (
    "pulumi-kubernetes 4.34.2 is installed, so Pulumi starts the provider 4.34.2. What "
    "kthena-components registers is tested with it; what a cluster does with that, only with 4.25. "
    "docs/own-program.md says what differs. For the tested release: "
    "pip install 'pulumi-kubernetes==4.25.*'"
)
DECLARED = {
    each.name: each.specifier
    for each in map(
        Requirement, tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    )
}
NAMED = "KTHENA_NEWEST_SDK"
"""Set by `make test-newest-sdk`."""


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    _access.provider_version.cache_clear()
    _access.warn_of_untested.cache_clear()
    yield
    _access.provider_version.cache_clear()
    _access.warn_of_untested.cache_clear()


def two_servings() -> None:
    serving(ENGINE_RAY, name="one")
    serving(NATIVE_8B, name="two")


def test_another_release_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_access, "version", lambda _: "4.34.2")
    seen = record(two_servings)
    assert [text for level, text, _ in seen.logs if level == "WARNING"] == [SAID]
    sent = {r.request.version for r in seen.resources if r.type.startswith("kubernetes:")}
    assert sent == {"4.34.2"}


def test_the_tested_release_needs_no_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_access, "version", lambda _: f"{_access.TESTED}.7")
    seen = record(two_servings)
    assert [text for level, text, _ in seen.logs if level == "WARNING"] == []


@pytest.mark.parametrize("release", ["4.25.0", "4.29.0", "4.34.2", "4.99.0"])
def test_the_wheel_can_be_installed_with_each_release_of_the_fourth_provider(release: str) -> None:
    assert release in DECLARED["pulumi-kubernetes"]


@pytest.mark.parametrize("release", ["4.24.1", "5.0.0"])
def test_the_wheel_excludes_other_releases(release: str) -> None:
    assert release not in DECLARED["pulumi-kubernetes"]


def test_the_tested_release_is_the_one_that_pip_is_told() -> None:
    told = Requirement(_access.REQUIREMENT).specifier
    built = json.loads((ROOT / "toolchain" / "versions.json").read_text())["programs"]
    (ours,) = (each["version"] for each in built if each["name"] == "pulumi-resource-kubernetes")
    assert ours in told
    assert "4.26.0" not in told


@pytest.mark.skipif(NAMED not in os.environ, reason="make test-newest-sdk runs it in its own venv")
def test_the_newest_release_is_the_one_that_runs() -> None:
    """That is what pip takes from the ranges of the wheel, and not what the lock has."""
    locked = (ROOT / "requirements.lock").read_text()
    for name in ("pulumi", "pulumi-kubernetes"):
        assert version(name) in DECLARED[name]
        pinned = re.search(rf"^{name}==(\S+)", locked, re.MULTILINE)
        assert pinned is not None
        assert Version(version(name)) > Version(pinned[1])
