"""mpi_ranks over what the package writes, and over that with a number changed."""

from typing import Any

import pytest

from kthena_components.checker.manifest import check_manifest
from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import Level

SERVING: dict[str, Any] = {
    "name": "big",
    "backend": "kthena",
    "roles": [
        {
            "name": "serve",
            "worker_replicas": 1,
            "engine": {
                "kind": "trtllm",
                "image": "nvcr.io/nvidia/tensorrt-llm/release:1.2.1",
                "model": "meta-llama/Llama-3.1-405B-Instruct-FP8",
                "parallelism": {"tensor": 8, "pipeline": 2},
            },
            "resources": {"gpus_per_pod": 8},
        }
    ],
}


def told(old: str = "", new: str = "") -> list[str]:
    """Give what the rule says of the written object, with a string of its command replaced."""
    (written,) = compile_serving(SERVING).manifests
    body: Any = dict(written.body)
    role = body["spec"]["template"]["roles"][0]
    container = role["entryTemplate"]["spec"]["containers"][0]
    assert old in container["command"][2]
    container["command"] = [*container["command"][:2], container["command"][2].replace(old, new)]
    found = [one for one in check_manifest(body) if one.level is not Level.ADVISORY]
    assert {one.rule for one in found} <= {"mpi-ranks"}
    return [one.seen for one in found]


def test_what_is_written_is_right() -> None:
    assert told() == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("-n 16", "-n 15", "but mpirun starts 15"),
        ("-n 16", "-n 17", "but mpirun starts 17"),
        (",worker-1:8", ",worker-1:7", "but 2 hosts of -H have 15 slots"),
        (",worker-1:8", "", "but 1 host of -H has 8 slots"),
        (",worker-1:8", ",worker-1:8,worker-2:8", "ranks on 3 hosts of -H"),
        ("ppr:8:node", "ppr:16:node", "up to 16 ranks on a host, but a pod has 8 GPUs"),
    ],
)
def test_a_number_that_does_not_fit_is_reported(old: str, new: str, said: str) -> None:
    assert any(said in seen for seen in told(old, new))
