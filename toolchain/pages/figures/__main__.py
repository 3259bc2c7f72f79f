"""Draws all figures into docs. `make pictures` runs it."""

from collections.abc import Callable, Mapping
from pathlib import Path

from toolchain.pages.figures import backends, check_steps, command_inputs, hierarchy

DOCS = Path(__file__).parents[3] / "docs"
FIGURES: Mapping[str, Callable[[], str]] = {
    "hierarchy.svg": hierarchy.draw,
    "check-steps.svg": check_steps.draw,
    "command-inputs.svg": command_inputs.draw,
    "backends.svg": backends.draw,
}

if __name__ == "__main__":
    for name, draw in FIGURES.items():
        (DOCS / name).write_text(draw(), encoding="utf-8")
