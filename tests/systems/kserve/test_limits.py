"""What an InferenceService cannot do, and in which words that is refused."""

import pytest

from tests.support.for_each import for_each
from tests.support.specs import Args, gpu_template
from tests.systems.kserve.samples import (
    ENGINE,
    FIRST,
    HEAD,
    PORTS,
    SINGLE,
    TEMPLATES,
    UPDATE,
    WORKER,
    said,
)

REFUSED: dict[str, tuple[Args, Args, str]] = {
    "several-roles": (
        TEMPLATES,
        {"roles[1]": {"name": "prefill", "entry_template": gpu_template("serve-it", ports=PORTS)}},
        (
            "roles: has 2 roles, but an InferenceService serves with one. Write "
            "one ModelServing for each role, backend_options.kind: "
            "LLMInferenceService for prefill and decode, or write backend: native, "
            "kthena or lws. [backend-loss]\n"
            "roles[1].entry_template.spec.containers[0].resources.limits: has no "
            "limit of cpu, and KServe would add one of 1. State the cpu that the "
            "engine needs. [backend-loss]\n"
            "roles[1].entry_template.spec.containers[0].resources.limits: has no "
            "limit of memory, and KServe would add one of 2Gi. State the memory "
            "that the engine needs. [backend-loss]"
        ),
    ),
    "options-of-another-kind": (
        SINGLE,
        {"backend_options.write_configs": False, "backend_options.replaces_presets": True},
        (
            "backend_options.write_configs: is false, but an InferenceService has no "
            "LLMInferenceServiceConfigs. Remove it, or write kind: LLMInferenceService. "
            "[backend-options]\n"
            "backend_options.replaces_presets: is true, but an InferenceService has no "
            "LLMInferenceServiceConfigs. Remove it, or write kind: LLMInferenceService. "
            "[backend-options]"
        ),
    ),
    "gang": (
        SINGLE,
        {
            "replicas": 1,
            "roles[0].replicas": 2,
            "gang_policy": {"min_role_replicas": {"server": 2}},
        },
        (
            "gang_policy.min_role_replicas: requests 2 pods together, but KServe schedules "
            "each pod by itself. Remove gang_policy, or write backend: "
            "native or kthena. [backend-loss]"
        ),
    ),
    "gang-of-one-engine": (
        ENGINE,
        {"gang_policy": {"min_role_replicas": {"decode": 1}}},
        (
            "gang_policy.min_role_replicas: requests 2 pods together, but KServe schedules "
            "each pod by itself. Remove gang_policy, or write backend: "
            "native, kthena or lws. [backend-loss]"
        ),
    ),
    "topology": (
        SINGLE,
        {"network_topology": {"group_policy": {"highest_tier_allowed": 1}}},
        (
            "network_topology.group_policy: is given, but pods of KServe have no PodGroup with a "
            "network topology. Remove it, or write backend: native or kthena. [backend-loss]"
        ),
    ),
    "role-topology": (
        SINGLE,
        {"network_topology": {"role_policy": {"highest_tier_allowed": 1}}},
        (
            "network_topology.role_policy: is given, but pods of KServe have no PodGroup with a "
            "network topology. Remove it, or write backend: native or kthena. [backend-loss]"
        ),
    ),
    "queue": (
        SINGLE,
        {"queue": "research"},
        (
            "queue: is research, but pods of KServe have no PodGroup with a queue. Remove it, or "
            "write backend: native, kthena or lws. [backend-loss]"
        ),
    ),
    "recovery": (
        ENGINE,
        {"recovery_policy": "RoleRecreate"},
        (
            "recovery_policy: is RoleRecreate, for 2 pods, but KServe recreates "
            "only the pod that failed. Write None, or write backend: kthena or "
            "lws. [backend-loss]"
        ),
    ),
    "recovery-of-a-group": (
        SINGLE,
        {"roles[0].replicas": 2, "recovery_policy": "ServingGroupRecreate"},
        (
            "recovery_policy: is ServingGroupRecreate, for 2 pods, but KServe "
            "recreates only the pod that failed. Write None, or write backend: "
            "kthena. [backend-loss]"
        ),
    ),
    "autoscaled": (
        SINGLE,
        {"autoscaled": True},
        (
            "autoscaled: is true, but objects of KServe have no scale subresource. "
            "Remove it, or write backend: kthena or lws. [backend-loss]"
        ),
    ),
    "grace": (
        SINGLE,
        {"restart_grace_period_seconds": 60},
        (
            "restart_grace_period_seconds: is 60, but KServe recreates a pod at once. Remove it, "
            "or write backend: kthena. [backend-loss]"
        ),
    ),
    "partition": (
        SINGLE,
        {"replicas": 2, UPDATE: {"partition": 1}},
        (
            "rollout_strategy.rolling_update_configuration.partition: is 1, but KServe updates all "
            "pods of a role. Remove it, or write backend: native, kthena or lws. [backend-loss]"
        ),
    ),
    "surge": (
        SINGLE,
        {UPDATE: {"max_surge": "lots"}},
        (
            "rollout_strategy.rolling_update_configuration.max_surge: is lots, but must be a "
            "count of at least 0 or a percentage from 0% to 100%. Write, for example, 1 or 25%. "
            "[backend-loss]"
        ),
    ),
    "budget-of-a-role": (
        SINGLE,
        {
            "replicas": 2,
            "rollout_strategy": {"type": "RoleRollingUpdate"},
            "roles[0].replicas": 2,
            "roles[0].max_unavailable": 1,
        },
        (
            "roles[0].max_unavailable: is 1 of each group, but KServe has one budget for the "
            "engines of all 2 groups. Remove it, and write "
            "rollout_strategy.rolling_update_configuration.max_unavailable with "
            "ServingGroupRollingUpdate. [backend-loss]"
        ),
    ),
    "host-name": (
        TEMPLATES,
        {f"{WORKER}.{FIRST}.command[2]": "join-it chat-0-decode-0-0"},
        (
            "roles[0]: contains the host name 'chat-0-decode-0-0', but KServe gives entry pods "
            "other names. Use a Service that selects the entries by their labels, or write "
            "backend: native or kthena. [backend-loss]"
        ),
    ),
    "no-memory": (
        SINGLE,
        {"roles[0].resources": {"gpus_per_pod": 1, "cpu": "8"}},
        (
            "roles[0].resources.memory: has no limit of memory, and KServe would add one of 2Gi. "
            "State the memory that the engine needs. [backend-loss]"
        ),
    ),
    "no-limits-in-a-template": (
        SINGLE,
        {"roles[0]": {"name": "a", "entry_template": gpu_template("vllm serve m", 1, ports=PORTS)}},
        (
            "roles[0].entry_template.spec.containers[0].resources.limits: has no limit of cpu, "
            "and KServe would add one of 1. State the cpu that the engine needs. [backend-loss]\n"
            "roles[0].entry_template.spec.containers[0].resources.limits: has no limit of "
            "memory, and KServe would add one of 2Gi. State the memory that the engine needs. "
            "[backend-loss]"
        ),
    ),
    "no-port": (
        TEMPLATES,
        {HEAD: gpu_template("serve-it")},
        (
            "roles[0].entry_template.spec.containers[0]: has neither ports nor a readinessProbe, "
            "and KServe would wait for port 8080. State the port that the engine listens on. "
            "[backend-loss]"
        ),
    ),
    "ports-without-names": (
        TEMPLATES,
        {f"{HEAD}.{FIRST}.ports[1]": {"containerPort": 8001}},
        (
            "roles[0].entry_template.spec.containers[0].ports: has 2 ports, not all with a name, "
            "and KServe puts them into one Service. Name each port. [backend-loss]"
        ),
    ),
    "ports-that-are-none": (
        TEMPLATES,
        {f"{HEAD}.{FIRST}.ports": ["http"]},
        (
            "roles[0].entry_template.spec.containers[0].ports[0]: is 'http', but must be a map. "
            "Write a map. [template-fields]"
        ),
    ),
    "label": (
        TEMPLATES,
        {f"{HEAD}.metadata": {"labels": {"app": "llama"}}},
        (
            "roles[0].entry_template.metadata.labels: has the label app, which KServe "
            "overwrites. Rename it. [backend-loss]"
        ),
    ),
    "name-of-kserve": (
        TEMPLATES,
        {f"{HEAD}.spec.containers[1]": {"name": "transformer-container", "image": "a:1"}},
        (
            "roles[0].entry_template.spec.containers[1].name: is transformer-container, a name "
            "by which KServe finds another container. Rename it. [backend-loss]"
        ),
    ),
    "variable-of-kserve": (
        TEMPLATES,
        {f"{WORKER}.{FIRST}.env": [{"name": "HEAD_SVC", "value": "a"}]},
        (
            "roles[0].worker_template.spec.containers[0].env[0]: sets HEAD_SVC, which KServe "
            "overwrites. Remove it: KServe sets it itself. [backend-loss]"
        ),
    ),
    "pythonpath": (
        TEMPLATES,
        {f"{HEAD}.{FIRST}.env": [{"name": "PYTHONPATH", "value": "/a"}]},
        (
            "roles[0].entry_template.spec.containers[0].env[0]: sets PYTHONPATH, which KServe "
            "forbids. Remove it, and put the modules into the image. [backend-loss]"
        ),
    ),
}


@for_each("case", REFUSED)
def test_what_kserve_cannot_do_is_refused_with_a_remedy(case: str) -> None:
    args, changes, message = REFUSED[case]
    assert said(args, changes) == message


TAKEN: dict[str, tuple[Args, Args]] = {
    "recovery of a single pod": (SINGLE, {"recovery_policy": "RoleRecreate"}),
    "no recovery": (ENGINE, {"recovery_policy": "None"}),
    "a gang of one pod": (SINGLE, {"gang_policy": {"min_role_replicas": {"server": 1}}}),
    "an index for one worker": (ENGINE, {}),
    "a budget of the only group": (
        SINGLE,
        {
            "rollout_strategy": {"type": "RoleRollingUpdate"},
            "roles[0].replicas": 2,
            "roles[0].max_unavailable": 1,
        },
    ),
    "braces in a single pod": (
        SINGLE,
        {"roles[0].engine.extra_args": ["--chat-template", "{{ messages }}"]},
    ),
    "an image with the model": (ENGINE, {"backend_options.storage_uri": "oci://a/llama:1"}),
}


@pytest.mark.parametrize("case", TAKEN)
def test_what_kserve_can_do_is_taken(case: str) -> None:
    args, changes = TAKEN[case]
    assert said(args, changes) == ""
