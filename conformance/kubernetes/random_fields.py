"""Draws values for the fields of a map."""

import random
from collections.abc import Callable, Iterable
from typing import Any

Body = dict[str, Any]
Change = Callable[[random.Random, Body, Body], None]
"""Changes a template and its first container."""


def drawn(draw: random.Random, **fields: Iterable[Any]) -> Body:
    """Return each field with one of its values."""
    return {name: draw.choice(list(values)) for name, values in fields.items()}


def some(draw: random.Random, share: float, **fields: Iterable[Any]) -> Body:
    """Return the same for a share of the fields, from 0 to 1."""
    return drawn(draw, **{name: v for name, v in fields.items() if draw.random() < share})
