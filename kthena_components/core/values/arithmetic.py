"""Sums and products of numbers that may be unknown."""

from collections.abc import Iterable

from kthena_components.core.values.unknown import MaybeInt, Unknown


def product(*numbers: MaybeInt) -> MaybeInt:
    """Multiply numbers. Zero times anything is zero; otherwise the first unknown is the result."""
    if 0 in numbers:
        return 0
    result = 1
    for number in numbers:
        if isinstance(number, Unknown):
            return number
        result *= number
    return result


def total(numbers: Iterable[MaybeInt]) -> MaybeInt:
    """Add numbers; the first unknown one is the result."""
    result = 0
    for number in numbers:
        if isinstance(number, Unknown):
            return number
        result += number
    return result
