"""`fit --lose` and `fit --grow`: what a lost node strands, and how many more copies fit."""

from collections.abc import Iterator, Sequence
from typing import Any

from kthena_components.core.findings import count_of, nearest
from kthena_components.core.values.dataclass import dataclass
from kthena_components.placement.answer import with_placed
from kthena_components.placement.faults_and_rivals import (
    MOST_COPIES,
    Hit,
    Loss,
    grow,
    lose,
    nodes_of,
    worst,
)
from kthena_components.placement.model import Cluster, Outcome, PodGroup, Verdict

WORST = "1"
"""The single node whose loss strands the most."""
_SHOWN = 3
_GROWTH = "{owner}: groups that fit: {fit} of {groups}, with room for {more} more."
_GROWN = _GROWTH + " {factor}x needs {needed} more: {told}."
_FIT = {True: "they fit", False: "they do not fit", None: "so many are not counted"}


class NothingToLoseError(LookupError):
    """There is no such node or HyperNode. The text says what to write."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The answers about losses and growth: as lines, and as data."""

    lines: list[str]
    data: dict[str, Any]


def what_if(
    cluster: Cluster, outcomes: Sequence[Outcome], *, lose: str | None, grow_to: int | None
) -> WhatIf:
    """Answer what a loss of nodes strands, and how many more groups fit.

    Args:
        cluster: Without the groups of the outcomes.
        outcomes: The answers; those that fit count as running.
        lose: `node=NAME`, `rack=HYPERNODE`, or `1` for the worst single node. None: not asked.
        grow_to: Whether so many times the groups fit. 0: only how many more do. None: not asked.

    Raises:
        NothingToLoseError: There is nothing of that name.
    """
    lines: list[str] = []
    data: dict[str, Any] = {}
    placed = with_placed(cluster, outcomes)
    if lose is not None:
        loss = worst(placed) if lose == WORST else _lose(placed, lose)
        lines += ["", *_told_of_loss(loss, lose)]
        data["lose"] = {"nodes": list(loss.nodes), "groups": [_hit(hit) for hit in loss.hits]}
    if grow_to is not None:
        growth = list(_growth(placed, outcomes, grow_to))
        data["grow"] = growth
        lines += ["", *map(_told_of_growth, growth)]
    return WhatIf(lines, data)


def _hit(hit: Hit) -> dict[str, Any]:
    nodes = None if hit.placement is None else list(hit.placement.nodes)
    return {"group": hit.running.group.title, "lostPods": hit.lost, "nodes": nodes}


def _lose(cluster: Cluster, wanted: str) -> Loss:
    return lose(cluster, _lost(cluster, wanted))


def _lost(cluster: Cluster, wanted: str) -> tuple[str, ...]:
    kind, _, name = wanted.partition("=")
    found: tuple[str, ...]
    if kind == "node":
        known = [node.name for node in cluster.nodes]
        found = (name,) if name in known else ()
    elif kind == "rack":
        known, found = [domain.name for domain in cluster.domains], nodes_of(cluster, name)
    else:
        message = f"'{wanted}': write node=NAME, rack=HYPERNODE, or 1 for the worst single node"
        raise NothingToLoseError(message)
    if not found:
        what = "node" if kind == "node" else "HyperNode"
        close = nearest(name, known)
        hint = f"write {kind}={close}" if close else f"the cluster has {count_of(len(known), what)}"
        message = f"there is no {what} '{name}': {hint}"
        raise NothingToLoseError(message)
    return found


def _told_of_loss(loss: Loss, wanted: str) -> Iterator[str]:
    if not loss.nodes:
        yield "No pod of these groups or of a PodGroup is on a node, so no loss strands one."
        return
    which = loss.nodes[0] if len(loss.nodes) == 1 else count_of(len(loss.nodes), "node")
    if wanted.startswith("rack="):
        which = f"{wanted.removeprefix('rack=')}, {which}"
    begin = "The worst loss of a single node" if wanted == WORST else "The loss"
    hit = count_of(len(loss.hits), "group")
    back = f": {_back(len(loss.hits), loss.stranded)}" if loss.hits else ""
    yield f"{begin} ({which}) hits {hit}{back}."
    for each in loss.hits:
        group, placement = each.running.group, each.placement
        lost = count_of(each.lost, "pod")
        if placement is None:
            they = "it" if each.lost == 1 else "they"
            yield f"  {group.title} loses {lost} and waits: no node that {they} may use has room."
        else:
            moved = [
                new for old, new in zip(each.running.nodes, placement.nodes, strict=True)
                if old in loss.nodes
            ]  # fmt: skip
            yield f"  {group.title} loses {lost}, and has new ones on {_names(moved)}."


def _back(hit: int, stranded: int) -> str:
    if hit == 1:
        return f"it {'cannot' if stranded else 'can'} be placed again"
    if stranded in {0, hit}:
        return f"{'none' if stranded else 'all'} can be placed again"
    return f"{stranded} of {count_of(hit, 'group')} cannot be placed again"


def _names(nodes: Sequence[str]) -> str:
    names = list(dict.fromkeys(filter(None, nodes)))
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"


def _told_of_growth(row: dict[str, Any]) -> str:
    if "factor" not in row:
        return _GROWTH.format(**row)
    return _GROWN.format(**row, told=_FIT[row["fits"]])


def _growth(cluster: Cluster, outcomes: Sequence[Outcome], factor: int) -> Iterator[dict[str, Any]]:
    """Count for each serving its groups, those that fit, and how many more do."""
    owners: dict[str, list[PodGroup]] = {}
    for outcome in outcomes:
        if outcome.group.unknown is None:
            owners.setdefault(outcome.group.owner, []).append(outcome.group)
    counts = grow(cluster, [groups[0] for groups in owners.values()])
    fitting = {outcome.group.title for outcome in outcomes if outcome.verdict is Verdict.FITS}
    for (owner, groups), more in zip(owners.items(), counts, strict=True):
        now = sum(group.title in fitting for group in groups)
        row: dict[str, Any] = {"owner": owner, "groups": len(groups), "fit": now, "more": more}
        if factor:
            needed = max(0, factor * len(groups) - now)
            fits = True if more >= needed else None if more >= MOST_COPIES else False
            row |= {"factor": factor, "needed": needed, "fits": fits}
        yield row
