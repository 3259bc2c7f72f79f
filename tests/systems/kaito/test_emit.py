"""What a Workspace and an InferenceSet say of a serving, beside the emitters' laws."""

from typing import Any

import pytest
import yaml

from kthena_components.checker.check_cluster_objects import check_objects_together
from kthena_components.checker.manifest import check_manifest
from kthena_components.compiler.compile import compile_serving
from kthena_components.core.facts.context import Context, gather
from kthena_components.core.plan.manifest import WAIT_FOR, Manifest
from kthena_components.systems import find_emitter
from tests.support.draw_kaito import SPLITS, Split, preset_role
from tests.support.for_each import for_each
from tests.support.specs import Args, changed, example_for

PRESET = changed(example_for("kaito", "engine-native"), {"replicas": 1})
"""One engine of two nodes with 8 GPUs each."""
SET = changed(PRESET, {"replicas": 3, "roles[0].replicas": 2})
TEMPLATE = example_for("kaito", "native-8b")
OPTION, ENGINE = "backend_options", "roles[0].engine"
PRODUCT = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}


def emitted(args: Args, changes: dict[str, Any] | None = None) -> dict[str, Manifest]:
    """Give what is written for a serving, by kind."""
    return {m.kind: m for m in compile_serving(changed(args, changes)).manifests}


def config_of(changes: dict[str, Any]) -> Any:
    """Give the content of the ConfigMap of a preset."""
    text = emitted(PRESET, changes)["ConfigMap"].body["data"]["inference_config.yaml"]
    return yaml.safe_load(text)


def test_what_may_be_scaled_is_a_set_that_keeps_its_number() -> None:
    made = emitted(PRESET, {"autoscaled": True})["InferenceSet"]
    assert made.ignore == ("spec.replicas",)
    assert made.body["spec"]["replicas"] == 1
    assert made.body["metadata"]["annotations"][WAIT_FOR] == "condition=InferenceSetReady"
    assert emitted(SET)["InferenceSet"].ignore == ()


def test_one_engine_is_a_workspace() -> None:
    made = emitted(PRESET)["Workspace"].body
    assert made["resource"] == {
        "count": 2,
        "instanceType": "Standard_ND96isr_H100_v5",
        "labelSelector": {"matchLabels": {"apps": "chat"}},
    }
    assert made["inference"]["preset"] == {
        "name": "meta-llama/Llama-3.1-405B-Instruct",
        "presetOptions": {"modelAccessSecret": "hf-token"},
    }


def test_several_engines_are_an_inference_set() -> None:
    spec = emitted(SET)["InferenceSet"].body["spec"]
    assert spec["replicas"] == 6
    assert spec["labelSelector"] == {"matchLabels": {"apps": "chat"}}
    assert spec["template"]["resource"] == {"instanceType": "Standard_ND96isr_H100_v5"}
    assert spec["template"]["inference"] == emitted(PRESET)["Workspace"].body["inference"]


@pytest.mark.parametrize("args", [PRESET, SET], ids=["one", "several"])
def test_existing_nodes_have_no_instance_type(args: Args) -> None:
    options = {"preset": args[OPTION]["preset"], "label_selector": {**PRODUCT, "team": "chat"}}
    made = emitted(args, {OPTION: options})["Workspace" if args is PRESET else "InferenceSet"].body
    holder = made["resource"] if args is PRESET else made["spec"]
    labels = {"nvidia.com/gpu.count": "8", **PRODUCT, "team": "chat"}
    assert holder["labelSelector"] == {"matchLabels": labels}
    if args is PRESET:
        assert "instanceType" not in holder
    else:
        assert holder["template"]["resource"] == {"instanceType": ""}


def test_the_flags_are_in_the_config_map_that_the_preset_names() -> None:
    transfer = '{"kv_connector": "NixlConnector", "kv_role": "kv_both"}'
    words = [
        "--max_model_len=8192",
        "--kv-transfer-config",
        transfer,
        "--seed",
        "-1",
        "--revision=1e3",
    ]
    assert config_of({f"{ENGINE}.extra_args": words}) == {
        "vllm": {
            "max-model-len": 8192,
            "kv-transfer-config": transfer,
            "seed": "-1",
            "revision": "1e3",
        }
    }
    made = emitted(PRESET, {f"{ENGINE}.extra_args": words})
    config, workspace = made["ConfigMap"], made["Workspace"]
    assert workspace.body["inference"]["config"] == config.name
    assert workspace.after == (config.key,)


def test_an_abbreviated_flag_is_written_in_full() -> None:
    assert config_of({f"{ENGINE}.extra_args": ["--max-model", "8192"]}) == {
        "vllm": {"max-model-len": 8192}
    }


def test_other_flags_are_another_config_map() -> None:
    names = {
        emitted(PRESET, {f"{ENGINE}.extra_args": words})["ConfigMap"].name
        for words in ([], ["--seed=1"], ["--seed=2"], ["--seed", "2"])
    }
    assert len(names) == 3


def test_a_preset_without_flags_has_a_config_map_too() -> None:
    assert config_of({}) == {"vllm": {}}


def test_the_options_reach_the_workspace() -> None:
    one = Split("Qwen/Qwen3-32B", "Qwen/Qwen3-32B", "p5.48xlarge", "", 8, 1, {"tensor": 8})
    adapters = {"sql": {"image": "org/sql:1", "pull_secrets": ["key"]}}
    options = {
        "preset": one.preset,
        "instance_type": one.nodes,
        "label_selector": {"team": "chat"},
        "adapters": adapters,
        "benchmark": False,
        "kv_cache_cpu_memory_utilization": 0.25,
    }
    made = emitted(PRESET, {"roles": [preset_role("serve", one)], OPTION: options})
    workspace = made["Workspace"].body
    source = {"name": "sql", "image": "org/sql:1", "imagePullSecrets": ["key"]}
    assert workspace["inference"]["adapters"] == [{"source": source}]
    assert workspace["metadata"]["annotations"]["kaito.sh/disable-benchmark"] == "true"
    assert workspace["resource"]["labelSelector"] == {"matchLabels": {"team": "chat"}}
    text = made["ConfigMap"].body["data"]["inference_config.yaml"]
    assert text == "kv_cache_cpu_memory_utilization: 0.25\nvllm: {}\n"


def test_a_template_keeps_its_pods() -> None:
    changes = {"queue": "research", f"{OPTION}.label_selector": {"team": "chat"}}
    made = emitted(TEMPLATE, changes)
    assert set(made) == {"Workspace"}
    template = made["Workspace"].body["inference"]["template"]
    (container,) = template["spec"]["containers"]
    assert container["image"] == TEMPLATE["roles"][0]["engine"]["image"]
    assert template["spec"]["schedulerName"] == "volcano"
    assert template["metadata"]["annotations"] == {"scheduling.volcano.sh/queue-name": "research"}
    values = {entry["name"]: entry["value"] for entry in container["env"]}
    assert (values["GROUP_SIZE"], values["ENTRY_ADDRESS"], values["WORKER_INDEX"]) == (
        "1",
        "localhost",
        "0",
    )


@pytest.mark.parametrize(
    ("replicas", "waits"),
    [
        (1, "condition=WorkspaceSucceeded"),
        (2, '["condition=InferenceSetReady", "jsonpath={.status.readyReplicas}=2"]'),
        (0, "condition=InferenceSetReady"),
    ],
)
def test_up_waits_until_every_engine_serves(replicas: int, waits: str) -> None:
    made = emitted(PRESET, {"replicas": replicas, "ready_timeout_seconds": 60})
    (found,) = (m for m in made.values() if m.kind in {"Workspace", "InferenceSet"})
    assert found.body["metadata"]["annotations"] == {WAIT_FOR: waits}
    assert found.timeout_seconds == 60


@pytest.mark.parametrize("args", [PRESET, SET, TEMPLATE], ids=["one", "several", "template"])
def test_the_front_service_selects_the_first_pod_of_each_engine(args: Args) -> None:
    bodies = {
        m.key: m.body for m in compile_serving(changed(args, {"expose": {"port": 9000}})).manifests
    }
    assert [f for f in check_objects_together(bodies) if f.rule == "service-selects-pods"] == []
    (front,) = (body for body in bodies.values() if body["kind"] == "Service")
    (made,) = (b for b in bodies.values() if b["kind"] in {"Workspace", "InferenceSet"})
    assert front["metadata"]["name"] != made["metadata"]["name"], "KAITO makes a Service of its own"
    own = (
        "kaito.sh/workspace" if made["kind"] == "Workspace" else "inferenceset.kaito.sh/created-by"
    )
    assert front["spec"]["selector"] == {
        own: made["metadata"]["name"],
        "apps.kubernetes.io/pod-index": "0",
    }
    target = 8080 if args is TEMPLATE else 5000
    assert front["spec"]["ports"] == [{"name": "http", "port": 9000, "targetPort": target}]


@for_each("split", SPLITS, ids=lambda split: f"{split.preset}-{split.nodes}")
@for_each("existing", [False, True])
@for_each("engines", [1, 2])
def test_the_rules_of_kaito_see_the_same_nodes(split: Split, existing: bool, engines: int) -> None:
    nodes: Args = {"label_selector": {"nvidia.com/gpu.product": split.product}}
    nodes = nodes if existing else {"instance_type": split.nodes}
    role = {**preset_role("serve", split), "hugging_face_token": {"name": "hf-token"}}
    options = {OPTION: {"preset": split.preset, **nodes}, "roles": [role], "replicas": engines}
    bodies = [m.body for m in compile_serving(changed(PRESET, options)).manifests]
    context = Context(config_maps=gather(bodies))
    versions = {"kaito": "0.11"}
    checked = (check_manifest(body, context=context, versions=versions) for body in bodies)
    found = [str(finding) for findings in checked for finding in findings]
    assert [told for told in found if "makes KAITO start" not in told] == []


def test_a_changed_preset_is_replaced() -> None:
    made = emitted(PRESET)["Workspace"]
    assert made.delete_first
    assert {"resource", "inference.preset", "inference.template"} <= set(made.replace_on)
    assert "inference.config" not in made.replace_on
    assert "spec.template" in emitted(SET)["InferenceSet"].replace_on


def test_names_have_room_for_what_an_inference_set_adds() -> None:
    emitter = find_emitter("kaito")
    assert emitter is not None
    one, several = ([n.name for n in emitter.names(compile_serving(a).plan)] for a in (PRESET, SET))
    assert one == ["chat-decode", "chat-decode-headless"]
    assert several == ["chat-decode-00000", "chat-decode-00000-headless"]
