"""How objects of KServe are described that the backend does not write like this."""

from typing import Any

import pytest

from kthena_components.convert.conversion import SAME, Changes, Conversion
from kthena_components.convert.convert import convert
from kthena_components.core.values.read import group_kind

GROUP = "serving.kserve.io"
HEAD = "huggingfaceserver --model_name={{.Name}} --tensor-parallel-size=${TENSOR_PARALLEL_SIZE}"
WORKER = "ray start --address=${HEAD_SVC}:6379 --block"
GPU = {"nvidia.com/gpu": "1"}
PORTS = [{"containerPort": 8080}]
PLAIN = {
    "name": "kserve-container",
    "image": "nginx:1.29",
    "ports": PORTS,
    "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
}


def service(predictor: dict[str, Any], **annotations: str) -> dict[str, Any]:
    own = {f"{GROUP}/deploymentMode": "Standard", f"{GROUP}/autoscalerClass": "none"}
    return {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "hf-llama3", "annotations": {**own, **annotations}},
        "spec": {"predictor": predictor},
    }


def of_runtime(**worker: Any) -> dict[str, Any]:
    """Give an InferenceService of the guide, whose pods are those of a runtime."""
    model = {
        "modelFormat": {"name": "huggingface"},
        "runtime": "multinode",
        "storageUri": "pvc://llama/hf",
    }
    sizes = {"pipelineParallelSize": 2, "tensorParallelSize": 1}
    return service({"model": model, "workerSpec": {**sizes, **worker}})


def runtime(kind: str = "ClusterServingRuntime", **metadata: Any) -> dict[str, Any]:
    volumes = [{"name": "shm", "emptyDir": {"medium": "Memory"}}]
    head, worker = (
        {"name": name, "image": "huggingfaceserver:1", "command": ["bash", "-c", script]}
        for name, script in (("kserve-container", HEAD), ("worker-container", WORKER))
    )
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": kind,
        "metadata": {"name": "multinode", **metadata},
        "spec": {
            "supportedModelFormats": [{"name": "huggingface", "autoSelect": True}],
            "annotations": {"prometheus.kserve.io/port": "8080"},
            "containers": [{**head, "ports": PORTS}],
            "volumes": volumes,
            "workerSpec": {"containers": [worker], "volumes": volumes},
        },
    }


def run(*objects: dict[str, Any], target: str = SAME) -> Conversion:
    return convert(list(objects), Changes(target=target))


def losses(found: Conversion) -> list[str]:
    assert found.errors == ()
    return [str(loss) for serving in found.servings for loss in serving.losses]


def refusal(found: Conversion) -> str:
    (error,) = found.errors
    return str(error)


@pytest.mark.parametrize("kind", ["ClusterServingRuntime", "ServingRuntime"])
def test_a_service_has_the_pods_of_its_runtime(kind: str) -> None:
    found = run(runtime(kind), of_runtime())
    assert losses(found) == []
    (serving,) = found.servings
    (role,) = serving.args["roles"]
    assert (serving.args["name"], role["name"], role["worker_replicas"]) == ("hf", "llama3", 1)
    (head,) = role["entry_template"]["spec"]["containers"]
    assert head["command"][-1] == HEAD.replace("{{.Name}}", "hf-llama3")
    # KServe gives one GPU to each pod of a runtime that requests none.
    assert head["resources"]["limits"] == GPU
    assert role["worker_template"]["spec"]["containers"][0]["resources"]["limits"] == GPU
    assert f"includes {kind} multinode" in serving.notes
    assert len(found.parts) == 1


def test_a_container_of_the_service_is_merged_into_that_of_the_runtime() -> None:
    requests = {"resources": {"limits": {"nvidia.com/gpu": 2}, "requests": {"nvidia.com/gpu": 2}}}
    body = of_runtime(tensorParallelSize=2, containers=[{"name": "worker-container", **requests}])
    body["spec"]["predictor"]["model"] |= requests
    found = run(body, runtime())
    assert losses(found) == []
    (role,) = found.servings[0].args["roles"]
    (worker,) = role["worker_template"]["spec"]["containers"]
    assert (worker["command"][-1], worker["resources"]) == (WORKER, requests["resources"])


def test_a_runtime_that_is_not_among_the_files_is_asked_for() -> None:
    assert "spec.predictor.model.runtime: is 'multinode', which is not among the files" in refusal(
        run(of_runtime())
    )
    body = of_runtime()
    del body["spec"]["predictor"]["model"]["runtime"]
    old = service({"tensorflow": {"storageUri": "gs://models/flowers"}})
    assert "spec.predictor.model.runtime: is missing" in refusal(run(old))
    assert "spec.predictor.model.runtime: is missing, so the pods are not known" in refusal(
        run(body)
    )


def test_variables_that_only_kserve_sets_are_refused_elsewhere() -> None:
    text = refusal(run(of_runtime(), runtime(), target="kthena"))
    assert "roles[0].entry_template: uses TENSOR_PARALLEL_SIZE, which only KServe sets" in text
    assert "roles[0].worker_template: uses HEAD_SVC, which only KServe sets" in text


def test_single_pods_keep_their_budget_and_say_what_kserve_alone_has() -> None:
    predictor = {
        "minReplicas": 4,
        "maxReplicas": 8,
        "timeout": 60,
        "deploymentStrategy": {"rollingUpdate": {"maxSurge": "50%"}},
        "containers": [PLAIN],
    }
    found = run(service(predictor))
    assert losses(found) == [
        "spec.predictor.maxReplicas: is not kept",
        "spec.predictor.timeout: is not kept",
    ]
    # A Deployment may lack a quarter of its pods by default.
    assert found.servings[0].args["rollout_strategy"] == {
        "rolling_update_configuration": {"max_unavailable": 1, "max_surge": 2}
    }


def test_a_strategy_that_is_not_stated_is_added() -> None:
    (serving,) = run(service({"containers": [PLAIN]})).servings
    assert "rollout_strategy" not in serving.args
    assert "adds spec.predictor.deploymentStrategy" in serving.notes


def test_a_model_that_kserve_mounts_is_a_loss_elsewhere() -> None:
    env = [{"name": "STORAGE_URI", "value": "pvc://llama/hf"}]
    body = service({"containers": [{**PLAIN, "env": env}]})
    assert losses(run(body)) == []
    assert (
        "backend_options.storage_uri: is not kept (spec.predictor.containers[0].env[0] of the "
        "object): kthena has no such option"
    ) in losses(run(body, target="kthena"))


def llm(workload: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/v1alpha2",
        "kind": "LLMInferenceService",
        "metadata": {"name": "chat"},
        "spec": {"model": {"uri": "pvc://llama/hf"}, **workload, **fields},
    }


def pods(**sizes: int) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "vllm/vllm-openai:v0.11.1",
        "command": ["serve-it"],
        "resources": {"limits": {"nvidia.com/gpu": "8"}, "requests": {"nvidia.com/gpu": "8"}},
    }
    pod = {"containers": [container]}
    return {"replicas": 2, "parallelism": {"tensor": 8, **sizes}, "template": pod, "worker": pod}


def config(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/v1alpha2",
        "kind": "LLMInferenceServiceConfig",
        "metadata": {"name": f"kserve-config-llm-{name}-parallel"},
        "spec": spec,
    }


def test_a_pipeline_has_its_own_pods() -> None:
    found = run(llm(pods(pipeline=2)))
    assert losses(found) == []
    args = found.servings[0].args
    assert (args["replicas"], args["roles"][0]["worker_replicas"]) == (2, 1)
    assert args["backend_options"]["write_configs"] is False


def test_data_parallelism_needs_the_config_of_the_namespace() -> None:
    body = llm(pods(data=16, dataLocal=8))
    assert "spec.template: is completed by a preset of KServe" in refusal(run(body))
    found = run(body, config("worker-data", {"template": {"hostIPC": True}}))
    (serving,) = found.servings
    assert serving.args["roles"][0]["entry_template"]["spec"]["hostIPC"] is True
    assert serving.args["backend_options"]["replaces_presets"] is True


def test_prefill_is_a_role_beside_decode() -> None:
    found = run(llm(pods(pipeline=2), prefill=pods(pipeline=3)))
    assert losses(found) == []
    roles = found.servings[0].args["roles"]
    assert [(role["name"], role["replicas"], role["worker_replicas"]) for role in roles] == [
        ("decode", 2, 1),
        ("prefill", 2, 2),
    ]


def test_pods_of_kserve_s_presets_are_not_known() -> None:
    text = refusal(run(llm({"parallelism": {"tensor": 8, "pipeline": 2}, "worker": {}})))
    assert "is completed by a preset of KServe, so its pods are not known" in text


def test_a_runtime_that_no_service_uses_is_not_kept_in_silence() -> None:
    found = run(runtime("ServingRuntime"))
    assert "kind: is ServingRuntime: an InferenceService gets its pods from it" in refusal(found)
    assert [group_kind(part.source) for part in found.parts] == []
