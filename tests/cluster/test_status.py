from dataclasses import replace
from typing import Any

import pytest

from kthena_components.cluster.pending import plain
from kthena_components.cluster.status import Servings, render_status, waits
from kthena_components.core.values.unknown import Unknown
from tests.cluster.objects import pod, pod_group, racks, refused, tree
from tests.support.pages import block

HARD = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
MESSAGE = (
    "1/5 tasks in gang unschedulable: pod group is not ready, 5 Pending, 5 minAvailable; Pending: "
    "1 Unschedulable, 4 Schedulable. Origin reason is big-0-4: In hyperNode r0: 0/4 nodes are "
    "unavailable: 4 Insufficient nvidia.com/gpu."
)
"""As Volcano 1.14.1 wrote it."""


def seen(**more: Any) -> Servings:
    stated = {
        "pods": [pod("chat-0-b", node="n-0-1"), pod("chat-0-a", node="n-0-0")],
        "pod_groups": [pod_group()], "hyper_nodes": tree(2), "nodes": racks(2, 4),
    }  # fmt: skip
    return Servings(**{**stated, **more})


def rows(servings: Servings) -> list[list[str]]:
    lines = render_status(servings).split("\n\n")[0].splitlines()[2:]
    return [line.split() for line in lines]


def reasons(servings: Servings) -> list[str]:
    return [f"{title}: {why}" for title, why in waits(servings)]


def test_pods_that_run_are_shown_with_their_place_and_nothing_else() -> None:
    assert rows(seen()) == [
        ["serving/chat", "0", "serve-0", "chat-0-a", "Running", "n-0-0", "r0", "1", "Running"],
        ["serving/chat", "0", "serve-0", "chat-0-b", "Running", "n-0-1", "r0", "1", "Running"],
    ]
    assert reasons(seen()) == []


def test_a_group_over_two_racks_reaches_tier_2() -> None:
    spread = seen(pods=[pod("a", node="n-0-0"), pod("b", node="n-1-0")])
    assert [row[6:8] for row in rows(spread)] == [["r0", "2"], ["r1", "2"]]


def test_a_node_in_no_hyper_node_has_no_rack() -> None:
    lost = seen(pods=[pod("a", node="elsewhere")])
    assert rows(lost)[0][6:8] == ["-", "none"]


def test_groups_of_a_leader_worker_set_are_told_apart() -> None:
    pods = []
    for index, node in (("0", "n-0-0"), ("1", "n-1-0")):
        made = pod(f"chat-serve-{index}", node=node)
        own = {"modelserving.volcano.sh/name": "chat", "modelserving.volcano.sh/role": "serve"}
        theirs = {"name": "chat-serve", "group-index": index}
        labels = {**own, **{f"leaderworkerset.sigs.k8s.io/{key}": theirs[key] for key in theirs}}
        pods.append({**made, "metadata": {**made["metadata"], "labels": labels}})
    assert [(row[1], row[2], row[7]) for row in rows(seen(pods=pods))] == [
        ("serve-0", "serve", "1"),
        ("serve-1", "serve", "1"),
    ]


def test_group_10_comes_after_group_9() -> None:
    many = seen(pods=[pod(f"chat-{n}-a", f"chat-{n}", node="n-0-0") for n in (10, 9, 1)])
    assert [row[1] for row in rows(many)] == ["1", "9", "10"]


def test_a_gang_that_does_not_fit_says_what_is_missing_where() -> None:
    pods = [pod(f"big-0-{n}", "big-0") for n in range(5)]
    group = refused(pod_group("big-0", "Inqueue", 5, **HARD), MESSAGE)
    said = (
        "serving/big-0: needs 5 pods at once in one HyperNode of tier 1 or lower; 0 of 5 "
        "pods are placed. Scheduler: 4 pods would fit, but big-0-4 does not fit on any of the "
        "4 nodes of r0: 4 have too little nvidia.com/gpu free"
    )
    assert reasons(seen(pods=pods, pod_groups=[group])) == [said]
    there = said.replace("big-0-4", "big-0-serve-0-0").replace("r0:", "rack-1:")
    assert block("docs/sandbox.md", "serving/big-0: ") == f"{there}.\n"


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("0/3 nodes are available: 3 Insufficient cpu.",
         "0/3 nodes are available: 3 have too little cpu free"),
        ("Origin reason is a-0: 0/1 nodes are unavailable: 1 Insufficient cpu.",
         "a-0 does not fit on the only node: 1 has too little cpu free"),
        (("Origin reason is a-0: 0/2 nodes are unavailable: 2 node(s) had untolerated taint "
         "{gpu: true}."),
         "a-0 does not fit on any of the 2 nodes: 2 node(s) had untolerated taint {gpu: true}"),
        ("something\nnew", "something new"),
        ("x" * 1000, "x" * 400 + "…"),
    ],
)  # fmt: skip
def test_sentences_of_the_scheduler_are_written_plainly(message: str, said: str) -> None:
    assert plain(message) == said


def test_a_gang_that_misses_pods_waits_for_them() -> None:
    one = seen(pods=[pod("chat-0-a")], pod_groups=[pod_group(phase="Pending", least=3)])
    assert reasons(one) == ["serving/chat-0: needs 3 pods at once, and 1 of them exists"]
    none = seen(pods=[], pod_groups=[pod_group(phase="Pending", least=3)])
    assert reasons(none) == ["serving/chat-0: needs 3 pods at once, and none of them exist"]


def test_a_gang_that_no_scheduler_has_seen_names_the_scheduler() -> None:
    pods = [pod("a"), pod("b")]
    (said,) = reasons(seen(pods=pods, pod_groups=[pod_group(phase="")]))
    assert said.endswith("No scheduler has reported on it: is Volcano's scheduler running?")
    (said,) = reasons(seen(pods=pods, pod_groups=[pod_group(phase="Inqueue")]))
    assert said.endswith("The scheduler has given no reason yet")


def test_pods_of_a_pod_group_that_is_not_there_are_told_together() -> None:
    lost = seen(pods=[pod("a"), pod("b")], pod_groups=[])
    assert [row[8] for row in rows(lost)] == ["missing", "missing"]
    assert reasons(lost) == [
        (
            "serving/chat-0: 2 pods such as a name the PodGroup 'chat-0', which does not exist, so "
            "Volcano never places them"
        )
    ]


def test_a_pod_of_no_gang_says_its_own_reason() -> None:
    unbound = {"type": "PodScheduled", "status": "False", "message": "0/8 nodes are available"}
    alone = seen(pods=[pod("a", gang="", conditions=[unbound])], pod_groups=[])
    assert reasons(alone) == ["serving/a: 0/8 nodes are available"]


def test_an_image_that_cannot_be_pulled_is_told_with_its_container() -> None:
    held = {"reason": "ImagePullBackOff", "message": "no such tag"}
    statuses = [{"name": "engine", "state": {"waiting": held}}]
    stuck = seen(pods=[pod("a", node="n-0-0", phase="Pending", containerStatuses=statuses)])
    assert rows(stuck)[0][4] == "ImagePullBackOff"
    assert reasons(stuck) == ["serving/a: container 'engine': ImagePullBackOff. no such tag"]


def test_other_states_are_named() -> None:
    ends = pod("c", node="n-0-2")
    ends["metadata"]["deletionTimestamp"] = "2026-01-02T12:00:00Z"
    some = seen(pods=[pod("a", node="n-0-0", ready=False),
                      pod("b", node="n-0-1", phase="Succeeded"), ends])  # fmt: skip
    states = {
        pod["metadata"]["name"]: row[4:6] for pod, row in zip(some.pods, rows(some), strict=True)
    }
    assert states == {
        "a": ["not", "ready"], "b": ["Completed", "n-0-1"], "c": ["Terminating", "n-0-2"],
    }  # fmt: skip
    assert reasons(some) == ["serving/a: is not ready", "serving/c: is Terminating"]


def test_a_node_that_does_not_answer_is_named_with_the_way_out() -> None:
    nodes = racks(2, 4)
    nodes[0]["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    ends = pod("a", node="n-0-0", ready=False)
    ends["metadata"]["deletionTimestamp"] = "2026-01-02T12:00:00Z"
    held = seen(pods=[ends, pod("b", node="n-0-0", ready=False), pod("c", node="n-0-1")])
    assert reasons(held)[1] == "serving/b: is not ready"
    silent = replace(held, nodes=nodes)
    assert reasons(silent) == [
        (
            "serving/a: is being deleted, but n-0-0 does not answer, and only its kubelet can end "
            "its pods. If the machine is off for certain, run `kubectl taint node n-0-0 "
            "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute`"
        ),
        "serving/b: runs on n-0-0, which does not answer",
    ]
    hidden = replace(held, nodes=Unknown("you may not read Nodes"))
    assert reasons(hidden)[0] == "serving/a: is Terminating"


def test_what_makes_no_pods_is_told() -> None:
    short = {
        "metadata": {"name": "chat-0-serve-0", "namespace": "serving"},
        "spec": {"replicas": 2}, "status": {"replicas": 1},
    }  # fmt: skip
    (said,) = reasons(seen(stateful_sets=[short]))
    assert said.startswith("serving/chat-0-serve-0: this StatefulSet has created 1 of 2 pods")
    new = {"metadata": {"name": "new", "namespace": "serving"}, "spec": {"replicas": 2}}
    (said,) = reasons(seen(model_servings=[new]))
    assert said.endswith("it has no status either: is Kthena's controller running?")
    assert render_status(seen(model_servings=[new])).endswith("controller running?")
    told = {"conditions": [{"type": "Available", "message": "quota exceeded"}]}
    (said,) = reasons(seen(model_servings=[{**new, "status": told}]))
    assert said.endswith("its controller says: quota exceeded")
    assert reasons(seen(model_servings=[{**new, "spec": {"replicas": 0}}])) == []


def test_what_may_not_be_read_is_told_below() -> None:
    hidden = seen(
        nodes=Unknown("you may not read Nodes"), pod_groups=Unknown("you may not read PodGroups")
    )
    assert [row[6:] for row in rows(hidden)] == [["?", "?", "?"]] * 2
    assert render_status(hidden).endswith(
        "PodGroup: unknown, because you may not read PodGroups.\nrack and tier: unknown, because "
        "you may not read Nodes."
    )


def test_one_serving_can_be_shown_alone() -> None:
    both = seen(pods=[pod("a", node="n-0-0"), pod("b", "talk-0", node="n-0-1")],
                pod_groups=[pod_group(), pod_group("talk-0")])  # fmt: skip
    assert both.names == {"chat", "talk"}
    assert [row[3] for row in rows(both.only("talk"))] == ["b"]
    assert reasons(both.only("talk")) == []
    assert render_status(both.only("none")) == ""


def _partitioned(engines: int, partition: int | None = 1) -> dict[str, Any]:
    roles = [{"name": "serve", "replicas": engines}]
    rolling = {"rollingUpdateConfiguration": {"partition": partition}}
    return {
        "apiVersion": "workload.serving.volcano.sh/v1alpha1",
        "kind": "ModelServing",
        "metadata": {"name": "chat", "namespace": "serving"},
        "spec": {"replicas": 2, "template": {"roles": roles}, "rolloutStrategy": rolling},
    }


def _engine(group: str, number: int, node: str) -> dict[str, Any]:
    made = pod(f"{group}-serve-{number}-0", group, node=node, gang="")
    own = {
        "modelserving.volcano.sh/role": "serve",
        "modelserving.volcano.sh/role-id": f"serve-{number}",
    }
    return {**made, "metadata": {**made["metadata"], "labels": made["metadata"]["labels"] | own}}


def test_a_held_group_with_its_old_number_of_engines_is_named() -> None:
    """As Kthena 1.0.0 leaves them: the role was scaled from 2 to 1 before the partition."""
    pods = [_engine("chat-0", n, "n-0-0") for n in (0, 1)] + [_engine("chat-1", 0, "n-0-1")]
    assert reasons(seen(pods=pods, pod_groups=[], model_servings=[_partitioned(1)])) == [
        (
            "serving/chat: group chat-0 has 2 engines of role 'serve', and the "
            "ModelServing states 1. Kthena gives the groups that a partition holds back the number "
            "that it stored when it created groups, and the ModelServing does not become Available "
            "until the partition is removed"
        )
    ]
    ready = {"conditions": [{"type": "Available", "status": "True"}]}
    for right in (_partitioned(1, None), _partitioned(2), {**_partitioned(1), "status": ready}):
        assert reasons(seen(pods=pods, pod_groups=[], model_servings=[right])) == []
