"""Defaults that a production review asks for, and how each is overridden."""

from typing import Any

import pytest

from kthena_components.compiler.compile import compile_serving
from tests.support.specs import ENGINE_NATIVE, NATIVE_8B, SGLANG, Args, changed

SMALL = changed(NATIVE_8B, {"roles[0].resources": {"gpus_per_pod": 1}})
FOUR = {"roles[0].resources.gpus_per_pod": 4, "roles[0].engine.parallelism.tensor": 4}
SCALED = {
    "autoscaling": {
        "min_replicas": 1,
        "max_replicas": 4,
        "metrics": [{"name": "waiting", "target_value": "5"}],
        "metric_sources": {"waiting": {"pod": {}}},
    }
}
BACKENDS = ("native", "kthena", "lws", "matrixinfer")


def pods(args: Args, changes: Args | None = None) -> list[dict[str, Any]]:
    """Return the pod specs that a native serving has, by entry and worker."""
    made = compile_serving(changed(args, changes)).manifests
    sets = [m.body["spec"]["template"]["spec"] for m in made if m.kind == "StatefulSet"]
    return sorted(sets, key=lambda spec: "startupProbe" not in spec["containers"][0])


def engine(args: Args, changes: Args | None = None) -> dict[str, Any]:
    return dict(pods(args, changes)[0]["containers"][0])


@pytest.mark.parametrize(
    ("changes", "cpu", "memory"),
    [
        ({}, "3", "23Gi"),  # 4 + 4 x 1 + 15 GiB of Llama-3.1-8B
        (FOUR, "6", "35Gi"),
        ({"roles[0].resources.cpu": "500m"}, "500m", "23Gi"),
        ({"roles[0].resources.memory": "64Gi"}, "3", "64Gi"),
        ({"roles[0].engine.model": "org/private"}, "3", "8Gi"),
    ],
)  # fmt: skip
def test_requests_follow_from_gpus_and_model(changes: Args, cpu: str, memory: str) -> None:
    requests = engine(SMALL, changes)["resources"]["requests"]
    assert (requests["cpu"], requests["memory"]) == (cpu, memory)


def test_a_pod_requests_memory_for_its_part_of_the_weights() -> None:
    one = changed(ENGINE_NATIVE, {"roles[0].resources": {"gpus_per_pod": 8}})
    (share,) = {spec["containers"][0]["resources"]["requests"]["memory"] for spec in pods(one)}
    assert share == "414Gi"  # 4 + 4 x 8 + 756 GiB / 2 pods of Llama-3.1-405B


@pytest.mark.parametrize("key", ["cpu", "memory"])
def test_a_limit_of_the_overlay_leaves_the_request_to_it(key: str) -> None:
    limits = {"resources": {"limits": {key: "1"}}}
    overlay = {"spec": {"containers": [{"name": "engine", **limits}]}}
    assert engine(SMALL, {"roles[0].overlay": overlay})["resources"]["requests"][key] == "1"


def test_defaults_are_requests_without_limits() -> None:
    assert set(engine(SMALL)["resources"]["limits"]) == {"nvidia.com/gpu"}


def test_workers_outlive_the_requests_of_their_entry() -> None:
    entry, worker, *_ = pods(ENGINE_NATIVE)
    sleeps = [
        spec["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
        for spec in (pods(ENGINE_NATIVE)[0], pods(ENGINE_NATIVE)[-1])
    ]
    assert sleeps == [15, 45]
    assert {entry["terminationGracePeriodSeconds"], worker["terminationGracePeriodSeconds"]} == {60}


@pytest.mark.parametrize(
    ("image", "stated"),
    [
        ("vllm/vllm-openai:v0.18.0", True),
        ("vllm/vllm-openai:v0.17.1", False),
        ("registry.example/vllm:1.0", False),
        ("vllm/vllm-openai:nightly", False),
    ],
)
def test_vllm_drains_if_its_release_can(image: str, stated: bool) -> None:
    command = engine(SMALL, {"roles[0].engine.image": image})["command"]
    assert ("--shutdown-timeout" in command) is stated
    assert "--shutdown-timeout" not in pods(ENGINE_NATIVE)[-1]["containers"][0]["command"]


def test_a_drain_can_be_longer_or_none() -> None:
    (longer, none) = (engine(SMALL, {"roles[0].drain_seconds": s}) for s in (300, 0))
    assert longer["command"][-2:] == ["--shutdown-timeout", "300"]
    assert "--shutdown-timeout" not in none["command"]
    assert pods(SMALL, {"roles[0].drain_seconds": 300})[0]["terminationGracePeriodSeconds"] == 330


@pytest.mark.parametrize(
    ("changes", "is_root"),
    [
        ({"roles[0].engine.image": "vllm/vllm-openai:v0.22.0"}, False),
        ({"roles[0].engine.image": "mirror.example/vllm/vllm-openai:v0.33.0"}, False),
        ({"roles[0].engine.image": "vllm/vllm-openai:v0.21.0"}, True),
        (
            {
                "roles[0].engine.image": "vllm/vllm-openai-rocm:v0.33.0",
                "roles[0].resources.gpu_resource": "amd.com/gpu",
            },
            True,
        ),
        ({"roles[0].engine.image": "registry.example/own:v0.33.0"}, True),
        ({"roles[0].cache": {"host_path": "/mnt/models"}}, True),
        ({"roles[0].cache": {"claim": "models"}}, False),
        ({"roles[0].network": {"rdma": {"resource": "rdma/hca"}}}, True),
        ({"roles[0].overlay": {"spec": {"securityContext": {"fsGroup": 1}}}}, True),
        (
            {
                "roles[0].overlay": {
                    "spec": {
                        "containers": [
                            {
                                "name": "engine",
                                "volumeMounts": [{"name": "a", "mountPath": "/root"}],
                            }
                        ],
                        "volumes": [{"name": "a", "emptyDir": {}}],
                    }
                }
            },
            True,
        ),
    ],
)
def test_the_user_is_not_root_where_that_works(changes: Args, is_root: bool) -> None:
    pinned = {"roles[0].engine.image": "vllm/vllm-openai:v0.33.0"}
    context = pods(changed(SMALL, pinned), changes)[0].get("securityContext") or {}
    assert context.get("runAsNonRoot", False) is not is_root
    assert context.get("runAsUser") == (None if is_root else 2000)


def test_a_cache_is_mounted_and_filled() -> None:
    cache = {"claim": "models", "download": True}
    spec = pods(ENGINE_NATIVE, {"roles[0].cache": cache})[0]
    download, container = spec["initContainers"][0], spec["containers"][0]
    assert {"name": "cache", "persistentVolumeClaim": {"claimName": "models"}} in spec["volumes"]
    assert download["command"][-1] == container["command"][2]
    names = [{each["name"] for each in one["env"]} for one in (download, container)]
    assert [one & {"HF_TOKEN", "HF_HOME"} for one in names] == [{"HF_TOKEN", "HF_HOME"}] * 2
    assert "resources" not in download
    assert download["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_the_download_runs_the_image_of_the_engine() -> None:
    overlay = {"spec": {"containers": [{"name": "engine", "image": "mirror.example/vllm:1"}]}}
    changes = {"roles[0].cache": {"size": "20Gi", "download": True}, "roles[0].overlay": overlay}
    spec = pods(SMALL, changes)[0]
    assert spec["initContainers"][0]["image"] == spec["containers"][0]["image"]


def test_rdma_devices_are_requested_with_locked_memory() -> None:
    network = {"interface": "eth1", "hca": "mlx5", "rdma": {"resource": "rdma/ib", "count": 8}}
    container = engine(ENGINE_NATIVE, {"roles[0].network": network})
    assert container["resources"]["limits"]["rdma/ib"] == "8"
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["IPC_LOCK"]}
    env = {each["name"]: each.get("value") for each in container["env"]}
    assert (env["NCCL_SOCKET_IFNAME"], env["GLOO_SOCKET_IFNAME"]) == ("eth1", "eth1")
    assert env["NCCL_IB_HCA"] == "mlx5"


@pytest.mark.parametrize(
    ("changes", "probe", "waits"),
    [
        ({}, 360, 3600),
        ({"roles[0].startup_seconds": 7200}, 720, 7200),
        ({"ready_timeout_seconds": 7200}, 720, 7200),
        ({"ready_timeout_seconds": 60}, 360, 60),
        ({"roles[0].startup_seconds": 5}, 1, 5),
    ],
)
def test_up_waits_as_long_as_engines_may_start(changes: Args, probe: int, waits: int) -> None:
    made = compile_serving(changed(SMALL, changes))
    assert engine(SMALL, changes)["startupProbe"]["failureThreshold"] == probe
    assert made.plan.ready_timeout_seconds == waits


@pytest.mark.parametrize("backend", BACKENDS)
def test_groups_prefer_zones_without_other_groups(backend: str) -> None:
    made = compile_serving(changed(SGLANG, {"backend": backend})).manifests
    text = str([m.body for m in made])
    assert text.count("mismatchLabelKeys") >= 1
    stated = compile_serving(changed(SGLANG, {"backend": backend, "spread_over": "rack"})).manifests
    assert "'topologyKey': 'rack'" in str([m.body for m in stated])


def test_an_own_anti_affinity_stays() -> None:
    own: Args = {"spec": {"affinity": {"podAntiAffinity": {}}}}
    assert pods(SMALL, {"roles[0].overlay": own})[0]["affinity"] == {"podAntiAffinity": {}}


@pytest.mark.parametrize("backend", [*BACKENDS, "kserve", "kaito"])
def test_a_priority_reaches_every_pod(backend: str) -> None:
    full = {"cpu": "8", "memory": "32Gi", "gpus_per_pod": 1}
    more = {"roles[0].resources": full, "backend": backend, "priority_class": "gold"}
    if backend == "kaito":
        more["backend_options"] = {"instance_type": "Standard_NC24ads_A100_v4"}
    made = compile_serving(changed(NATIVE_8B, more)).manifests
    assert any("'priorityClassName': 'gold'" in str(m.body) for m in made if m.kind != "PodGroup")
    groups = [m.body["spec"] for m in made if m.kind == "PodGroup"]
    assert all(spec["priorityClassName"] == "gold" for spec in groups)


@pytest.mark.parametrize(
    ("changes", "limit"),
    [
        ({"replicas": 1}, None),
        ({"replicas": 2}, {"maxUnavailable": 1}),
        ({"replicas": 1, "roles[0].replicas": 2}, {"maxUnavailable": 1}),
        ({"replicas": 2, "backend": "kthena"}, {"minAvailable": 3}),
        ({"replicas": 2, "backend": "kthena", "autoscaled": True}, None),
        ({"replicas": 2, "backend": "kthena", "backend_options": SCALED}, None),
        ({"replicas": 2, "pod_disruption_budget": False}, None),
        ({"replicas": 0, "pod_disruption_budget": True}, None),
        ({"replicas": 1, "pod_disruption_budget": True}, {"maxUnavailable": 1}),
    ],
)
def test_evictions_are_limited_where_another_engine_serves(
    changes: Args, limit: dict[str, int] | None
) -> None:
    made = compile_serving(changed(ENGINE_NATIVE, changes)).manifests
    budgets = [m.body["spec"] for m in made if m.kind == "PodDisruptionBudget"]
    assert [{k: v for k, v in spec.items() if k != "selector"} for spec in budgets] == (
        [limit] if limit else []
    )


def test_templates_of_the_user_stay_as_they_are() -> None:
    template = {"spec": {"containers": [{"name": "e", "image": "example/engine:1"}]}}
    args = {"name": "own", "replicas": 2, "roles": [{"name": "serve", "entry_template": template}]}
    made = compile_serving(args)
    assert not [m for m in made.manifests if m.kind == "PodDisruptionBudget"]
    spec = next(m for m in made.manifests if m.kind == "StatefulSet").body["spec"]["template"]
    assert set(spec["spec"]) == {"containers", "schedulerName"}
