"""The model of Volcano's scheduler and the exact answer never contradict each other."""

import pytest

from conformance.fit.drawn_case import draw_cases
from conformance.fit.two_answers import TwoAnswers
from kthena_components.placement.exact_solver import installed

CASES = 60
"""`make conformance ARGS=answers` takes a thousand."""


@pytest.mark.skipif(not installed(), reason="the extra `exact` is not installed")
@pytest.mark.parametrize("seed", [1, 20261127])
def test_what_fits_has_a_place(seed: int) -> None:
    found = TwoAnswers()
    for case in draw_cases(seed, CASES):
        found.hold(case)
    assert found.wrong == []
    assert found.seen["gangs that 'fits', place exists: yes"] > CASES // 2
    assert found.seen["gangs that 'never', place exists: no"] > CASES // 4
