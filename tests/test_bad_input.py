"""What a user reads who asks for something that cannot be: each message, word for word."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest

from kthena_components.compiler.compile import (
    Compiled,
    compile_group,
    compile_role,
    compile_serving,
)
from kthena_components.core.findings import SpecError
from kthena_components.systems import EMITTERS
from tests.support.for_each import for_each
from tests.support.specs import (
    ENGINE_RAY,
    GROUP,
    GUIDE,
    GUIDE_ENTRY,
    NATIVE_8B,
    PREFILL_DECODE,
    REMOVED,
    ROLE,
    TEMPLATES_PLAIN,
    Args,
    changed,
    template,
)
from tests.support.strategies import LATE

BACKENDS = ", ".join(sorted(EMITTERS))


class BadInput(NamedTuple):
    """A change that turns something right into something wrong."""

    args: Args
    changes: Mapping[str, Any]
    message: str
    compile: Callable[..., Compiled] = compile_serving


KTHENA = {"backend": "kthena"}
SIZES = "roles[0].engine.parallelism"
CONTAINER = "roles[0].entry_template.spec.containers[0]"
UPDATE = "rollout_strategy.rolling_update_configuration"
GROUP_TOPOLOGY = "network_topology.group_policy"
FIVE = [{"name": name, "entry_template": template()} for name in "abcde"]
NOT_KNOWN = (
    "is an Output, whose value is not known while the plan is built; counts and names decide how "
    "many resources there are. Pass a plain value, from the program or from the stack's config. "
    "[known-when-planned]"
)
COUNTED = (
    "an overlay may change every field of the pod except what the package sets itself: GPUs, "
    "commands "
    "and injected variables. {}. [overlay-counted]"
)
OVERLAID = "roles[0].overlay.spec.containers[engine]"
CONTROLLER = "Remove it, or write backend: kthena. [backend-loss]"


def overlay(**engine: Any) -> dict[str, Any]:
    return {"roles[0].overlay.spec.containers": [{"name": "engine", **engine}]}


CASES = {
    "unknown-field": BadInput(
        ENGINE_RAY,
        {"replica": 2, "replicas": REMOVED},
        "replica: there is no field 'replica' here. Write 'replicas'. [unknown-field]",
    ),
    "no-roles": BadInput(
        ENGINE_RAY, {"roles": REMOVED}, "roles: is missing. Add 'roles'. [required]"
    ),
    "five-roles-on-kthena": BadInput(
        TEMPLATES_PLAIN,
        KTHENA | {"roles": FIVE},
        "roles: has 5 roles (a, b, c, d, e), and a ModelServing has at most 4. Split the "
        "serving, or write backend: native or lws. [backend-loss]",
    ),
    "two-roles-of-one-name": BadInput(
        TEMPLATES_PLAIN,
        {"roles[1].name": "prefill", "roles[1].replicas": 3},
        "roles[1].name: 2 roles have the name 'prefill' (roles[0], roles[1]), and role names must "
        "be unique. Rename all but one. [role-names-unique]",
    ),
    "role-name-starts-with-a-digit": BadInput(
        GUIDE,
        KTHENA | {"roles[0].name": "405b", "gang_policy": REMOVED},
        "roles[0].name: is '405b', and Kthena requires a role name that starts with a letter. "
        "Write, for example, 'r405b'. [backend-loss]",
    ),
    "long-name-natively": BadInput(
        ENGINE_RAY,
        {"name": "a-very-long-name-for-a-serving-of-a-chat-model"},
        "roles[0].name: gives the StatefulSet name "
        "'a-very-long-name-for-a-serving-of-a-chat-model-1-decode-0-w', 59 characters; at most 52 "
        "are allowed. Shorten the serving's or the role's name by 7. [name-fits]",
    ),
    "long-name-on-kthena": BadInput(
        ENGINE_RAY,
        KTHENA | {"name": "a-very-long-name-for-a-serving-of-a-chat-model-in-this-team"},
        "roles[0].name: gives the pod name "
        "'a-very-long-name-for-a-serving-of-a-chat-model-in-this-team-2-decode-1-1', 72 "
        "characters; at most 63 are allowed. Shorten the serving's or the role's name by 9. "
        "[name-fits]",
    ),
    "negative-replicas": BadInput(
        ENGINE_RAY,
        {"replicas": -1},
        "replicas: is -1, but must be at least 0. Write at least 0. [range]",
    ),
    "zero-tensor": BadInput(
        ENGINE_RAY,
        {f"{SIZES}.tensor": 0},
        f"{SIZES}.tensor: is 0, but must be at least 1. Write at least 1. [range]",
    ),
    "template-and-engine": BadInput(
        ENGINE_RAY,
        {"roles[0].entry_template": template()},
        "roles[0]: role 'decode' has both an engine and entry_template, and only one can write "
        "the pods. Remove one; overlay changes single fields of an engine's pods. "
        "[template-or-engine]",
    ),
    "neither-template-nor-engine": BadInput(
        TEMPLATES_PLAIN,
        {"roles[0].entry_template": REMOVED},
        "roles[0]: role 'prefill' has neither an entry_template nor an engine. Give one of them. "
        "[template-or-engine]",
    ),
    "workers-without-a-template": BadInput(
        TEMPLATES_PLAIN,
        {"roles[0].worker_template": REMOVED},
        "roles[0].worker_template: is missing, but worker_replicas is 3. Add worker_template, or "
        "write worker_replicas: 0. [worker-template]",
    ),
    "no-containers": BadInput(
        TEMPLATES_PLAIN,
        {"roles[0].entry_template.spec.containers": []},
        "roles[0].entry_template.spec.containers: is empty or missing, so there is nothing to "
        "run. Give at least one container. [template-containers]",
    ),
    "more-ranks-than-gpus": BadInput(
        ENGINE_RAY,
        {f"{SIZES}.pipeline": 3},
        f"{SIZES}: engine 'decode' starts tensor 8 × pipeline 3 = 24 ranks, but its 2 pods × 8 "
        "GPUs hold 16. Set pipeline to 2, or give the engine 3 pods (worker_replicas: 2). "
        "[world-size-equals-gpus]",
    ),
    "more-gpus-than-ranks": BadInput(
        NATIVE_8B,
        {"roles[0].resources.gpus_per_pod": 8},
        f"{SIZES}: engine 'server' starts tensor 1 × pipeline 1 = 1 rank, but its pod has 8 GPUs. "
        "Set tensor to 8, or set pipeline to 8, or give each pod 1 GPU. [world-size-equals-gpus]",
    ),
    "more-ranks-than-gpus-in-a-template": BadInput(
        GUIDE,
        {f"{CONTAINER}.command[2]": GUIDE_ENTRY.replace("--tensor-parallel-size 8", "-tp 4")},
        f"{CONTAINER}.command: engine 'llama-405b' starts tensor 4 × pipeline 2 = 8 ranks, but "
        "its 2 pods × 8 GPUs hold 16. Set pipeline to 4, or set tensor to 8, or give the engine 1 "
        "pod, or give each pod 4 GPUs. [world-size-equals-gpus]",
    ),
    "entry-and-workers-differ": BadInput(
        GUIDE,
        {
            "roles[0].worker_template.spec.containers[0].resources": {
                "limits": {"nvidia.com/gpu": 4}
            }
        },
        f"{CONTAINER}.command: engine 'llama-405b' starts tensor 8 × pipeline 2 = 16 ranks, but "
        "its 2 pods (entry 8, workers 4 GPUs) hold 12. Give each pod 8 GPUs. "
        "[world-size-equals-gpus]\nroles[0].worker_template.spec.containers[0].resources: engine "
        "'llama-405b' gives its entry pod 8 GPUs and each worker 4, and an engine distributes its "
        "ranks evenly. Write 8 in both. [leader-worker-same-gpus]",
    ),
    "ray-waits-for-other-pods": BadInput(
        GUIDE,
        {f"{CONTAINER}.command[2]": GUIDE_ENTRY.replace("size=2", "size=3", 1)},
        f"{CONTAINER}.command: engine 'llama-405b' has 2 pods, but its Ray leader waits for 3 "
        "(ray_cluster_size). Write --ray_cluster_size=2, or $(GROUP_SIZE). "
        "[ray-cluster-size-equals-group]",
    ),
    "gang-minimum-of-no-role": BadInput(
        PREFILL_DECODE,
        {"gang_policy.min_role_replicas": {"prefil": 1}},
        "gang_policy.min_role_replicas.prefil: there is no role 'prefil'. Write 'prefill'. "
        "[gang-minimum]",
    ),
    "gang-minimum-above-replicas": BadInput(
        PREFILL_DECODE,
        {"gang_policy.min_role_replicas.decode": 2},
        "gang_policy.min_role_replicas.decode: is 2, but role 'decode' has 1 replica, so the "
        "group could never start. Write at most 1. [gang-minimum]",
    ),
    "partition-outside-the-groups": BadInput(
        ENGINE_RAY,
        {f"{UPDATE}.partition": 3},
        f"{UPDATE}.partition: is 3, but the serving has 2 groups; the partition counts the first "
        "groups that keep their template. Write at most 2, or a percentage such as 50%. "
        "[rollout-partition]",
    ),
    "surge-on-kthena": BadInput(
        ENGINE_RAY,
        KTHENA | {f"{UPDATE}.max_surge": 1},
        f"{UPDATE}.max_surge: is 1, but Kthena has no surge: versions that accept the field ignore "
        "it. Remove it; max_unavailable is the only budget. [backend-loss]",
    ),
    "surge-natively": BadInput(
        ENGINE_RAY,
        {f"{UPDATE}.max_surge": 1},
        f"{UPDATE}.max_surge: is 1, but a StatefulSet is replaced under its own name, so nothing "
        "can surge. Remove it; max_unavailable is the only budget. [backend-loss]",
    ),
    "both-tiers": BadInput(
        ENGINE_RAY,
        {f"{GROUP_TOPOLOGY}.highest_tier_name": "rack"},
        f"{GROUP_TOPOLOGY}: both highest_tier_allowed (1) and highest_tier_name ('rack') are "
        "given, and Volcano accepts only one of them. Remove one of them. [topology-cap-stated]",
    ),
    "hard-without-a-cap": BadInput(
        ENGINE_RAY,
        {GROUP_TOPOLOGY: {"mode": "hard"}},
        f"{GROUP_TOPOLOGY}: mode is hard but no tier is given, so Volcano would drop the whole "
        "constraint. Give highest_tier_allowed, for example 1 for the closest tier. "
        "[topology-cap-stated]",
    ),
    "count-from-an-output": BadInput(ENGINE_RAY, {"replicas": LATE}, f"replicas: {NOT_KNOWN}"),
    "no-such-backend": BadInput(
        ENGINE_RAY,
        {"backend": "kthenna"},
        f"backend: there is no backend 'kthenna'. Write 'kthena'; known: {BACKENDS}. "
        "[known-backend]",
    ),
    "recovery-natively": BadInput(
        ENGINE_RAY,
        {"recovery_policy": "RoleRecreate"},
        "recovery_policy: is RoleRecreate, but a StatefulSet recreates only the pod that failed. "
        f"{CONTROLLER}",
    ),
    "autoscaled-natively": BadInput(
        ENGINE_RAY,
        {"autoscaled": True},
        "autoscaled: is true, but each group has StatefulSets of its own, which nothing scales "
        f"together. {CONTROLLER}",
    ),
    "grace-natively": BadInput(
        ENGINE_RAY,
        {"restart_grace_period_seconds": 60},
        "restart_grace_period_seconds: is 60, but a StatefulSet recreates a pod at once. "
        f"{CONTROLLER}",
    ),
    "role-budget-natively": BadInput(
        GROUP,
        {"roles[0].max_unavailable": 1},
        "roles[0].max_unavailable: is 1, but the engines of a group wait for one gang, so they "
        "cannot be replaced a few at a time. Remove it. [backend-loss]",
        compile_group,
    ),
    "reserved-label": BadInput(
        NATIVE_8B,
        {"roles[0].overlay.metadata.labels": {"modelserving.volcano.sh/role": "x"}},
        "roles[0].overlay.metadata.labels: label 'modelserving.volcano.sh/role' is set here, but "
        "it selects the pods of a group. Remove it, or use a label of your own. "
        "[reserved-labels]",
    ),
    "counted-flag": BadInput(
        NATIVE_8B,
        {"roles[0].engine.extra_args": ["--seed", "1", "-tp=2"]},
        "roles[0].engine.extra_args: '-tp' sets a value that the package sets itself. Remove it "
        "and use engine.parallelism, launcher, port or model. [counted-flag]",
    ),
    "connector-of-another-engine": BadInput(
        NATIVE_8B,
        {"roles[0].engine.kv_transfer": {"role": "prefill", "connector": "p2p"}},
        "roles[0].engine.kv_transfer.connector: is 'p2p', but must be one of 'nixl', 'mooncake', "
        "'lmcache'. Choose one of them. [known-value]",
    ),
    "port-of-the-transfer": BadInput(
        NATIVE_8B,
        {
            "roles[0].engine.image": "vllm/vllm-openai:v0.33.0",
            "roles[0].engine.kv_transfer": {"role": "prefill", "connector": "nixl", "port": 8080},
        },
        "roles[0].engine.kv_transfer.port: is 8080, so the transfer listens on 8080, and 8080 is "
        "HTTP. Choose another port. [kv-transfer-supported]",
    ),
    "gpus-in-an-overlay": BadInput(
        NATIVE_8B,
        overlay(resources={"limits": {"nvidia.com/gpu": 2}}),
        f"{OVERLAID}.resources.limits: {COUNTED.format('Use resources.gpus_per_pod')}",
    ),
    "overlay-of-a-container-that-is-not-there": BadInput(
        NATIVE_8B,
        {"roles[0].overlay.spec.containers": [{"name": "vllm", "tty": True}]},
        "roles[0].overlay.spec.containers[vllm]: is added to the pods, which have a container "
        "'engine', but it has no image. Write name: engine, or give it an image. "
        "[overlay-container]",
    ),
    "command-in-an-overlay": BadInput(
        NATIVE_8B,
        overlay(command=["vllm"]),
        f"{OVERLAID}.command: {COUNTED.format('Use engine.parallelism and engine.extra_args')}",
    ),
    "role-joins-a-gang-of-nobody": BadInput(
        ROLE,
        {"scheduler_name": "default-scheduler"},
        "pod_group: is given, but scheduler_name is 'default-scheduler', and only Volcano reads "
        "it. Write scheduler_name: volcano, or remove the field. [volcano-scheduler]",
        compile_role,
    ),
    "several-at-once": BadInput(
        ENGINE_RAY,
        {"backend": "helm", f"{UPDATE}.partition": 5, f"{SIZES}.pipeline": 3},
        f"{UPDATE}.partition: is 5, but the serving has 2 groups; the partition counts the first "
        "groups that keep their template. Write at most 2, or a percentage such as 50%. "
        "[rollout-partition]\n"
        f"backend: there is no backend 'helm'. Write one of {BACKENDS}. [known-backend]\n"
        f"{SIZES}: engine 'decode' starts tensor 8 × pipeline 3 = 24 ranks, but its 2 pods × 8 "
        "GPUs hold 16. Set pipeline to 2, or give the engine 3 pods (worker_replicas: 2). "
        "[world-size-equals-gpus]",
    ),
}


@for_each("case", CASES.values(), ids=CASES)
def test_bad_input_is_refused_with_a_remedy(case: BadInput) -> None:
    with pytest.raises(SpecError) as refusal:
        case.compile(changed(case.args, case.changes))
    assert str(refusal.value) == case.message
