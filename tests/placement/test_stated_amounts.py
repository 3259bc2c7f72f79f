"""Amounts that no cluster has are refused in one sentence; all others are read back as written."""

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from kthena_components.placement.inventory import InventoryError, parse_inventory
from kthena_components.placement.inventory_fields import MOST, amount_of
from kthena_components.placement.inventory_write import write_inventory
from kthena_components.placement.model import Cluster
from tests.placement.test_inventory import HEAD, OBJECTS, listed
from tests.support.for_each import for_each

Body = dict[str, Any]
WRONG: tuple[object, ...] = (
    "1e400", "1e999", "NaN", "nan", "inf", "-1", "-1n", "", " ", "1_000", "0x10", "1e", "٣",
    "9223372036854775808", "8Ei", "1e19", "1" * 65, True, [], {}, -1, 2**63, 2.0**63,
)  # fmt: skip
RIGHT = ("0", "-0", "1 ", "1n", "0.1n", "1e-400", "1e3", "1E3", "1E", "7Ei", "9223372036854775807",
         8, 1.5, "0.30000000000000004", "1." + "0" * 62)  # fmt: skip
ANY = st.one_of(
    st.text("0123456789.eE+-numkMGTPi ", max_size=30), st.sampled_from(WRONG + RIGHT),
    st.integers(), st.floats(allow_nan=False, allow_infinity=False),
)  # fmt: skip
Place = tuple[str, str, tuple[str | int, ...]]
PLACES: tuple[Place, ...] = (
    ("Node", "status.allocatable", ("status", "allocatable")),
    ("Queue", "spec.capability", ("spec", "capability")),
    ("Queue", "spec.guarantee.resource", ("spec", "guarantee", "resource")),
    ("Queue", "status.allocated", ("status", "allocated")),
    ("ResourceQuota", "status.used", ("status", "used")),
    ("PodGroup", "spec.minResources", ("spec", "minResources")),
    ("Pod", "spec.overhead", ("spec", "overhead")),
    ("Pod", "spec.initContainers[0].resources.requests",
     ("spec", "initContainers", 0, "resources", "requests")),
    ("LimitRange", "spec.limits[0].max", ("spec", "limits", 0, "max")),
)  # fmt: skip
LIMIT_RANGE = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"},
               "spec": {"limits": [{"type": "Container"}]}}  # fmt: skip


def with_amount(place: Place, value: object) -> str:
    """Give the first object of a kind an amount in one of its lists."""
    kind, _, keys = place
    objects = deepcopy([*OBJECTS, LIMIT_RANGE])
    at: Any = next(body for body in objects if body["kind"] == kind)
    for key in keys:
        at = at.setdefault(key, {}) if isinstance(key, str) else at[key]
    at["cpu"] = value
    return listed(*objects)


def by_hand(value: object) -> str:
    return json.dumps({**HEAD, "racks": 1, "nodes_per_rack": 1, "gpus": 8, "cpu": value})


def one_sentence(text: str) -> str | None:
    """Return why a string is refused; None if it is read, and read back the same."""
    try:
        cluster = parse_inventory(text, "c.yaml")
    except InventoryError as error:
        (told,) = str(error).splitlines()
        return told
    written = write_inventory(replace(cluster, taken=datetime.now(UTC)))
    assert held(parse_inventory(written, "c.yaml")) == held(cluster)
    return None


def held(cluster: Cluster) -> list[object]:
    nodes = [(node.name, dict(node.allocatable), dict(node.used)) for node in cluster.nodes]
    return [nodes, list(cluster.queues), list(cluster.quotas), list(cluster.running)]


@for_each("value", WRONG)
def test_no_cluster_has_such_an_amount(value: object) -> None:
    assert amount_of(value) is None
    assert "cpu: is " in (one_sentence(by_hand(value)) or "")


@for_each("value", RIGHT)
def test_a_cluster_may_have_such_an_amount(value: object) -> None:
    assert one_sentence(by_hand(value)) is None


@for_each("place", PLACES, ids=[f"{kind} {path}" for kind, path, _ in PLACES])
def test_each_list_of_a_dump_is_looked_at(place: Place) -> None:
    kind, path, _ = place
    told = one_sentence(with_amount(place, "1e400")) or ""
    assert told.startswith(f"c.yaml: {kind} ")
    assert f": {path}.cpu is '1e400', but must be an amount from 0 to 2^63 - 1" in told
    assert one_sentence(with_amount(place, "1")) is None


@given(ANY, st.sampled_from([by_hand, *PLACES]))
def test_an_amount_is_refused_in_one_sentence_or_read_back(
    value: object, where: Place | Callable[[object], str]
) -> None:
    text = where(value) if callable(where) else with_amount(where, value)
    read = amount_of(value)
    # A dump has more pods, and what all of them use must not be above the limit, either.
    assume(callable(where) or read is None or read <= MOST - 2**20)
    assert (one_sentence(text) is None) == (read is not None)
    assert read is None or 0 <= read <= MOST
