"""Unknown fields that have another name or place: the remedy, applied literally, is accepted."""

from typing import Any

import pytest

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import Finding, SpecError
from tests.support.pages import ROOT
from tests.support.specs import ENGINE_RAY, TEMPLATES_PLAIN, Args, changed

ROLE, POD = "roles[0]", "roles[0].overlay.spec"
TENSOR = "roles[0].engine.parallelism.tensor"
GPUS = "roles[0].resources.gpus_per_pod"
ENV = [{"name": "A", "value": "b"}]
OVERLAID: Args = {"roles[0].overlay": {"spec": {"containers": [{"name": "engine", "env": ENV}]}}}
H100 = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
OUTSIDE = (
    "remove it, and put an Ingress, a Gateway or a load balancer of your own in front of the "
    "Service of expose, as in docs/how-to/from-outside.md"
)
CLUSTER = (
    "remove it: the cluster is kubernetes:kubeconfig or kubernetes:context of the stack, or the "
    "provider in the options of the component"
)
PORTS = "write expose.port for the Service, or roles[0].engine.port for the engine"
BOUNDS = (
    "write autoscaled: true at the top instead, with a backend that takes it (docs/backends.md), "
    "and the bounds into a HorizontalPodAutoscaler"
)
HUB = (
    "write roles[0].hugging_face_token: {name: NAME}, the Secret that holds the token in its key "
    "HF_TOKEN"
)
CASES: dict[str, tuple[Any, str, Args]] = {
    "roles[0].tp": (8, f"write {TENSOR} instead", {TENSOR: 8}),
    "roles[0].engine.tensor_parallel_size": (8, f"write {TENSOR} instead", {TENSOR: 8}),
    "roles[0].engine.parallelism.tp": (8, f"write {TENSOR} instead", {TENSOR: 8}),
    "tensor": (8, f"write {TENSOR} instead", {TENSOR: 8}),
    "roles[0].gpu": (
        "h100",
        f"write the GPU's type into roles[0].resources.gpu, and write {GPUS} for the number",
        {"roles[0].resources.gpu": "h100", GPUS: 8},
    ),
    "roles[0].resources.gpus": (8, f"write {GPUS} instead", {GPUS: 8}),
    "roles[0].resources.nvidia/gpu": (8, f"write {GPUS} instead", {GPUS: 8}),
    "roles[0].gpus_per_pod": (8, f"write {GPUS} instead", {GPUS: 8}),
    "roles[0].resources.limits": (
        {"cpu": "8"},
        "write cpu, memory and gpus_per_pod in roles[0].resources",
        {"roles[0].resources.cpu": "8"},
    ),
    "roles[0].nnodes": (
        2,
        "write roles[0].worker_replicas: 1, the pods of an engine, less the first",
        {"roles[0].worker_replicas": 1},
    ),
    "roles[0].pods": (
        2,
        "write roles[0].worker_replicas: 1, the pods of an engine, less the first",
        {"roles[0].worker_replicas": 1},
    ),
    "pods": (
        "2",
        "write roles[0].worker_replicas: 1, the pods of an engine, less the first",
        {"roles[0].worker_replicas": 1},
    ),
    "roles[0].num_nodes": (
        0,
        "write roles[0].worker_replicas: the pods of an engine, less the first",
        {"roles[0].worker_replicas": 1},
    ),
    "roles[0].annotations": (
        {"a": "b"},
        "write roles[0].overlay.metadata.annotations instead",
        {"roles[0].overlay": {"metadata": {"annotations": {"a": "b"}}}},
    ),
    "annotations": (
        {"a": "b"},
        "write roles[0].overlay.metadata.annotations instead",
        {"roles[0].overlay": {"metadata": {"annotations": {"a": "b"}}}},
    ),
    "roles[0].engine.version": (
        "0.33.0",
        "write roles[0].engine.image: vllm/vllm-openai:v0.33.0 instead",
        {"roles[0].engine.image": "vllm/vllm-openai:v0.33.0"},
    ),
    "version": (
        "v0.12",
        "write roles[0].engine.image: vllm/vllm-openai:v0.12.0 instead",
        {"roles[0].engine.image": "vllm/vllm-openai:v0.12.0"},
    ),
    "roles[0].image_tag": (
        "nightly",
        "write the version as the tag of roles[0].engine.image instead",
        {"roles[0].engine.image": "vllm/vllm-openai:v0.12.0"},
    ),
    "port": (8000, PORTS, {"expose.port": 8000}),
    "roles[0].port": (8000, PORTS, {"expose.port": 8000}),
    "expose.node_port": (30000, OUTSIDE, {"expose": {}}),
    "expose.annotations": ({}, OUTSIDE, {"expose": {}}),
    "ingress": ({"host": "chat.ai"}, OUTSIDE, {"expose": {}}),
    "gateway": ("public", OUTSIDE, {"expose": {}}),
    "hostname": ("chat.ai", OUTSIDE, {"expose": {}}),
    "load_balancer": (True, OUTSIDE, {"expose": {}}),
    "node_port": (30000, OUTSIDE, {"expose": {}}),
    "autoscaling": ({"min": 1}, BOUNDS, {"backend": "kthena", "autoscaled": True}),
    "roles[0].max_replicas": (3, BOUNDS, {"backend": "kthena", "autoscaled": True}),
    "kubeconfig": (
        "~/.kube/config",
        CLUSTER,
        {},
    ),
    "roles[0].worker": (
        1, "write roles[0].worker_replicas instead", {"roles[0].worker_replicas": 1}
    ),
    "hf_token": ("abc", HUB, {"roles[0].hugging_face_token": {"name": "hub"}}),
    "roles[0].engine.hf_token": (
        "abc", HUB, {"roles[0].hugging_face_token": {"name": "hub"}}
    ),
    "roles[0].engine.context_length": (
        4096,
        "write --max-model-len in roles[0].engine.extra_args",
        {"roles[0].engine.extra_args": ["--max-model-len=4096"]},
    ),
    "roles[0].service_account": (
        "a",
        f"write {POD}.serviceAccountName instead",
        {"roles[0].overlay": {"spec": {"serviceAccountName": "a"}}},
    ),
    "timeout": (
        600, "write ready_timeout_seconds at the top instead", {"ready_timeout_seconds": 600}
    ),
    "groups": (2, "write replicas at the top instead", {"replicas": 2}),
    "service": ({}, "write expose at the top instead", {"expose": {}}),
    "expose.type": ("LoadBalancer", OUTSIDE, {"expose": {}}),
    "expose.host": ("chat.ai", OUTSIDE, {"expose": {}}),
    "roles[0].node_selector": (
        H100,
        f"write {POD}.nodeSelector instead",
        {"roles[0].overlay": {"spec": {"nodeSelector": H100}}},
    ),
    "roles[0].tolerations": (
        [],
        f"write {POD}.tolerations instead",
        {"roles[0].overlay": {"spec": {"tolerations": [{"operator": "Exists"}]}}},
    ),
    "roles[0].env": (
        ENV, f"write env of the container 'engine' in {POD}.containers", OVERLAID
    ),
    "env": (ENV, f"write env of the container 'engine' in {POD}.containers", OVERLAID),
    "roles[0].engine.max_model_len": (
        4096,
        "write --max-model-len in roles[0].engine.extra_args",
        {"roles[0].engine.extra_args": ["--max-model-len=4096"]},
    ),
    "roles[0].model": (
        "Qwen/Qwen3-235B-A22B",
        "write roles[0].engine.model instead",
        {"roles[0].engine.model": "meta-llama/Llama-3.1-405B-Instruct"},
    ),
    "roles[0].queue": ("research", "write queue at the top instead", {"queue": "research"}),
    "priority_class_name": (
        "gold", "write priority_class at the top instead", {"priority_class": "gold"}
    ),
    "roles[0].engine.maxModelLen": (
        4096,
        "write --max-model-len in roles[0].engine.extra_args",
        {"roles[0].engine.extra_args": ["--max-model-len=4096"]},
    ),
    "roles[0].engine.adapters": (
        ["/adapters/sql"], "write --lora-modules in roles[0].engine.extra_args", {}
    ),
    "roles[0].cache.pvc": (
        "models", "write roles[0].cache.claim instead", {"roles[0].cache": {"claim": "models"}}
    ),
    "roles[0].hugging_face_token.secretName": (
        "hub",
        "write roles[0].hugging_face_token.name instead",
        {"roles[0].hugging_face_token": {"name": "hub"}},
    ),
    "roles[0].network.host": (
        True,
        f"write {POD}.hostNetwork instead",
        {"roles[0].overlay.spec": {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}},
    ),
    "instances": (2, "write replicas at the top instead", {"replicas": 2}),
    "metadata": ({"name": "chat"}, "write name, namespace and labels at the top instead", {}),
}  # fmt: skip


def refused(args: Args) -> list[Finding]:
    try:
        compile_serving(args)
    except SpecError as error:
        return list(error.findings)
    return []


@pytest.mark.parametrize("path", CASES)
def test_the_remedy_is_accepted_as_it_is(path: str) -> None:
    value, remedy, instead = CASES[path]
    (found,) = [f for f in refused(changed(ENGINE_RAY, {path: value})) if f.rule != "required"]
    assert (found.path, found.rule, found.remedy) == (path, "unknown-field", remedy)

    assert refused(changed(ENGINE_RAY, instead)) == []


def test_a_field_of_pods_belongs_to_the_template_if_there_is_one() -> None:
    (found,) = refused(changed(TEMPLATES_PLAIN, {"roles[0].node_selector": {"a": "b"}}))
    assert found.remedy == "write roles[0].entry_template.spec.nodeSelector instead"


def test_an_option_that_the_package_sets_is_not_named() -> None:
    (found,) = refused(changed(ENGINE_RAY, {"roles[0].engine.node_rank": 1}))
    assert "extra_args in" not in found.remedy
    assert "--node-rank" not in found.remedy


def test_a_token_is_never_sent_to_a_command_line() -> None:
    token = "hf_" + "AbCdEfGh" * 4
    (found,) = refused(changed(ENGINE_RAY, {"roles[0].engine.hf_token": token}))
    assert found.remedy == f"revoke this token, and {HUB}"
    assert token not in str(found)


def test_a_service_of_a_type_is_not_the_field_expose() -> None:
    (found,) = refused(changed(ENGINE_RAY, {"service": {"type": "LoadBalancer"}}))
    assert found.remedy == OUTSIDE


def test_without_expose_there_is_no_service_to_put_anything_before() -> None:
    args = {name: value for name, value in ENGINE_RAY.items() if name != "expose"}
    (found,) = refused({**args, "ingress": True})
    assert found.remedy == OUTSIDE.replace(
        "remove it,", "remove it, write expose: {} for a Service,"
    )


def test_the_page_that_remedies_name_is_there() -> None:
    assert (ROOT / "docs/how-to/from-outside.md").exists()
    assert (ROOT / "docs/backends.md").exists()


@pytest.mark.parametrize(
    ("path", "value", "remedy", "instead"),
    [
        ("expose", 80, "write {'port': 80}", {"port": 80}),
        ("roles[0].engine.parallelism", 16, "write {'tensor': 16}", None),
        ("roles[0].engine.parallelism", True, "write a map of fields", None),
        ("roles[0].resources.memory", 640, "write a unit, such as '640Gi'", "640Gi"),
        (
            "roles[0].engine.extra_args",
            "--max-model-len 4096",
            'write a list: ["--max-model-len", "4096"]',
            ["--max-model-len", "4096"],
        ),
        ("roles[0].engine.extra_args", "--config '{}'", "write a list", None),
        (
            "roles[0].overlay.nodeSelector",
            {"a": "b"},
            "write it in overlay.spec instead: overlay.spec.nodeSelector",
            None,
        ),
    ],
)
def test_the_value_that_is_meant(path: str, value: Any, remedy: str, instead: Any) -> None:
    (found,) = refused(changed(ENGINE_RAY, {path: value}))
    assert found.remedy.partition(";")[0] == remedy
    if instead is not None:
        assert refused(changed(ENGINE_RAY, {path: instead})) == []
