"""Measures how the time grows with ten times the input. `python -m bench.growth` prints it."""

import gc
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from tabulate import tabulate

from bench.kinds import KINDS
from bench.many import FILES, TOGETHER
from bench.shapes import COMMANDS, PODS, Shape

SHAPES: Final = {**PODS, **COMMANDS, **KINDS, **TOGETHER, **FILES}
"""All growing inputs, by name."""
SIZES: Final = (1_000, 10_000)
GROWTH_BUDGET: Final = 20.0
"""Maximum ratio of the times for ten times the input. Quadratic growth would have 100."""
_LEAST: Final = 0.005
"""Seconds below which a ratio means nothing, because of the clock's resolution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Processor seconds for one shape at two sizes."""

    name: str
    small: float
    large: float

    @property
    def ratio(self) -> float:
        """Give large / small."""
        return self.large / max(self.small, _LEAST)


def measure_growth(
    sizes: tuple[int, int], progress: Callable[[str], None] | None = None
) -> Iterator[Growth]:
    """Measure each shape at both sizes, in this process."""
    gc.collect()
    gc.freeze()  # what was there before is not searched again before each measurement
    try:
        for name, shape in SHAPES.items():
            if progress:
                progress(f"growth: {name}")
            shape(1)()  # a warm-up run, which fills the caches
            small, large = (_seconds(shape, size) for size in sizes)
            yield Growth(name=name, small=small, large=large)
    finally:
        gc.unfreeze()


def _seconds(shape: Shape, size: int) -> float:
    work = shape(size)
    gc.collect()
    begun = time.process_time()
    work()
    return time.process_time() - begun


def growth_rows(found: list[Growth]) -> list[tuple[str, float, float, float]]:
    """Return a row for each shape, sorted by growth."""
    ordered = sorted(found, key=lambda one: -one.ratio)
    return [(one.name, one.small * 1000, one.large * 1000, one.ratio) for one in ordered]


def main() -> int:
    """Measure and print. Return 1 if a shape exceeds the budget."""
    found = list(measure_growth(SIZES, lambda line: print(line, file=sys.stderr)))  # noqa: T201
    headers = ("what grows", *(f"ms for {size:,}" for size in SIZES), "×")
    table = tabulate(growth_rows(found), headers, "github", floatfmt=".1f")
    sys.stdout.write(f"{table}\n")
    return int(any(one.ratio > GROWTH_BUDGET for one in found))


if __name__ == "__main__":
    sys.exit(main())
