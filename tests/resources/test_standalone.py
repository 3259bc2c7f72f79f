"""ServingGroup, Role, HyperNodeTopology and Queue by themselves."""

from typing import Any

import pulumi

from tests.resources.build import group, queue, role, topology
from tests.support.recorder import record
from tests.support.specs import GROUP, ROLE

INVENTORY: dict[str, Any] = {
    "inventory": {
        "nodes": [
            {"name": f"node-{i}", "labels": {"example.com/rack": f"r{i}", "example.com/hall": "h"}}
            for i in range(2)
        ],
        "tiers": [{"label": "example.com/rack"}, {"label": "example.com/hall"}],
    }
}


def test_objects_of_a_group_alone_hang_directly_below_it() -> None:
    seen = record(lambda: group(GROUP, name="third"))
    assert seen.of_kind("ServingGroup")[0].request.type == "kthena:index:ServingGroup"
    assert seen.names_of("ServingGroup") == ["third"]
    assert seen.parents(seen.named("third-3", "PodGroup")) == ["third"]
    entry = seen.named("third-3-decode-0", "StatefulSet")
    assert seen.parents(entry) == ["third-3-decode", "third"]
    assert entry.props["metadata"]["name"] == "chat-3-decode-0"


def test_objects_of_a_role_alone_hang_directly_below_it() -> None:
    seen = record(lambda: role(ROLE))
    assert seen.names_of("Role") == ["decode"]
    assert seen.names_of("ServingGroup") == []
    assert {tuple(seen.parents(r)) for r in seen.resources if r.request.custom} == {("decode",)}


def test_a_role_alone_makes_no_pod_group_but_joins_one() -> None:
    seen = record(lambda: role(ROLE))
    assert seen.of_kind("PodGroup") == []
    pods = seen.of_kind("StatefulSet")[0].props["spec"]["template"]["metadata"]["annotations"]
    assert pods["scheduling.k8s.io/group-name"] == "shared"


def test_two_roles_of_one_group_share_no_urn() -> None:
    def program() -> None:
        role(ROLE, name="left")
        role({**ROLE, "name": "encode"}, name="right")

    assert len(record(program).of_kind("StatefulSet")) == 4


def test_a_hyper_node_comes_after_its_children() -> None:
    seen = record(lambda: topology(INVENTORY))
    hall = seen.named("network-hall-h", "HyperNode")
    assert seen.waits_for(hall) == {"HyperNode/network-rack-r0", "HyperNode/network-rack-r1"}
    assert hall.type == "kubernetes:topology.volcano.sh/v1alpha1:HyperNode"
    assert seen.parents(hall) == ["network"]


def test_a_topology_says_its_names_and_tiers() -> None:
    outputs = record(lambda: topology(INVENTORY)).of_kind("HyperNodeTopology")[0].outputs
    assert outputs == {
        "names": ["rack-r0", "rack-r1", "hall-h"],
        "tiers": [
            {"tier": 1, "name": "rack", "hyper_nodes": 2},
            {"tier": 2, "name": "hall", "hyper_nodes": 1},
        ],
    }


def test_label_values_of_a_hyper_node_may_be_outputs() -> None:
    def program() -> None:
        labels = {"example.com/zone": pulumi.Output.from_input("a")}
        node = {"name": "rack-0", "tier": 1, "nodes": ["node-0"], "labels": labels}
        topology({"hyper_nodes": [node]})

    (made,) = record(program).of_kind("HyperNode")
    assert made.props["metadata"]["labels"] == {"example.com/zone": "a"}


def test_what_is_doubtful_about_a_topology_is_told_and_stops_nothing() -> None:
    twice = {
        "hyper_nodes": [
            {"name": "rack-0", "tier": 1, "nodes": ["node-0"]},
            {"name": "rack-1", "tier": 1, "nodes": ["node-0"]},
        ]
    }
    seen = record(lambda: topology(twice))
    assert seen.names_of("HyperNode") == ["network-rack-0", "network-rack-1"]
    (told,) = seen.infos()
    assert told.startswith("hyper_nodes[1].nodes[0]: node 'node-0' is in 'rack-0' and in 'rack-1'")


def test_a_queue_has_the_name_of_its_component_by_default() -> None:
    seen = record(lambda: queue({"weight": 4}))
    (made,) = (r for r in seen.resources if r.request.custom)
    assert (made.type, made.name) == (
        "kubernetes:scheduling.volcano.sh/v1beta1:Queue", "research",
    )  # fmt: skip
    assert made.props["metadata"]["name"] == "research"
    assert made.props["spec"]["weight"] == 4


def test_a_queue_may_be_named_otherwise_than_its_component() -> None:
    seen = record(lambda: queue({"name": "team.research"}, name="shared"))
    (made,) = (r for r in seen.resources if r.request.custom)
    assert (made.name, made.props["metadata"]["name"]) == ("shared", "team.research")
