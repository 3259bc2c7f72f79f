"""Compares our rule for Queues in a hierarchy with Volcano's webhook, on random Queues.

One object does not show its parent. So this creates a parent and a first child, and then tries a
second child. The children may be too large, alone or together.
"""

import random
import time
from collections import Counter
from typing import Any

import yaml

from conformance.report import Part
from conformance.validation.cases import VERSIONS
from conformance.volcano import random_objects
from kthena_components.checker.read_cluster_objects import read_objects
from kthena_components.cluster.client import Cluster, ClusterError
from kthena_components.systems.volcano.rules.queue_references import queue_within_parent

NUMBER, LEAST = 500, 100
_PATIENCE = 120.0
"""Seconds until the webhook has seen a new queue."""
Body = dict[str, Any]


def compare_families(part: Part, api: Cluster, seed: int, number: int) -> None:
    """Create families, and compare both verdicts on each child."""
    draw = random.Random(f"families {seed}")  # noqa: S311 - a test
    families = [[_member(draw, f"f{n}-{who}", n) for who in "pab"] for n in range(number)]
    seen = Counter[str]()
    for parent, *_ in families:
        api.create(parent)
    for dry_run in (False, True):
        for family in families:
            _try(part, api, family, seen, dry_run=dry_run)
    for verdict in ("rejected by both", "accepted by both"):
        part.count(f"children of Queues {verdict}", seen[verdict])
        part.check(f"a tenth of all children are {verdict}",
                   holds=seen[verdict] > number // 5, seen=seen)  # fmt: skip


def _member(draw: random.Random, name: str, number: int) -> Body:
    """Generate a valid Queue. All but the first of a family are its children."""
    body = random_objects.queue(draw)
    body["metadata"]["name"] = name
    body["spec"].pop("parent", None)
    if not name.endswith("p"):
        body["spec"]["parent"] = f"f{number}-p"
    return body


def _try(
    part: Part, api: Cluster, family: list[Body], seen: Counter[str], *, dry_run: bool
) -> None:
    """Try the next child of a family. The first child stays if the cluster accepts it."""
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
        seen["rejected by both" if refused else "accepted by both"] += 1
    else:
        shown = yaml.safe_dump_all(known, sort_keys=False)
        part.fail(f"rejected by us: {refused}; the cluster: {said or 'accepts it'}\n{shown}")
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
