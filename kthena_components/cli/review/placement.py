"""Says in a review whether the pods of a stack fit into a cluster, before and after the change."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from tabulate import tabulate

from kthena_components.cli.review.escaping import cell_text
from kthena_components.cli.review.inventories import Inventory
from kthena_components.cli.review.preview import Preview
from kthena_components.cli.review.serving_sizes import between
from kthena_components.core.findings import Finding, count_of
from kthena_components.core.objects.object import pulumi_identity
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.safe_text import visible

if TYPE_CHECKING:
    from kthena_components.placement.answer import Asked
    from kthena_components.placement.model import Cluster, Outcome

_HEADERS = ("group", "placement", "HyperNode", "why")
_MOST_ROWS = 40
_MOST_PICTURE = 20_000
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
    from kthena_components.placement.findings import FITTED, stale, unplaced  # noqa: PLC0415

    before = found.before
    for outcome in found.changed:
        was = before.get(outcome.group.title)
        if (was is None or was.verdict in FITTED) and outcome.verdict not in FITTED:
            yield unplaced(outcome, found.cluster)
    yield from stale(found.cluster, today)


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
    """Return the objects of a stack before or after the update.

    What is there already comes first, because a scheduler takes the oldest first. A preview tells
    its steps in any order.
    """
    steps = [step for step in preview.steps.values() if step.type.startswith(_KUBERNETES)]
    ordered = sorted(steps, key=lambda step: (not step.old, step.urn))
    found = ((step, step.new if is_new else step.old) for step in ordered)
    return [{**body, **pulumi_identity(step.type)} for step, body in found if body]


def _named(cluster: "Cluster") -> str:
    taken = "" if cluster.taken is None else f" (snapshot of {cluster.taken:%Y-%m-%d})"
    return f"{cell_text(cluster.source)}{taken}"


def _counted(outcomes: Sequence["Outcome"]) -> str:
    from kthena_components.cli.fit.output import summary  # noqa: PLC0415

    return summary(outcomes) if outcomes else f"{count_of(0, 'group')}."


def _row(outcome: "Outcome", was: "Outcome | None") -> list[str]:
    from kthena_components.placement.findings import first_change, why_not  # noqa: PLC0415

    before = "new" if was is None else str(was.verdict)
    where = outcome.placement.domain if outcome.placement else None
    why = ". ".join(filter(None, (why_not(outcome), first_change(outcome))))
    return [
        cell_text(outcome.group.title),
        between(before, str(outcome.verdict)),
        cell_text(str(where)) if where else "",
        cell_text(why),
    ]
