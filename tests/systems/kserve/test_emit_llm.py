"""What an LLMInferenceService contains: the templates as they are, and empty configs."""

from typing import Any

import pytest

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.objects.object import read_object
from kthena_components.core.plan.manifest import Manifest
from kthena_components.systems.kserve.view import read_llm_service
from tests.support.specs import DATA_PARALLEL, Args, changed, gpu_template
from tests.systems.kserve.samples import LLM, SPLIT

WELL_KNOWN = "kserve-config-llm-{}-pipeline-parallel"


def emitted(args: Args, changes: Args | None = None) -> tuple[Manifest, ...]:
    """Give what is written."""
    made = compile_serving(changed(args, changes)).manifests
    return tuple(one for one in made if one.kind != "PodDisruptionBudget")


def spec_of(args: Args, changes: Args | None = None) -> Any:
    """Give the spec of the LLMInferenceService."""
    (made,) = (m for m in emitted(args, changes) if m.kind == "LLMInferenceService")
    return made.body["spec"]


def test_an_engine_is_a_template_and_a_worker_without_a_preset() -> None:
    config, service = emitted(LLM)
    assert config.name == WELL_KNOWN.format("worker")
    assert config.body["spec"] == {}
    assert config.body["metadata"]["namespace"] == "serving"
    assert (service.name, service.after) == ("chat", (config.key,))
    assert service.body["apiVersion"] == "serving.kserve.io/v1alpha2"
    spec = service.body["spec"]
    assert (spec["replicas"], spec["parallelism"]) == (2, {"tensor": 8, "pipeline": 2})
    for pod in (spec["template"], spec["worker"]):
        (container,) = pod["containers"]
        assert (container["name"], container["command"][:2]) == ("main", ["vllm", "serve"])
        assert pod["schedulerName"] == "volcano"


def test_copies_of_the_model_are_divided_over_the_pods() -> None:
    options = {**LLM["backend_options"], "replaces_presets": True}
    args = changed(DATA_PARALLEL, {"backend": "kserve", "backend_options": options})
    config, service = (m for m in emitted(args) if m.kind != "Service")
    assert config.name == "kserve-config-llm-worker-data-parallel"
    assert config.body["spec"] == {}
    spec = service.body["spec"]
    assert spec["parallelism"] == {"tensor": 2, "data": 8, "dataLocal": 4}
    view = read_llm_service(read_object(service.body))
    assert [workload.pods for workload in view.workloads] == [2]


def test_the_configs_may_belong_to_another_serving_of_the_namespace() -> None:
    (service,) = emitted(LLM, {"backend_options.write_configs": False})
    assert (service.kind, service.after) == ("LLMInferenceService", ())


def test_prefill_is_a_part_of_the_same_object() -> None:
    *configs, service = (m for m in emitted(SPLIT) if m.kind != "Service")
    names = [WELL_KNOWN.format(part) for part in ("decode-worker", "prefill-worker")]
    assert [config.name for config in configs] == names
    spec = service.body["spec"]
    assert (spec["replicas"], spec["prefill"]["replicas"]) == (1, 2)
    assert (spec["parallelism"]["pipeline"], spec["prefill"]["parallelism"]["pipeline"]) == (3, 4)
    role = "modelserving.volcano.sh/role"
    assert (spec["labels"][role], spec["prefill"]["labels"][role]) == ("decode", "prefill")


def test_kserve_counts_the_planned_pods() -> None:
    *_, service = (m for m in emitted(SPLIT) if m.kind != "Service")
    view = read_llm_service(read_object(service.body))
    assert [workload.pods for workload in view.workloads] == [3, 4]


@pytest.mark.parametrize(("role", "part"), [("decode", "leader"), ("prefill", "leader-prefill")])
def test_the_front_service_finds_the_leaders_of_its_role(role: str, part: str) -> None:
    *_, front = emitted(SPLIT, {"expose": {"role": role}})
    assert front.body["spec"]["selector"] == {
        "app.kubernetes.io/name": "split",
        "app.kubernetes.io/component": f"llminferenceservice-workload-{part}",
    }


def test_a_model_of_a_hub_is_named_and_loaded_by_the_engine() -> None:
    spec = spec_of(LLM)
    assert spec["model"] == {"uri": "hf://meta-llama/Llama-3.1-405B-Instruct"}
    assert spec["storageInitializer"] == {"enabled": False}


def test_a_model_of_a_volume_is_mounted_by_kserve() -> None:
    spec = spec_of(LLM, {"backend_options.storage_uri": "pvc://llama/hf"})
    assert spec["model"] == {"uri": "pvc://llama/hf"}
    assert "storageInitializer" not in spec


def test_kthenas_variables_refer_to_those_of_leader_worker_set() -> None:
    env = spec_of(LLM)["worker"]["containers"][0]["env"]
    assert {"name": "ENTRY_ADDRESS", "value": "$(LWS_LEADER_ADDRESS)"} in env
    assert {"name": "WORKER_INDEX", "value": "$(LWS_WORKER_INDEX)"} in env
    assert "GROUP_SIZE" not in [item["name"] for item in env]


def test_another_number_of_pods_replaces_the_object() -> None:
    *_, service = emitted(LLM)
    assert "spec.parallelism.pipeline" in service.replace_on
    assert service.delete_first


def test_pods_of_an_unknown_command_are_counted_from_the_plan() -> None:
    pods = {"entry_template": gpu_template("serve-it"), "worker_template": gpu_template("join-it")}
    role = {"name": "decode", "worker_replicas": 2, **pods}
    option = {"backend_options.storage_uri": "pvc://llama/hf"}
    spec = spec_of(LLM, {"roles[0]": role, **option})
    assert spec["parallelism"] == {"tensor": 8, "pipeline": 3}
