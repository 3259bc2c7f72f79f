"""KAITO's objects: what their templates start, and that nothing in them makes a reader raise."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kthena_components.checker.manifest import check_manifest, has_rules, read_manifest
from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.hardware import GpuFacts
from kthena_components.systems import INDEX
from tests.support.peers import GONE, Manifest, changed, gpus, said_by
from tests.support.strategies import damaged, json_trees

SERVE = "python3 /workspace/vllm/inference_api.py --model Qwen/Qwen3-32B --tensor-parallel-size=2"
CONTAINER = {
    "name": "engine",
    "image": "mcr.microsoft.com/aks/kaito/kaito-base:0.5.0",
    "command": ["/bin/sh", "-c", SERVE],
    "resources": gpus(2),
}
WORKSPACE: Manifest = {
    "apiVersion": "kaito.sh/v1beta1",
    "kind": "Workspace",
    "metadata": {"name": "qwen"},
    "resource": {
        "instanceType": "Standard_NC48ads_A100_v4",
        "labelSelector": {"matchLabels": {"apps": "qwen"}},
    },
    "inference": {"template": {"spec": {"containers": [CONTAINER]}}},
}
PRESET: Manifest = {
    **WORKSPACE,
    "inference": {
        "preset": {
            "name": "llama-3.3-70b-instruct",
            "presetOptions": {"modelAccessSecret": "hf-token"},
        },
        "adapters": [{"source": {"name": "a", "image": "i"}, "strength": "1.0"}],
    },
}
SET: Manifest = {
    "apiVersion": "kaito.sh/v1alpha1",
    "kind": "InferenceSet",
    "metadata": {"name": "qwen"},
    "spec": {
        "replicas": 2,
        "nodeCountLimit": 4,
        "labelSelector": {"matchLabels": {"apps": "qwen"}},
        "template": {key: PRESET[key] for key in ("resource", "inference")},
    },
}
SEVERAL: Manifest = {
    "apiVersion": "kaito.sh/v1alpha1",
    "kind": "MultiRoleInference",
    "metadata": {"name": "phi"},
    "spec": {
        "labelSelector": {"matchLabels": {"apps": "phi"}},
        "model": {"name": "phi-4-mini-instruct"},
        "roles": [
            {"type": kind, "replicas": 1, "instanceType": "Standard_NC24ads_A100_v4"}
            for kind in ("prefill", "decode")
        ],
    },
}
TUNING: Manifest = {
    **{key: value for key, value in PRESET.items() if key != "inference"},
    "tuning": {"preset": {"name": "phi-4"}, "method": "qlora"},
}
GOOD = (WORKSPACE, PRESET, SET, SEVERAL, TUNING)
WORLD = "world-size-equals-gpus"
fuzz = settings(max_examples=150, deadline=None)


def facts(manifest: Manifest) -> ServingFacts:
    found = read_manifest(manifest)
    assert found is not None
    return found


@pytest.mark.parametrize("manifest", GOOD, ids=["template", "preset", "set", "roles", "tuning"])
def test_one_system_reads_it_in_any_version(manifest: Manifest) -> None:
    later = {**manifest, "apiVersion": "kaito.sh/v9"}
    assert has_rules(later)
    assert read_manifest(later) is not None
    assert read_manifest(manifest) is not None


def test_other_kinds_of_the_group_are_not_read() -> None:
    assert read_manifest({"apiVersion": "kaito.sh/v1beta1", "kind": "RAGEngine"}) is None
    assert ("kaito.sh", "RAGEngine") not in INDEX
    assert check_manifest({"apiVersion": "kaito.sh/v1beta1", "kind": "RAGEngine"}) == []


def test_a_template_is_a_pod_template_on_nodes_of_the_instance_type() -> None:
    (engine,) = facts(WORKSPACE).engines
    assert engine.entry.command is not None
    assert (engine.pods, engine.entry.gpus, engine.entry.command.tensor) == (1, 2, 2)
    kind = "NVIDIA A100 of Standard_NC48ads_A100_v4"
    assert engine.entry.gpu == GpuFacts(name=kind, memory_gib=80)


def test_a_template_names_its_own_gpu_first() -> None:
    at = "inference/template/spec/nodeSelector"
    own = changed(WORKSPACE, {at: {"nvidia.com/gpu.product": "NVIDIA-H200"}})
    (engine,) = facts(own).engines
    assert engine.entry.gpu == GpuFacts(name="NVIDIA H200", memory_gib=140.4)


def test_nodes_that_are_there_are_known_by_the_labels_that_select_them() -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-L40S"}
    byo = changed(
        WORKSPACE, {"resource/instanceType": GONE, "resource/labelSelector/matchLabels": labels}
    )
    (engine,) = facts(byo).engines
    assert isinstance(engine.entry.gpu, GpuFacts)
    assert engine.entry.gpu.name == "NVIDIA L40S"


def test_the_command_of_a_template_is_checked_at_its_place() -> None:
    at = "inference/template/spec/containers/0/resources"
    (found,) = said_by(WORLD, WORKSPACE, {at: gpus(4)})
    assert found.startswith("inference.template.spec.containers[0].command: engine 'qwen' starts")
    assert "tensor 2 × pipeline 1 = 2 ranks, but its pod has 4 GPUs" in found


def test_so_is_that_of_an_inference_set() -> None:
    inside = {"template": {"spec": {"containers": [{**CONTAINER, "resources": gpus(1)}]}}}
    (found,) = said_by(WORLD, SET, {"spec/template/inference": inside})
    assert found.startswith("spec.template.inference.template.spec.containers[0].command")


def test_memory_of_a_template_is_checked() -> None:
    small = changed(WORKSPACE, {"resource/instanceType": "Standard_NV72ads_A10_v5"})
    (found,) = said_by("memory-weights-fit", small)
    assert "puts 30.5 GiB of weights on each GPU" in found
    assert "22.5 GiB of NVIDIA A10 of Standard_NV72ads_A10_v5" in found


def test_a_preset_has_no_command_line() -> None:
    assert facts(PRESET).engines == facts(SEVERAL).engines == facts(TUNING).engines == ()


def test_what_kaito_generates_is_checked_as_a_stateful_set() -> None:
    script = (
        'if [ "${POD_INDEX}" = "0" ]; then /workspace/vllm/multi-node-serving.sh leader '
        "--ray_cluster_size=2 --ray_port=6379; python3 /workspace/vllm/inference_api.py "
        "--model=meta-llama/Llama-3.3-70B-Instruct --tensor-parallel-size=2 "
        "--pipeline-parallel-size=3 --distributed-executor-backend=ray; else "
        "/workspace/vllm/multi-node-serving.sh worker --ray_address=qwen-0 --ray_port=6379; fi"
    )
    container = {**CONTAINER, "command": ["/bin/sh", "-c", script]}
    body = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "qwen"},
        "spec": {"replicas": 2, "template": {"spec": {"containers": [container]}}},
    }
    (found,) = said_by(WORLD, body)
    assert "tensor 2 × pipeline 3 = 6 ranks, but its 2 pods × 2 GPUs hold 4" in found


def test_a_message_shows_little_of_a_long_value() -> None:
    long = "x" * 100_000
    changes = {"inference/config": long, "resource/instanceType": long, "metadata/name": "w"}
    found = check_manifest(changed(PRESET, {**changes, "inference/preset/name": long}))
    found += check_manifest(changed(PRESET, {"inference/config": long}))
    assert found
    assert all(len(str(finding)) < 600 for finding in found)


def judge(body: dict[str, Any]) -> None:
    for finding in check_manifest(body):
        assert str(finding)


@pytest.mark.property
@fuzz
@given(st.sampled_from(GOOD), st.data())
def test_any_damage_is_checked(body: dict[str, Any], data: st.DataObject) -> None:
    judge(data.draw(damaged(body)))


@pytest.mark.property
@fuzz
@given(
    st.sampled_from(GOOD),
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(
            ("metadata", "resource", "inference", "tuning", "spec"), json_trees()
        ),
    ),
)
def test_any_tree_under_these_kinds_is_checked(body: dict[str, Any], tree: dict[str, Any]) -> None:
    judge({"apiVersion": body["apiVersion"], "kind": body["kind"], **tree})
