"""Compares what we read of LimitRanges with the API server's admission, on random ones.

Each case has a namespace of its own.
"""

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from http import HTTPStatus
from typing import Any

from conformance.report import Part
from conformance.support.waiting import wait
from kthena_components.cluster.client import Cluster, ClusterError
from kthena_components.core.values.quantity import parse_quantity
from kthena_components.core.values.unknown import Unknown
from kthena_components.placement.quotas_and_limit_ranges import refusals, with_defaults

NUMBER, LEAST = 300, 120
_AMOUNTS = {
    "cpu": ["500m", "1", "1500m", "2", "4"],
    "memory": ["512Mi", "1Gi", "1536Mi", "2G", "4Gi"],
}
_LIMITS = ("min", "max", "default", "defaultRequest", "maxLimitRequestRatio")
_REFUSED = {HTTPStatus.FORBIDDEN, HTTPStatus.UNPROCESSABLE_ENTITY}
Body = dict[str, Any]
Resources = list[dict[str, dict[str, Decimal]]]


def compare_limits(part: Part, api: Cluster, seed: int, number: int) -> None:
    """Send pods to namespaces with LimitRanges, and compare the defaults and the verdicts."""
    draw, verdicts, differ = random.Random(f"limits {seed}"), Counter[str](), list[str]()  # noqa: S311
    drawn = [[*_drawn(draw, f"limits-{index}")] for index in range(number)]
    with _seen_by(api):
        created = [[body for body in bodies if _create(api, body)] for bodies in drawn]
    for index, ranges in enumerate(created):
        spec = _pod(draw)
        ours, theirs = _ours(spec, ranges), _theirs(api, f"limits-{index}", spec)
        if isinstance(ours, Unknown):
            verdicts["in no fixed order"] += 1
            continue
        verdicts["refused" if theirs is None else "taken"] += 1
        if ours != theirs:
            differ.append(f"{[one['spec'] for one in ranges]} {spec}: API {theirs}, ours {ours}")
    for verdict in ("refused", "taken", "in no fixed order"):
        part.count(f"pods with LimitRanges, {verdict}", verdicts[verdict])
        part.check(f"some pods are {verdict}", holds=verdicts[verdict] > 0)
    seen = "\n".join(differ[:5])
    part.check("LimitRanges are read as by the API server", holds=not differ, seen=seen)


@contextmanager
def _seen_by(api: Cluster) -> Iterator[None]:
    """Wait until the API server has seen all LimitRanges that the caller creates.

    It reads a namespace again only if it knows none of its LimitRanges. So the last one, which
    refuses each pod, is the second one of its namespace.
    """
    _create(api, _range("limits", "first", []))
    yield
    item = {"type": "Container", "maxLimitRequestRatio": {"cpu": "1"}}
    _create(api, _range("limits", "last", [item]))
    pod: Body = {"containers": [{"name": "a", "image": "busybox:1.37"}]}
    if not wait(lambda: _theirs(api, "limits", pod) is None):
        raise TimeoutError("the API server does not see the LimitRange 'last'")


def _drawn(draw: random.Random, space: str) -> Iterator[Body]:
    for index in range(draw.randint(1, 2)):
        kinds = draw.sample(["Container", "Pod"], draw.randint(1, 2))
        yield _range(space, f"limits-{index}", [_item(draw, kind) for kind in kinds])


def _range(space: str, name: str, items: list[Body]) -> Body:
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": name, "namespace": space},
        "spec": {"limits": items},
    }


def _create(api: Cluster, body: Body) -> bool:
    """Create a LimitRange, in a namespace of its own. Return whether it is valid."""
    space = body["metadata"]["namespace"]
    for made in ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}}, body):
        try:
            api.create(made)
        except ClusterError as error:
            if error.status == HTTPStatus.UNPROCESSABLE_ENTITY:
                return False
            if error.status != HTTPStatus.CONFLICT:
                raise
    return True


def _item(draw: random.Random, kind: str) -> Body:
    fields = _LIMITS if kind == "Container" else ("min", "max", "maxLimitRequestRatio")
    item: Body = {"type": kind}
    for field in fields:
        if draw.random() < 0.25:
            item[field] = _amounts(draw, ratio=field == "maxLimitRequestRatio")
    return item


def _amounts(draw: random.Random, *, ratio: bool = False) -> Body:
    keys = draw.sample(list(_AMOUNTS), draw.randint(1, 2))
    return {key: draw.choice(["1", "2", "3"] if ratio else _AMOUNTS[key]) for key in keys}


def _pod(draw: random.Random) -> Body:
    spec: Body = {"containers": [_container(draw, f"main-{n}") for n in range(draw.randint(1, 2))]}
    if draw.random() < 0.3:
        spec["initContainers"] = [_container(draw, "first")]
    return spec


def _container(draw: random.Random, name: str) -> Body:
    fields = [field for field in ("requests", "limits") if draw.random() < 0.5]
    resources = {field: _amounts(draw) for field in fields}
    return {"name": name, "image": "busybox:1.37", "resources": resources}


def _ours(spec: Body, ranges: list[Body]) -> Resources | Unknown | None:
    """Return the resources of each container; None if the pod is refused."""
    made = with_defaults(spec, ranges)
    if isinstance(made, Unknown):
        return made
    return None if _is_crossed(spec) or refusals(made, ranges) else _resources(made)


def _is_crossed(spec: Body) -> bool:
    """Return whether the pod itself requests more than its limit: no LimitRange does so."""
    return any(
        amount > each["limits"].get(key, amount)  # a request that is not stated is the limit
        for each in _resources(spec)
        for key, amount in each["requests"].items()
    )


def _theirs(api: Cluster, space: str, spec: Body) -> Resources | None:
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": space},
        "spec": spec,
    }
    try:
        return _resources(api.create(body, dry_run=True)["spec"])
    except ClusterError as error:
        if error.status not in _REFUSED:
            raise
        return None


def _resources(spec: Body) -> Resources:
    containers = [*spec.get("initContainers", ()), *spec["containers"]]
    return [
        {
            key: {name: parse_quantity(amount) or Decimal(0) for name, amount in found.items()}
            for key in ("requests", "limits")
            for found in [each.get("resources", {}).get(key) or {}]
        }
        for each in containers
    ]
