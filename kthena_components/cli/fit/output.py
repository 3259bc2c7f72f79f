"""Writes the answers of `fit`, `fit --lose` and `fit --grow` as text and as data. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tabulate import tabulate

from kthena_components.cluster.objects import accelerators
from kthena_components.core.findings import count_of, nearest
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import sentence, visible
from kthena_components.placement.answer import STAYS, with_placed
from kthena_components.placement.model import Cluster, Outcome, PodGroup, Verdict
from kthena_components.placement.node_loss_and_growth import (
    MOST_COPIES,
    Hit,
    Loss,
    grow,
    lose,
    nodes_of,
    worst,
)

HEADERS = ["verdict", "group", "pods", "GPUs", "HyperNode", "nodes"]
_WORDS = {
    Verdict.FITS: ("fits", "fit"),
    Verdict.PARTLY: ("fits in part", "fit in part"),
    Verdict.WAITS: ("waits", "wait"),
    Verdict.NEVER: ("never fits", "never fit"),
    Verdict.UNKNOWN: ("is not checked", "are not checked"),
}
"""What one group does, and what several do."""
_SHOWN = 3
"""Names of nodes in a row at most."""


def render(cluster: Cluster, outcomes: Sequence[Outcome], rows: Sequence[str]) -> str:
    """Write one row for each group, why others wait, what is left, and what was not compared.

    Args:
        cluster: What is there.
        outcomes: The answer for each group.
        rows: The racks as drawn, perhaps in colour. The rest is made visible here.
    """
    if not outcomes:
        return "Nothing here has pods."
    table = [[*map(visible, _row(outcome))] for outcome in outcomes]
    parts = [
        tabulate(table, HEADERS, "simple", disable_numparse=True),
        "\n".join(map(visible, _reason_lines(outcomes))),
        "\n".join(rows),
        "\n".join(map(visible, [summary(outcomes), *_about(cluster)])),
    ]
    return "\n\n".join(filter(None, parts))


def summary(outcomes: Sequence[Outcome]) -> str:
    """Count the groups by their answers."""
    counted = Counter(outcome.verdict for outcome in outcomes)
    counts = [
        f"{counted[each]} {_WORDS[each][counted[each] > 1]}" for each in _WORDS if counted[each]
    ]
    return f"{count_of(len(outcomes), 'group')}: {', '.join(counts)}."


def _row(outcome: Outcome) -> list[str]:
    """Write the row of a group: verdict, pods, GPUs, and the HyperNode and nodes of its place."""
    group, placement = outcome.group, outcome.placement
    gpus = sum(accelerators(pods.requests) * pods.count for pods in group.pods)
    unknown = group.unknown is not None
    where = "" if placement is None or placement.domain is None else str(placement.domain)
    return [
        "fits (runs)" if outcome.note == STAYS else str(outcome.verdict),
        group.title,
        "?" if unknown else str(group.size),
        "?" if unknown else str(gpus),
        where or "-",
        _nodes(() if placement is None else placement.nodes),
    ]


def _nodes(nodes: Sequence[str]) -> str:
    names = list(dict.fromkeys(filter(None, nodes)))
    return _first(names) if names else "-"


def _first(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"


def _reason_lines(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Say why groups do not fit, and the smallest change after which each does: equal ones once."""
    titles: dict[tuple[str, str], list[str]] = {}
    for outcome in outcomes:
        for line in _reasons(outcome):
            titles.setdefault(line, []).append(outcome.group.title)
    for (reason, change), alike in titles.items():
        if len(alike) == 1:
            yield f"{alike[0]}: {reason} {change}".rstrip()
            continue
        about = f"{count_of(len(alike), 'group')} ({_first(alike)})"
        one = f"For one of them: {change[0].lower()}{change[1:]}" if change else ""
        yield f"{about}: {reason} {one}".rstrip()


def _reasons(outcome: Outcome) -> Iterator[tuple[str, str]]:
    """Yield why a group does not fit, each with the change that helps; empty if none does."""
    gap = outcome.group.unknown
    if gap is not None:
        yield f"not checked, because {gap.because}.", ""
        return
    if outcome.note and outcome.note != STAYS and outcome.verdict is not Verdict.UNKNOWN:
        yield sentence(outcome.note), ""
    for obstacle in outcome.obstacles:
        changes = " ".join(sentence(change.text) for change in obstacle.changes[:1])
        yield sentence(obstacle.text), changes


def _about(cluster: Cluster) -> Iterator[str]:
    taken = "" if cluster.taken is None else f", read {cluster.taken:%Y-%m-%d %H:%M} UTC"
    source, version = cluster.source or "by hand", cluster.scheduler.version
    yield f"Cluster: {source}{taken}; scheduler: Volcano {version}."
    yield from (f"Note: {sentence(note)}" for note in cluster.notes)


def describe(cluster: Cluster, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the same as data."""
    return {
        "cluster": {
            "source": cluster.source,
            "taken": None if cluster.taken is None else cluster.taken.isoformat(),
            "scheduler": cluster.scheduler.version,
            "notes": list(cluster.notes),
        },
        "groups": [_data(outcome) for outcome in outcomes],
        "racks": [dict(rack) for rack in racks_left(cluster, outcomes)],
    }


def _data(outcome: Outcome) -> dict[str, Any]:
    """Return one group's answer for JSON."""
    group, placement = outcome.group, outcome.placement
    domain = None if placement is None else placement.domain
    return {
        "group": group.title,
        "owner": group.owner,
        "verdict": str(outcome.verdict),
        "exists": outcome.exists,
        "pods": None if group.unknown else group.size,
        "hyperNode": None if domain is None else domain.name,
        "tier": None if domain is None else domain.tier,
        "nodes": [] if placement is None else list(placement.nodes),
        "note": group.unknown.because if group.unknown else outcome.note,
        "reasons": [
            {
                "cause": str(obstacle.cause),
                "text": obstacle.text,
                "changes": [change.text for change in obstacle.changes],
            }
            for obstacle in outcome.obstacles
        ],
    }


def racks_left(cluster: Cluster, outcomes: Sequence[Outcome]) -> Iterator[Mapping[str, Any]]:
    """Return the GPUs of each lowest HyperNode, and those left after the placement."""
    held: Counter[str] = Counter()
    for outcome in outcomes:
        each = [pods.requests for pods in outcome.group.pods for _ in range(pods.count)]
        nodes = outcome.placement.nodes if outcome.placement else ()
        for requests, node in zip(each, nodes, strict=False):
            held[node] += accelerators(requests)
    nodes_by_name = {node.name: node for node in cluster.nodes}
    lowest = min((domain.tier for domain in cluster.domains), default=0)
    for domain in cluster.domains:
        if domain.tier == lowest:
            inside = [nodes_by_name[name] for name in domain.nodes]
            total = sum(accelerators(node.allocatable) for node in inside)
            used = sum(accelerators(node.used) + held[node.name] for node in inside)
            yield {"name": domain.name, "gpus": total, "left": total - used}


WORST = "1"
"""The single node whose loss strands the most."""
_GROWTH = "{owner}: groups that fit: {fit} of {groups}, with room for {more} more."
_GROWN = _GROWTH + " {factor}x needs {needed} more: {fits}."
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
        lines += ["", *_loss_lines(loss, lose)]
        data["lose"] = {"nodes": list(loss.nodes), "groups": [_hit(hit) for hit in loss.hits]}
    if grow_to is not None:
        growth = list(_growth(placed, outcomes, grow_to))
        data["grow"] = growth
        lines += ["", *map(_growth_line, growth)]
    return WhatIf(lines, data)


def _hit(hit: Hit) -> dict[str, Any]:
    nodes = None if hit.placement is None else list(hit.placement.nodes)
    return {"group": hit.running.group.title, "lostPods": hit.lost, "nodes": nodes}


def _lose(cluster: Cluster, wanted: str) -> Loss:
    return lose(cluster, _lost(cluster, wanted))


def _lost(cluster: Cluster, wanted: str) -> tuple[str, ...]:
    """Return the nodes that --lose names: one node, or all of a HyperNode."""
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


def _loss_lines(loss: Loss, wanted: str) -> Iterator[str]:
    """Say which groups a loss of nodes hits, and where their pods come back."""
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


def _growth_line(row: dict[str, Any]) -> str:
    if "factor" not in row:
        return _GROWTH.format(**row)
    return _GROWN.format(**{**row, "fits": _FIT[row["fits"]]})


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
