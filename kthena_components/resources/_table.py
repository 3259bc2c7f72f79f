"""Shows the sizes of a program's servings as one table, in `pulumi preview` and `pulumi up`.

Pulumi awaits Outputs after the program has ended, so an Output of the first component knows the
components of all. In other languages, components are constructed one by one and have a table each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any
from weakref import WeakKeyDictionary

import pulumi

from kthena_components.core.findings import count_of
from kthena_components.core.values.dataclass import dataclass
from kthena_components.resources._duplicate_objects import running

_Rows = Sequence[Mapping[str, Any]]


@dataclass(slots=True)
class _Sizes:
    """The components of a program."""

    waiting: list[_Rows] = field(default_factory=list)
    """Components that no table has shown yet, each with its rows."""
    servings: int = 0
    pods: int = 0
    gpus: int = 0

    def show(self, _: object) -> None:
        """Log a table of what waits, below the totals of the whole program."""
        # An import of the components alone loads no compiler, and this is part of it.
        from kthena_components.core.plan.report import gpu_count, render_rows  # noqa: PLC0415

        rows = [row for each in self.waiting for row in each]
        if not rows:
            return
        so_far = " so far" if self.servings else ""
        self.servings += len(self.waiting)
        self.pods += sum(row["pods"] for row in rows)
        self.gpus += gpu_count(rows)
        self.waiting.clear()
        counts = ((self.servings, "serving"), (self.pods, "pod"), (self.gpus, "GPU"))
        totals = ", ".join(count_of(number, word) for number, word in counts)
        pulumi.log.info(f"{totals}{so_far}:\n{render_rows(rows)}")


_programs: WeakKeyDictionary[object, _Sizes] = WeakKeyDictionary()


def show_later(rows: _Rows) -> None:
    """Show the sizes of a component together with those of the program's other components.

    Args:
        rows: Its sizes, one row for each role.
    """
    sizes = _programs.setdefault(running(), _Sizes())
    sizes.waiting.append(rows)
    if len(sizes.waiting) == 1:
        pulumi.Output.from_input(None).apply(sizes.show)
