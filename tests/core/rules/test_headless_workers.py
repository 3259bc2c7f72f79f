"""Which pods of a vLLM engine serve HTTP."""

import pytest

from kthena_components.checker.manifest import check_manifest

OTHER = "vllm serve m -tp 8 -pp 2 --nnodes 2 --master-addr $LWS_LEADER_ADDRESS"
RANK = "--node-rank $LWS_WORKER_INDEX"


def said(script: str) -> list[str]:
    """Return what is said of a LeaderWorkerSet of two pods that run one script."""
    container = {"name": "engine", "image": "vllm/vllm-openai:v0.11.1"}
    limits = {"limits": {"nvidia.com/gpu": 8}}
    pod = {"containers": [{**container, "command": ["bash", "-c", script], "resources": limits}]}
    template = {"size": 2, "workerTemplate": {"spec": pod}}
    body = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet"}
    spec = {"replicas": 1, "leaderWorkerTemplate": template}
    found = check_manifest({**body, "metadata": {"name": "llama"}, "spec": spec})
    return [f.seen for f in found if f.rule == "headless-workers"]


@pytest.mark.parametrize(
    "script",
    [
        f"if [ $LWS_WORKER_INDEX = 0 ]; then {OTHER}; else {OTHER} {RANK} --headless; fi",
        f'[ $LWS_WORKER_INDEX = 0 ] || MORE=--headless; {OTHER} {RANK} "$MORE"',
        f"[ $LWS_WORKER_INDEX = 0 ] || MORE=--headless; {OTHER} {RANK} $MORE",
        f"A=(); (( LWS_WORKER_INDEX )) && A+=(--headless); {OTHER} {RANK} ${{A[@]}}",
        f"{OTHER} {RANK} ${{LWS_WORKER_INDEX:+$(python3 flags.py)}}",
        f'case $LWS_WORKER_INDEX in 0) M=;; *) M="--headless";; esac; {OTHER} {RANK} $M',
        f"{OTHER} {RANK} --config /etc/vllm.yaml",
    ],
)
def test_a_script_may_decide(script: str) -> None:
    assert said(script) == []


@pytest.mark.parametrize("executor", ["ray", "external_launcher"])
def test_other_executors_start_the_other_pods_themselves(executor: str) -> None:
    assert said(f"{OTHER} {RANK} --distributed-executor-backend {executor}") == []


def test_one_pod_of_unknown_rank_may_be_the_first() -> None:
    container = {"name": "engine", "image": "vllm/vllm-openai:v0.11.1"}
    limits = {"limits": {"nvidia.com/gpu": 8}}
    script = "vllm serve m -tp 8 -pp 2 --nnodes 2 --node-rank $WORKER_INDEX --master-addr a"
    pod = {"containers": [{**container, "command": ["bash", "-c", script], "resources": limits}]}
    template = {"metadata": {"labels": {"app": "a"}}, "spec": pod}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "a"}}, "template": template}
    body = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "a"}}
    found = check_manifest({**body, "spec": {**spec, "serviceName": "a"}})
    assert [f for f in found if f.rule == "headless-workers"] == []
