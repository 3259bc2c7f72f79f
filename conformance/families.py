"""Queues below one another: drawn at random, and judged by our rule and by Volcano's webhook.

One object shows no parent. So a parent is made, then a first child, and then a second one is tried;
both children may be too large, alone or together.
"""

import random
import time
from collections import Counter
from typing import Any

import yaml

from conformance import volcano
from conformance.cases import VERSIONS
from conformance.report import Part
from kthena_components.cluster.client import Cluster, ClusterError
from kthena_components.judge.objects import read_objects
from kthena_components.systems.volcano.stack_queues import queue_within_parent

NUMBER, LEAST = 500, 100
_PATIENCE = 120.0
"""Seconds in which the webhook hears of a queue that was made."""
Body = dict[str, Any]


def compare_families(part: Part, api: Cluster, seed: int, number: int) -> None:
    """Make families, and compare both verdicts on each child."""
    draw = random.Random(f"families {seed}")  # noqa: S311 - a test
    families = [[_member(draw, f"f{n}-{who}", n) for who in "pab"] for n in range(number)]
    seen = Counter[str]()
    for parent, *_ in families:
        api.create(parent)
    for dry_run in (False, True):
        for family in families:
            _try(part, api, family, seen, dry_run=dry_run)
    for verdict in ("refused by both", "taken by both"):
        part.count(f"children of Queues {verdict}", seen[verdict])
        part.check(f"a tenth of all children is {verdict}",
                   holds=seen[verdict] > number // 5, seen=seen)  # fmt: skip


def _member(draw: random.Random, name: str, number: int) -> Body:
    """Draw a Queue that is right by itself; all but the first of a family are below it."""
    body = volcano.queue(draw)
    body["metadata"]["name"] = name
    body["spec"].pop("parent", None)
    if not name.endswith("p"):
        body["spec"]["parent"] = f"f{number}-p"
    return body


def _try(
    part: Part, api: Cluster, family: list[Body], seen: Counter[str], *, dry_run: bool
) -> None:
    """Try the next child of a family. The first one stays, where it is taken."""
    known = family if dry_run else family[:2]
    refused = bool(list(queue_within_parent(read_objects(known, (), versions=VERSIONS))))
    until = time.monotonic() + _PATIENCE
    while True:
        said = _create(api, known[-1], dry_run=dry_run)
        late = bool(said) != refused or "not found" in said
        if not late or time.monotonic() > until or not (said or dry_run):
            break
        time.sleep(0.1)
    part.checks += 1
    if bool(said) == refused and "not found" not in said:
        seen["refused by both" if refused else "taken by both"] += 1
    else:
        shown = yaml.safe_dump_all(known, sort_keys=False)
        part.fail(f"we refuse it: {refused}; the cluster says {said or 'nothing'}\n{shown}")
    if said and not dry_run:
        family.pop(1)


def _create(api: Cluster, body: Body, *, dry_run: bool) -> str:
    try:
        api.create(body, dry_run=dry_run)
    except ClusterError as error:
        if error.status not in {400, 403, 422}:
            raise
        return str(error)
    return ""
