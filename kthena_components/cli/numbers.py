"""Parses the numbers of options. Each mistake says what to write instead."""

import argparse
from collections.abc import Callable

_DIGITS = 9
_MOST = 10**_DIGITS
_LONGEST = 80


def number_of(things: str, least: int = 0) -> Callable[[str], int]:
    """Return a function that parses a number of things."""

    def parse(text: str) -> int:
        usual = text.isascii() and text.isdecimal() and len(text) <= _DIGITS
        if not usual or int(text) < least:
            raise argparse.ArgumentTypeError(
                f"{text[:_LONGEST]!r} is not a number of {things}: write a whole number from "
                f"{least} to {_MOST - 1}, with digits only"
            )
        return int(text)

    return parse


def amount_of(thing: str) -> Callable[[str], float]:
    """Return a function that parses an amount above zero."""

    def parse(text: str) -> float:
        try:
            amount = float(text)
        except ValueError:
            amount = 0.0
        if not 0 < amount < _MOST:
            raise argparse.ArgumentTypeError(
                f"{text[:_LONGEST]!r} is not an amount of {thing}: write a number above 0, such as "
                "2.5, without a unit"
            )
        return amount

    return parse
