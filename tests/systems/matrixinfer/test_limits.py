"""What a ModelInfer cannot do, and in which words that is refused."""

from typing import Any

import pytest

from kthena_components.compiler.compile import compile_serving
from tests.support.refusals import refusal_of
from tests.support.specs import Args, changed, example_for
from tests.systems.matrixinfer.webhook import refusals

UPDATE = "rollout_strategy.rolling_update_configuration"
GUIDE, ENGINE = example_for("matrixinfer", "guide"), example_for("matrixinfer", "engine-native")
ELSEWHERE = "or write backend: native"
CRASHES = "puts annotations into a pod template, and MatrixInfer's controller crashes on them."


REFUSED: dict[str, tuple[Args, dict[str, Any], str]] = {
    "api-group": (
        GUIDE,
        {"backend_options.api_group": "workload.serving.volcano.sh"},
        "backend_options.api_group: ",
    ),
    "unknown-option": (
        GUIDE,
        {"backend_options.apigroup": "workload.volcano.sh"},
        (
            "backend_options.apigroup: there is no field 'apigroup' here. Write 'api_group'. "
            "[unknown-field]"
        ),
    ),
    "scheduler": (
        changed(GUIDE, {"gang_policy": None}),
        {"scheduler_name": "default-scheduler"},
        (
            "scheduler_name: is 'default-scheduler', but MatrixInfer accepts only "
            "volcano. Write volcano, or write backend: native, kthena or lws. "
            "[backend-loss]"
        ),
    ),
    "autoscaled": (
        GUIDE,
        {"autoscaled": True},
        (
            "autoscaled: is true, but a ModelInfer is not known to have a scale subresource. "
            "Remove it, or write backend: kthena or lws. [backend-loss]"
        ),
    ),
    "queue": (
        GUIDE,
        {"queue": "research"},
        (
            "queue: is given, but the PodGroups that MatrixInfer creates are in the default queue. "
            f"Remove it, {ELSEWHERE}"
        ),
    ),
    "role-topology": (
        GUIDE,
        {"network_topology.role_policy.highest_tier_allowed": 1},
        (
            "network_topology.role_policy: is given, but a ModelInfer has one "
            "topology, for the group. Write group_policy, or write backend: "
            "native or kthena. [backend-loss]"
        ),
    ),
    "tier-name": (
        GUIDE,
        {"network_topology.group_policy.highest_tier_name": "rack"},
        (
            "network_topology.group_policy.highest_tier_name: is 'rack', but a "
            "ModelInfer knows tiers only by their numbers. Write "
            "highest_tier_allowed, or write backend: native or kthena. "
            "[backend-loss]"
        ),
    ),
    "by-role": (
        GUIDE,
        {"rollout_strategy.type": "RoleRollingUpdate", "roles[0].max_unavailable": 2},
        (
            "rollout_strategy.type: is RoleRollingUpdate, but MatrixInfer updates "
            "whole groups. Write ServingGroupRollingUpdate, or write backend: "
            "kthena or lws. [backend-loss]\nroles[0].max_unavailable: is 2, but "
            "MatrixInfer updates whole groups. Remove it, or write backend: "
            "kthena or lws. [backend-loss]"
        ),
    ),
    "several-at-once": (
        ENGINE,
        {f"{UPDATE}.max_unavailable": 2},
        (
            ".max_unavailable: is 2, but MatrixInfer's controller ignores it and "
            "updates one group at a time. Write 1, or write backend: native or "
            "kthena. [backend-loss]"
        ),
    ),
    "surge": (
        ENGINE,
        {UPDATE: {"max_unavailable": 1, "max_surge": "1%"}},
        (
            f"{UPDATE}.max_surge: is 1%, but MatrixInfer's controller ignores it and stops a group "
            "before it starts the new one. Remove it, or write backend: lws or kserve, and "
            "change what it refuses. [backend-loss]"
        ),
    ),
    "surge-of-no-form": (ENGINE, {f"{UPDATE}.max_surge": "all"}, f"{UPDATE}.max_surge: is all, "),
    "partition": (
        ENGINE,
        {f"{UPDATE}.partition": "100%"},
        (
            f"{UPDATE}.partition: is 100% of 2 groups, but MatrixInfer requires that at least one "
            f"group is updated. Write at most 1, {ELSEWHERE}"
        ),
    ),
    "partition-of-nothing": (
        ENGINE,
        {"replicas": 0, f"{UPDATE}.partition": 0},
        (
            "is 0 of 0 groups, but MatrixInfer requires that at least one group is updated. Remove "
            f"it, {ELSEWHERE}"
        ),
    ),
    "annotations": (
        GUIDE,
        {"roles[0].worker_template.metadata.annotations": {"a": "b"}},
        f"roles[0].worker_template.metadata.annotations: {CRASHES} Remove it, {ELSEWHERE}",
    ),
    "annotations-in-an-overlay": (
        ENGINE,
        {"roles[0].overlay.metadata.annotations": {"a": "b"}},
        f"roles[0].overlay.metadata.annotations: {CRASHES} Remove it, {ELSEWHERE}",
    ),
    "shape-of-a-model": (
        ENGINE,
        {"roles[0].engine.hf_config": {"num_attention_heads": 16}},
        f"roles[0].engine.hf_config: {CRASHES} Remove it, {ELSEWHERE}",
    ),
    "roles": (
        changed(ENGINE, {f"roles[{n}]": {**ENGINE["roles"][0], "name": f"r{n}"} for n in range(5)}),
        {"expose.role": "r0"},
        (
            "roles: has 5 roles (r0, r1, r2, r3, r4), and a ModelInfer has at most 4. Split the "
            "serving, or write backend: native. [backend-loss]"
        ),
    ),
    "role-name": (
        ENGINE,
        {"roles[0].name": "speculative-decode"},
        (
            "roles[0].name: is 'speculative-decode', 18 characters, and a ModelInfer allows 12. "
            "Shorten it by 6. [backend-loss]"
        ),
    ),
}


@pytest.mark.parametrize(("args", "changes", "message"), REFUSED.values(), ids=REFUSED)
def test_what_a_model_infer_lacks_is_refused(
    args: Args, changes: dict[str, Any], message: str
) -> None:
    assert message in refusal_of(args, changes)


TAKEN: dict[str, tuple[Args, dict[str, Any]]] = {
    "a-role-that-starts-with-a-digit": (ENGINE, {"roles[0].name": "405b"}),
    "no-surge": (ENGINE, {UPDATE: {"max_unavailable": 1, "max_surge": "0%"}}),
    "all-but-one": (ENGINE, {f"{UPDATE}.partition": 1}),
    "labels": (ENGINE, {"roles[0].overlay.metadata.labels": {"a": "b"}}),
    "no-groups": (ENGINE, {"replicas": 0}),
}


@pytest.mark.parametrize(("args", "changes"), TAKEN.values(), ids=TAKEN)
def test_what_is_close_to_a_limit_is_taken(args: Args, changes: dict[str, Any]) -> None:
    assert refusal_of(args, changes) == ""


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "scheduler": ({"spec.schedulerName": "default-scheduler"}, "schedulerName"),
    "image": (
        {"spec.template.roles[0].entryTemplate.spec.containers[0].image": "a b"},
        "decode.entryTemplate.image",
    ),
    "minimum": (
        {"spec.template.gangSchedule.minRoleReplicas": {"decode": 9}},
        "minRoleReplicas.decode",
    ),
    "partition": (
        {"spec.rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 2}}},
        "partition",
    ),
    "no-budget": (
        {"spec.rolloutStrategy": {"rollingUpdateConfiguration": {"maxUnavailable": "10%"}}},
        "maxUnavailable and maxSurge",
    ),
    "name": ({"metadata.name": "c" * 60}, "metadata.name"),
}


@pytest.mark.parametrize(("changes", "field"), BROKEN.values(), ids=BROKEN)
def test_the_webhook_of_these_tests_refuses_what_the_real_one_does(
    changes: dict[str, Any], field: str
) -> None:
    body = compile_serving(ENGINE).manifests[0].body
    assert refusals(body) == []
    assert refusals(changed(body, changes)) == [field]
