"""KServe: the pods that a stack has of its services, and what its rules say of them."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kthena_components.checker.manifest import read_demand, reduce_object
from kthena_components.core.values.unknown import MaybeInt, Unknown, total
from tests.rules.cases import documents
from tests.support.peers import GONE, ISVC, LATE, RUNTIME, Manifest, changed, gpus, isvc, llm
from tests.support.stacks import (
    CLAIM,
    MOUNTED,
    SECRET,
    TOKEN,
    gpus_by_facts,
    gpus_by_pods,
    pods_in,
    said_of,
    together,
)
from tests.support.strategies import damaged

P, AT = "spec/predictor", "svc.spec.predictor"
ENV = [{"name": "A", "value": "1"}, {"name": "HF_TOKEN", "valueFrom": TOKEN}]
KEY = "valueFrom.secretKeyRef.key"
NO_KEY = (
    "is 'HF_TOKEN', but the Secret 'hf' has no such key, and the container does "
    "not start without it"
)


def wide(parallelism: Manifest, **spec: Any) -> Manifest:
    """Give an LLMInferenceService whose worker is written apart from its template."""
    made: Manifest = json.loads(json.dumps(llm(parallelism, worker=True, **spec)))
    return made


SPREAD = wide({"tensor": 1, "data": 16, "dataLocal": 8})
POD = {"containers": [{"name": "main", "resources": gpus(8)}]}
BOTH = llm({"tensor": 8}, prefill={"parallelism": {"tensor": 8}, "template": POD, "replicas": 2})
PIPED = wide({"tensor": 8, "pipeline": 4}, replicas=3)
LLMS = (llm({"tensor": 8}), SPREAD, BOTH, PIPED, documents("llm-inference-service")[0])
CUSTOM = changed(ISVC, {P: {"minReplicas": 2, **POD}})
MODEL = changed(ISVC, {f"{P}/workerSpec": GONE, f"{P}/model/resources": gpus(8)})
WIDE = isvc(8, 4, 8, 8)
SERVICES = (ISVC, CUSTOM, MODEL, WIDE, isvc(8, 2), documents("inference-service")[0])


def missing_keys(service: Manifest) -> list[tuple[str, str, str]]:
    return said_of("secret-key-exists", together({"hf": SECRET, "svc": service}))


def shared_claims(service: Manifest) -> list[tuple[str, str, str]]:
    return said_of("rwx-for-shared-model", together({"weights": CLAIM, "svc": service}))


@pytest.mark.parametrize(
    ("service", "path", "at"),
    [
        (llm({"tensor": 8}), "spec/template/containers/0/env",
         "svc.spec.template.containers[0].env[1]"),
        (SPREAD, "spec/worker/containers/0/env", "svc.spec.worker.containers[0].env[1]"),
        (BOTH, "spec/prefill/template/containers/0/env",
         "svc.spec.prefill.template.containers[0].env[1]"),
        (MODEL, f"{P}/model/env", f"{AT}.model.env[1]"),
        (CUSTOM, f"{P}/containers/0/env", f"{AT}.containers[0].env[1]"),
        (WIDE, f"{P}/model/env", f"{AT}.model.env[1]"),
        (WIDE, f"{P}/workerSpec/containers/0/env", f"{AT}.workerSpec.containers[0].env[1]"),
    ],
)  # fmt: skip
def test_a_key_that_the_secret_lacks_is_told(service: Manifest, path: str, at: str) -> None:
    found = missing_keys(changed(service, {path: ENV}))
    assert found == [(f"{at}.{KEY}", "mandatory", NO_KEY)]


def test_a_container_beside_the_models_is_told_where_it_stands() -> None:
    beside = [{"name": "a"}, {"name": "transformer-container", "env": ENV}]
    for field in ("containers", "initContainers"):
        found = missing_keys(changed(MODEL, {f"{P}/{field}": beside}))
        assert found == [(f"{AT}.{field}[1].env[1].{KEY}", "mandatory", NO_KEY)]


@pytest.mark.parametrize(
    ("service", "path", "pods", "level"),
    [
        (SPREAD, "spec/worker", None, None),
        (PIPED, "spec/template", 3, "mandatory"),
        (PIPED, "spec/worker", 9, "mandatory"),
        (BOTH, "spec/template", None, None),
        (BOTH, "spec/prefill/template", 2, "advisory"),
        (CUSTOM, P, 2, "advisory"),
        (changed(MODEL, {f"{P}/minReplicas": 3}), P, 3, "advisory"),
        (MODEL, P, None, None),
        (WIDE, P, None, None),
        (WIDE, f"{P}/workerSpec", 3, "mandatory"),
    ],
)
def test_a_claim_of_one_node_is_checked_by_the_pods_that_share_it(
    service: Manifest, path: str, pods: int | None, level: str | None
) -> None:
    found = shared_claims(changed(service, {f"{path}/volumes": [{"name": "shm"}, MOUNTED]}))
    at = f"svc.{path.replace('/', '.')}.volumes[1].persistentVolumeClaim.claimName"
    told = [(at, level)] if pods else []
    assert [(path, level) for path, level, _ in found] == told
    assert all(seen.endswith(f"but {pods} pods mount it") for *_, seen in found)


@pytest.mark.parametrize(
    ("service", "paths"),
    [(SPREAD, ("spec/template", "spec/worker")), (WIDE, (P, f"{P}/workerSpec"))],
)
def test_the_pods_of_an_engine_cannot_share_a_claim_of_one_node(
    service: Manifest, paths: tuple[str, ...]
) -> None:
    found = shared_claims(changed(service, {f"{path}/volumes": [MOUNTED] for path in paths}))
    assert [level for _, level, _ in found] == ["mandatory"]


def test_pods_that_kserve_does_not_deploy_are_not_counted() -> None:
    short = changed(isvc(8, 2, 8, 4), {f"{P}/workerSpec/volumes": [MOUNTED]})
    assert [level for _, level, _ in shared_claims(short)] == ["unknown"]


@pytest.mark.parametrize(
    ("service", "counted"),
    [
        (llm({"tensor": 8}), [(1, False)]),
        (SPREAD, [(1, True), (1, True)]),
        (PIPED, [(3, True), (9, True)]),
        (wide({"tensor": 8, "pipeline": 1}), [(1, False)]),
        (BOTH, [(1, False), (2, False)]),
        (CUSTOM, [(2, False)]),
        (MODEL, [(1, False)]),
        (WIDE, [(1, True), (3, True)]),
        (isvc(8, 1, 8, 8), [(1, False)]),
        (RUNTIME, []),
    ],
)
def test_pods_are_counted(service: Manifest, counted: list[tuple[int, bool]]) -> None:
    found = pods_in(service)
    assert [(pods.count, pods.spread) for pods in found] == counted
    assert all(pods.by_controller for pods in found)


def counted(service: Manifest) -> MaybeInt:
    """Count the accelerators of a service as the budget of a stack does."""
    demand = read_demand(service)
    return total([gpus_by_pods(service), *([demand.gpus] if demand else [])])


SIZES = {"tensor": st.integers(1, 9), "pipeline": st.integers(1, 9)}


@pytest.mark.property
@settings(max_examples=150, deadline=None)
@given(st.sampled_from(LLMS), st.data())
def test_pods_have_the_accelerators_that_the_engines_have(
    service: Manifest, data: st.DataObject
) -> None:
    for at in ("spec", "spec/prefill") if "prefill" in service["spec"] else ("spec",):
        sizes = data.draw(st.fixed_dictionaries({}, optional=SIZES), label=at)
        drawn: dict[str, Any] = {f"{at}/parallelism": sizes}
        drawn[f"{at}/replicas"] = data.draw(st.integers(0, 4), label="replicas")
        drawn[f"{at}/template/containers/0/resources"] = gpus(data.draw(st.integers(0, 9)))
        service = changed(service, drawn)
    assert isinstance(counted(service), int)
    assert counted(service) == gpus_by_pods(service) == gpus_by_facts(service)
    assert gpus_by_pods(reduce_object(service)) == gpus_by_facts(service)


@pytest.mark.property
@settings(max_examples=150, deadline=None)
@given(st.sampled_from(SERVICES), st.data())
def test_the_accelerators_of_an_inference_service_are_those_that_kserve_gives(
    service: Manifest, data: st.DataObject
) -> None:
    body = data.draw(damaged(service))
    if body.get("kind") == "InferenceService" and "serving" in str(body.get("apiVersion")):
        assert gpus_by_pods(body) == 0
        assert counted(body) == gpus_by_facts(body)


@pytest.mark.parametrize(
    ("service", "path"),
    [
        (BOTH, "spec"),
        (BOTH, "spec/template"),
        (BOTH, "spec/template/containers"),
        (BOTH, "spec/template/containers/0"),
        (BOTH, "spec/template/containers/0/resources"),
        (BOTH, "spec/prefill"),
        (BOTH, "spec/prefill/replicas"),
        (SPREAD, "spec/parallelism"),
        (SPREAD, "spec/parallelism/data"),
        (SPREAD, "spec/worker"),
    ],
)
def test_what_is_not_known_yet_is_not_counted(service: Manifest, path: str) -> None:
    late = changed(service, {path: LATE})
    assert isinstance(gpus_by_facts(late), Unknown)
    assert isinstance(gpus_by_pods(late), Unknown)
    assert isinstance(gpus_by_pods(reduce_object(late)), Unknown)


@pytest.mark.parametrize(
    "service",
    [
        llm({"tensor": 8}, template=None),
        llm({"tensor": 8}, template={"containers": [{"name": "main"}]}, baseRefs=[{"name": "b"}]),
        llm({"tensor": 8}, template={"containers": [{"resources": {"claims": [{"name": "g"}]}}]}),
    ],
)
def test_accelerators_that_no_pod_spec_counts_are_open(service: Manifest) -> None:
    assert gpus_by_pods(service) == 0
    assert counted(service) == gpus_by_facts(service)
    assert isinstance(counted(service), Unknown)


@pytest.mark.parametrize(
    ("service", "at"),
    [
        (llm({"tensor": 8}), "svc.spec.template.containers[0].resources"),
        (MODEL, "svc.spec"),
        (CUSTOM, "svc.spec"),
    ],
)
def test_accelerators_that_are_not_allowed_are_told(service: Manifest, at: str) -> None:
    found = said_of("gpu-type-allowed", together({"svc": service}, gpu_types=["amd.com/gpu"]))
    assert [(path, level) for path, level, _ in found] == [(at, "mandatory")]


@pytest.mark.parametrize(
    ("service", "path"), [(MODEL, P), (WIDE, f"{P}/workerSpec"), (SPREAD, "spec/worker")]
)
def test_products_that_are_not_allowed_are_told(service: Manifest, path: str) -> None:
    selector = {f"{path}/nodeSelector": {"nvidia.com/gpu.product": "Tesla-T4"}}
    found = together({"svc": changed(service, selector)}, gpu_types=["NVIDIA-H100-80GB-HBM3"])
    ((at, _, _),) = said_of("gpu-type-allowed", found)
    assert at == f"svc.{path.replace('/', '.')}.nodeSelector.nvidia.com/gpu.product"


@pytest.mark.property
@settings(max_examples=200, deadline=None)
@given(st.sampled_from((*LLMS, *SERVICES)), st.data())
def test_what_is_held_of_a_service_says_the_same(service: Manifest, data: st.DataObject) -> None:
    places = ("spec/template", P) if "template" in service["spec"] else (P,)
    at = places[0]
    known = changed(service, {f"{at}/volumes": [MOUNTED]})
    scaler = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "s"},
        "spec": {"scaleTargetRef": {"name": "huggingface-llama3-predictor"}},
    }
    stack = {"hf": SECRET, "weights": CLAIM, "scaler": scaler}
    together({**stack, "svc": data.draw(damaged(known))}, budget=8)


def test_command_lines_and_values_are_not_held() -> None:
    own = {"image": "r:1", "args": ["--model"], "env": [{"name": "A", "value": "hidden"}]}
    services = (
        changed(MODEL, {f"{P}/model/{field}": value for field, value in own.items()}),
        changed(CUSTOM, {f"{P}/containers/0/{field}": value for field, value in own.items()}),
        changed(WIDE, {f"{P}/workerSpec/containers/0": own}),
        changed(SPREAD, {f"spec/template/containers/0/{f}": value for f, value in own.items()}),
    )
    for service in services:
        held = str(reduce_object(service))
        assert not [word for word in ("args", "command", "hidden") if word in held]


def test_containers_that_are_no_list_are_kept_as_they_are() -> None:
    for path in (f"{P}/containers", f"{P}/workerSpec/containers"):
        for odd in (1.5, "x", {"a": 1}, None):
            reduce_object(changed(WIDE, {path: odd}))
