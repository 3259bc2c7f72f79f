"""Draws which argument each backend takes, as the table of docs/backends.md says."""

from kthena_components.core.plan.limits import taken
from kthena_components.systems import EMITTERS, find_emitter
from kthena_components.systems.emitter import ARGUMENTS, Emitter
from toolchain.pages.figures.sheet import draw_grid

_KEY = ("accepted", "accepted with limits", "no mark: rejected, with the reason")


def draw() -> str:
    """Return the figure."""
    emitters = {name: emitter for name in EMITTERS if (emitter := find_emitter(name))}
    rows = {
        argument: "".join(_mark(argument, one) for one in emitters.values())
        for argument in ARGUMENTS
    }
    return draw_grid("What each backend takes", _KEY, list(emitters), rows)


def _mark(argument: str, emitter: Emitter) -> str:
    limits = taken(argument, emitter.limits)
    return " " if limits is None else "-" if limits else "+"
