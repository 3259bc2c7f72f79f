"""ConfigMaps of a stack: one resource does not see them, the stack policy does."""

from typing import Any

import pytest

from tests.policies.objects import Args, advice, group_refusals, in_stack, refusals

DEPLOYMENT = "kubernetes:apps/v1:Deployment"
WORKERS = "kubernetes:leaderworkerset.x-k8s.io/v1:LeaderWorkerSet"


def config_map(namespace: str = "serving", **data: Any) -> Args:
    metadata = {"name": "engine", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def pods(name: str = "engine") -> Args:
    reference = {"valueFrom": {"configMapKeyRef": {"name": name, "key": "tp"}}}
    engine = {
        "name": "engine",
        "image": "vllm/vllm-openai:v0.26.0",
        "command": ["vllm", "serve", "meta-llama/Llama-3.3-70B-Instruct", "-tp", "$(TP)"],
        "env": [{"name": "TP", **reference}],
        "resources": {"limits": {"nvidia.com/gpu": "8"}},
    }
    return {"spec": {"containers": [engine]}}


def deployment() -> Args:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "llama", "namespace": "serving"},
        "spec": {"template": pods()},
    }


def workers() -> Args:
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "llama", "namespace": "serving"},
        "spec": {"leaderWorkerTemplate": {"size": 1, "workerTemplate": pods()}},
    }


@pytest.mark.parametrize(("kind", "body"), [(DEPLOYMENT, deployment()), (WORKERS, workers())])
def test_one_resource_says_what_it_lacks_and_the_stack_checks_it(kind: str, body: Args) -> None:
    assert refusals(kind, body) == ""
    assert "ConfigMap 'engine' is not among the objects that are checked" in advice(kind, body)
    ((name, message),) = group_refusals([in_stack(body), in_stack(config_map(tp="16"))])
    assert name == "default/llama"
    assert message.startswith("spec.")
    assert "starts tensor 16 × pipeline 1 = 16 ranks" in message


@pytest.mark.parametrize(
    "other",
    [config_map(tp="8"), config_map("other", tp="16"), config_map()],
    ids=["right", "another-namespace", "no-key"],
)
def test_nothing_is_refused_that_is_right_or_not_known(
    other: Args, capsys: pytest.CaptureFixture[str]
) -> None:
    assert group_refusals([in_stack(deployment()), in_stack(other)]) == []
    assert "rule-fault" not in capsys.readouterr().err


def test_clusters_do_not_share_config_maps() -> None:
    both = [in_stack(deployment()), in_stack(config_map(tp="16"), provider="elsewhere")]
    assert group_refusals(both) == []
