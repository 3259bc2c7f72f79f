"""Unknown fields that have another name or place: the remedy, applied literally, is accepted."""

from typing import Any

import pytest

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import Finding, SpecError
from tests.support.specs import ENGINE_RAY, TEMPLATES_PLAIN, Args, changed

ROLE, POD = "roles[0]", "roles[0].overlay.spec"
TENSOR = "roles[0].engine.parallelism.tensor"
GPUS = "roles[0].resources.gpus_per_pod"
ENV = [{"name": "A", "value": "b"}]
OVERLAID: Args = {"roles[0].overlay": {"spec": {"containers": [{"name": "engine", "env": ENV}]}}}
H100 = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
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
        "write roles[0].engine.image instead",
        {"roles[0].engine.image": "vllm/vllm-openai:v0.17.0"},
    ),
    "groups": (2, "write replicas at the top instead", {"replicas": 2}),
    "service": ({}, "write expose at the top instead", {"expose": {}}),
    "expose.type": (
        "LoadBalancer",
        "remove it; known: port, role, target_port",
        {"expose": {}},
    ),
    "expose.host": ("chat.ai", "remove it; known: port, role, target_port", {"expose": {}}),
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
    (found,) = refused(changed(ENGINE_RAY, {path: value}))
    assert (found.path, found.rule, found.remedy) == (path, "unknown-field", remedy)

    assert refused(changed(ENGINE_RAY, instead)) == []


def test_a_field_of_pods_belongs_to_the_template_if_there_is_one() -> None:
    (found,) = refused(changed(TEMPLATES_PLAIN, {"roles[0].node_selector": {"a": "b"}}))
    assert found.remedy == "write roles[0].entry_template.spec.nodeSelector instead"


def test_an_option_that_the_package_sets_is_not_named() -> None:
    (found,) = refused(changed(ENGINE_RAY, {"roles[0].engine.node_rank": 1}))
    assert "extra_args in" not in found.remedy
    assert "--node-rank" not in found.remedy
