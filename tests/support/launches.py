"""Engines whose command lines are written in tests."""

from typing import Any

from kthena_components.core.engines.launch import Launch


def launch(kind: str = "vllm", **changes: Any) -> Launch:
    """Give an engine of one pod of 8 GPUs, with changes."""
    shape: dict[str, Any] = {
        "kind": kind,
        "launcher": "native",
        "model": "org/M",
        "tensor": 8,
        "pipeline": 1,
        "data": 1,
        "expert": False,
        "pods": 1,
        "gpus_per_pod": 8,
        "port": 8080,
    }
    return Launch(**{**shape, **changes})
