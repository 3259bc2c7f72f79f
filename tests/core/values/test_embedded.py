"""YAML inside a manifest, and numbers as Go writes them."""

import pytest

from kthena_components.core.values.unknown import Unknown
from kthena_components.core.values.values_in_text import (
    MOST_LEVELS,
    MOST_TEXT,
    go_text,
    read_yaml_text,
)
from tests.support.peers import LATE


def test_yaml_and_json_are_read() -> None:
    assert read_yaml_text("a: [1, {b: true}]", "x") == {"a": [1, {"b": True}]}
    assert read_yaml_text('{"a": null}', "x") == {"a": None}


@pytest.mark.parametrize("value", [None, 3, {"a": 1}, ["b"]])
def test_what_is_no_text_is_given_back(value: object) -> None:
    assert read_yaml_text(value, "x") == value


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (LATE, "x is not known yet"),
        (f"a: {LATE}", "x is not known yet"),
        ("a: &b 1\nc: *b", "x uses aliases, which are not resolved here"),
        ("&a [*a]", "x uses aliases, which are not resolved here"),
        ("[" * (MOST_LEVELS + 1), f"x is nested more deeply than {MOST_LEVELS} levels"),
        (
            "a" * (MOST_TEXT + 1),
            f"x has {MOST_TEXT + 1} characters, and at most {MOST_TEXT} are read",
        ),
        ("a: [", "x is not valid YAML (ParserError)"),
        ("a: !!python/object:os.system {}", "x is not valid YAML (ConstructorError)"),
        ("{[a]: b}", "x is not valid YAML (ConstructorError)"),
        ("a: 1\n---\nb: 2", "x is not valid YAML (ComposerError)"),
        ("a: " + "9" * 5000, "x is not valid YAML (ValueError)"),
        ("\x00", "x is not valid YAML (ReaderError)"),
    ],
)
def test_what_cannot_be_read_says_why(text: str, because: str) -> None:
    assert read_yaml_text(text, "x") == Unknown(because)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (8, "8"),
        (8.0, "8"),
        (0.9, "0.9"),
        (True, "true"),
        ("", ""),
        ("1048576", "1048576"),
        (999999, "999999"),
        (131072, "131072"),
        (1000000, "1e+06"),
        (1048576, "1.048576e+06"),
        (-2097152.0, "-2.097152e+06"),
        (None, "<nil>"),
    ],
)
def test_go_writes_a_scalar_so(value: object, written: str) -> None:
    assert go_text(value) == written


def test_no_number_is_too_large() -> None:
    assert go_text(10**5000).startswith("0x")
    assert go_text(float("inf")) == "inf"
    assert go_text(float("nan")) == "nan"
