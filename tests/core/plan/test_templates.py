"""Generated pods, and what is filled in on every pod."""

import copy
from decimal import Decimal
from typing import Any

import pytest

from kthena_components.core.facts.context import GPU, MODEL_CONFIG
from kthena_components.core.hardware import find_gpu, known_gpus, node_label, short_name
from kthena_components.core.plan.templates import (
    engine_templates,
    mirror_requests,
    requests_of,
    with_env,
)
from kthena_components.core.spec.enums import Gpu
from kthena_components.core.spec.parse import parse_spec
from kthena_components.core.spec.serving_spec import RoleSpec, launch_of
from tests.support.for_each import for_each
from tests.support.specs import (
    ENGINE_RAY,
    NATIVE_8B,
    REMOVED,
    SGLANG,
    TEMPLATES_PLAIN,
    Args,
    changed,
    template,
)
from tests.support.strategies import LATE

RAY = ENGINE_RAY["roles"][0]


def role(args: Args, changes: Args | None = None) -> RoleSpec:
    return parse_spec(RoleSpec, changed(args, changes))


def containers(args: Args, changes: Args | None = None) -> list[Any]:
    """Give the containers of the entry and, when there is one, of the worker."""
    entry, worker = engine_templates(role(args, changes), "chat")
    return [pod["spec"]["containers"][0] for pod in (entry, worker) if pod is not None]


def test_entry_and_worker_differ_in_their_command_and_in_serving() -> None:
    entry, worker = containers(RAY)
    serving = {"ports", "startupProbe", "readinessProbe", "livenessProbe"}
    differ = {"command", "lifecycle", *serving}
    assert {key for key in entry if entry[key] != worker.get(key)} == differ
    assert set(entry) - set(worker) == serving


def test_one_pod_has_no_worker() -> None:
    assert engine_templates(role(NATIVE_8B["roles"][0]), "chat")[1] is None


def test_limits_equal_requests() -> None:
    for container in containers(RAY):
        assert container["resources"]["limits"] == container["resources"]["requests"]
        assert container["resources"]["limits"] == {
            "cpu": "125",
            "memory": "1124Gi",
            "nvidia.com/gpu": "8",
        }


@pytest.mark.parametrize(
    ("resources", "amounts"),
    [
        ({"gpus_per_pod": 4, "gpu_resource": "amd.com/gpu"}, {"amd.com/gpu": "4"}),
        ({"gpus_per_pod": 0, "cpu": "8"}, {"cpu": "8"}),
        ({"ephemeral_storage": "800Gi"}, {"ephemeral-storage": "800Gi", "nvidia.com/gpu": "1"}),
        (REMOVED, {"nvidia.com/gpu": "1"}),
    ],
    ids=["other-vendor", "no-gpu", "disk", "nothing-stated"],
)
def test_only_what_is_stated_is_asked_for(resources: Any, amounts: dict[str, str]) -> None:
    (entry, *_) = containers(RAY, {"resources": resources})
    assert entry["resources"]["limits"] == amounts


@pytest.mark.parametrize(
    ("shm", "directory"),
    [
        ("15Gi", {"medium": "Memory", "sizeLimit": "15Gi"}),
        (None, {"medium": "Memory", "sizeLimit": "16Gi"}),
    ],
    ids=["stated", "by-gpus"],
)
def test_shared_memory_is_a_directory_in_memory(shm: str | None, directory: Args) -> None:
    for pod in engine_templates(role(RAY, {"resources.shm": shm}), "chat"):
        assert pod is not None
        assert pod["spec"]["volumes"] == [{"name": "dshm", "emptyDir": directory}]


def test_a_token_comes_from_its_secret() -> None:
    for container in containers(RAY):
        assert container["env"] == [
            {
                "name": "HF_TOKEN",
                "valueFrom": {
                    "secretKeyRef": {"name": "hf-token", "key": "HUGGING_FACE_HUB_TOKEN"}
                },
            }
        ]


def test_without_a_token_there_is_no_variable() -> None:
    assert "env" not in containers(NATIVE_8B["roles"][0])[0]


def test_probes_ask_the_port_that_is_served() -> None:
    (entry, _) = containers(SGLANG["roles"][0])
    asked = {
        entry[f"{kind}Probe"]["httpGet"]["port"] for kind in ("startup", "readiness", "liveness")
    }
    assert asked == {30000}
    assert entry["ports"][0] == {"name": "http", "containerPort": 30000}


def test_a_generated_pod_runs_without_privileges() -> None:
    for container in containers(RAY):
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_an_overlay_reaches_entry_and_workers() -> None:
    overlay = {
        "spec": {"nodeSelector": {"disk": "fast"}, "containers": [{"name": "engine", "tty": True}]}
    }
    for pod in engine_templates(role(RAY, {"overlay": overlay}), "chat"):
        assert pod is not None
        assert pod["spec"]["nodeSelector"] == {"disk": "fast"}
        assert [c["tty"] for c in pod["spec"]["containers"]] == [True]


@pytest.mark.parametrize(
    ("image", "overlaid", "launcher", "release"),
    [
        ("vllm/vllm-openai:v0.11.0", None, "ray", (0, 11, 0)),
        ("vllm/vllm-openai:v0.33.0", None, "native", (0, 33, 0)),
        ("vllm/vllm-openai:v0.33.0", "vllm/vllm-openai:v0.11.0", "ray", (0, 11, 0)),
        ("vllm/vllm-openai:v0.11.0", "me/vllm:v1", "native", None),
        (LATE, None, "native", None),
    ],
)
def test_the_image_that_will_run_decides_who_joins_the_pods(
    image: str, overlaid: str | None, launcher: str, release: tuple[int, ...] | None
) -> None:
    changes: Args = {"engine.image": image, "engine.launcher": REMOVED}
    if overlaid is not None:
        changes["overlay.spec.containers"] = [{"name": "engine", "image": overlaid}]
    launch = launch_of(role(RAY, changes))
    assert (launch.launcher, launch.release) == (launcher, release)


def test_a_role_of_templates_starts_no_engine() -> None:
    with pytest.raises(ValueError, match="role 'prefill' has no engine"):
        launch_of(role(TEMPLATES_PLAIN["roles"][0]))


@pytest.mark.parametrize(
    ("resources", "requests", "told"),
    [
        ({"limits": {"cpu": 1}}, {"cpu": 1}, ["container 'app': cpu 1"]),
        (
            {"limits": {"cpu": 1, "memory": "8Gi"}, "requests": {"cpu": "500m"}},
            {"cpu": "500m", "memory": "8Gi"},
            ["container 'app': memory 8Gi"],
        ),
        ({"limits": {"cpu": 1}, "requests": None}, {"cpu": 1}, ["container 'app': cpu 1"]),
        ({"limits": {"cpu": 1}, "requests": {"cpu": 1}}, {"cpu": 1}, []),
        ({"requests": {"cpu": 1}}, {"cpu": 1}, []),
        ({"limits": None}, None, []),
        (None, None, []),
    ],
    ids=["alone", "in-part", "null", "equal", "requests", "no-limits", "nothing"],
)
def test_limits_without_requests_become_requests(
    resources: Any, requests: Any, told: list[str]
) -> None:
    for kind in ("containers", "initContainers"):
        pod = {"spec": {kind: [{"name": "app", "resources": resources}]}}
        before = copy.deepcopy(pod)
        mirrored, lines = mirror_requests(pod)
        (container,) = mirrored["spec"][kind]
        assert ((container["resources"] or {}).get("requests"), lines) == (requests, told)
        assert pod == before


@pytest.mark.parametrize("pod", [{}, {"spec": None}, {"spec": {"containers": None}}], ids=repr)
def test_without_containers_nothing_is_filled_in(pod: Args) -> None:
    assert mirror_requests(pod) == (pod, [])


def test_requests_add_up_over_containers_but_not_init_containers() -> None:
    pod = template(resources={"requests": {"cpu": "500m", "memory": LATE}})
    pod["spec"]["containers"].append({"name": "b", "resources": {"requests": {"cpu": 2}}})
    pod["spec"]["initContainers"] = [{"name": "c", "resources": {"requests": {"cpu": 64}}}]
    assert requests_of(pod) == {"cpu": Decimal("2.5")}


@pytest.mark.parametrize(
    "pod", [None, {}, {"spec": None}, {"spec": {"containers": None}}], ids=repr
)
def test_nothing_asks_for_nothing(pod: Args | None) -> None:
    assert requests_of(pod) == {}


def test_variables_go_to_the_end_of_every_container() -> None:
    own = [{"name": "B", "value": "$(A)"}, {"name": "A", "value": "old"}]
    pod = {
        "spec": {
            "initContainers": [{"name": "i"}],
            "containers": [{"name": "c", "env": own}, {"name": "d", "env": None}],
        }
    }
    before = copy.deepcopy(pod)
    filled = with_env(pod, [{"name": "A", "value": "new"}])["spec"]
    new = {"name": "A", "value": "new"}
    assert filled["initContainers"] == [{"name": "i", "env": [new]}]
    assert [c["env"] for c in filled["containers"]] == [[own[0], new], [new]]
    assert pod == before


PRODUCT = "nvidia.com/gpu.product"
NODES: dict[str, tuple[Args, Args | None, Args | None]] = {
    "no GPU": ({}, None, None),
    "its product": ({"gpu": "h100"}, {PRODUCT: "NVIDIA-H100-80GB-HBM3"}, None),
    "of AMD": (
        {"gpu": "mi300x", "gpu_resource": "amd.com/gpu"},
        {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"},
        None,
    ),
    "in GKE": (
        {"gpu": "h100", "gpu_label": "gke"},
        {"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"},
        None,
    ),
    "no label": ({"gpu": "h100", "gpu_label": "none"}, None, {"kthena-components/gpu": "h100"}),
}


@for_each("name", NODES)
def test_pods_select_nodes_with_their_gpu(name: str) -> None:
    resources, selector, annotations = NODES[name]
    resources = {**(RAY.get("resources") or {}), **resources}
    for pod in engine_templates(role(RAY, {"resources": resources}), "chat"):
        assert pod is not None
        assert pod["spec"].get("nodeSelector") == selector
        assert pod["metadata"].get("annotations") == annotations


def test_an_overlay_names_another_product_of_the_gpu() -> None:
    overlay = {"spec": {"nodeSelector": {PRODUCT: "NVIDIA-H100-PCIe", "pool": "a"}}}
    resources = {**(RAY.get("resources") or {}), "gpu": "h100"}
    entry, _ = engine_templates(role(RAY, {"resources": resources, "overlay": overlay}), "chat")
    assert entry["spec"]["nodeSelector"] == {PRODUCT: "NVIDIA-H100-PCIe", "pool": "a"}


def test_the_shape_and_the_gpu_are_annotations_side_by_side() -> None:
    config = {"num_attention_heads": 8, "num_hidden_layers": 4}
    changes: Args = {
        "resources.gpu": "h100",
        "resources.gpu_label": "none",
        "engine.hf_config": config,
    }
    entry, _ = engine_templates(role(RAY, changes), "chat")
    assert set(entry["metadata"]["annotations"]) == {MODEL_CONFIG, GPU}


def test_each_gpu_with_a_label_of_its_product_can_be_named() -> None:
    labelled = [gpu for gpu in known_gpus() if node_label(gpu, "product")]
    assert [*Gpu] == [short_name(gpu) for gpu in labelled]
    assert [find_gpu(word) for word in Gpu] == labelled
