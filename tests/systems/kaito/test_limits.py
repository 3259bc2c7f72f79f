"""What KAITO cannot do with a serving, and in which words that is refused."""

from typing import Any

import pytest

from tests.support.refusals import assert_refused, refusal_of
from tests.support.specs import VLLM, Args, template
from tests.systems.kaito.servings import ENGINE, LLAMA, OPTION, PRESET, TEMPLATE, existing

UPDATE = "rollout_strategy.rolling_update_configuration"
ELSEWHERE = "Remove it, or write backend: "
REFUSED: dict[str, tuple[Args, dict[str, Any], str]] = {
    "several-roles": (
        TEMPLATE,
        {"roles[1]": {"name": "other", "entry_template": template()}},
        (
            "roles: has 2 roles, but an InferenceSet has engines of one role. Write one serving "
            "for "
            "each role, or write backend: "
        ),
    ),
    "gang": (
        TEMPLATE,
        {"roles[0].replicas": 2, "gang_policy": {"min_role_replicas": {"server": 2}}},
        (
            "gang_policy.min_role_replicas: requests 2 pods together, but KAITO's pods are "
            "scheduled "
            "one by one. Remove gang_policy, or write backend: "
        ),
    ),
    "group-topology": (
        TEMPLATE,
        {"network_topology": {"group_policy": {"mode": "soft"}}},
        (
            "network_topology.group_policy: is given, but KAITO selects nodes only by their "
            "labels. "
            f"{ELSEWHERE}"
        ),
    ),
    "role-topology": (
        TEMPLATE,
        {"network_topology": {"role_policy": {"mode": "soft"}}},
        "network_topology.role_policy: is given, but KAITO selects nodes only by their labels.",
    ),
    "recovery": (
        TEMPLATE,
        {"recovery_policy": "RoleRecreate"},
        (
            "recovery_policy: is RoleRecreate, but the pods of a Workspace are a StatefulSet, "
            "which "
            "recreates only the pod that failed. Remove it, or write backend: "
        ),
    ),
    "grace": (
        TEMPLATE,
        {"restart_grace_period_seconds": 9},
        (
            "restart_grace_period_seconds: is 9, but a StatefulSet recreates a pod at once. "
            "Remove it, "
            "or write backend: "
        ),
    ),
    "budget": (
        TEMPLATE,
        {UPDATE: {"max_unavailable": 1}},
        f"{UPDATE}: is given, but KAITO 0.11 has no rolling update of Workspaces. {ELSEWHERE}",
    ),
    "by-role": (
        TEMPLATE,
        {"rollout_strategy": {"type": "RoleRollingUpdate"}},
        (
            "rollout_strategy.type: is RoleRollingUpdate, but KAITO 0.11 has no rolling update of "
            f"Workspaces. {ELSEWHERE}"
        ),
    ),
    "role-budget": (
        TEMPLATE,
        {"rollout_strategy": {"type": "RoleRollingUpdate"}, "roles[0].max_unavailable": 1},
        "roles[0].max_unavailable: is 1, but KAITO 0.11 has no rolling update of Workspaces.",
    ),
    "workers": (
        TEMPLATE,
        {"roles[0].worker_replicas": 1, f"{ENGINE}.parallelism": {"pipeline": 2}},
        (
            "roles[0].worker_replicas: is 1, but all pods of a Workspace have one template, and no "
            "address of the first. Write backend_options.preset: "
            "meta-llama/Llama-3.1-8B-Instruct, for "
            "pods that KAITO writes, or write backend: "
        ),
    ),
    "affinity": (
        TEMPLATE,
        {"roles[0].overlay": {"spec": {"affinity": {"nodeAffinity": {}}}}},
        (
            "roles[0].overlay.spec.affinity: is given, but KAITO replaces it by the labels of the "
            "nodes. Write the labels into backend_options.label_selector. [backend-loss]"
        ),
    ),
    "large-pod": (
        TEMPLATE,
        {"roles[0].resources.gpus_per_pod": 16, f"{ENGINE}.parallelism": {"tensor": 16}},
        (
            "roles[0].resources.gpus_per_pod: is 16 GPUs in a pod, but a node of "
            "Standard_ND96isr_H100_v5 has 8. Choose a larger instance type, or fewer GPUs."
        ),
    ),
    "host-of-an-entry": (
        TEMPLATE,
        {f"{ENGINE}.extra_args": ["--host=small-0-server-0-0"]},
        (
            "roles[0]: contains the host name 'small-0-server-0-0', but KAITO gives entry pods "
            "other "
            "names. Write localhost, or write backend: "
        ),
    ),
    "long-name": (
        LLAMA,
        {"name": "c" * 50},
        "roles[0].name: gives the StatefulSet name '" + "c" * 50 + "-serve', 56 characters",
    ),
    "long-name-of-a-set": (
        LLAMA,
        {"name": "c" * 45, "replicas": 2},
        "roles[0].name: gives the StatefulSet name '" + "c" * 45 + "-serve-00000', 57 characters",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_kaito_cannot_do_is_an_error(case: str) -> None:
    assert_refused(*REFUSED[case])


def test_all_refusals_come_at_once() -> None:
    changes = {
        "scheduler_name": "volcano",
        "restart_grace_period_seconds": 5,
        f"{ENGINE}.image": VLLM,
        f"{ENGINE}.port": 8000,
        "roles[0].resources.cpu": "8",
        f"{ENGINE}.extra_args": ["--seed=1", "--enable-prefix-caching"],
    }
    assert refusal_of(PRESET, changes).count("[backend-loss]") == 6


@pytest.mark.parametrize(
    ("args", "changes"),
    [
        (PRESET, {f"{ENGINE}.launcher": "ray"}),
        (PRESET, {f"{ENGINE}.image": "registry.local/mirror/kaito-base:0.4.2"}),
        (PRESET, {"restart_grace_period_seconds": 0}),
        (PRESET, {f"{ENGINE}.extra_args": ["--max-model-len", "131072"]}),
        (PRESET, existing({"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"})),
        (LLAMA, {f"{OPTION}.preset": "Llama-3.3-70B-Instruct"}),
        (TEMPLATE, {"gang_policy": {"min_role_replicas": {"server": 1}}}),
        (TEMPLATE, {OPTION: {"instance_type": "g4ad.xlarge"}}),
        (TEMPLATE, {OPTION: {"label_selector": {"team": "a"}}}),
        (TEMPLATE, {"replicas": 0}),
    ],
)
def test_what_means_the_same_is_taken(args: Args, changes: dict[str, Any]) -> None:
    assert refusal_of(args, changes) == ""
