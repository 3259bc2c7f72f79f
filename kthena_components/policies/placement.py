"""Says in a preview whether the pods of a stack fit into the cluster of an inventory."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from kthena_components.core.findings import Finding, Level

Body = Mapping[str, Any]


def check_placement(
    clusters: Sequence[Mapping[str, Body]], path: str, today: date
) -> Iterator[Finding]:
    """Report the groups that do not fit, as advice unless a level says otherwise.

    Args:
        clusters: The objects of each provider, by URN. An inventory describes one cluster.
        path: The file of the inventory.
        today: The day on which the age of the inventory counts.
    """
    # Imported here, because most stacks have no inventory.
    from kthena_components.placement.answer import answer, ask  # noqa: PLC0415
    from kthena_components.placement.findings import FITTED, stale, unplaced  # noqa: PLC0415
    from kthena_components.placement.inventory import InventoryError, read_inventory  # noqa: PLC0415

    if len(clusters) > 1:
        yield _not_placed("the objects have several providers, and an inventory is of one cluster")
        return
    try:
        cluster = read_inventory([path])
    except InventoryError as error:
        yield _not_placed("; ".join(reason.rstrip(".") for reason in error.reasons))
        return
    bodies = [body for objects in clusters for body in objects.values()]
    for outcome in answer(ask(cluster, bodies)):
        if outcome.verdict not in FITTED:
            yield unplaced(outcome, cluster, Level.ADVISORY)
    yield from stale(cluster, today)


def _not_placed(because: str) -> Finding:
    from kthena_components.placement.findings import RULE  # noqa: PLC0415

    return Finding(path="", seen=f"not checked, because {because}", rule=RULE, level=Level.UNKNOWN)
