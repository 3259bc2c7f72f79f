"""Budgets of an update: a count of replicas, or a percentage of them, such as `1` or `25%`.

Source: k8s.io/apimachinery pkg/util/intstr, IntOrString and GetScaledValueFromIntOrPercent;
pkg/util/validation, IsValidPercent.
"""

import re

from kthena_components.core.values.read import count

_PERCENT = re.compile(r"0*([0-9]{1,19})%")
_INT64 = 2**63 - 1
"""A percentage is read by strconv.Atoi; a count has 32 bits."""


def scaled(value: object, replicas: int, default: int | None = None, *, up: bool) -> int | None:
    """Convert a budget to a count of replicas; None if it is invalid or not known yet.

    Args:
        value: A count, which may be below 0, or a percentage, which may be above 100.
        replicas: The number that a percentage refers to.
        default: The result if nothing is stated.
        up: Whether to round up; otherwise down.
    """
    if value is None:
        return default
    percent = _percent(value)
    if percent is None:
        number = count(value)
        return number if isinstance(number, int) else None
    share = percent * replicas
    return -(-share // 100) if up else share // 100


def is_budget(value: object, most: int | None = None) -> bool:
    """Return whether a value is a count of at least 0, or a percentage.

    Args:
        value: Any value.
        most: The highest percentage; any if left out.

    Source: kubernetes pkg/apis/apps/validation ValidatePositiveIntOrPercent and, for 100%,
    IsNotMoreThan100Percent, which systems with their own webhooks have adopted.
    """
    percent, number = _percent(value), count(value)
    if percent is not None:
        return most is None or percent <= most
    return isinstance(number, int) and number >= 0


def _percent(value: object) -> int | None:
    match = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    number = int(match[1]) if match else None
    return number if number is not None and number <= _INT64 else None
