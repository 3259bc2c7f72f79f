"""An update that Kthena would not do as stated is refused by the real engine, before it is made."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.engine import ROOT, Run, Stack

pytestmark = pytest.mark.programs
REFUSED = (
    "the update of ModelServing default/chat is refused: 1 problem\n"
    "  spec.template.roles[0].replicas: changes from 1 to 2 with a partition that holds 1 of 2 "
    "groups back: Kthena scales the role in the other groups only. Remove the partition in the "
    "same update, which updates all groups, or keep replicas: 1. [kthena-partition-scaling]"
)


def args(engines: int, *, partition: int | None = 1, **more: Any) -> dict[str, Any]:
    engine = {"kind": "vllm", "image": "vllm/vllm-openai:v0.33.0", "model": "org/m"}
    role = {"name": "serve", "replicas": engines, "resources": {"gpus_per_pod": 1}}
    held = {"rolling_update_configuration": {"partition": partition}}
    serving = {"backend": "kthena", "replicas": 2, "roles": [{**role, "engine": engine}], **more}
    return serving if partition is None else {**serving, "rollout_strategy": held}


def write(stack: Stack, serving: dict[str, Any]) -> None:
    (stack.project / "__main__.py").write_text(
        f"from kthena_components import ModelServing\n\nModelServing('chat', {serving!r})\n"
    )


def assert_refused(run: Run) -> None:
    assert run.code != 0
    assert any(REFUSED in message for message in run.messages), run.text
    assert "Traceback" not in run.text


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    made = Stack.make(ROOT / "examples" / "ten-lines", "dev", tmp_path)
    made.change(lambda config: config.update({"kubernetes:renderYamlToDirectory": "rendered"}))
    write(made, args(1))
    made.up().require()
    return made


def test_a_role_below_a_partition_is_not_scaled(stack: Stack) -> None:
    write(stack, args(2))
    assert_refused(stack.preview())
    assert_refused(stack.up())
    (serving,) = (b for name, b in stack.rendered().items() if name.startswith("ModelServing"))
    assert serving["spec"]["template"]["roles"][0]["replicas"] == 1
    write(stack, args(2, partition=None))
    stack.up().require()


def test_a_waiver_lets_it_pass(stack: Stack) -> None:
    waivers = {"kthena-partition-scaling": "2999-12-31 the others are enough"}
    write(stack, args(2, waivers=waivers))
    stack.up().require()


def test_what_a_partition_is_for_passes(stack: Stack) -> None:
    changed = json.loads(json.dumps(args(1)).replace("v0.33.0", "v0.33.1"))
    write(stack, changed)
    run = stack.up()
    run.require()
    assert run.changes.get("update")
