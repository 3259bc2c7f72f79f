"""Which probes ask a port on which their engine listens."""

from typing import Any

import pytest

from kthena_components.checker.manifest import check_manifest

ROLE = "spec.template.roles[0]"
SGLANG = (
    "python3 -m sglang.launch_server --model-path m --host 0.0.0.0"
    " --nnodes 2 --node-rank $(WORKER_INDEX)"
)
RANKED = "vllm serve m --nnodes 2 --node-rank $(WORKER_INDEX) --port 8200"


def said(entry: str, worker: str = "", *, port: object = 8000, **more: Any) -> list[str]:
    """Return what `probe-port` says of a ModelServing whose pods all have the same probe."""

    def template(script: str) -> dict[str, Any]:
        image = "lmsysorg/sglang:v0.5.10" if "sglang" in script else "vllm/vllm-openai:v0.22.0"
        probe = {"httpGet": {"path": "/health", "port": port}}
        container = {"name": "engine", "image": image, "command": ["bash", "-c", script]}
        return {"spec": {"containers": [{**container, "readinessProbe": probe, **more}]}}

    role: dict[str, Any] = {"name": "serve", "workerReplicas": 0, "entryTemplate": template(entry)}
    if worker:
        role |= {"workerReplicas": 1, "workerTemplate": template(worker)}
    body = {"apiVersion": "workload.serving.volcano.sh/v1alpha1", "kind": "ModelServing"}
    spec = {"template": {"roles": [role]}}
    found = check_manifest({**body, "metadata": {"name": "llama"}, "spec": spec})
    return [f"{f.path.removeprefix(ROLE)} {f.seen}" for f in found if f.rule == "probe-port"]


@pytest.mark.parametrize(
    ("entry", "port", "listens"),
    [
        ("vllm serve m", 8080, "vLLM listens on 8000"),
        ("vllm serve m --port=8200", 8000, "vLLM listens on 8200"),
        ("export P=9000; vllm serve m --port $P", 8000, "vLLM listens on 9000"),
        ("python3 -m sglang.launch_server --model-path m", 8000, "SGLang listens on 30000"),
        ("ray start --head && vllm serve m", 8080, "vLLM listens on 8000"),
    ],
)
def test_a_port_on_which_the_engine_does_not_listen(entry: str, port: int, listens: str) -> None:
    (seen,) = said(entry, port=port)
    assert f"is {port}, but {listens}, so its pod never becomes ready" in seen


@pytest.mark.parametrize(
    ("entry", "port"),
    [
        ("vllm serve m", 8000),
        ("vllm serve m $ARGS", 8080),
        ("vllm serve m --uds $SOCKET", 8080),
        ("vllm serve m --config /etc/vllm.yaml", 8080),
        ("python3 metrics.py & vllm serve m", 8080),
        ("nginx; vllm serve m", 80),
        ("vllm serve a --port 8001 & vllm serve b --port 8002", 8002),
        ("python3 -m dynamo.vllm --model m", 9090),
        ("vllm serve m --data-parallel-size 2 --data-parallel-multi-port-external-lb", 8001),
        ("sleep infinity", 8080),
    ],
)
def test_a_port_on_which_something_may_listen(entry: str, port: int) -> None:
    assert said(entry, port=port) == []


def test_the_other_pods_of_an_engine() -> None:
    (seen,) = said(RANKED, f"{RANKED} --headless", port=8200)
    assert seen.startswith(".workerTemplate")
    assert "--headless answers no requests" in seen
    assert said(SGLANG, SGLANG, port=30000) == []  # the others have a server for health checks
    (seen,) = said("ray start --head && vllm serve m", "ray start --block --address=a:6379")
    assert seen.startswith(".workerTemplate")
    assert "a worker of Ray answers no requests" in seen


def test_ports_by_name() -> None:
    ports = [{"name": "http", "containerPort": 8000}]
    assert said("vllm serve m", port="http", ports=ports) == []
    (seen,) = said("vllm serve m --port 8200", port="http", ports=ports)
    assert "is 'http' (8000), but vLLM listens on 8200" in seen
    (seen,) = said("vllm serve m", port="htp", ports=ports)
    assert "is 'htp', and no port of the container has this name" in seen


def test_another_container_may_listen() -> None:
    def probe(port: int) -> dict[str, Any]:
        return {"httpGet": {"port": port}}

    (seen,) = said("vllm serve m", livenessProbe=probe(9))
    assert "so the container is restarted again and again" in seen
    assert said("vllm serve m", livenessProbe={"httpGet": {"host": "10.0.0.1", "port": 9}}) == []
    assert said("vllm serve m", livenessProbe={"exec": {"command": ["true"]}}) == []
