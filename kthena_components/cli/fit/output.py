"""Writes the answers of `fit` as text and as data. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tabulate import tabulate

from kthena_components.cluster.objects import accelerators
from kthena_components.core.findings import count_of
from kthena_components.core.values.display import sentence
from kthena_components.core.values.safe_text import visible
from kthena_components.placement.answer import STAYS
from kthena_components.placement.model import Cluster, Outcome, Verdict

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
        "\n".join(map(visible, _told(outcomes))),
        "\n".join(rows),
        "\n".join(map(visible, [summary(outcomes), *_about(cluster)])),
    ]
    return "\n\n".join(filter(None, parts))


def summary(outcomes: Sequence[Outcome]) -> str:
    """Count the groups by their answers."""
    counted = Counter(outcome.verdict for outcome in outcomes)
    told = [
        f"{counted[each]} {_WORDS[each][counted[each] > 1]}" for each in _WORDS if counted[each]
    ]
    return f"{count_of(len(outcomes), 'group')}: {', '.join(told)}."


def _row(outcome: Outcome) -> list[str]:
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


def _told(outcomes: Sequence[Outcome]) -> Iterator[str]:
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
