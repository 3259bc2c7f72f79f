"""vLLM's connectors are those that its factory registers, release by release."""

import json
import re
from bisect import bisect_right
from pathlib import Path
from typing import Any

import pytest

from kthena_components.core.engines.kv_transfer import (
    CONNECTORS,
    VLLM_CONNECTORS,
    has_connector,
    releases_with,
)
from kthena_components.core.engines.option_table import load
from tests.support.for_each import for_each

REGISTERED: dict[str, list[str]] = json.loads(
    (Path(__file__).parent / "connectors.json").read_text()
)
"""The names that vllm/distributed/kv_transfer/kv_connector/factory.py of the source distributions
registers, for the first release of each set.
"""
WITHOUT_SOURCE = {"0.15.0", "0.15.1"}


def numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", release)))


def registered_in(release: str) -> set[str]:
    firsts = sorted(map(numbers, REGISTERED))
    by_number: dict[Any, list[str]] = {numbers(first): of for first, of in REGISTERED.items()}
    return set(by_number[firsts[bisect_right(firsts, numbers(release)) - 1]])


@for_each("release", [text for text in load("vllm").texts if text not in WITHOUT_SOURCE])
def test_a_release_has_the_connectors_that_its_factory_registers(release: str) -> None:
    known = {name for name in CONNECTORS if has_connector(name, numbers(release))}
    assert known == registered_in(release)


@pytest.mark.parametrize(("word", "written"), VLLM_CONNECTORS.items())
def test_a_connector_is_written_only_for_releases_that_have_it(word: str, written: Any) -> None:
    releases = map(numbers, load("vllm").texts)
    lacks = [at for at in releases if at >= written.since and not has_connector(written.name, at)]
    assert lacks == [], word


def test_messages_name_all_releases_of_a_connector() -> None:
    assert releases_with("MooncakeConnector") == "from 0.6.5 to before 0.10.1, and since 0.13.0"
    assert releases_with("NixlConnector") == "since 0.9.0"
