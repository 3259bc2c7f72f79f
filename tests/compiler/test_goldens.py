"""What is written for some servings, byte by byte, and the one thing that each of them shows."""

from typing import Any

import pytest

from tests.support import goldens
from tests.support.crds import schema_errors
from tests.support.for_each import for_each


def objects(case: str) -> dict[str, Any]:
    """Give the objects of a golden file, by kind and name."""
    return {f"{body['kind']}/{body['metadata']['name']}": body for body in goldens.read(case)}


def serving(case: str) -> Any:
    """Give the spec of the ModelServing in a golden file."""
    (body,) = (body for key, body in objects(case).items() if key.startswith("ModelServing/"))
    return body["spec"]


@for_each("case", goldens.CASES)
def test_a_golden_is_what_is_written_now(case: str) -> None:
    path = goldens.path_of(case)
    assert path.is_file(), "missing; run python -m tests.support.goldens --update"
    assert path.read_text() == goldens.render(goldens.CASES[case])


@for_each("case", goldens.CASES)
def test_a_golden_can_be_applied(case: str) -> None:
    version = goldens.CASES[case].get("kthena_version", "1.0")
    assert [e for body in goldens.read(case) for e in schema_errors(body, version)] == []


def test_every_golden_has_its_case() -> None:
    assert goldens.stray_files() == []


def test_the_guide_natively_is_a_gang_of_one_of_its_two_engines() -> None:
    pod_group = objects("native/guide")["PodGroup/llama-multinode-0"]
    assert pod_group["spec"]["minMember"] == 2


def test_a_ray_engine_waits_for_its_pods_before_it_serves() -> None:
    entry = objects("native/engine-ray")["StatefulSet/chat-0-decode-0"]
    (container,) = entry["spec"]["template"]["spec"]["containers"]
    assert container["command"][:2] == ["sh", "-c"]
    assert container["command"][2] == (
        "bash /vllm-workspace/examples/online_serving/multi-node-serving.sh leader "
        "--ray_cluster_size=2 && exec vllm serve meta-llama/Llama-3.1-405B-Instruct --port 8080 "
        "--tensor-parallel-size 8 --pipeline-parallel-size 2 --distributed-executor-backend ray"
    )


def test_one_gpu_needs_one_pod() -> None:
    kinds = [body["kind"] for body in goldens.read("native/native-8b")]
    assert kinds == ["Service", "Service", "PodGroup", "StatefulSet"]


def test_sglang_learns_its_place_from_the_pod() -> None:
    workers = objects("native/sglang")["StatefulSet/dense-0-server-0-w"]
    (container,) = workers["spec"]["template"]["spec"]["containers"]
    command = " ".join(container["command"])
    assert "--nnodes 2 --node-rank $(WORKER_INDEX)" in command
    assert "--dist-init-addr $(ENTRY_ADDRESS):" in command


def test_requests_go_to_the_role_that_is_exposed() -> None:
    for case in ("native/prefill-decode", "kthena/prefill-decode"):
        selector = objects(case)["Service/split"]["spec"]["selector"]
        assert selector == {
            "modelserving.volcano.sh/name": "split",
            "modelserving.volcano.sh/entry": "true",
            "modelserving.volcano.sh/role": "decode",
        }


def test_the_guide_for_kthena_is_the_guides_own_manifest() -> None:
    spec = serving("kthena/guide")
    assert spec["template"]["gangPolicy"] == {"minRoleReplicas": {"llama-405b": 1}}
    assert spec["template"]["restartGracePeriodSeconds"] == 60


@pytest.mark.parametrize(
    ("case", "fields"),
    [
        ("kthena/guide-0.1", {"mode", "highestTierAllowed"}),
        ("kthena/guide-0.3", {"groupPolicy"}),
        ("kthena/guide-1.0", {"groupPolicy"}),
    ],
)
def test_each_kthena_version_gets_its_own_topology(case: str, fields: set[str]) -> None:
    assert set(serving(case)["template"]["networkTopology"]) == fields


def test_only_kthena_1_0_gets_a_queue() -> None:
    body = objects("kthena/guide-1.0")["ModelServing/llama-multinode"]
    queue = body["metadata"]["annotations"]["scheduling.volcano.sh/queue-name"]
    assert queue == "research"


def test_kthena_counts_the_workers_beside_the_entry() -> None:
    roles = serving("kthena/engine-ray")["template"]["roles"]
    assert [(role["replicas"], role["workerReplicas"]) for role in roles] == [(1, 1)]
