"""The live reading of an inventory: missing rights, and a cluster that changes meanwhile."""

from collections.abc import Iterator
from typing import Any

import pytest

from kthena_components.cluster.client import ClusterError
from kthena_components.cluster.fetch_servings_and_inventory import (
    MissingRightsError,
    fetch_inventory,
)
from kthena_components.cluster.requirements import INVENTORY
from tests.cluster.objects import node

Body = dict[str, Any]


class Server:
    """An API server that lists what it is given."""

    def __init__(self, listed: dict[str, list[Body]], refused: tuple[str, ...] = ()) -> None:
        self.listed, self.refused = listed, refused
        self.reads = 0

    def serves(self, _version: str, kind: str) -> bool:
        return kind in self.listed or kind in self.refused

    def list(self, version: str, kind: str) -> Iterator[Body]:
        self.reads += kind == "Node"
        if kind in self.refused:
            raise ClusterError(403, "Forbidden", "no")
        for body in self.listed.get(kind, []):
            yield {"apiVersion": version, "kind": kind, **body}

    def get(self, body: Body) -> Body:
        raise ClusterError(404, "NotFound", str(body["kind"]))


class Changing(Server):
    """A server with another node at each reading, for some readings."""

    def __init__(self, times: int) -> None:
        super().__init__({"Node": [node("a")], "Pod": []})
        self.times = times

    def list(self, version: str, kind: str) -> Iterator[Body]:
        yield from super().list(version, kind)
        if kind == "Node" and self.reads <= self.times:
            yield {"apiVersion": version, "kind": kind, **node(f"n-{self.reads}")}


def test_kinds_that_are_not_served_are_left_out_and_defaults_are_told() -> None:
    pods = [{"metadata": {"name": "p"}, "spec": {"nodeName": "a"}},
            {"metadata": {"name": "q"}, "spec": {"nodeName": "gone"}}]  # fmt: skip
    found = fetch_inventory(Server({"Node": [node("a")], "Pod": pods}))  # type: ignore[arg-type]
    assert [body["metadata"]["name"] for body in found.objects] == ["a", "p"]
    assert len(found.notes) == 2
    assert "there is no ConfigMap volcano-system/volcano-scheduler-configmap" in found.notes[0]


def test_each_missing_right_is_a_sentence() -> None:
    server = Server({"Node": [node("a")]}, refused=("Pod", "Queue"))
    with pytest.raises(MissingRightsError) as told:
        fetch_inventory(server)  # type: ignore[arg-type]
    ask = "ask for the role that `kthena-components rights --inventory` prints"
    assert told.value.reasons == (
        f"you may not list pods in the whole cluster: {ask}",
        f"you may not list queues of scheduling.volcano.sh in the whole cluster: {ask}",
    )


def test_devices_that_may_not_be_listed_are_a_note() -> None:
    """Most clusters serve them, and few have any: older roles stay enough."""
    server = Server({"Node": [node("a")]}, refused=("ResourceSlice",))
    notes = fetch_inventory(server).notes  # type: ignore[arg-type]
    assert notes[-1].startswith("devices for resource claims are not known, because you may not")


def test_a_cluster_that_changes_is_read_again_and_at_last_refused() -> None:
    assert fetch_inventory(Changing(2)).objects  # type: ignore[arg-type]
    with pytest.raises(ClusterError, match="nodes came or went each of the 3 times"):
        fetch_inventory(Changing(100))  # type: ignore[arg-type]


def test_only_lists_are_needed() -> None:
    assert {verb for resource in INVENTORY for verb in resource.verbs} == {"list"}
