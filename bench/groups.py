"""Measures a preview of one native serving whose groups wait for one another."""

import statistics
from collections.abc import Callable

from bench.engine import Engine
from bench.growth import Growth


def measure_groups(
    engine: Engine, sizes: tuple[int, int], repeats: int, warm: int, progress: Callable[[str], None]
) -> Growth:
    """Return the median processor time of the program for two numbers of groups.

    There is no raw program: Pulumi's SDK searches the dependencies of all groups for cycles with a
    recursive function, and ends in a RecursionError.
    """
    taken: dict[int, list[float]] = {size: [] for size in sizes}
    for turn in range(warm + repeats):
        for size in sizes:
            run = engine.run("preview", "package", backend="native", servings=1, groups=size)
            progress(f"one native serving of {size} groups: {run.cpu:.2f} s")
            if turn >= warm:
                taken[size].append(run.cpu)
    small, large = (statistics.median(taken[size]) for size in sizes)
    name = f"preview of a native serving of {sizes[0]} and {sizes[1]} groups"
    return Growth(name=name, small=small, large=large)
