"""Budgets are read as Kubernetes reads its IntOrString.

Source of every expectation: k8s.io/apimachinery pkg/util/intstr GetScaledValueFromIntOrPercent and
pkg/util/validation IsValidPercent; kubernetes pkg/apis/apps/validation
ValidatePositiveIntOrPercent and IsNotMoreThan100Percent.
"""

from fractions import Fraction
from math import ceil, floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.core.values.quantity import is_budget, scaled
from kthena_components.core.values.unknown import Unknown
from tests.support.peers import LATE
from tests.support.strategies import json_trees

NEITHER = ["1", "", "%", "x%", "25 %", " 25%", "25%%", "2.5%", "25%\n", "٢٥%", True, 1.5, [], {}]
SIGNED = ["-1%", "+1%"]
"""Numbers to Go's Atoi, but no percentages to IsValidPercent."""


@pytest.mark.parametrize(
    ("value", "replicas", "down", "up"),
    [
        (0, 4, 0, 0),
        (3, 4, 3, 3),
        (9, 4, 9, 9),
        (2.0, 4, 2, 2),
        ("0%", 4, 0, 0),
        ("25%", 4, 1, 1),
        ("25%", 5, 1, 2),
        ("49%", 2, 0, 1),
        ("50%", 1, 0, 1),
        ("100%", 7, 7, 7),
        ("50%", 0, 0, 0),
        ("007%", 100, 7, 7),
    ],
)
def test_a_percentage_is_rounded_and_a_count_is_not(
    value: object, replicas: int, down: int, up: int
) -> None:
    assert scaled(value, replicas, up=False) == down
    assert scaled(value, replicas, up=True) == up
    assert is_budget(value)
    assert is_budget(value, most=100)


@given(st.integers(0, 1000), st.integers(0, 2**31 - 1))
def test_a_part_of_a_replica_is_none_or_one(percent: int, replicas: int) -> None:
    exact = Fraction(percent * replicas, 100)
    assert scaled(f"{percent}%", replicas, up=False) == floor(exact)
    assert scaled(f"{percent}%", replicas, up=True) == ceil(exact)


def test_what_is_not_stated_is_the_default() -> None:
    assert scaled(None, 4, 1, up=False) == 1
    assert scaled(None, 4, up=False) is None
    assert not is_budget(None)


@pytest.mark.parametrize("value", [*NEITHER, *SIGNED, LATE, f"{LATE}%", Unknown("it is late")])
def test_what_is_neither_is_none(value: object) -> None:
    assert scaled(value, 4, 1, up=True) is None
    assert not is_budget(value)


@given(json_trees())
def test_anything_may_stand_there(value: object) -> None:
    assert scaled(value, 4, up=True) is None or is_budget(value) or isinstance(value, int | float)


def test_only_some_fields_end_at_100_percent() -> None:
    """A Deployment's maxUnavailable and both of a LeaderWorkerSet do, a Deployment's maxSurge not.

    Source: kubernetes pkg/apis/apps/validation ValidateRollingUpdateDeployment.
    """
    assert scaled("150%", 4, up=True) == 6
    assert is_budget("150%")
    assert not is_budget("101%", most=100)
    assert is_budget(101, most=100)


def test_a_count_below_0_is_scaled_and_refused() -> None:
    """IntOrString.IntValue gives any count; it is the validation that wants it above."""
    assert scaled(-1, 4, up=False) == -1
    assert not is_budget(-1)


def test_a_count_has_32_bits() -> None:
    """IntOrString.IntVal is an int32: a larger number is not decoded."""
    assert scaled(2**31 - 1, 4, up=False) == 2**31 - 1
    assert is_budget(2**31 - 1)
    for large in (2**31, -(2**31) - 1, 1e300):
        assert scaled(large, 4, up=False) is None
        assert not is_budget(large)


def test_a_percentage_is_a_number_with_any_zeros_before_it() -> None:
    """It is read by strconv.Atoi, which knows 64 bits."""
    assert scaled("00000000000000000000000000025%", 4, up=False) == 1
    assert is_budget("00000000000000000000000000025%", most=100)
    assert scaled(f"{2**63 - 1}%", 100, up=False) == 2**63 - 1
    for large in (f"{2**63}%", "9" * 5000 + "%"):
        assert scaled(large, 4, up=False) is None
        assert not is_budget(large)
