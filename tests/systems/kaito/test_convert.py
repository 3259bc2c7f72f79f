"""How Workspaces and InferenceSets are described that the backend does not write like this."""

from typing import Any

from kthena_components.convert.conversion import SAME, Changes, Conversion, Kept
from kthena_components.convert.convert import convert
from kthena_components.core.values.read import name_of
from kthena_components.systems.kaito.convert import merged

CONFIG = "vllm:\n  gpu-memory-utilization: 0.95\n  max-model-len: 131072\n"
POD = {"spec": {"containers": [{"name": "app", "image": "nginx:1.29"}]}}


def workspace(
    inference: dict[str, Any], name: str = "big-llama", version: str = "v1beta1", **resource: Any
) -> dict[str, Any]:
    nodes = {"instanceType": "Standard_NC80adis_H100_v5", "count": 2}
    selector = {"labelSelector": {"matchLabels": {"apps": "llama"}}}
    return {
        "apiVersion": f"kaito.sh/{version}",
        "kind": "Workspace",
        "metadata": {"name": name},
        "resource": {**nodes, **selector, **resource},
        "inference": inference,
    }


def preset(**inference: Any) -> dict[str, Any]:
    return {"preset": {"name": "llama-3.3-70b-instruct"}, **inference}


def config_map(name: str = "flags", text: str = CONFIG, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **metadata},
        "data": {"inference_config.yaml": text},
    }


def run(*objects: dict[str, Any], target: str = SAME, **arguments: Any) -> Conversion:
    return convert(list(objects), Changes(target=target, arguments=arguments))


def losses(found: Conversion) -> list[str]:
    assert found.errors == ()
    return [str(loss) for serving in found.servings for loss in serving.losses]


def test_a_preset_is_described_with_its_config_and_the_nodes_that_kaito_chooses() -> None:
    found = run(config_map(), workspace(preset(config="flags")))
    assert losses(found) == []
    (serving,) = found.servings
    (role,) = serving.args["roles"]
    assert (serving.args["name"], role["name"]) == ("big", "llama")
    assert role["engine"]["extra_args"] == [
        "--gpu-memory-utilization=0.95",
        "--max-model-len=131072",
    ]
    # Requests of 131,072 tokens need two nodes of two H100.
    assert role["engine"]["parallelism"] == {"tensor": 2, "pipeline": 2}
    assert (role["worker_replicas"], role["resources"]) == (1, {"gpus_per_pod": 2})
    assert serving.notes == ("includes ConfigMap flags",)
    assert len(found.parts) == 1


def test_a_count_that_kaito_does_not_start_is_a_loss() -> None:
    found = run(workspace(preset()))
    assert losses(found) == ["resource.count: 2 becomes 1"]


def test_a_config_that_is_not_in_the_files_is_a_loss() -> None:
    found = run(config_map(namespace="elsewhere"), workspace(preset(config="flags"), count=1))
    assert losses(found) == ["inference.config.name: is not kept"]
    (kept,) = (part for part in found.parts if isinstance(part, Kept))
    assert name_of(kept.body) == "flags"


def test_what_no_option_says_about_the_config_is_lost_by_its_path() -> None:
    text = "max_probe_steps: 6\nvllm:\n  cpu-offload-gb: 0\n"
    found = run(
        config_map(text=text, labels={"team": "chat"}), workspace(preset(config="flags"), count=1)
    )
    assert losses(found) == [
        "inference.config.metadata.labels.team: is not kept",
        "inference.config.data.inference_config.yaml.max_probe_steps: is not kept",
    ]


def test_servings_may_share_a_config() -> None:
    both = [workspace(preset(config="flags"), name) for name in ("big-llama", "other-llama")]
    found = run(*both, config_map())
    assert losses(found) == []
    assert len(found.parts) == len(both)


def test_preferred_nodes_are_lost() -> None:
    found = run(workspace(preset(), count=1, preferredNodes=["node-1"]))
    assert losses(found) == ["resource.preferredNodes: is not kept"]


def test_an_older_version_is_read_with_its_default_instance_type() -> None:
    body = workspace({"template": POD}, version="v1alpha1", count=1)
    del body["resource"]["instanceType"]
    found = run(body)
    assert losses(found) == ["apiVersion: 'kaito.sh/v1alpha1' becomes 'kaito.sh/v1beta1'"]
    assert found.servings[0].args["backend_options"]["instance_type"] == "Standard_NC24ads_A100_v4"


def test_an_inference_set_of_one_engine_stays_one() -> None:
    body = {
        "apiVersion": "kaito.sh/v1beta1",
        "kind": "InferenceSet",
        "metadata": {"name": "small-phi"},
        "spec": {
            "replicas": 1,
            "labelSelector": {"matchLabels": {"apps": "phi"}},
            "template": {
                "resource": {"instanceType": "Standard_NC24ads_A100_v4"},
                "inference": {"template": POD},
            },
        },
    }
    assert losses(run(body)) == []
    made = run(body).servings[0].compiled.manifests[0].body
    assert (made["kind"], made["spec"]["replicas"]) == ("InferenceSet", 1)
    assert {loss.partition(":")[0] for loss in losses(run(body, target="kthena"))} == {
        "backend_options.instance_type",
        "backend_options.label_selector",
    }


def test_an_unknown_preset_is_refused_by_the_backend() -> None:
    (error,) = run(workspace({"preset": {"name": "lama-3"}})).errors
    assert "backend_options.preset: is 'lama-3', which is neither" in str(error)


def test_another_backend_gets_vllm_s_own_image_and_kaito_s_share_of_memory() -> None:
    found = run(config_map(text="vllm: {}"), workspace(preset(config="flags")), target="kthena")
    assert [text.partition(":")[0] for text in losses(found)] == [
        "resource.count",
        "backend_options.preset",
        "backend_options.instance_type",
        "backend_options.label_selector",
    ]
    body = found.servings[0].compiled.manifests[0].body
    (container,) = body["spec"]["template"]["roles"][0]["entryTemplate"]["spec"]["containers"]
    assert container["image"] == "vllm/vllm-openai:v0.22.1"
    assert "--gpu-memory-utilization=0.84" in container["command"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "2"


def test_a_share_of_memory_that_is_stated_stays() -> None:
    found = run(config_map(), workspace(preset(config="flags")), target="native")
    engine = found.servings[0].args["roles"][0]["engine"]
    assert engine["extra_args"] == ["--gpu-memory-utilization=0.95", "--max-model-len=131072"]


def test_a_service_of_the_first_pods_selects_those_of_the_new_controller() -> None:
    selector = {"kaito.sh/workspace": "big-llama", "apps.kubernetes.io/pod-index": "0"}
    front = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "front"},
        "spec": {"selector": selector, "ports": [{"port": 80}]},
    }
    found = run(workspace({"template": POD}, count=1), front, target="kthena")
    (kept,) = (part for part in found.parts if isinstance(part, Kept))
    assert kept.losses == ()
    assert kept.body["spec"]["selector"] == {
        "modelserving.volcano.sh/name": "big-llama",
        "modelserving.volcano.sh/entry": "true",
    }


def test_a_workspace_that_tunes_is_no_serving() -> None:
    body = workspace({})
    del body["inference"]
    body["tuning"] = {"preset": {"name": "phi-3-mini-4k-instruct"}}
    (error,) = run(body).errors
    assert "tuning: is given, but a Workspace that tunes a model serves none" in str(error)


def test_a_namespace_that_is_no_text_is_another_namespace() -> None:
    body = {"kind": "Workspace", "inference": {"config": "c"}}
    odd = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": [None]}}
    assert merged(body, [odd])[1] == ()
