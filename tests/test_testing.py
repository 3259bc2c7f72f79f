"""`kthena_components.testing`: programs under mocks."""

import subprocess
import sys
from typing import Any

import pytest

from kthena_components import ModelServing
from kthena_components.testing import run_program
from tests.support.pages import block

ROLE: Any = {
    "name": "serve",
    "worker_replicas": 1,
    "resources": {"gpus_per_pod": 8},
    "engine": {
        "kind": "vllm",
        "image": "vllm/vllm-openai:v0.33.0",
        "model": "meta-llama/Llama-3.1-405B-Instruct-FP8",
        "parallelism": {"tensor": 8, "pipeline": 2},
    },
}


def test_it_returns_the_manifests() -> None:
    made = run_program(lambda: ModelServing("chat", {"roles": [ROLE], "expose": {"port": 80}}))
    assert made.findings == ()
    assert [one["kind"] for one in made.manifests] == [
        "PodGroup", "Service", "Service", "Service", "StatefulSet", "StatefulSet",
    ]  # fmt: skip
    entry = made.manifest("StatefulSet", "chat-0-serve-0")
    (container,) = entry["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] in {8, "8"}


def test_two_runs_do_not_see_each_other() -> None:
    runs = [run_program(lambda: ModelServing("chat", {"roles": [ROLE]})) for _ in range(2)]
    assert runs[0] == runs[1]
    assert runs[0].manifests


def test_a_refusal_is_its_findings() -> None:
    engine = {**ROLE["engine"], "parallelism": {"tensor": 8, "pipeline": 3}}
    role: Any = {**ROLE, "engine": engine}
    made = run_program(lambda: ModelServing("chat", {"roles": [role]}))
    assert made.manifests == ()
    assert [finding.rule for finding in made.findings] == ["world-size-equals-gpus"]


def test_another_error_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        run_program(lambda: 1 // 0)


def test_an_object_that_is_not_there_is_named_beside_those_that_are() -> None:
    made = run_program(lambda: ModelServing("chat", {"roles": [ROLE]}))
    with pytest.raises(KeyError, match="no Deployment chat; there are: PodGroup chat-0"):
        made.manifest("Deployment", "chat")


def test_it_loads_no_pytest() -> None:
    told = "import sys, kthena_components.testing; sys.exit('pytest' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", told], check=False).returncode == 0


def test_the_test_of_the_page_passes() -> None:
    names: dict[str, Any] = {}
    exec(block("docs/how-to/unit-tests.md", "from kthena"), names)  # noqa: S102 - of our own page
    tests = [name for name in names if name.startswith("test_")]
    assert len(tests) == 2
    for name in tests:
        names[name]()
