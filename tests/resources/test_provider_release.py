"""A provider of another release than the tested one is named, with its remedy."""

from collections.abc import Iterator

import pytest

from kthena_components.resources import _provider
from tests.resources.build import serving
from tests.support.recorder import record
from tests.support.specs import ENGINE_RAY, NATIVE_8B

SAID = (
    "pulumi-kubernetes 4.34.2 is installed, so Pulumi starts the provider 4.34.2, and this package "
    "is tested with 4.25. Install the tested release: pip install 'pulumi-kubernetes>=4.25,<4.26'"
)


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    _provider.provider_version.cache_clear()
    _provider.warn_of_untested.cache_clear()
    yield
    _provider.provider_version.cache_clear()
    _provider.warn_of_untested.cache_clear()


def two_servings() -> None:
    serving(ENGINE_RAY, name="one")
    serving(NATIVE_8B, name="two")


def test_another_release_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_provider, "version", lambda _: "4.34.2")
    seen = record(two_servings)
    assert [text for level, text, _ in seen.logs if level == "WARNING"] == [SAID]
    sent = {r.request.version for r in seen.resources if r.type.startswith("kubernetes:")}
    assert sent == {"4.34.2"}


def test_the_tested_release_needs_no_word() -> None:
    seen = record(two_servings)
    assert [text for level, text, _ in seen.logs if level == "WARNING"] == []
