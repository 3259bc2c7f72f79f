"""Values as TypeScript. tests/pulumi/test_languages.py asks TypeScript's compiler and Node."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kthena_components.languages import WIDTH, read, write
from tests.support.strategies import law

TEXTS = st.text(alphabet=st.characters(exclude_categories=["Cs"])) | st.sampled_from(
    ["__proto__", "constructor", "a: b", '"', "\\", ",]", "// no", "\u2028", "1e3", "null", "new"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
)


@law
@given(VALUES)
@example([["__proto__"], {"__proto__": ["__proto__"]}])
def test_what_is_written_reads_the_same(value: Any) -> None:
    assert json.dumps(read(write(value))) == json.dumps(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"name": "serve", "workerReplicas": 1}, '{ name: "serve", workerReplicas: 1 }'),
        ({"nvidia.com/gpu": 8, "1a": []}, '{ "nvidia.com/gpu": 8, "1a": [] }'),
        ({"__proto__": {}}, '{ ["__proto__"]: {} }'),
        ([True, None, 1.5, "é"], '[true, null, 1.5, "é"]'),
    ],
)
def test_a_short_value_is_one_line(value: Any, text: str) -> None:
    assert write(value) == text


def test_a_long_value_is_indented() -> None:
    long = "x" * WIDTH
    assert write({"a": [long]}) == f'{{\n    a: [\n        "{long}",\n    ],\n}}'
