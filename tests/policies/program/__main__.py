"""A program that uses none of our components: a Deployment and a ModelServing by hand."""

from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

GPUS = {"nvidia.com/gpu": "8"}
RESOURCES = {"limits": GPUS, "requests": GPUS}
JOIN = "bash /vllm-workspace/examples/online_serving/multi-node-serving.sh"

config = pulumi.Config()
tensor = config.require("tensor")
workers = config.require_int("workers")
# An id is known only after the update.
late = kubernetes.core.v1.ConfigMap("late", metadata={"name": "late"})
size: Any = late.id if config.get_bool("late") else tensor


def template(name: str, command: list[Any]) -> dict[str, Any]:
    """Give a pod template of one vLLM container."""
    engine = {
        "name": name,
        "image": "vllm/vllm-openai:v0.11.0",
        "command": command,
        "resources": RESOURCES,
        "volumeMounts": [{"name": "dshm", "mountPath": "/dev/shm"}],  # noqa: S108 - NCCL's
    }
    memory = {"name": "dshm", "emptyDir": {"medium": "Memory"}}
    return {"spec": {"containers": [engine], "volumes": [memory]}}


serve = ["vllm", "serve", "meta-llama/Llama-3.1-70B-Instruct", "--tensor-parallel-size", size]
labels = {"app": "llama"}
waiver = config.get("waiver")
waived = {"waive.kthena-components/world-size-equals-gpus": waiver} if waiver else {}
kubernetes.apps.v1.Deployment(
    "llama-70b",
    metadata={"name": "llama-70b", "annotations": waived},
    spec={
        "replicas": 2,
        "selector": {"match_labels": labels},
        "template": {"metadata": {"labels": labels}, **template("main", serve)},
    },
)
leader = (
    f"{JOIN} leader --ray_cluster_size=$(GROUP_SIZE); vllm serve meta-llama/Llama-3.1-405B-Instruct"
    " --tensor-parallel-size 8 --pipeline-parallel-size 2 --distributed-executor-backend ray"
)
role = {
    "name": "decode",
    "replicas": 1,
    "entryTemplate": template("leader", ["sh", "-c", leader]),
    "workerReplicas": workers,
    "workerTemplate": template(
        "worker", ["sh", "-c", f"{JOIN} worker --ray_address=$(ENTRY_ADDRESS)"]
    ),
}
kubernetes.apiextensions.CustomResource(
    "llama-405b",
    api_version="workload.serving.volcano.sh/v1alpha1",
    kind="ModelServing",
    metadata={"name": "llama-405b", "namespace": "default"},
    spec={"replicas": 1, "schedulerName": "volcano", "template": {"roles": [role]}},
)
