"""Conversions of servings with the objects that the package has written beside them."""

import pytest

from kthena_components.compiler.compile import compile_serving
from kthena_components.convert.conversion import SAME, Changes, Converted, Kept
from kthena_components.convert.convert import convert
from tests.support.specs import Args, changed

BESIDE = ("PodMonitor", "PrometheusRule", "ConfigMap", "PodDisruptionBudget")
BACKENDS = ["native", "kthena", "lws"]


def bodies(backend: str, **more: object) -> list[Args]:
    """Give the objects of a serving of two engines, with what was written beside it."""
    engine = {
        "kind": "vllm",
        "image": "vllm/vllm-openai:v0.25.0",
        "model": "org/model",
        "parallelism": {"tensor": 8},
    }
    role = {"name": "serve", "engine": engine, "resources": {"gpus_per_pod": 8}}
    args = {"name": "chat", "namespace": "serving", "replicas": 2, "roles": [role]}
    compiled = compile_serving({**args, "backend": backend, **more})
    return [dict(manifest.body) for manifest in compiled.manifests]


def titles(found: list[Args]) -> set[tuple[str, str]]:
    return {(body["kind"], body["metadata"]["name"]) for body in found}


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_budget_and_monitoring_are_read_back(backend: str) -> None:
    source = bodies(backend, monitoring=True, pod_disruption_budget=True)
    assert {kind for kind, _ in titles(source)} >= {"PodMonitor", "PodDisruptionBudget"}
    result = convert(source, Changes(target=SAME))
    assert result.errors == ()
    (part,) = result.parts
    assert isinstance(part, Converted)
    assert part.losses == ()
    assert (part.args["monitoring"], part.args["pod_disruption_budget"]) == (True, True)
    made = [dict(manifest.body) for manifest in part.compiled.manifests]
    assert titles(made) == titles(source)
    assert [body for body in source if body["kind"] in BESIDE and body not in made] == []


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("target", BACKENDS)
def test_another_backend_writes_its_own(backend: str, target: str) -> None:
    if backend == target:
        return
    source = bodies(backend, monitoring=True, pod_disruption_budget=True)
    none = {"recovery_policy": None} if target == "native" else {}
    result = convert(source, Changes(target=target, arguments=none))
    assert result.errors == ()
    (part,) = result.parts
    assert isinstance(part, Converted)
    made = titles([dict(manifest.body) for manifest in part.compiled.manifests])
    assert {kind for kind, _ in made} >= {"PodMonitor", "PrometheusRule", "PodDisruptionBudget"}
    assert not [loss for loss in part.losses if "/" in loss.name]


def test_a_budget_that_is_another_one_is_kept() -> None:
    source = bodies("lws", pod_disruption_budget=True)
    (index,) = (i for i, body in enumerate(source) if body["kind"] == "PodDisruptionBudget")
    source[index] = changed(source[index], {"spec.minAvailable": 0})
    result = convert(source, Changes(target=SAME))
    assert [part.body for part in result.parts if isinstance(part, Kept)] == [source[index]]


def test_a_part_of_the_monitoring_is_kept() -> None:
    source = [body for body in bodies("kthena", monitoring=True) if body["kind"] != "ConfigMap"]
    result = convert(source, Changes(target=SAME))
    kept = [part.body for part in result.parts if isinstance(part, Kept)]
    assert {kind for kind, _ in titles(list(map(dict, kept)))} >= {"PodMonitor", "PrometheusRule"}
    assert not [loss for part in result.parts for loss in part.losses]
