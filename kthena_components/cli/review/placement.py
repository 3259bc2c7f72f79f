"""Says in a review whether the pods of a stack fit into a cluster, and reads its inventory.

A branch must not choose the cluster by which its placement is judged. So a file of the repository
is the file of the base, and a file that only the branch has is not read without an approval.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

from tabulate import tabulate

from kthena_components.cli.check.reports import cell_text
from kthena_components.cli.review.branch import ReviewOptions
from kthena_components.cli.review.git_tree import Tree
from kthena_components.cli.review.preview import Preview
from kthena_components.cli.review.stack import between
from kthena_components.core.findings import Finding, count_of
from kthena_components.core.objects.object import pulumi_identity
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import visible

if TYPE_CHECKING:
    from kthena_components.placement.answer import FitQuestion
    from kthena_components.placement.model import Cluster, Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """The inventory of a stack's cluster, or why it is not used."""

    cluster: "Cluster | None" = None
    wrong: tuple[str, ...] = ()
    """What is wrong with the file: one sentence each."""
    because: str = "cannot be read"
    """Why there is no cluster: a clause about the inventory."""


def read_inventories(
    asked: argparse.Namespace, by: ReviewOptions | None = None
) -> Mapping[str, Inventory]:
    """Read the inventory of each stack that has one.

    Args:
        asked: The arguments of the command.
        by: The branch that is reviewed; None: only previews are given.
    """
    stated = dict(each.split("=", 1) for each in asked.inventory)
    if by is None:
        return {stack: _read(stack, file) for stack, file in stated.items()}
    return {stack: _of_branch(stack, file, by) for stack, file in stated.items() if by.previews}


def _of_branch(stack: str, file: str, by: ReviewOptions) -> Inventory:
    """Read an inventory for the review of a branch: the file of the base counts."""
    path = os.path.relpath(by.tree / file, by.tree)
    at, sides = by.sides.at(path), by.sides
    if _has(sides.before, at):
        found = _read(stack, str(by.judge / path), hidden=f"{by.judge}{os.sep}")
        changed = any(each == at or each.startswith(f"{at}/") for each in sides.changed)
        note = f"the branch changes {path}; the file of its base is used"
        return _noted(found, note) if changed else found
    if _has(sides.after, at) and not by.approved:
        return Inventory(because=f"is not used: only the branch has {path}. Add it to the base")
    inside = by.tree / path
    return _read(stack, str(inside) if inside.exists() else file)


def _has(tree: Tree, at: str) -> bool:
    """Return whether a commit has a file, a folder or a link that a path leads to or through."""
    return bool(tree.odd_part(at)) or tree.is_folder(at)


def _read(stack: str, path: str, hidden: str = "") -> Inventory:
    """Read a file or a folder, and name the cluster by its stack.

    Args:
        path: What to read.
        hidden: The beginning of paths that messages leave out.
    """
    # Imported here, because most reviews have no inventory.
    from kthena_components.placement.inventory import InventoryError, read_inventory  # noqa: PLC0415

    try:
        cluster = read_inventory([path])
    except InventoryError as error:
        reasons = (reason.removeprefix(hidden) for reason in error.reasons)
        return Inventory(wrong=tuple(reasons))
    return Inventory(cluster=replace(cluster, source=stack))


def _noted(found: Inventory, note: str) -> Inventory:
    if found.cluster is None:
        return found
    return replace(found, cluster=replace(found.cluster, notes=(*found.cluster.notes, note)))


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
        "the file of the base",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StackPlacement:
    """Where the pods of a stack run before and after a change."""

    cluster: "Cluster"
    asked: tuple["FitQuestion", "FitQuestion"]
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
        cluster: What the cluster has, with or without what the stack deployed.
    """
    # Imported here, because most reviews have no inventory.
    from kthena_components.placement.answer import answer, ask  # noqa: PLC0415

    old, new = (ask(cluster, _objects(preview, is_new=is_new)) for is_new in (False, True))
    return StackPlacement(cluster=cluster, asked=(old, new), old=answer(old), new=answer(new))


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
    from kthena_components.placement.place import FITTED, stale, unplaced  # noqa: PLC0415

    before = found.before
    for outcome in found.changed:
        was = before.get(outcome.group.title)
        if (was is None or was.verdict in FITTED) and outcome.verdict not in FITTED:
            yield unplaced(outcome, found.cluster)
    yield from stale(found.cluster, today)


def write_placement(found: StackPlacement) -> Iterator[str]:
    """Write the section of one stack: what changes, as a table and a picture."""
    from kthena_components.drawing.from_outcomes_and_servings import picture_of  # noqa: PLC0415
    from kthena_components.drawing.rows_and_mermaid import draw_mermaid  # noqa: PLC0415

    changed, before = found.changed, found.before
    yield f"Placement on {_cluster_title(found.cluster)}: {_counted(found.new)}"
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


def _cluster_title(cluster: "Cluster") -> str:
    taken = "" if cluster.taken is None else f" (snapshot of {cluster.taken:%Y-%m-%d})"
    return f"{cell_text(cluster.source)}{taken}"


def _counted(outcomes: Sequence["Outcome"]) -> str:
    from kthena_components.cli.fit.output import summary  # noqa: PLC0415

    return summary(outcomes) if outcomes else f"{count_of(0, 'group')}."


def _row(outcome: "Outcome", was: "Outcome | None") -> list[str]:
    """Write the row of a group: its verdict before and after, its place, and what is wrong."""
    from kthena_components.placement.place import first_change, why_not  # noqa: PLC0415

    before = "new" if was is None else str(was.verdict)
    where = outcome.placement.domain if outcome.placement else None
    why = ". ".join(filter(None, (why_not(outcome), first_change(outcome))))
    return [
        cell_text(outcome.group.title),
        between(before, str(outcome.verdict)),
        cell_text(str(where)) if where else "",
        cell_text(why),
    ]
