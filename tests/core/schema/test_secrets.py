"""What a Secret may contain, and that no report shows it."""

import base64
import binascii
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kthena_components.checker.manifest import check_manifest
from kthena_components.core.schema.language import matcher
from kthena_components.core.values.regex import FORMATS
from tests.support.for_each import for_each


def said(**parts: Any) -> list[str]:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, **parts}
    return [str(finding) for finding in check_manifest(secret)]


# Text, and whether encoding/json of Go 1.25 decodes it as bytes.
DECODED = [
    ("", True),
    ("YW\nI=", True),
    ("\nYQ==\r\n", True),
    ("YQ=\n=", True),
    ("YWJj", True),
    ("YR==", True),
    ("\n", True),
    ("YQ", False),
    ("YQ==YQ==", False),
    ("=", False),
    ("Y=Q=", False),
    ("YQ== ", False),
    ("a-b_", False),
]


@for_each(("text", "decodes"), DECODED)
def test_data_is_decoded_as_by_the_api_server(text: str, decodes: bool) -> None:
    assert bool(said(data={"key": text})) is not decodes


@given(st.binary(max_size=40), st.sets(st.integers(0, 60)))
def test_encoded_bytes_with_broken_lines_are_data(content: bytes, breaks: set[int]) -> None:
    text = base64.b64encode(content).decode()
    broken = "".join(each + "\n" * (at in breaks) for at, each in enumerate(text))
    assert said(data={"key": broken}) == []


@given(st.text("aZ09+/=-", max_size=9))
def test_the_pattern_is_that_of_base64(text: str) -> None:
    try:
        base64.b64decode(text, validate=True)
        decodes = len(text) % 4 == 0
    except binascii.Error:
        decodes = False
    assert bool(matcher(FORMATS["bytes"][0])(text)) is decodes


# Part of the Secret, what is said of it.
HIDDEN = [
    ({"data": {"key": "hunter-2"}}, "data.key: is not base64. Write base64, for example YQ=="),
    ({"data": {"key": 77123}}, "data.key: is a number, but must be a string. Write it in quotes."),
    ({"stringData": {"key": 77123}}, "stringData.key: is a number, but must be a string."),
    ({"stringData": {"key": ["hunter-2"]}}, "stringData.key: is a list, but must be a string."),
    ({"stringData": {"key": {"hunter-2": 1}}}, "stringData.key: is a map, but must be a string."),
]


@for_each(("parts", "wanted"), HIDDEN)
def test_no_report_shows_what_a_secret_contains(parts: dict[str, Any], wanted: str) -> None:
    (text,) = said(**parts)
    assert text.startswith(wanted)
    assert "hunter" not in text
    assert "77123" not in text
