"""The servings that every measurement deploys. Plain data, the same for both backends."""

from typing import Any

BACKENDS = ("kthena", "native")
RESOURCES_PER_SERVING = {"kthena": 3, "native": 9}
"""Components included: the ModelServing, and natively its ServingGroup and its Role."""


def servings(backend: str, count: int) -> list[dict[str, Any]]:
    """Describe so many servings, each with one engine of two pods, as production would."""
    return [_serving(backend, f"llama-{number}") for number in range(count)]


def _serving(backend: str, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "namespace": "serving",
        "backend": backend,
        "replicas": 1,
        "queue": "llm-prod",
        "roles": [
            {
                "name": "serve",
                "worker_replicas": 1,
                "engine": {
                    "kind": "vllm",
                    "image": "vllm/vllm-openai:v0.10.1",
                    "model": "meta-llama/Llama-3.1-405B-Instruct",
                    "launcher": "ray",
                    "parallelism": {"tensor": 8, "pipeline": 2},
                },
                "resources": {
                    "gpus_per_pod": 8,
                    "cpu": "125",
                    "memory": "1124Gi",
                    "ephemeral_storage": "800Gi",
                    "shm": "15Gi",
                },
                "hugging_face_token": {"name": "hf-token", "key": "HUGGING_FACE_HUB_TOKEN"},
            }
        ],
        "network_topology": {"group_policy": {"mode": "hard", "highest_tier_allowed": 1}},
        "expose": {"port": 80, "target_port": 8080},
    }
