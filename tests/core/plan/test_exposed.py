"""The front Service of own templates targets the port on which their engine listens."""

from typing import Any

import pytest

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import SpecError
from kthena_components.systems import EMITTERS
from tests.support.specs import Args, changed, gpu_template

WITH_OWN_PODS = sorted(set(EMITTERS) - {"booster"})
"""A ModelBooster writes its pods itself."""


def serving(backend: str, command: str = "vllm serve m", **expose: Any) -> Args:
    role = {"name": "server", "entry_template": gpu_template(command, 1)}
    return {"name": "chat", "backend": backend, "roles": [role], "expose": expose}


def told(args: Args) -> list[str]:
    try:
        compile_serving(args)
    except SpecError as error:
        return [str(finding) for finding in error.findings if finding.rule == "expose-port"]
    return []


@pytest.mark.parametrize("backend", WITH_OWN_PODS)
def test_a_port_on_which_own_pods_do_not_listen_is_refused(backend: str) -> None:
    assert told(serving(backend)) == [
        (
            "expose.target_port: is 8080, but vLLM listens on 8000 in the entry pods of role "
            "'server'. Write 8000. [expose-port]"
        )
    ]
    assert told(serving(backend, target_port=8000)) == []
    assert told(serving(backend, "vllm serve m --port 8080")) == []


def test_sglang_listens_on_its_own_default() -> None:
    args = serving("kthena", "python3 -m sglang.launch_server --model-path m")
    assert "Write 30000." in told(args)[0]


@pytest.mark.parametrize(
    "command",
    [
        "vllm serve m --port $PORT",
        "vllm serve m $ARGS",
        "python3 proxy.py & vllm serve m",
        "bash start.sh && vllm serve m",
        "python3 -m http.server",
    ],
)
def test_what_nobody_knows_is_not_refused(command: str) -> None:
    assert told(serving("kthena", command)) == []


def test_another_container_may_listen() -> None:
    proxy = {"name": "proxy", "image": "envoyproxy/envoy:v1.36.2"}
    at = "roles[0].entry_template.spec.containers[1]"
    assert told(changed(serving("kthena"), {at: proxy})) == []


def test_pods_that_only_join_an_engine_answer_nobody() -> None:
    assert told(serving("kthena", "ray start --block --address=head:6379")) == [
        (
            "expose: sends requests to the entry pods of role 'server', but a worker of Ray "
            "answers no requests. Remove it, or name a role whose entry pods answer. [expose-port]"
        )
    ]
