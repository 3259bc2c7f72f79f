"""What an InferenceService contains: one engine of several pods, or single pods."""

from typing import Any

import pytest

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.objects.object import read_object
from kthena_components.systems.kserve.nodes import RayNodes
from kthena_components.systems.kserve.templates import OWN_ENV
from kthena_components.systems.kserve.view import read_service
from tests.support.specs import Args, changed, gpu_template
from tests.systems.kserve.samples import ENGINE, PORTS, RAY, SINGLE, UPDATE


def bodies(args: Args, changes: Args | None = None) -> list[Any]:
    """Give the emitted objects."""
    return [manifest.body for manifest in compile_serving(changed(args, changes)).manifests]


def predictor_of(args: Args, changes: Args | None = None) -> Args:
    """Give the predictor of the InferenceService."""
    (service,) = (b for b in bodies(args, changes) if b["kind"] == "InferenceService")
    predictor: Args = service["spec"]["predictor"]
    return predictor


def env_of(container: Args) -> Args:
    """Give the variables of a container by name, with their values or sources."""
    return {item["name"]: item.get("value", item.get("valueFrom")) for item in container["env"]}


def test_single_pods_are_the_predictors_own_containers() -> None:
    (service,) = bodies(SINGLE)
    annotations = service["metadata"]["annotations"]
    assert service["metadata"]["name"] == "small-server"
    assert annotations["serving.kserve.io/autoscalerClass"] == "none"
    assert annotations["serving.kserve.io/deploymentMode"] == "Standard"
    predictor = service["spec"]["predictor"]
    (container,) = predictor["containers"]
    assert (container["name"], container["command"][:2]) == ("kserve-container", ["vllm", "serve"])
    assert not {"model", "workerSpec"}.intersection(predictor)
    assert container["readinessProbe"]["httpGet"] == {"path": "/health", "port": 8080}


@pytest.mark.parametrize(("groups", "engines", "pods"), [(0, 1, 0), (1, 0, 0), (3, 2, 6)])
def test_all_engines_of_all_groups_are_replicas(groups: int, engines: int, pods: int) -> None:
    changes = {"replicas": groups, "roles[0].replicas": engines}
    assert predictor_of(SINGLE, changes)["minReplicas"] == pods


@pytest.mark.parametrize(
    ("engines", "stated", "down", "up"),
    [
        (2, None, 1, 0),
        (2, {"max_unavailable": 2}, 4, 0),
        (1, {"max_unavailable": "50%"}, 2, 0),
        (2, {"max_unavailable": 0, "max_surge": "25%"}, 0, 2),
        (3, {"max_surge": 1}, 3, 3),
    ],
)
def test_a_budget_of_groups_is_written_in_pods(
    engines: int, stated: Args | None, down: int, up: int
) -> None:
    changes: Args = {"replicas": 4, "roles[0].replicas": engines}
    strategy = predictor_of(SINGLE, {**changes, **({UPDATE: stated} if stated else {})})
    assert strategy["deploymentStrategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": down, "maxSurge": up},
    }


def test_a_model_of_single_pods_is_a_variable_that_kserve_reads() -> None:
    option = {"backend_options": {"storage_uri": "pvc://llama/hf"}}
    (container,) = predictor_of(SINGLE, option)["containers"]
    assert container["env"] == [{"name": "STORAGE_URI", "value": "pvc://llama/hf"}]


def test_an_engine_of_several_pods_has_a_runtime_of_its_own() -> None:
    made = compile_serving(ENGINE).manifests
    assert [m.key for m in made] == ["ServingRuntime/chat-decode", "InferenceService/chat-decode"]
    runtime, service = made
    assert service.after == (runtime.key,)
    spec = runtime.body["spec"]
    assert spec["containers"] == [{"name": "kserve-container"}]
    assert spec["workerSpec"]["containers"] == [{"name": "worker-container"}]
    assert spec["supportedModelFormats"] == [{"name": "huggingface", "autoSelect": False}]
    model = service.body["spec"]["predictor"]["model"]
    assert (model["runtime"], model["storageUri"]) == ("chat-decode", "pvc://llama/hf")
    assert model["modelFormat"] == {"name": "huggingface"}
    assert "name" not in model


def test_only_the_head_is_an_entry() -> None:
    runtime, service = bodies(ENGINE)
    entry = "modelserving.volcano.sh/entry"
    assert runtime["spec"]["labels"][entry] == "true"
    assert entry not in runtime["spec"]["workerSpec"]["labels"]
    assert entry not in service["spec"]["predictor"]["labels"]


@pytest.mark.parametrize("pods", [2, 3, 5])
@pytest.mark.parametrize("gpus", [1, 4, 8])
def test_kserve_calculates_the_planned_pods(pods: int, gpus: int) -> None:
    sizes = {"roles[0].resources.gpus_per_pod": gpus, "roles[0].worker_replicas": pods - 1}
    parallelism = {"roles[0].engine.parallelism": {"tensor": gpus, "pipeline": pods}}
    small = {"roles[0].engine.model": "meta-llama/Llama-3.1-8B-Instruct"}
    _, service = bodies(RAY, {**sizes, **parallelism, **small})
    many = read_service(read_object(service)).many
    assert many is not None
    assert many.nodes == RayNodes(pods=pods, worker_gpus=gpus, head_gpus=gpus)
    assert (many.tensor, many.pipeline) == (gpus, pods)
    predictor = service["spec"]["predictor"]
    for container in (predictor["model"], *predictor["workerSpec"]["containers"]):
        for kind in ("requests", "limits"):
            assert container["resources"][kind]["nvidia.com/gpu"] == str(gpus)


def test_the_heads_address_is_its_own_and_workers_get_kserves() -> None:
    predictor = predictor_of(ENGINE)
    head, (worker,) = predictor["model"], predictor["workerSpec"]["containers"]
    own = {"fieldRef": {"fieldPath": "status.podIP"}}
    assert env_of(head)["ENTRY_ADDRESS"] == own
    assert env_of(head)["WORKER_INDEX"] == "0"
    names = [item["name"] for item in worker["env"]]
    # KServe sets the value where the variable is, and Kubernetes expands earlier ones only.
    assert names.index("HEAD_SVC") < names.index("ENTRY_ADDRESS")
    assert env_of(worker)["ENTRY_ADDRESS"] == "$(HEAD_SVC)"
    assert env_of(worker)["WORKER_INDEX"] == "1"


def test_only_used_variables_are_written() -> None:
    predictor = predictor_of(RAY)
    head, (worker,) = predictor["model"], predictor["workerSpec"]["containers"]
    assert set(env_of(head)) == {"HF_TOKEN"}
    assert set(env_of(worker)) == {"HEAD_SVC", "ENTRY_ADDRESS", "HF_TOKEN"}
    assert not set(env_of(head)).intersection(OWN_ENV)


def test_a_template_for_leader_worker_set_runs_unchanged() -> None:
    head = gpu_template("bash run.sh leader $(LWS_GROUP_SIZE)", ports=PORTS)
    worker = gpu_template("bash run.sh worker $(LWS_LEADER_ADDRESS)")
    pods = {"entry_template": head, "worker_template": worker}
    role = {"name": "decode", "worker_replicas": 2, **pods}
    predictor = predictor_of(ENGINE, {"roles[0]": role})
    assert env_of(predictor["model"]) == {"LWS_GROUP_SIZE": "3"}
    (made,) = predictor["workerSpec"]["containers"]
    assert env_of(made) == {"HEAD_SVC": "", "LWS_LEADER_ADDRESS": "$(HEAD_SVC)"}


@pytest.mark.parametrize(
    ("update", "strategy"),
    [
        (None, {"type": "Recreate"}),
        ({"max_unavailable": 1}, {"type": "Recreate"}),
        (
            {"max_unavailable": 0, "max_surge": 1},
            {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
        ),
    ],
)
def test_an_engine_is_replaced_without_free_gpus_unless_a_surge_has_some(
    update: Args | None, strategy: Args
) -> None:
    changes = {} if update is None else {UPDATE: update}
    assert predictor_of(ENGINE, changes)["deploymentStrategy"] == strategy


def test_a_changed_template_changes_the_labels_of_all_pods() -> None:
    before = predictor_of(ENGINE)["labels"]
    other = {"roles[0].overlay": {"metadata": {"annotations": {"a": "b"}}}}
    assert predictor_of(ENGINE, other)["labels"] != before


def test_the_engines_container_comes_first_with_its_sidecars_after_it() -> None:
    command = "vllm serve m --tensor-parallel-size 8 --pipeline-parallel-size 2"
    head = gpu_template(command, ports=PORTS)
    head["spec"]["containers"].insert(0, {"name": "log", "image": "a:1"})
    pods = {"entry_template": head, "worker_template": gpu_template("ray start")}
    predictor = predictor_of(ENGINE, {"roles[0]": {"name": "d", "worker_replicas": 1, **pods}})
    assert predictor["containers"] == [{"name": "log", "image": "a:1"}]
    assert predictor["model"]["command"][:2] == ["sh", "-c"]


def test_pods_are_scheduled_as_stated() -> None:
    predictor = predictor_of(ENGINE, {"scheduler_name": "default-scheduler"})
    assert predictor["schedulerName"] == "default-scheduler"
    assert predictor["workerSpec"]["schedulerName"] == "default-scheduler"
