"""Patterns are compiled when they are used."""

import re

import pytest

from kthena_components.core.values.regex import regex


def test_a_pattern_is_compiled_when_it_is_first_used() -> None:
    wrong = regex("(")
    with pytest.raises(re.error):
        wrong.match("")


def test_it_has_the_methods_of_a_compiled_one() -> None:
    made = regex(rb"A(b)", re.IGNORECASE)
    for _ in range(2):
        assert made.sub(rb"\1", b"xab") == b"xb"
        assert made.fullmatch(b"aB")
    assert (made.pattern, made.groups) == (rb"A(b)", 1)
