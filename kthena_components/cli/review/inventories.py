"""Reads the inventories of a review, before code of the branch runs.

A branch must not choose the cluster by which its placement is judged. So a file of the repository
is that of the base, and a file that only the branch has is not read without an approval.
"""

import argparse
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from kthena_components.cli.review.branch import ReviewOptions
from kthena_components.cli.review.git_tree import Tree
from kthena_components.core.values.dataclass import dataclass

if TYPE_CHECKING:
    from kthena_components.placement.model import Cluster


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
        stack: The stack.
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
