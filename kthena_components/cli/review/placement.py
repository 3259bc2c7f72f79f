"""Says in a review whether the pods of a stack fit into a cluster, before and after the change."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from tabulate import tabulate

from kthena_components.cli.review.escaping import cell_text
from kthena_components.cli.review.gpu_table import between, identity
from kthena_components.cli.review.inventories import Inventory
from kthena_components.cli.review.preview import Preview
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.values.safe_text import visible

if TYPE_CHECKING:
    from kthena_components.placement.answer import Asked
    from kthena_components.placement.model import Cluster, Outcome

RULE = "placement-fits"
MOST_DAYS = 7
"""After so many days, what a cluster had says little."""
_HEADERS = ("group", "placement", "HyperNode", "why")
_MOST_ROWS = 40
_MOST_PICTURE = 20_000
_FITTED = frozenset({"fits", "not checked"})
_TELLS = {"waits": "waits", "never": "never fits"}
_KUBERNETES = "kubernetes:"


def add_inventory(parser: argparse.ArgumentParser) -> None:
    """Add the flag that names the inventory of a stack's cluster."""
    parser.add_argument(
        "--inventory",
        metavar="STACK=FILE",
        action="append",
        default=[],
        help="what the cluster of a stack has, from `kthena-components inventory`: the comment "
        "says whether its pods fit, before and after. With --base, a file of the repository is "
        "that of the base",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StackPlacement:
    """Where the pods of a stack run before and after a change."""

    cluster: "Cluster"
    asked: tuple["Asked", "Asked"]
    old: list["Outcome"]
    new: list["Outcome"]

    @property
    def before(self) -> dict[str, "Outcome"]:
        """The answers before the change, by the title of the group."""
        return {outcome.group.title: outcome for outcome in self.old}

    @property
    def changed(self) -> list["Outcome"]:
        """The new answers that differ, or whose groups differ."""
        from kthena_components.placement.answer import shape  # noqa: PLC0415

        before = self.before
        return [
            outcome
            for outcome in self.new
            if (was := before.get(outcome.group.title)) is None
            or (was.verdict, shape(was.group)) != (outcome.verdict, shape(outcome.group))
        ]


def place_stack(preview: Preview, cluster: "Cluster") -> StackPlacement:
    """Place the pods of a stack before and after the change.

    Args:
        preview: The stack's preview.
        cluster: What the cluster has, with or without what the stack deployed.
    """
    # Imported here, because most reviews have no inventory.
    from kthena_components.placement.answer import answer, ask  # noqa: PLC0415

    old, new = (ask(cluster, _objects(preview, is_new=is_new)) for is_new in (False, True))
    return StackPlacement(
        cluster=cluster,
        asked=(old, new),
        old=answer(old),
        new=answer(new),
    )


def place_with(
    inventory: Inventory | None, preview: Preview, failed: list[str]
) -> StackPlacement | None:
    """Place the pods of a stack, if there is an inventory of its cluster."""
    if inventory is None:
        return None
    if inventory.cluster is not None:
        return place_stack(preview, inventory.cluster)
    for reason in inventory.wrong:
        sys.stderr.write(f"{visible(reason)}\n")
    failed.append(f"the inventory of stack {preview.stack} {inventory.because}")
    return None


def check_placement(found: StackPlacement, today: date) -> Iterator[Finding]:
    """Report groups that no longer fit, and an old snapshot: the rule placement-fits."""
    before = found.before
    for outcome in found.changed:
        was = before.get(outcome.group.title)
        fitted = was is None or was.verdict in _FITTED
        if fitted and outcome.verdict not in _FITTED:
            why = _why(outcome)
            seen = f"{outcome.group.title} {_TELLS[outcome.verdict]} on {found.cluster.source}"
            yield Finding(
                path="",
                seen=f"{seen}: {why}" if why else seen,
                remedy=_change(outcome) or "run `kthena-components fit` to see what is free",
                rule=RULE,
            )
    taken = found.cluster.taken
    if taken is not None and (today - taken.date()).days > MOST_DAYS:
        yield Finding(
            path="",
            seen=f"the snapshot of {found.cluster.source} is {(today - taken.date()).days} days "
            f"old, and after {MOST_DAYS} days it says little",
            remedy="run `kthena-components inventory` again",
            rule=RULE,
            level=Level.ADVISORY,
            most=Level.ADVISORY,
        )


def write_placement(found: StackPlacement) -> Iterator[str]:
    """Write the section of one stack: what changes, as a table and a picture."""
    from kthena_components.drawing.from_outcomes import picture_of  # noqa: PLC0415
    from kthena_components.drawing.mermaid import draw_mermaid  # noqa: PLC0415

    changed, before = found.changed, found.before
    yield f"Placement on {_named(found.cluster)}: {_counted(found.new)}"
    rows = [_row(outcome, before.get(outcome.group.title)) for outcome in changed]
    if rows:
        more = [[f"{len(rows) - _MOST_ROWS} more", "", "", ""]] if len(rows) > _MOST_ROWS else []
        shown = [*rows[:_MOST_ROWS], *more]
        yield tabulate(shown, headers=_HEADERS, tablefmt="github", disable_numparse=True)
        titles = {outcome.group.title for outcome in changed}
        state = picture_of(found.asked[0].drawn, found.old, title="before")
        picture = picture_of(found.asked[1].drawn, found.new, changed=titles, before=state)
        yield from filter(None, [draw_mermaid(picture, most=_MOST_PICTURE).strip()])
    yield from (f"Placement: {cell_text(note)}." for note in found.cluster.notes)


def _objects(preview: Preview, *, is_new: bool) -> list[Mapping[str, Any]]:
    """Return the objects of a stack before or after the update."""
    steps = [step for step in preview.steps.values() if step.type.startswith(_KUBERNETES)]
    found = ((step, step.new if is_new else step.old) for step in steps)
    return [{**body, **identity(step.type)} for step, body in found if body]


def _named(cluster: "Cluster") -> str:
    taken = "" if cluster.taken is None else f" (snapshot of {cluster.taken:%Y-%m-%d})"
    return f"{cell_text(cluster.source)}{taken}"


def _counted(outcomes: Sequence["Outcome"]) -> str:
    from kthena_components.cli.fit.output import summary  # noqa: PLC0415

    return summary(outcomes) if outcomes else f"{count_of(0, 'group')}."


def _row(outcome: "Outcome", was: "Outcome | None") -> list[str]:
    before = "new" if was is None else str(was.verdict)
    where = outcome.placement.domain if outcome.placement else None
    why = ". ".join(filter(None, (_why(outcome), _change(outcome))))
    return [
        cell_text(outcome.group.title),
        between(before, str(outcome.verdict)),
        cell_text(str(where)) if where else "",
        cell_text(why),
    ]


def _why(outcome: "Outcome") -> str:
    gap = outcome.group.unknown
    said = [outcome.note, *(obstacle.text for obstacle in outcome.obstacles)]
    return gap.because if gap else ". ".join(text.rstrip(".") for text in said if text)


def _change(outcome: "Outcome") -> str:
    """Return the smallest change after which a group fits."""
    changes = (change.text for each in outcome.obstacles for change in each.changes)
    return next(changes, "").rstrip(".")
