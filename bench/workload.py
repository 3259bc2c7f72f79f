"""The servings of all measurements, as plain data, equal for each backend."""

from typing import Any, Final

BACKENDS: Final = ("kthena", "native")


def servings(backend: str, count: int, groups: int = 1) -> list[dict[str, Any]]:
    """Return servings of some groups with one engine on two pods each, as in production.

    Each has its own model, so that the cache of command lines does not speed up the others.
    """
    return [_serving(backend, number, groups) for number in range(count)]


def _serving(backend: str, number: int, groups: int) -> dict[str, Any]:
    return {
        "name": f"llama-{number}",
        "namespace": "serving",
        "backend": backend,
        "replicas": groups,
        "queue": "llm-prod",
        "roles": [_role(number)],
        "network_topology": {"group_policy": {"mode": "hard", "highest_tier_allowed": 1}},
        "expose": {"port": 80},
    }


def _role(number: int) -> dict[str, Any]:
    return {
        "name": "serve",
        "worker_replicas": 1,
        "engine": {
            "kind": "vllm",
            "image": "vllm/vllm-openai:v0.33.0",
            "model": f"meta-llama/Llama-3.1-405B-Instruct-{number}",
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
