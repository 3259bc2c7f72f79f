"""No object, however odd, ends `convert` with a traceback, a hang or code of its author."""

import copy
import json
import signal
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.cli.main import main
from tests.support.strategies import law

SECONDS = 5
ODD = [
    "",
    "a",
    "\n",
    "(a+)+$",
    "*",
    "\\",
    "__proto__",
    "secure",
    "\u2028",
    0,
    -1,
    1.5,
    2**70,
    True,
    None,
]
ODD += [[], {}, [None], ["a"], [[]], {"a": 1}, {"secure": "x"}, {"": None}]


def lws() -> dict[str, Any]:
    def pod(command: str) -> dict[str, Any]:
        field = {"fieldRef": {"fieldPath": "metadata.name"}}
        container = {
            "name": "vllm",
            "image": "vllm/vllm-openai:v0.10.0",
            "command": ["sh", "-c", f"{command} {'a' * 40}!"],
            "env": [{"name": "POD_NAME", "valueFrom": field}],
            "resources": {"limits": {"nvidia.com/gpu": "8"}, "requests": {"cpu": "1"}},
        }
        return {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}

    script = "multi-node-serving.sh"
    leader = f"{script} leader --ray_cluster_size=$(LWS_GROUP_SIZE); vllm serve m -tp 8 -pp 2"
    pods = {
        "size": 2,
        "leaderTemplate": pod(leader),
        "workerTemplate": pod(f"{script} worker --ray_address=$(LWS_LEADER_ADDRESS)"),
    }
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "llama"},
        "spec": {"replicas": 1, "leaderWorkerTemplate": pods},
    }


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[object, str], int]]:
    file = tmp_path_factory.mktemp("hostile") / "a.json"

    def hang(_number: int, _frame: FrameType | None) -> None:
        pytest.fail(f"no end after {SECONDS} s")

    def run(body: object, target: str) -> int:
        file.write_text(json.dumps(body))
        signal.alarm(SECONDS)
        try:
            return main(["convert", str(file), "--to", target])
        finally:
            signal.alarm(0)

    before = signal.signal(signal.SIGALRM, hang)
    yield run
    signal.signal(signal.SIGALRM, before)


def _containers(body: dict[str, Any]) -> list[dict[str, Any]]:
    pods = body["spec"]["leaderWorkerTemplate"]
    return [pods[f"{role}Template"]["spec"]["containers"][0] for role in ("leader", "worker")]


def stateful_set(variable: str) -> dict[str, Any]:
    script = f"echo $POD {'a' * 40}! ; python3 -m sglang.launch_server --model m --tp 16 --nnodes 2"
    container = {
        "name": "sglang",
        "image": "lmsysorg/sglang:v0.5.2",
        "command": ["bash", "-c", f"{script} --dist-init-addr chat-0.chat:5100 --node-rank $RANK"],
        "env": [{"name": variable, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "resources": {"limits": {"nvidia.com/gpu": 8}},
    }
    pods = {"metadata": {"labels": {"app": "chat"}}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "chat"},
        "spec": {
            "replicas": 2,
            "serviceName": "chat",
            "selector": {"matchLabels": {"app": "chat"}},
            "template": pods,
        },
    }


@pytest.mark.parametrize("name", ["POD", "*", "(", "[", "(a+)+b", "(a|aa)+$", "\\", ""])
def test_the_name_of_a_variable_is_no_pattern(
    converted: Callable[[object, str], int], name: str
) -> None:
    for target in ("kthena", "kserve", "python"):
        assert converted(stateful_set(name), target) in {0, 1, 2}


@pytest.mark.parametrize("odd", [7, "a", [1], [], None, {"limits": 1}, {"requests": "a"}], ids=repr)
@pytest.mark.parametrize("target", ["lws", "python", "stack"])
def test_resources_of_any_type(
    converted: Callable[[object, str], int], odd: object, target: str
) -> None:
    body = lws()
    for container in _containers(body):
        container["resources"] = odd
    assert converted(body, target) in {0, 1, 2}


def _places(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else ()
    for key, item in items or (enumerate(value) if isinstance(value, list) else ()):
        yield (*path, key)
        yield from _places(item, (*path, key))


@law
@given(st.data())
def test_any_value_may_stand_anywhere(
    converted: Callable[[object, str], int], data: st.DataObject
) -> None:
    body: Any = lws()
    for _ in range(data.draw(st.integers(1, 2))):
        *above, last = data.draw(st.sampled_from(list(_places(body))))
        inside = body
        for key in above:
            inside = inside[key]
        inside[last] = copy.deepcopy(data.draw(st.sampled_from(ODD)))
    target = data.draw(st.sampled_from(["kthena", "lws", "kserve", "native", "python", "stack"]))
    assert converted(body, target) in {0, 1, 2}
