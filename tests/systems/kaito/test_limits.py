"""What KAITO cannot do, and in which words that is refused."""

from typing import Any

import pytest

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import SpecError
from kthena_components.core.values.unknown import UNKNOWN_WORD
from tests.support.draw_kaito import SPLITS, Split, preset_role
from tests.support.specs import VLLM, Args, changed, example_for, template

OPTION, ENGINE = "backend_options", "roles[0].engine"
UPDATE = "rollout_strategy.rolling_update_configuration"
TEMPLATE = example_for("kaito", "native-8b")
"""One engine of one pod, whose template the package writes."""
PRESET = changed(example_for("kaito", "engine-native"), {"replicas": 1})
"""Llama-3.1-405B on two nodes of 8 × 80 GiB."""


def serving_of(split: Split) -> Args:
    """Give a serving of one engine."""
    options = {"preset": split.preset, "instance_type": split.nodes}
    return changed(PRESET, {"roles": [preset_role("serve", split)], OPTION: options})


LLAMA, PHI = serving_of(SPLITS[0]), serving_of(SPLITS[-1])
"""Llama-3.3-70B on two nodes of 2 × 80 GiB; phi-4 in 8 copies on one node."""


def said(args: Args, changes: dict[str, Any]) -> str:
    """Give the refusal, or an empty text."""
    try:
        compile_serving(changed(args, changes))
    except SpecError as refusal:
        return str(refusal)
    return ""


def existing(labels: Args) -> dict[str, Any]:
    """Give the options of a preset on existing nodes."""
    return {OPTION: {"preset": PRESET[OPTION]["preset"], "label_selector": labels}}


ELSEWHERE = "Remove it, or write backend: native or kthena. [backend-loss]"
ONCE = "but KAITO writes each flag once, with one value. Remove it, or write backend: native"
SERVING: dict[str, tuple[Args, dict[str, Any], str]] = {
    "several-roles": (
        TEMPLATE,
        {"roles[1]": {"name": "other", "entry_template": template()}},
        (
            "roles: has 2 roles, but an InferenceSet has engines of one role. Write one serving "
            "for "
            "each role, or backend: native or kthena. [backend-loss]"
        ),
    ),
    "gang": (
        TEMPLATE,
        {"roles[0].replicas": 2, "gang_policy": {"min_role_replicas": {"server": 2}}},
        (
            "gang_policy.min_role_replicas: requests 2 pods together, but KAITO's pods are "
            "scheduled "
            f"one by one. {ELSEWHERE}"
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
            "recreates only the pod that failed. Remove it, or write backend: lws or kthena."
        ),
    ),
    "grace": (
        TEMPLATE,
        {"restart_grace_period_seconds": 9},
        (
            "restart_grace_period_seconds: is 9, but a StatefulSet recreates a pod at once. "
            "Remove it, "
            "or write backend: kthena. [backend-loss]"
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
            "pods that KAITO writes, or backend: lws. [backend-loss]"
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
            "names. Write localhost, or backend: native or kthena. [backend-loss]"
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
PODS: dict[str, tuple[Args, dict[str, Any], str]] = {
    "scheduler": (
        PRESET,
        {"scheduler_name": "volcano"},
        (
            "scheduler_name: is volcano, but the pods of a preset have no schedulerName. Write "
            "scheduler_name: default-scheduler, or remove backend_options.preset. [backend-loss]"
        ),
    ),
    "template": (
        PRESET,
        {"roles": [{"name": "a", "entry_template": template()}]},
        (
            "roles[0].entry_template: is given, but KAITO writes the pods of a preset. Write an "
            "engine "
            "instead, or remove backend_options.preset. [backend-loss]"
        ),
    ),
    "sglang": (
        PRESET,
        {f"{ENGINE}.kind": "sglang"},
        (
            f"{ENGINE}.kind: is sglang, but KAITO runs presets with vLLM. Write vllm, or remove "
            "backend_options.preset. [backend-loss]"
        ),
    ),
    "image": (
        PRESET,
        {f"{ENGINE}.image": VLLM},
        (
            f"{ENGINE}.image: is '{VLLM}', but KAITO 0.11 runs presets with its own image, "
            "kaito-base:0.4.2. Write mcr.microsoft.com/aks/kaito/kaito-base:0.4.2. [backend-loss]"
        ),
    ),
    "kv-transfer": (
        PRESET,
        {f"{ENGINE}.kv_transfer": {"role": "prefill", "connector": "nixl"}},
        (
            f"{ENGINE}.kv_transfer: is given, but the pods of a preset have no variables of their "
            "own. Remove it, or remove backend_options.preset. [backend-loss]"
        ),
    ),
    "port": (
        PRESET,
        {f"{ENGINE}.port": 8080},
        f"{ENGINE}.port: is 8080, but KAITO's pods and Services use 5000. Write 5000.",
    ),
    "launcher": (
        PRESET,
        {f"{ENGINE}.launcher": "native"},
        (
            f"{ENGINE}.launcher: is native, but KAITO connects the pods of an engine with Ray. "
            "Write "
            "ray, or remove it. [backend-loss]"
        ),
    ),
    "config-of-the-model": (
        PRESET,
        {f"{ENGINE}.hf_config": {"num_attention_heads": 128, "num_hidden_layers": 126}},
        f"{ENGINE}.hf_config: is given, but KAITO reads the model's config from Hugging Face.",
    ),
    "experts": (
        PRESET,
        {f"{ENGINE}.parallelism.expert": True},
        (
            f"{ENGINE}.parallelism.expert: is true, but inference_config.yaml has no switches "
            "such as "
            "--enable-expert-parallel. Remove it, or write backend: native, kthena or lws."
        ),
    ),
    "switch": (
        PRESET,
        {f"{ENGINE}.extra_args": ["--enable-prefix-caching"]},
        (
            f"{ENGINE}.extra_args: has the switch '--enable-prefix-caching', which has no value, "
            f"{ONCE}"
        ),
    ),
    "flag-twice": (
        PRESET,
        {f"{ENGINE}.extra_args": ["--max_num_seqs=1", "--max-num-seqs", "2"]},
        f"{ENGINE}.extra_args: has '--max-num-seqs' twice, {ONCE}",
    ),
    "several-values": (
        PRESET,
        {f"{ENGINE}.extra_args": ["--served-model-name", "a", "b"]},
        f"{ENGINE}.extra_args: has '--served-model-name' with 2 values, {ONCE}",
    ),
    "short-flag": (
        PRESET,
        {f"{ENGINE}.extra_args": ["-O3"]},
        f"{ENGINE}.extra_args: has '-O3', which is no flag of the form --name, {ONCE}",
    ),
    "flag-of-another-release": (
        PRESET,
        {f"{ENGINE}.extra_args": ["--swap-space=4"]},
        (
            f"{ENGINE}.extra_args: does not fit the vLLM of KAITO 0.11: vLLM 0.22.1 has no option "
            "'--swap-space'"
        ),
    ),
    "no-flag": (
        PRESET,
        {f"{ENGINE}.extra_args": ["--", "x"]},
        f"{ENGINE}.extra_args: has '--', which is no flag of the form --name, {ONCE}",
    ),
    "unknown-flag": (
        PRESET,
        {f"{ENGINE}.extra_args": ["--seed", UNKNOWN_WORD]},
        f"{ENGINE}.extra_args: is not known while the plan is built, but may decide the nodes.",
    ),
    "unknown-image": (
        PRESET,
        {f"{ENGINE}.image": UNKNOWN_WORD},
        f"{ENGINE}.image: is not known yet, but KAITO 0.11 runs presets with its own image",
    ),
    "length-with-a-unit": (
        PRESET,
        {f"{ENGINE}.extra_args": ["--max-model-len", "8k"]},
        (
            f"{ENGINE}.extra_args: has --max-model-len '8k', but KAITO accepts only a number "
            "there. "
            "Write the number of tokens. [backend-loss]"
        ),
    ),
    "length-of-more-than-the-model": (
        PRESET,
        {f"{ENGINE}.extra_args": ["--max-model-len=131073"]},
        (
            f"{ENGINE}.extra_args: has --max-model-len 131073, but KAITO accepts at most the "
            "model's "
            "131072. Write at most 131072. [backend-loss]"
        ),
    ),
    "overlay": (
        PRESET,
        {"roles[0].overlay": {"spec": {"tolerations": []}}},
        (
            "roles[0].overlay: is given, but KAITO writes the pods of a preset. Remove it, or "
            "backend_options.preset. [backend-loss]"
        ),
    ),
    "memory": (
        PRESET,
        {"roles[0].resources.memory": "9Gi"},
        (
            "roles[0].resources.memory: is 9Gi, but KAITO's pods request only GPUs. Remove it: a "
            "pod "
            "has its node for itself. [backend-loss]"
        ),
    ),
    "other-gpus": (
        PRESET,
        {"roles[0].resources.gpu_resource": "amd.com/gpu"},
        "roles[0].resources.gpu_resource: is amd.com/gpu, but KAITO's pods request nvidia.com/gpu.",
    ),
    "key-of-the-token": (
        PRESET,
        {"roles[0].hugging_face_token.key": "TOKEN"},
        (
            "roles[0].hugging_face_token.key: is 'TOKEN', but KAITO reads the key HF_TOKEN of the "
            "Secret. Write HF_TOKEN, and rename the key. [backend-loss]"
        ),
    ),
}
OPTIONS: dict[str, tuple[Args, dict[str, Any], str]] = {
    "unknown-option": (
        LLAMA,
        {f"{OPTION}.instance_typ": "x"},
        (
            "backend_options.instance_typ: there is no field 'instance_typ' here. Write "
            "'instance_type'. [unknown-field]"
        ),
    ),
    "no-nodes": (
        TEMPLATE,
        {OPTION: {}},
        (
            "backend_options: states no nodes. Write instance_type, for nodes that KAITO "
            "creates, or "
            "label_selector, for existing ones. [backend-options]"
        ),
    ),
    "unknown-type": (
        TEMPLATE,
        {OPTION: {"instance_type": "p5.49xlarge"}},
        (
            "backend_options.instance_type: is 'p5.49xlarge', which KAITO does not know. Write "
            "'p5.48xlarge'. [backend-options]"
        ),
    ),
    "type-of-another-maker": (
        PRESET,
        {f"{OPTION}.instance_type": "g4ad.xlarge"},
        (
            "backend_options.instance_type: is 'g4ad.xlarge' with 1 AMD Radeon Pro V520, but the "
            "pods "
            "of a preset request nvidia.com/gpu. Choose an instance type with NVIDIA GPUs."
        ),
    ),
    "own-label": (
        TEMPLATE,
        {f"{OPTION}.label_selector": {"kaito.sh/workspace": "a"}},
        (
            "backend_options.label_selector.kaito.sh/workspace: is a label that KAITO gives its "
            "own "
            "nodes, and ignores here. Write a label of your own. [backend-options]"
        ),
    ),
    "label": (
        TEMPLATE,
        {f"{OPTION}.label_selector": {"team": "a b"}},
        "backend_options.label_selector.team: is 'a b', but must be letters, digits, '-', '_'",
    ),
    "benchmark-of-a-template": (
        TEMPLATE,
        {f"{OPTION}.benchmark": False},
        "backend_options.benchmark: is given without a preset. Write preset, or remove it.",
    ),
    "adapters-of-a-template": (
        TEMPLATE,
        {f"{OPTION}.adapters": {"a": {"image": "a"}}},
        "backend_options.adapters: is given without a preset. Write preset, or remove it.",
    ),
    "adapters": (
        PRESET,
        {f"{OPTION}.adapters": {f"a{i}": {"image": "a"} for i in range(12)}},
        "backend_options.adapters: has 12 adapters, and KAITO accepts at most 10. Remove 2.",
    ),
    "nodes-without-gpus": (
        PRESET,
        existing({"team": "a"}),
        (
            "backend_options.label_selector.nvidia.com/gpu.product: is not stated; KAITO counts "
            "the "
            "nodes of a preset by the GPUs of existing nodes. Write the product of the nodes' "
            "GPUs, "
            "such as NVIDIA-H100-80GB-HBM3. [backend-options]"
        ),
    ),
    "unknown-gpus": (
        PRESET,
        existing({"nvidia.com/gpu.product": "H1000"}),
        "nvidia.com/gpu.product: is 'H1000': 'H1000' is not in the table of GPUs; KAITO counts",
    ),
    "other-number-of-gpus": (
        PRESET,
        existing({"nvidia.com/gpu.product": "NVIDIA-H200", "nvidia.com/gpu.count": "4"}),
        (
            "backend_options.label_selector.nvidia.com/gpu.count: is '4', but "
            "resources.gpus_per_pod is "
            "8, and each pod uses all GPUs of its node. Remove it, or change one of them."
        ),
    ),
    "unknown-preset": (
        PRESET,
        {f"{OPTION}.preset": "llama-3.3-70b"},
        (
            "backend_options.preset: is 'llama-3.3-70b', which is neither organisation/name nor "
            "a short "
            "name of KAITO. Write 'llama-3.3-70b-instruct'. [backend-options]"
        ),
    ),
    "preset-of-another-model": (
        PRESET,
        {f"{OPTION}.preset": "llama-3.3-70b-instruct"},
        (
            "backend_options.preset: is 'llama-3.3-70b-instruct', but the engine's model is "
            "'meta-llama/Llama-3.1-405B-Instruct'. Write engine.model: "
            "meta-llama/Llama-3.3-70B-Instruct, or another preset. [backend-options]"
        ),
    ),
    "preset-of-unknown-size": (
        PRESET,
        {f"{OPTION}.preset": "org/m", f"{ENGINE}.model": "org/m"},
        (
            "backend_options.preset: is 'org/m', and KAITO's nodes cannot be calculated: 'org/m' "
            "is not "
            "in the table of models. Choose a model of the table, or write backend: native"
        ),
    ),
    "cache-in-host-memory": (
        PHI,
        {f"{OPTION}.kv_cache_cpu_memory_utilization": 0.5},
        "backend_options.kv_cache_cpu_memory_utilization: is 0.5, but KAITO ignores it for data 8.",
    ),
}
SPLIT: dict[str, tuple[Args, dict[str, Any], str]] = {
    "tensor": (
        LLAMA,
        {f"{ENGINE}.parallelism": {"tensor": 4}},
        (
            f"{ENGINE}.parallelism: is tensor 4 × pipeline 1 on 2 pods of 2 GPUs, but KAITO starts "
            "tensor 2 × pipeline 2 on 2 pods of 2 GPUs: KAITO counts 3 GPUs of 80 GiB for the "
            "131.42 "
            "GiB of meta-llama/Llama-3.3-70B-Instruct and requests of 2048 tokens, and uses all "
            "GPUs "
            "of its nodes. Write tensor: 2, pipeline: 2, data: 1, worker_replicas: 1 and "
            "gpus_per_pod: 2, or choose other nodes. [backend-loss]"
        ),
    ),
    "pods": (
        LLAMA,
        {f"{ENGINE}.parallelism.pipeline": 3, "roles[0].worker_replicas": 2},
        "is tensor 2 × pipeline 3 on 3 pods of 2 GPUs, but KAITO starts tensor 2 × pipeline 2 on 2",
    ),
    "gpus-of-a-node": (
        LLAMA,
        {f"{ENGINE}.parallelism.tensor": 1, "roles[0].resources.gpus_per_pod": 1},
        "is tensor 1 × pipeline 2 on 2 pods of 1 GPU, but KAITO starts tensor 2 × pipeline 2 on 2",
    ),
    "copies": (
        PHI,
        {f"{ENGINE}.parallelism": {"tensor": 8}},
        "is tensor 8 × pipeline 1 on 1 pod of 8 GPUs, but KAITO starts data 8 on 1 pod of 8 GPUs",
    ),
    "longer-requests": (
        changed(LLAMA, {f"{ENGINE}.extra_args": ["--max-model-len=100000"]}),
        {f"{OPTION}.instance_type": "Standard_NV72ads_A10_v5"},
        "backend_options.preset: needs 28 nodes of Standard_NV72ads_A10_v5: KAITO counts",
    ),
    "too-many-nodes": (
        PRESET,
        {f"{OPTION}.instance_type": "Standard_NC48ads_A100_v4"},
        (
            "backend_options.preset: needs 7 nodes of Standard_NC48ads_A100_v4: KAITO counts 13 "
            "GPUs "
            "of 80 GiB for the 755.96 GiB of meta-llama/Llama-3.1-405B-Instruct and requests of "
            "2048 "
            "tokens, and KAITO 0.11 starts at most 3 nodes. Choose nodes with more GPU memory, "
            "or a "
            "shorter --max-model-len. [backend-loss]"
        ),
    ),
    "small-gpus": (
        LLAMA,
        {
            f"{OPTION}.instance_type": "g6.xlarge",
            f"{ENGINE}.extra_args": ["--max-model-len=131072"],
        },
        (
            "backend_options.preset: needs 42.3 GiB of each GPU before any weights are loaded, "
            "but vLLM "
            "may use 20.2 GiB on g6.xlarge. Choose GPUs with more memory, or a shorter "
            "--max-model-len."
        ),
    ),
}
REFUSED = {**SERVING, **PODS, **OPTIONS, **SPLIT}


@pytest.mark.parametrize("case", REFUSED)
def test_what_kaito_cannot_do_is_an_error(case: str) -> None:
    args, changes, message = REFUSED[case]
    assert said(args, {}) == ""
    assert message in said(args, changes)


def test_all_refusals_come_at_once() -> None:
    changes = {
        "scheduler_name": "volcano",
        "restart_grace_period_seconds": 5,
        f"{ENGINE}.image": VLLM,
        f"{ENGINE}.port": 8000,
        "roles[0].resources.cpu": "8",
        f"{ENGINE}.extra_args": ["--seed=1", "--enable-prefix-caching"],
    }
    assert said(PRESET, changes).count("[backend-loss]") == 6


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
    assert said(args, changes) == ""
