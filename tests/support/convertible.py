"""Objects that `convert` reads, as users write them."""

from typing import Any

LEADER = "serve.sh leader --size=$(LWS_GROUP_SIZE); vllm serve m --tensor-parallel-size 8 "
LEADER += "--pipeline-parallel-size 2 --distributed-executor-backend ray"
WORKER = 'serve.sh worker --head "${LWS_LEADER_ADDRESS}"'


def pods(name: str, script: str, **labels: str) -> dict[str, Any]:
    """Give a pod template with 8 GPUs."""
    gpus = {"nvidia.com/gpu": "8"}
    container = {
        "name": name,
        "image": "vllm/vllm-openai:v0.11.0",
        "command": ["sh", "-c", script],
        "resources": {"limits": gpus, "requests": gpus},
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],  # noqa: S108 - NCCL's
    }
    volumes = [{"name": "shm", "emptyDir": {"medium": "Memory"}}]
    metadata = {"metadata": {"labels": labels}} if labels else {}
    return {**metadata, "spec": {"containers": [container], "volumes": volumes}}


def leader_worker_set(**spec: Any) -> dict[str, Any]:
    template = {
        "size": 2,
        "leaderTemplate": pods("leader", LEADER, role="leader"),
        "workerTemplate": pods("worker", WORKER),
    }
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "llama", "creationTimestamp": None},
        "spec": {"replicas": 2, "leaderWorkerTemplate": template, **spec},
    }


def model_serving(**spec: Any) -> dict[str, Any]:
    role = {
        "name": "serve",
        "replicas": 2,
        "workerReplicas": 1,
        "entryTemplate": pods("leader", LEADER.replace("LWS_", "")),
        "workerTemplate": pods("worker", WORKER.replace("LWS_LEADER", "ENTRY")),
    }
    return {
        "apiVersion": "workload.serving.volcano.sh/v1alpha1",
        "kind": "ModelServing",
        "metadata": {"name": "llama", "namespace": "serving"},
        "spec": {"template": {"roles": [role]}, **spec},
    }


def service(**selector: str) -> dict[str, Any]:
    ports = [{"name": "http", "port": 8080, "protocol": "TCP", "targetPort": 8080}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "llama-leader"},
        "spec": {"selector": selector, "ports": ports},
    }


SELECTOR = {"leaderworkerset.sigs.k8s.io/name": "llama", "role": "leader"}
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "token"},
    "data": {"a": "Yg=="},
}
