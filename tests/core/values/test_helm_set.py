"""Values as `helm --set` writes them."""

import pytest

from kthena_components.core.values.unknown import Unknown
from kthena_components.core.values.values_in_text import parsed, steps_of, with_value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8", 8),
        ("-1", -1),
        ("0", 0),
        ("08", "08"),
        ("TRUE", True),
        ("null", None),
        ("0.9", "0.9"),
        (r"a\,b", "a,b"),
        ("{--tensor-parallel-size,8}", ["--tensor-parallel-size", 8]),
        ("", ""),
        (7, 7),
    ],
)
def test_a_text_has_the_type_that_helm_gives_it(text: object, value: object) -> None:
    assert parsed(text, as_text=False) == value


def test_a_forced_text_is_one() -> None:
    assert [parsed(text, as_text=True) for text in ("8", "true")] == ["8", "true"]


@pytest.mark.parametrize(
    ("values", "name", "after"),
    [
        ({"a": {"b": 1}, "c": 2}, "a.b", {"a": {"b": 8}, "c": 2}),
        ({"a": [{"b": 1, "c": 2}]}, "a[0].b", {"a": [{"b": 8, "c": 2}]}),
        (None, "a[1]", {"a": [None, 8]}),
        ({}, r"a\.b/c.d", {"a.b/c": {"d": 8}}),
    ],
)
def test_one_value_is_changed(values: object, name: str, after: object) -> None:
    steps = steps_of(name)
    assert not isinstance(steps, Unknown)
    assert with_value(values, steps, 8) == after


@pytest.mark.parametrize("name", [None, "", "a..b", "a[x]", "a[9999]", "a=b", "a." * 40 + "a"])
def test_other_names_are_not_read(name: object) -> None:
    assert isinstance(steps_of(name), Unknown)


@pytest.mark.parametrize(("values", "name"), [("x", "a"), ({"a": {}}, "a[0]"), ({"a": 1}, "a.b")])
def test_a_value_that_does_not_fit_is_said(values: object, name: str) -> None:
    steps = steps_of(name)
    assert not isinstance(steps, Unknown)
    after = with_value(values, steps, 8)
    inner = after["a"] if isinstance(after, dict) else after
    assert isinstance(inner, Unknown)
