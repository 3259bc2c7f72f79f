"""Plain scalars are what Kubernetes makes of them: the values are those of sigs.k8s.io/yaml v1.6.0.

`conformance validation` compares random ones with a real API server.
"""

import math
from typing import Any

import pytest

from kthena_components.cli.convert.output import dump
from kthena_components.reading.loader import Loader
from tests.support.for_each import for_each

BASES = {
    "0o555": 0o555, "0O555": 0o555, "0555": 0o555, "-0o17": -15, "+0o17": 15, "0o8": "0o8",
    "0o": "0o", "0o5_5": 45, "0o_5": 5, "0x1F": 31, "0X1f": 31, "0b11": 3, "0B11": 3, "-0b11": -3,
    "0b_": "0b_", "0x_": "0x_", "1_000": 1000, "0b-1": -1, "-0b-1": "-0b-1", "0B-1": "0B-1",
    "08": 8.0, "0_8": 8.0, "-0": 0, "00": 0, "1_": 1, "_1": "_1", "1__0": 10, "0x1_": 1,
    "0x1FFFFFFFFFFFFFFFFF": "0x1FFFFFFFFFFFFFFFFF", "18446744073709551615": 2**64 - 1,
    "18446744073709551616": 2.0**64, "+9223372036854775808": 2.0**63,
}  # fmt: skip
REALS = {
    "1e3": 1000.0, "1E-3": 0.001, "1.e1": 10.0, "1.": 1.0, "-.5": -0.5, "+.5": 0.5, ".5e1": 5.0,
    ".5_0": 0.5, "._5": "._5", ".5_": ".5_", "-.5_": -0.5, ".": ".", "1e400": "1e400", "1e": "1e",
    "-.inf": -math.inf, "+.Inf": math.inf, "inf": "inf", "1.5.0": "1.5.0", "0x1p3": "0x1p3",
}  # fmt: skip
WORDS = {
    "y": True, "Y": True, "n": False, "on": True, "OFF": False, "True": True, "yEs": "yEs",
    "~": None, "Null": None, "nULL": "nULL", "=": "=", "<<": "<<", "22:30": "22:30",
    "2026-01-01": "2026-01-01",
}  # fmt: skip


@for_each(("scalar", "value"), [*(BASES | REALS | WORDS).items()])
def test_a_plain_scalar_is_what_kubernetes_makes_of_it(scalar: str, value: object) -> None:
    found = _read(f"a: {scalar}")
    assert (type(found), found) == (type(value), value)


@for_each("scalar", [*BASES, *REALS, *WORDS])
def test_a_quoted_or_written_scalar_is_text(scalar: str) -> None:
    assert _read(f"a: '{scalar}'") == scalar
    assert _read(dump({"a": scalar})) == scalar


def test_not_a_number_is_read() -> None:
    assert math.isnan(_read("a: .NaN"))


@pytest.mark.parametrize(
    ("tagged", "value"), [("!!str 1", "1"), ("!!int '5'", 5), ("!!float 5", 5)]
)
def test_a_tag_decides(tagged: str, value: object) -> None:
    assert _read(f"a: {tagged}") == value


ANCHORS = {
    "a: [&x 1, *x, &x two, *x]": [1, 1, "two", "two"],
    "b: &x {c: 1}\nd: &x {e: 2}\na: {<<: *x, f: 'g &x &x'}": {"e": 2, "f": "g &x &x"},
    "b: !!str &x 1\nc: &x !!int '2'\na: [*x, h&x&x]": [2, "h&x&x"],
    "b: &x 1\na: &x [&x 2, *x, &y 3, &y 4, *y]": [2, 2, 3, 4, 4],
    "b: &x 1\nc: &x 2\nd: &x-2 3\na: [*x, *x-2, &x-4 4, *x-4]": [2, 3, 4, 4],
}
"""Verdicts of Kustomize 5.5.0 and 5.7.1."""


@for_each(("text", "value"), [*ANCHORS.items()])
def test_an_alias_is_the_last_node_with_its_anchor(text: str, value: object) -> None:
    assert _read(text) == value


def _read(text: str) -> Any:
    loader = Loader(text)
    try:
        return loader.build(loader.get_single_node())["a"]
    finally:
        loader.dispose()
