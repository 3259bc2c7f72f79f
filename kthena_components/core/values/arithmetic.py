"""Sums and products of numbers that may not be known."""

from collections.abc import Iterable

from kthena_components.core.values.unknown import MaybeInt, Unknown


def product(*numbers: MaybeInt) -> MaybeInt:
    """Multiply numbers. Zero times anything is zero, else the first unknown one is the result."""
    if 0 in numbers:
        return 0
    result = 1
    for number in numbers:
        if isinstance(number, Unknown):
            return number
        result *= number
    return result


def total(numbers: Iterable[MaybeInt]) -> MaybeInt:
    """Add numbers up; the first that is not known makes the sum unknown."""
    result = 0
    for number in numbers:
        if isinstance(number, Unknown):
            return number
        result += number
    return result
