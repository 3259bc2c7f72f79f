"""No report shows what a Secret contains."""

from typing import Any

from kthena_components.checker.manifest import check_manifest
from tests.support.for_each import for_each


def said(**parts: Any) -> list[str]:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, **parts}
    return [str(finding) for finding in check_manifest(secret)]


# Part of the Secret, what is said of it.
HIDDEN = [
    ({"data": {"key": 77123}}, "data.key: is a number, but must be a string. Write it in quotes."),
    ({"stringData": {"key": 77123}}, "stringData.key: is a number, but must be a string."),
    ({"stringData": {"key": ["hunter-2"]}}, "stringData.key: is a list, but must be a string."),
    ({"stringData": {"key": {"hunter-2": 1}}}, "stringData.key: is a map, but must be a string."),
    ({"data": "hunter-2"}, "data: is "),
    ({"stringData": 77123}, "stringData: is "),
]


@for_each(("parts", "wanted"), HIDDEN)
def test_no_report_shows_what_a_secret_contains(parts: dict[str, Any], wanted: str) -> None:
    (text,) = said(**parts)
    assert text.startswith(wanted)
    assert "hunter" not in text
    assert "77123" not in text


def test_what_a_reader_has_to_fill_in_is_no_mistake() -> None:
    """The API server rejects it, and examples are full of it."""
    assert said(data={"a": "<your token in base64>", "b": "hunter-2", "c": ""}) == []
