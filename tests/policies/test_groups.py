"""Entry and workers as objects of their own: checked together once, and never misjudged alone."""

import copy

import pytest

from tests.policies.broken import emitted, native
from tests.policies.objects import (
    GPU,
    STATEFUL_SET,
    UNKNOWN,
    Args,
    addressed,
    advice,
    group_advice,
    group_refusals,
    in_stack,
    refusals,
    silent,
)
from tests.support.specs import ALL, ENGINE_NATIVE, ENGINE_RAY, changed

RANKS = (
    "spec.template.spec.containers[0].command: engine 'decode' starts tensor 8 × pipeline 2 = 16 "
    "ranks, but its 2 pods (entry 8, workers 4 GPUs) hold 12. Give each pod 8 GPUs. "
    "[world-size-equals-gpus]"
)
UNLIKE = (
    "spec.template.spec.containers[0].resources: engine 'decode' gives its entry pod 8 GPUs and "
    "each worker 4, and an engine distributes its ranks evenly. Write 8 in both. "
    "[leader-worker-same-gpus]"
)
LATER = "not checked, because the value is known only after the deployment"
GANG = (
    "spec.minMember: the gang needs 1 pod to start, but its engines have 2 that must start "
    "together. Write minMember 2. [gang-covers-engine]"
)


def engine_of(stateful_set: Args) -> Args:
    """Give the first container of a StatefulSet."""
    found: Args = stateful_set["spec"]["template"]["spec"]["containers"][0]
    return found


def with_gpus(stateful_set: Args, limit: object, request: object = None) -> Args:
    """Give a copy whose pods ask for other GPUs."""
    result = copy.deepcopy(stateful_set)
    resources = engine_of(result)["resources"]
    resources["limits"][GPU] = limit
    resources["requests"][GPU] = limit if request is None else request
    return result


@pytest.mark.parametrize("example", ALL)
def test_what_we_emit_is_let_by(example: str) -> None:
    bodies = emitted(ALL[example])
    assert group_refusals([in_stack(body) for body in bodies]) == []
    assert group_advice([in_stack(body) for body in bodies]) == []
    for body in bodies:
        token = in_stack(body).resource_type
        assert refusals(token, body) == ""
        # The guide's image moves with its tag: worth a look, and no more.
        assert advice(token, body) == "" or example == "guide"


def test_workers_with_other_gpus_are_refused_where_they_stand() -> None:
    parts = native()
    workers = with_gpus(parts["workers"], "4")
    assert silent(STATEFUL_SET, parts["entry"])
    assert silent(STATEFUL_SET, workers)
    found = group_refusals([in_stack(b) for b in (parts["gang"], parts["entry"], workers)])
    assert found == [("default/chat-0-decode-0", RANKS), ("default/chat-0-decode-0-w", UNLIKE)]


def test_what_the_entry_shows_alone_is_not_said_again_for_the_group() -> None:
    parts = native(**{"roles[0].engine.parallelism.tensor": 16})
    assert refusals(STATEFUL_SET, parts["entry"]).endswith("[world-size-equals-gpus]")
    assert silent(STATEFUL_SET, parts["workers"])
    assert group_refusals([in_stack(body) for body in parts.values()]) == []


def test_a_gang_that_is_no_whole_engine_is_refused_at_the_pod_group() -> None:
    parts = native()
    parts["gang"]["spec"]["minMember"] = 1
    found = group_refusals([in_stack(body) for body in parts.values()])
    assert found == [("default/chat-0", GANG)]


def test_each_group_is_named_by_the_resource_that_is_wrong() -> None:
    bodies = [b for b in emitted(ENGINE_RAY) if b["kind"] in {"PodGroup", "StatefulSet"}]
    for body in bodies:
        if body["kind"] == "PodGroup":
            body["spec"]["minMember"] = 4
    names = [name for name, _ in group_refusals([in_stack(body) for body in bodies])]
    assert names == ["default/chat-0", "default/chat-1"]


@pytest.mark.parametrize(
    "kept",
    [
        ["workers"],
        ["entry"],
        ["gang"],
        ["gang", "workers"],
        ["gang", "entry"],
        ["entry", "workers"],
    ],
    ids="-".join,
)
def test_a_part_of_a_group_is_not_taken_for_the_whole(kept: list[str]) -> None:
    parts = native()
    assert group_refusals([in_stack(parts[part]) for part in kept]) == []


def test_the_order_of_the_objects_does_not_matter() -> None:
    parts = native()
    parts["workers"] = with_gpus(parts["workers"], "4")
    one = [in_stack(parts[part]) for part in ("gang", "entry", "workers")]
    assert group_refusals(one) == group_refusals(one[::-1])


def test_servings_of_one_name_in_two_clusters_are_kept_apart() -> None:
    here = native()
    there = native(**{"roles[0].worker_replicas": 3, "roles[0].engine.parallelism.pipeline": 4})
    objects = [in_stack(body, "here") for body in here.values()]
    objects += [in_stack(body, "there") for body in there.values()]
    assert group_refusals(objects) == []


def test_servings_of_one_name_in_two_namespaces_are_kept_apart() -> None:
    here = emitted(changed(ENGINE_RAY, {"namespace": "here"}))
    there = emitted(
        changed(
            ENGINE_RAY, {"roles[0].worker_replicas": 3, "roles[0].engine.parallelism.pipeline": 4}
        )
    )
    assert group_refusals([in_stack(body) for body in (*here, *there)]) == []


def test_foreign_stateful_sets_belong_to_no_group() -> None:
    foreign = native()["entry"]
    del foreign["metadata"]["labels"]
    hidden = native()["workers"]
    hidden["metadata"]["labels"] = UNKNOWN
    unnamed = native()["gang"]
    unnamed["metadata"]["labels"] = dict.fromkeys(unnamed["metadata"]["labels"], UNKNOWN)
    assert group_refusals([in_stack(body) for body in (foreign, hidden, unnamed)]) == []


def test_workers_alone_are_checked_by_what_one_object_can_show() -> None:
    wrong = with_gpus(native()["workers"], "8", "4")
    assert refusals(STATEFUL_SET, wrong) == (
        "spec.template.spec.containers[0].resources: engine 'decode', container 'engine' states "
        "nvidia.com/gpu with a request of 4 and a limit of 8, and Kubernetes requires both to be "
        "equal. Write 8 in both. [gpu-requests-equal-limits]"
    )


def test_workers_with_unknown_gpus_say_so() -> None:
    unread = with_gpus(native()["workers"], UNKNOWN)
    assert refusals(STATEFUL_SET, unread) == ""
    assert advice(STATEFUL_SET, unread) == (
        "spec.template.spec.containers[0].command: engine 'decode' was not checked, because the "
        "amount of nvidia.com/gpu is not known yet. [world-size-equals-gpus]"
    )


def test_a_group_that_cannot_be_checked_says_so_and_stops_nothing() -> None:
    parts = native()
    parts["gang"]["spec"]["minMember"] = UNKNOWN
    parts["workers"]["spec"]["replicas"] = UNKNOWN
    assert group_refusals([in_stack(body) for body in parts.values()]) == []
    replicas = "was not checked, because replicas is not known yet"
    command = "spec.template.spec.containers[0].command: engine 'decode'"
    said = group_advice([in_stack(body) for body in parts.values()])
    assert [line for line in said if "headless-service" not in line[1]] == [
        ("default/chat-0-decode-0", f"{command} {replicas}. [world-size-equals-gpus]"),
        ("default/chat-0", f"spec.minMember: {replicas}. [gang-covers-engine]"),
        ("default/chat-0", f"spec.minMember: {LATER}. [gang-has-pods]"),
        ("default/chat-0", f"spec.subGroupPolicy[0]: {LATER}. [subgroup-has-pods]"),
    ]


def test_advice_on_a_group_is_given_where_it_belongs() -> None:
    parts = native()
    service = addressed(parts["entry"]["spec"]["serviceName"])
    objects = [in_stack(body) for body in (*parts.values(), service)]
    said = group_advice(objects)
    assert [name for name, _ in said] == ["default/chat-0-decode-0-w", "default/chat-0-decode-0"]
    assert said[1][1].startswith(
        "spec.serviceName: is 'chat-0-decode-0', a Service with a cluster IP"
    )
    raised = {"levels": {"headless-service": "mandatory"}}
    assert group_refusals(objects, raised) == said
    assert group_advice(objects) == [], "the config of the policy that refuses holds for it too"


def test_what_objects_refer_to_is_checked_in_the_stack() -> None:
    gang = native()["gang"]
    gang["spec"]["networkTopology"] = {"mode": "hard", "highestTierAllowed": 2}
    rack = {"tier": 1, "members": [{"type": "Node", "selector": {"exactMatch": {"name": "a"}}}]}
    api = {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode"}
    node = {**api, "metadata": {"name": "rack-1"}, "spec": rack}
    (found,) = group_refusals([in_stack(gang), in_stack(node)])
    said = (
        "spec.networkTopology.highestTierAllowed: is 2, but the highest tier of these "
        "HyperNodes is 1; above it Volcano uses the whole cluster, so the constraint has no "
        "effect. Write at most 1. [topology-tier-exists]"
    )
    assert found == ("default/chat-0", said)
    assert group_refusals([in_stack(gang), in_stack(node, "another-cluster")]) == []


def test_a_native_launch_over_workers_is_checked_as_a_group_too() -> None:
    bodies = emitted(changed(ENGINE_NATIVE, {"replicas": 1}))
    sets = [body for body in bodies if body["kind"] == "StatefulSet"]
    assert len(sets) == 2
    assert all(silent(STATEFUL_SET, body) for body in sets)
    workers, entry = sorted(sets, key=lambda body: -len(body["metadata"]["name"]))
    found = group_refusals([in_stack(body) for body in (with_gpus(workers, "4"), entry)])
    assert [name for name, _ in found] == ["default/chat-0-decode-0", "default/chat-0-decode-0-w"]
