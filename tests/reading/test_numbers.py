"""Numbers that Python reads differently than Kubernetes, or refuses to read."""

import json
import math
from typing import Any

import pytest

from kthena_components.reading.documents import read_documents
from kthena_components.reading.files import Unreadable

LONG = "9" * 5000


def bodies(text: str, name: str) -> list[Any]:
    return [getattr(each, "body", each) for each in read_documents(text, name, lambda *_: True)]


def test_a_long_integer_is_text_in_yaml_and_infinite_in_json() -> None:
    # Go: strconv.ParseInt and ParseFloat refuse it, so go-yaml leaves the text.
    assert bodies(f"a: {LONG}\nb: -{LONG}\nc: 1\n", "a.yaml") == [
        {"a": LONG, "b": f"-{LONG}", "c": 1}
    ]
    assert bodies(f'{{"a": {LONG}, "b": 1}}', "a.json") == [{"a": math.inf, "b": 1}]
    assert bodies("a: 100000000000000000000000\n", "a.yaml") == [{"a": 1e23}]


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_json_has_no_such_number(word: str) -> None:
    (told,) = bodies(f'{{"a": {word}}}', "a.json")
    assert isinstance(told, Unreadable)
    assert told.because == f"is not JSON: {word} is not a number there"


def test_every_integer_of_64_bits_stays_one() -> None:
    for number in (0, 2**31, 2**63 - 1, 2**64 - 1, -(2**63)):
        assert bodies(f"a: {number}\n", "a.yaml") == [{"a": number}]
        assert bodies(json.dumps({"a": number}), "a.json") == [{"a": number}]
