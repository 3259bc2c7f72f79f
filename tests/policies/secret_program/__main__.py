"""Servings of nobody's, wrong in values that are secret: from the program, and from its config."""

from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

config = pulumi.Config()
RESOURCES = {"limits": {"nvidia.com/gpu": "8"}, "requests": {"nvidia.com/gpu": "8"}}


def secret(value: Any) -> Any:
    """Mark a value as secret; its pieces are in the test."""
    return pulumi.Output.secret(value)


def engine(*args: Any, **variables: Any) -> dict[str, Any]:
    """Give a container of vLLM."""
    return {
        "name": "main",
        "image": "vllm/vllm-openai:v0.11.0",
        "command": ["vllm", "serve", "meta-llama/Llama-3.1-70B-Instruct", *args],
        "env": [{"name": name, "value": value} for name, value in variables.items()],
        "resources": RESOURCES,
        "volumeMounts": [{"name": "dshm", "mountPath": "/dev/shm"}],  # noqa: S108 - NCCL's
    }


def deploy(name: str, container: dict[str, Any]) -> None:
    """Register a Deployment of one container."""
    labels = {"app": name}
    memory = {"name": "dshm", "emptyDir": {"medium": "Memory"}}
    pods = {"containers": [container], "volumes": [memory]}
    kubernetes.apps.v1.Deployment(
        name,
        metadata={"name": name},
        spec={
            "selector": {"match_labels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pods},
        },
    )


deploy("variable", engine("-tp", "$(T)", T=secret("pearl quartz")))
line = pulumi.Output.concat(
    "vllm serve m --max-model-len ",
    secret("raven"),
    " --swap-space ",
    config.require_secret("token"),
)
deploy("line", engine() | {"command": ["sh", "-c", line]})
url = pulumi.Output.format("https://me:{0}@files.invalid/model", secret("sable"))
deploy("url", engine("-tp", "8", "--max-num-seqs", url))
deploy("number", engine("-tp", secret("1753")))
role = {"name": "decode", "replicas": 1, "entryTemplate": {"spec": {"containers": []}}}
role["entryTemplate"] = {"spec": {"containers": [engine("-tp", "$(T)", T=secret("onyx vale"))]}}
kubernetes.apiextensions.CustomResource(
    "role",
    api_version="workload.serving.volcano.sh/v1alpha1",
    kind="ModelServing",
    metadata={"name": "role", "namespace": "default"},
    spec={"replicas": 1, "schedulerName": "volcano", "template": {"roles": [role]}},
)
taken = {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "held", "key": "token"}}}
kubernetes.core.v1.Secret(
    "held", metadata={"name": "held"}, string_data={"wheat-token": secret("xylem")}
)
deploy("taker", engine("-tp", "8") | {"env": [taken]})
