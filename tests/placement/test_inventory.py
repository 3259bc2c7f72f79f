"""What an inventory file says, and one sentence for everything that is wrong with one."""

import json
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.placement.anonymous import with_names_of, without_names
from kthena_components.placement.inventory import InventoryError, parse_inventory, read_inventory
from kthena_components.placement.inventory_fields import InventoryFields
from kthena_components.placement.inventory_write import write_inventory
from kthena_components.placement.model import Cluster, Verdict
from tests.cluster.objects import by_name, hyper_node, node, racks, tree
from tests.support.for_each import for_each
from tests.support.placement import group, pods, verdicts

HEAD = {"apiVersion": "kthena-components/v1", "kind": "Inventory"}
Body = dict[str, Any]


def read(**fields: Any) -> Cluster:
    return parse_inventory(yaml.safe_dump({**HEAD, **fields}), "cluster.yaml")


def refused(fields: Body) -> list[str]:
    with pytest.raises(InventoryError) as told:
        parse_inventory(yaml.safe_dump({**HEAD, **fields}), "cluster.yaml")
    return list(told.value.reasons)


def test_ten_lines_describe_a_cluster() -> None:
    cluster = read(racks=4, nodes_per_rack=8, gpus=8, product="H200", cpu=96, memory="2Ti")
    assert len(cluster.nodes) == 32
    assert [str(domain) for domain in cluster.domains] == [
        f"rack-{n} (tier 1)" for n in range(1, 5)
    ]
    first = cluster.nodes[0]
    assert first.name == "rack-1-node-1"
    assert first.accepts_pods
    assert {key: str(amount) for key, amount in first.allocatable.items()} == {
        "pods": "110", "nvidia.com/gpu": "8", "cpu": "96", "memory": str(2 * 2**40),
    }  # fmt: skip
    labels = first.body["metadata"]["labels"]
    assert labels["nvidia.com/gpu.product"] == "NVIDIA-H200"
    assert cluster.notes == ()


def test_what_is_not_stated_is_not_compared_and_this_is_told() -> None:
    cluster = read(racks=1, nodes_per_rack=1, gpus=8)
    assert cluster.nodes[0].allocatable["cpu"] >= 100_000
    (note,) = cluster.notes
    assert note == "CPU and memory of some nodes are not stated, so they were not compared"


def test_an_amount_above_the_largest_quantity_counts_as_that_one() -> None:
    """A pod may ask for 1e400, which counts as 2^63 - 1; a node has no more than that."""
    huge = read(nodes=[{"name": "a", "cpu": "9223372036854775807", "memory": "1Ti", "gpus": 8}])
    small = read(nodes=[{"name": "a", "cpu": 8, "memory": "1Ti", "gpus": 8}])
    wanting = replace(pods(1), requests={"cpu": Decimal("1e400")})
    assert verdicts(huge, group(pods(1))) == [Verdict.FITS]
    assert verdicts(huge, group(wanting)) == [Verdict.FITS]
    assert verdicts(small, group(wanting)) == [Verdict.NEVER]


def test_racks_and_nodes_differ_where_they_say_so() -> None:
    cluster = read(
        gpus=8, cpu=64, memory="1Ti", labels={"pool": "a"},
        racks=[
            {"name": "left", "nodes": 2, "used": {"gpus": 4}},
            {"name": "right", "labels": {"pool": "b"}, "nodes": [
                {"name": "big", "gpus": 16, "taints": [{"key": "team", "value": "x"}]},
                {"names": ["p", "q"], "cordoned": True},
            ]},
        ],
        nodes=[{"name": "alone", "gpus": 1, "resource": "amd.com/gpu"}],
        hyper_nodes=[{"name": "spine", "tier": 2, "children": ["left", "right"]}],
    )  # fmt: skip
    nodes = {node.name: node for node in cluster.nodes}
    assert list(nodes) == ["left-node-1", "left-node-2", "big", "p", "q", "alone"]
    assert nodes["left-node-2"].used == {"nvidia.com/gpu": 4}
    assert nodes["big"].body["spec"]["taints"] == [
        {"key": "team", "value": "x", "effect": "NoSchedule"}
    ]
    assert nodes["big"].allocatable["nvidia.com/gpu"] == 16
    assert nodes["p"].body["metadata"]["labels"]["pool"] == "b"
    assert [node.accepts_pods for node in cluster.nodes] == [True, True, True, False, False, True]
    assert nodes["alone"].allocatable["amd.com/gpu"] == 1
    assert {domain.name: len(domain.nodes) for domain in cluster.domains} == {
        "left": 2, "right": 3, "spine": 5,
    }  # fmt: skip


RUNNING = {
    "group": {"namespace": "a", "name": "b", "pods": [{"name": "p", "count": 2}]},
    "nodes": ["rack-1-node-1"],
}
WRONG: list[tuple[str, Body, list[str]]] = [
    ("fields and what they lead to, at once",
     {"gpu": 8, "racks": 1, "nodes_per_rack": 1, "queues": [{"name": "q", "weight": "x"}],
      "hyper_nodes": [{"name": "spine", "tier": 2, "nodes": ["nope"]}]},
     ["queues[0].weight: is 'x', but must be a whole number: write a whole number.",
      "gpu: there is no field 'gpu' here: write 'gpus'.",
      ("hyper_nodes[0].nodes[0]: is 'nope', but there is no node of this name: add the node, or "
      "remove it here.")]),
    ("a version and what else is wrong", {"apiVersion": "kthena-components/1", "gpu": 8},
     [("apiVersion is 'kthena-components/1', but this version reads kthena-components/v1: write "
      "kthena-components/v1."), "gpu: there is no field 'gpu' here: write 'gpus'."]),
    ("a field that names nodes, which others need",
     {"rack": 1, "hyper_nodes": [{"name": "spine", "tier": 2, "nodes": ["rack-1-node-1"]}]},
     ["rack: there is no field 'rack' here: write 'racks'."]),
    ("an unknown field", {"gpu": 8}, ["gpu: there is no field 'gpu' here: write 'gpus'."]),
    ("the GPU's type at the top", {"gpu": "h200"},
     ["gpu: there is no field 'gpu' here: write product at the top instead."]),
    ("the GPU's type of a rack", {"racks": [{"nodes": 1, "gpu_type": "h200"}]},
     ["racks[0].gpu_type: there is no field 'gpu_type' here: write racks[0].product instead."]),
    (
        "an unknown field of a node",
        {"racks": [{"nodes": [{"taint": []}]}]},
        ["racks[0].nodes[0].taint: there is no field 'taint' here: write 'taints'."],
    ),
    (
        "a number of nodes",
        {"nodes": [{"name": "a", "count": 4}]},
        [
            (
                "nodes[0].count: there is no field 'count' here: write names: [NAME, NAME] "
                "instead, one name for each."
            )
        ],
    ),
    ("negative GPUs", {"gpus": -8}, ["gpus: is -8, but must be at least 0: write at least 0."]),
    (
        "negative CPUs",
        {"cpu": -1},
        [("cpu: is -1, but must be an amount from 0 to 2^63 - 1, such as 96 or 2Ti: "
          "write such a value.")],
    ),
    (
        "a negative resource",
        {"nodes": [{"name": "a", "resources": {"rdma/hca": "-1"}}]},
        [("nodes[0].resources.rdma/hca: is '-1', but must be an amount from 0 to 2^63 - 1, such as "
         "96 or 2Ti: write such a value.")],
    ),
    ("racks that are no number", {"racks": "4"},
     ["racks: is '4', but must be a count, or a list such as [{name: a}]: write such a value."]),
    (
        "too many",
        {"racks": 10**9},
        [("racks: is 1000000000, but must be a count from 0 to 100000, or a list: "
          "write such a value.")],
    ),
    (
        "a product that nobody knows",
        {"racks": 1, "product": "H2000", "nodes_per_rack": 2},
        [("product: 'H2000' is not in the table of GPUs; near names: h200, h20, h800: write the "
         "product's name, or only labels.")],
    ),
    (
        "a node in two racks",
        {"nodes": [{"name": "a"}], "hyper_nodes": [
            {"name": "u", "tier": 1, "nodes": ["a"]}, {"name": "v", "tier": 1, "nodes": ["a"]}]},
        [("node 'a' is in the HyperNodes 'u' and 'v', both of tier 1, but a node is in one of each "
         "tier: list it in one of them.")],
    ),
    (
        "a node that is listed twice",
        {"racks": [{"nodes": [{"name": "a"}]}, {"nodes": [{"name": "a"}]}]},
        [("racks[1].nodes[0]: node 'a' is already in racks[0].nodes[0]: give it another name, or "
         "list it once.")],
    ),
    (
        "a cycle",
        {"racks": 1, "hyper_nodes": [{"name": "u", "tier": 3, "children": ["v"]},
                                     {"name": "v", "tier": 2, "children": ["u"]}]},
        [("hyper_nodes[1].children[0]: the children form a cycle, u -> v -> u, but a HyperNode "
         "cannot be in itself, and with a cycle Volcano places no group that has a network "
         "topology: remove 'u' from the children of 'v'.")],
    ),
    (
        "two parents",
        {"racks": 1, "nodes_per_rack": 1, "hyper_nodes": [
            {"name": "u", "tier": 2, "children": ["rack-1"]},
            {"name": "v", "tier": 2, "children": ["rack-1"]}]},
        [("hyper_nodes[1].children[0]: 'rack-1' is a child of 'u' and of 'v', but a HyperNode has "
         "one parent; with two, Volcano places no group that has a network topology: remove "
         "'rack-1' from the children of 'u' or of 'v'.")],
    ),
    (
        "a name that a rack has already",
        {"racks": [{"name": "x"}, {"name": "x"}]},
        [("racks[1].name: 'x' is already the name of racks[0], but HyperNodes are "
         "cluster-scoped, and their names must be unique: give one of the two another name.")],
    ),
    (
        "a node that does not exist",
        {
            "nodes": [{"name": "gpu-1"}],
            "hyper_nodes": [{"name": "x", "tier": 1, "nodes": ["gpu-2"]}],
        },
        ["hyper_nodes[0].nodes[0]: is 'gpu-2', but there is no node of this name: write 'gpu-1'."],
    ),
    (
        "pods without nodes",
        {"racks": 1, "nodes_per_rack": 1, "running": [RUNNING]},
        [("running[0].nodes: lists 1 node, but the group has 2 pods: list the node of each pod, "
         "and '' for one that waits.")],
    ),
    (
        "a time without a zone",
        {"taken": "2026-11-26"},
        [("taken: is '2026-11-26', but must be a time with its time zone, such as "
         "2026-11-26T19:00:00Z: write such a value.")],
    ),
    (
        "a version that is too new",
        {"apiVersion": "kthena-components/v2"},
        [("apiVersion is 'kthena-components/v2', but this version reads kthena-components/v1: "
         "update kthena-components.")],
    ),
    (
        "no version",
        {"apiVersion": None},
        [("apiVersion is missing, but this version reads kthena-components/v1: write "
         "kthena-components/v1.")],
    ),
    (
        "all errors at once",
        {"gpus": -1, "gpu": 1, "queues": [{"name": "UPPER"}]},
        ["gpus: is -1, but must be at least 0: write at least 0.",
         ("queues[0].name: is 'UPPER', but must be lower-case letters, digits, dashes and dots, "
         "with a letter or digit at both ends of each part: write, for example, 'upper'."),
         "gpu: there is no field 'gpu' here: remove it, because gpus is stated, too."],
    ),
    ("nothing", {}, ["contains no node: state racks and nodes_per_rack, or nodes."]),
    ("more nodes than are read", {"racks": 1000, "nodes_per_rack": 1000},
     ["racks: have 1000000 nodes, and at most 100000 are read: describe a part of the cluster."]),
    ("a taint without an effect", {"taints": [{"key": "a", "effect": "NoSchedul"}]},
     [("taints[0].effect: is 'NoSchedul', but must be NoSchedule, PreferNoSchedule or NoExecute: "
       "write such a value.")]),
    ("a pattern that Go cannot read",
     {"nodes": [{"name": "a"}], "hyper_nodes": [{"name": "r", "tier": 1, "node_regex": "(["}]},
     [("hyper_nodes[0].node_regex: Go cannot read '([' (a '[' is not closed): rewrite the "
       "pattern, or list the nodes.")]),
    ("queues", {"queues": [{"name": "a", "parent": "b"}, {"name": "b", "parent": "a"},
                           {"name": "a"}, {"name": "tam", "parent": "rot"}]},
     [("queues[2].name: 'a' is already the name of queues[0]: give it another name, or list it "
       "once."),
      ("queues[3].parent: is 'rot', but there is no queue of this name: write 'root'.")]),
    ("queues in a cycle", {"queues": [{"name": "c", "parent": "a"}, {"name": "a", "parent": "b"},
                                      {"name": "b", "parent": "a"}]},
     [("queues[0].parent: the parents form a cycle, a -> b -> a: give one of them another parent, "
       "or none.")]),
    ("a quota twice", {"quotas": [{"namespace": "team", "name": "q", "hard": {}}] * 2},
     [("quotas[1]: 'team/q' is already the name of quotas[0]: give it another name, or list it "
       "once.")]),
    ("a HyperNode with the name of a rack",
     {"racks": [{"name": "u"}, {"name": "x"}], "hyper_nodes": [{"name": "x", "tier": 2}]},
     [("hyper_nodes[0].name: 'x' is already the name of racks[1], but HyperNodes are "
       "cluster-scoped, and their names must be unique: give one of the two another name.")]),
    ("more in use than a rack's nodes have",
     {"gpus": 8, "racks": [{"nodes": 2, "used": {"gpus": 12}}]},
     [("racks[0].used.gpus: is 12, but the node has 8 of nvidia.com/gpu: write at most 8.")]),
    ("more in use than a node, and all nodes, have",
     {"gpus": 8, "cpu": 4, "memory": "1Gi", "used": {"memory": "2Gi"},
      "racks": [{"nodes": [{"name": "a", "gpus": 4, "used": {"gpus": 8}}]}],
      "nodes": [{"name": "b", "used": {"amd.com/gpu": 1, "pods": 111}}]},
     [("used.memory: is 2Gi, but the node has 1Gi of memory: write at most 1Gi."),
      ("racks[0].nodes[0].used.gpus: is 8, but the node has 4 of nvidia.com/gpu: write at most 4."),
      ("nodes[0].used.amd.com/gpu: is 1, but the node has 0 of amd.com/gpu: state its amd.com/gpu, "
       "or remove it here."),
      ("nodes[0].used.pods: is 111, but the node has 110 of pods: write at most 110.")]),
]  # fmt: skip


@given(
    has=st.integers(0, 20),
    used=st.integers(0, 20),
    place=st.sampled_from(["top", "rack", "node"]),
    resource=st.sampled_from([None, "amd.com/gpu"]),
)
def test_no_node_uses_more_gpus_than_it_has(
    has: int, used: int, place: str, resource: str | None
) -> None:
    node: Body = {"name": "a"}
    rack: Body = {"nodes": [node]}
    top: Body = {"gpus": has, "racks": [rack], **({"resource": resource} if resource else {})}
    {"top": top, "rack": rack, "node": node}[place]["used"] = {"gpus": used}
    if used > has:
        assert len(refused(top)) == 1
    else:
        read(**top)
    # In a cluster, a device plugin may withdraw a GPU whose pod still runs.
    read(**{**top, "taken": "2026-11-29T06:00:00Z"})


@for_each("name, fields, told", WRONG, ids=[name for name, *_ in WRONG])
def test_what_is_wrong_is_one_sentence(name: str, fields: Body, told: list[str]) -> None:
    assert refused(fields) == [f"cluster.yaml: {one}" for one in told], name


def listed(*objects: Body) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


def of_kind(kind: str, bodies: list[Body], version: str = "v1") -> list[Body]:
    return [{"apiVersion": version, "kind": kind, **body} for body in bodies]


def pod(name: str, on: str, group: str = "", gpus: int = 8, **labels: str) -> Body:
    notes = {"annotations": {"scheduling.k8s.io/group-name": group}} if group else {}
    limits = {"nvidia.com/gpu": gpus, "cpu": "500m"}
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "serving", "labels": labels, **notes},
        "spec": {"nodeName": on, "containers": [{"name": "e", "resources": {"limits": limits}}],
                 "initContainers": [{"resources": {"requests": {"cpu": "2"}}}]},
        "status": {"phase": "Running"},
    }  # fmt: skip


GROUP: Body = {
    "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
    "metadata": {"name": "chat-0", "namespace": "serving"},
    "spec": {"minMember": 2, "queue": "team", "priorityClassName": "high",
             "networkTopology": {"mode": "hard", "highestTierAllowed": 1},
             "subGroupPolicy": [{"name": "d", "labelSelector": {"matchLabels": {"r": "d"}},
                                 "matchLabelKeys": ["id"], "minSubGroups": 2}]},
}  # fmt: skip
OBJECTS: list[Body] = [
    *of_kind("Node", racks(2, 2)),
    *tree(2),
    GROUP,
    pod("chat-0-d-0", "n-0-0", "chat-0", r="d", id="d-0"),
    pod("chat-0-d-1", "n-0-1", "chat-0", r="d", id="d-1"),
    pod("other", "n-1-0", gpus=2),
    pod("late", ""),
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
     "metadata": {"name": "high"}, "value": 1000},
    {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "team"},
     "spec": {"weight": 2, "priority": 3, "capability": {"nvidia.com/gpu": 16}},
     "status": {"state": "Open"}},
    {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "serving"},
     "spec": {"hard": {"requests.nvidia.com/gpu": "16"}},
     "status": {"used": {"requests.nvidia.com/gpu": "8"}}},
    {"apiVersion": "v1", "kind": "PersistentVolumeClaim",
     "metadata": {"name": "models", "namespace": "serving"}, "spec": {"volumeName": "pv-1"}},
    {"apiVersion": "v1", "kind": "ConfigMap",
     "metadata": {"name": "volcano-scheduler-configmap", "namespace": "volcano-system"},
     "data": {"volcano-scheduler.conf": yaml.safe_dump({"tiers": [{"plugins": [
         {"name": "gang"}, {"name": "binpack", "arguments": {"binpack.weight": 10}}]}]})}},
]  # fmt: skip


def test_objects_as_kubectl_lists_them_are_read() -> None:
    cluster = parse_inventory(listed(*OBJECTS), "dump.json")
    used = {node.name: node.used for node in cluster.nodes}
    assert used["n-0-0"] == {"nvidia.com/gpu": 8, "cpu": 2, "pods": 1}  # its init container's CPUs
    assert used["n-1-1"] == {}
    assert [str(domain) for domain in cluster.domains] == [
        "r0 (tier 1)", "r1 (tier 1)", "spine (tier 2)",
    ]  # fmt: skip
    (chat, other), (late,) = cluster.running, cluster.waiting
    assert (chat.group.title, chat.group.minimum, chat.group.priority) == (
        "serving/chat-0",
        2,
        1000,
    )
    assert (chat.nodes, other.nodes) == (("n-0-0", "n-0-1"), ("n-1-0",))
    assert (late.name, late.size) == ("late", 1)
    (queue,) = cluster.queues
    assert queue.used["nvidia.com/gpu"] == 16
    assert cluster.quotas[0].hard == {"requests.nvidia.com/gpu": 16}
    assert cluster.scheduler.plugins == {"gang", "binpack"}
    assert cluster.scheduler.arguments == {"binpack": {"binpack.weight": "10"}}


def test_a_folder_of_dumps_is_one_cluster(tmp_path: Path) -> None:
    for index, body in enumerate(OBJECTS):
        (tmp_path / f"{index}.yaml").write_text(yaml.safe_dump(body))
    several = read_inventory([str(tmp_path)])
    whole = parse_inventory(listed(*OBJECTS), "dump.json")
    assert sorted(node.name for node in several.nodes) == [node.name for node in whole.nodes]
    assert len(several.running) == len(whole.running)


def same(one: Cluster, other: Cluster) -> bool:
    def parts(cluster: Cluster) -> list[object]:
        nodes = [(n.name, dict(n.allocatable), dict(n.used), n.accepts_pods) for n in cluster.nodes]
        return [nodes, list(cluster.domains), list(cluster.queues), list(cluster.quotas),
                list(cluster.running), list(cluster.waiting), cluster.scheduler,
                list(cluster.volumes), dict(cluster.priorities)]  # fmt: skip

    return parts(one) == parts(other)


def test_what_is_written_is_read_as_the_same_cluster() -> None:
    cluster = parse_inventory(listed(*OBJECTS), "dump.json")
    text = write_inventory(cluster)
    assert same(parse_inventory(text, "cluster.yaml"), cluster)
    assert write_inventory(parse_inventory(text, cluster.source + ".yaml")) == text.replace(
        "source: dump.json", "source: dump.json.yaml"
    )


def test_a_name_that_yaml_takes_for_a_truth_is_written_in_quotes() -> None:
    text = write_inventory(
        parse_inventory(listed(*of_kind("Node", [node("y"), node("no")])), "d.json")
    )
    assert [one.name for one in parse_inventory(text, "cluster.yaml").nodes] == ["y", "no"]


def test_without_names_nothing_of_a_workload_is_written_and_the_room_is_the_same() -> None:
    cluster = parse_inventory(listed(*OBJECTS), "dump.json")
    hidden = without_names(cluster)
    text = write_inventory(hidden)
    assert not [word for word in ("chat", "serving", "models", "other", "late") if word in text]
    again = parse_inventory(text, "cluster.yaml")
    assert [node.used for node in again.nodes] == [node.used for node in cluster.nodes]
    (policy,) = again.running[0].group.subgroups
    labels = again.running[0].group.pods[0].labels
    wanted = policy.match_labels["matchLabels"]
    assert all(labels[key] == value for key, value in wanted.items())
    groups = [one.group for one in cluster.running]
    named = with_names_of(again, groups)
    assert [one.group.title for one in named.running] == [one.title for one in groups]
    assert [one.group.owner for one in named.running] == [one.owner for one in groups]
    assert named.quotas[0].namespace == "serving"


@for_each("stated, read_as", [
    ("2026-11-26T01:00:00+02:00", "2026-11-25T23:00:00+00:00"),
    ("2026-11-25T23:00:00Z", "2026-11-25T23:00:00+00:00"),
])  # fmt: skip
def test_a_time_is_read_as_utc(stated: str, read_as: str) -> None:
    taken = read(nodes=[{"name": "a"}], taken=stated).taken
    assert taken is not None
    assert taken.isoformat() == read_as


def test_a_time_that_utc_does_not_have_is_refused() -> None:
    (told,) = refused({"taken": "0001-01-01T00:00:00+14:00"})
    assert "must be a time with its time zone" in told


DUMPS: list[tuple[str, list[Body], str]] = [
    ("nothing", [{"apiVersion": "v1", "kind": "Pod"}], "contains no node."),
    ("negative capacity", of_kind("Node", [node("a", gpus=-8)]),
     ("Node 'a': status.allocatable.nvidia.com/gpu is '-8', but must be an amount from 0 to "
      "2^63 - 1, such as 96 or 2Ti: correct it.")),
    ("a node twice", of_kind("Node", [node("a"), node("a")]),
     "Node 'a' is listed twice: list each object once."),
    ("a node without a name", of_kind("Node", [{}]),
     "a node has no name: list nodes as `kubectl get -o yaml` does."),
    ("pods twice, which would count twice",
     [*of_kind("Node", [node("a")]), *(pod("p", "a"), pod("q", "a")) * 2],
     "Pod 'serving/p' is listed twice, and 1 more like it: list each object once."),
    ("two parents", [*of_kind("Node", racks(1, 1)), *tree(1),
                     hyper_node("other", 2, by_name("r0", "HyperNode"))],
     ("'r0' is a child of 'spine' and of 'other', but a HyperNode has one parent; with two, "
     "Volcano places no group that has a network topology: remove 'r0' from the children of "
     "'spine' or of 'other'.")),
    ("two racks", [*of_kind("Node", racks(1, 1)), *tree(1), hyper_node("x", 1, by_name("n-0-0"))],
     ("node 'n-0-0' is in the HyperNodes 'r0' and 'x', both of tier 1, but a node is in one of "
     "each tier: list it in one of them.")),
    ("a pod of a node that is gone", [*of_kind("Node", [node("a")]), pod("p", "b"), pod("q", "b")],
     ("serving/p runs on node 'b', which is not listed, and 1 more pods are alike: read nodes and "
     "pods again, at the same time.")),
]  # fmt: skip


@for_each("name, objects, told", DUMPS, ids=[name for name, *_ in DUMPS])
def test_dumps_that_contradict_themselves(name: str, objects: list[Body], told: str) -> None:
    with pytest.raises(InventoryError) as error:
        parse_inventory(listed(*objects), "dump.json")
    assert error.value.reasons == (f"dump.json: {told}",), name


MISSING: list[tuple[list[str], list[str]]] = [
    (["rack"], []),
    (["rack", "zon"], ["no node has the label zon, so racks_from makes no HyperNodes of it"]),
    (["rak", "zone"], ["no node has the label rak, so racks_from makes no HyperNodes of it"]),
    (["labels"], ["no node has a usual label of racks, so racks_from makes no HyperNodes"]),
]  # fmt: skip


@for_each("labels, told", MISSING)
def test_a_label_of_racks_that_no_node_has_is_told(labels: list[str], told: list[str]) -> None:
    own = {"rack": "u", "zone": "v"}
    objects = listed(*of_kind("Node", [labelled("a", **own)]))
    by_hand = yaml.safe_dump({**HEAD, "gpus": 8, "cpu": 8, "memory": 8,
                              "nodes": [{"name": "a", "labels": own}]})  # fmt: skip
    for text in (objects, by_hand):
        found = parse_inventory(text, "d", racks_from=labels)
        assert list(found.notes) == told
        assert parse_inventory(write_inventory(found), "d").notes == found.notes


def test_labels_of_racks_are_not_asked_for_beside_hyper_nodes() -> None:
    objects = listed(*of_kind("Node", racks(1, 1)), *tree(1))
    assert not parse_inventory(objects, "d.json", racks_from=["rak"]).notes


def test_no_topology_of_kueue_is_told() -> None:
    (note,) = parse_inventory(listed(*of_kind("Node", [node("a")])), racks_from=["kueue"]).notes
    assert note == "no Topology of Kueue has labels, so racks_from makes no HyperNodes"


def labelled(name: str, **labels: str) -> Body:
    body = node(name)
    body["metadata"]["labels"] = {key.replace("__", "/"): value for key, value in labels.items()}
    return {"apiVersion": "v1", "kind": "Node", **body}


TOPOGRAPH = "network.topology.nvidia.com"


def test_racks_come_from_labels_only_if_asked_and_without_hyper_nodes() -> None:
    nodes = [
        {**labelled(f"n{n}"), "metadata": {"name": f"n{n}", "labels": {
            f"{TOPOGRAPH}/block": f"b{n // 2}", f"{TOPOGRAPH}/spine": f"s{n // 4}"}}}
        for n in range(8)
    ]  # fmt: skip
    text = listed(*nodes)
    assert parse_inventory(text, "d.json").domains == []
    found = parse_inventory(text, "d.json", racks_from=["labels"]).domains
    assert [(one.name, one.tier, len(one.nodes)) for one in found] == [
        ("b0", 1, 2), ("b1", 1, 2), ("b2", 1, 2), ("b3", 1, 2), ("s0", 2, 4), ("s1", 2, 4),
    ]  # fmt: skip
    (whole,) = parse_inventory(listed(*nodes, hyper_node("x", 1, by_name("n0"))), "d.json",
                               racks_from=["labels"]).domains  # fmt: skip
    assert whole.name == "x"


def test_racks_of_one_name_in_two_zones_are_two() -> None:
    nodes = [
        {**labelled(f"{zone}{n}"), "metadata": {"name": f"{zone}{n}", "labels": {
            "rack": f"r{n}", "zone": zone}}}
        for zone in ("a", "b") for n in range(2)
    ]  # fmt: skip
    found = parse_inventory(listed(*nodes), "d.json", racks_from=["rack", "zone"]).domains
    assert sorted(len(one.nodes) for one in found) == [1, 1, 1, 1, 2, 2]
    assert len({one.name for one in found}) == 6


def test_the_levels_of_kueue_are_tiers() -> None:
    nodes = [
        {**labelled(f"n{n}"), "metadata": {"name": f"n{n}", "labels": {
            "cloud.com/rack": f"r{n // 2}", "cloud.com/block": "b"}}}
        for n in range(4)
    ]  # fmt: skip
    levels = ["cloud.com/block", "cloud.com/rack", "kubernetes.io/hostname"]
    kueue = {
        "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Topology", "metadata": {"name": "default"},
        "spec": {"levels": [{"nodeLabel": label} for label in levels]},
    }  # fmt: skip
    found = parse_inventory(listed(*nodes, kueue), "d.json", racks_from=["kueue"]).domains
    assert [(one.name, one.tier, one.tier_name) for one in found] == [
        ("r0", 1, "rack"), ("r1", 1, "rack"), ("b", 2, "block"),
    ]  # fmt: skip


def test_a_file_that_is_neither_is_told(tmp_path: Path) -> None:
    other = tmp_path / "values.yaml"
    other.write_text("replicas: 3\n")
    with pytest.raises(InventoryError, match="contains no node and no inventory"):
        read_inventory([str(other)])
    with pytest.raises(InventoryError, match="cannot be read"):
        read_inventory([str(tmp_path / "none.yaml")])


def test_an_inventory_and_objects_are_not_mixed(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(yaml.safe_dump({**HEAD, "racks": 1}))
    (tmp_path / "b.yaml").write_text(yaml.safe_dump(OBJECTS[0]))
    with pytest.raises(InventoryError, match="is an inventory, and objects of a cluster is given"):
        read_inventory([str(tmp_path)])


PAGE = Path(__file__).parents[2] / "docs" / "inventory.md"


def test_the_page_has_inventories_and_names_every_field() -> None:
    page = PAGE.read_text()
    shown = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert len(shown) == 2
    assert [len(parse_inventory(text, "cluster.yaml").nodes) for text in shown] == [32, 11]
    named = set(re.findall(r"`([a-z_]+)`", page)) | {"apiVersion", "kind", "racks"}
    assert set(InventoryFields.model_fields) - {"nodes_per_rack"} <= named
