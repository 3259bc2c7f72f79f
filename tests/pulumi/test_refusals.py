"""What the engine's user sees of a refusal: all of it, no traceback, and nothing was made."""

from pathlib import Path
from typing import Any

import pytest

from tests.pulumi.lives import OWN
from tests.support.engine import ROOT, Run, Stack

pytestmark = pytest.mark.programs
REFUSED = "stack 'dev' is refused, and nothing was changed:"


def assert_refused(stack: Stack, run: Run, message: str) -> None:
    assert run.code != 0
    assert message in run.messages
    assert "Traceback" not in run.text
    assert not stack.resources
    assert not stack.rendered()


def test_every_slip_of_a_stack_file_is_told_before_anything_is_made(tmp_path: Path) -> None:
    def slip(config: dict[str, Any]) -> None:
        (serving,) = config[f"{OWN}servings"]
        config[f"{OWN}context"] = "prod"
        config[f"{OWN}queues"] = [{"name": "research", "wieght": 2}]
        serving["roles"][0]["engine"]["parallelism"]["tensor"] = 2
        config[f"{OWN}servings"].append({"name": "b", "roles": [{"name": "serve", "replica": 3}]})

    stack = Stack.make(ROOT, "dev", tmp_path)
    stack.change(slip)
    file = "  stacks/Pulumi.dev.yaml: kthena-components:"
    message = f"""{REFUSED} 4 problems
{file}queues[0].wieght: there is no field 'wieght' here. Write 'weight'. [unknown-field]
{file}context: is given, but output is render, which writes files and connects to no cluster. \
Remove it, or write output: cluster. [output-field]
{file}servings[0].roles[0].engine.parallelism: engine 'serve' starts tensor 2 × pipeline 2 = 4 \
ranks, but its 2 pods × 1 GPU hold 2. Set pipeline to 1, or set tensor to 1, or give the engine \
4 pods (worker_replicas: 3), or give each pod 2 GPUs. [world-size-equals-gpus]
{file}servings[1].roles[0].replica: there is no field 'replica' here. Write 'replicas'. \
[unknown-field]"""
    assert_refused(stack, stack.preview(), message)
    assert_refused(stack, stack.up(), message)


def test_a_stack_that_became_empty_is_not_taken_down(tmp_path: Path) -> None:
    stack = Stack.make(ROOT, "dev", tmp_path)
    made = stack.up().changes["create"]
    stack.change(lambda config: config.pop(f"{OWN}servings"))
    run = stack.up()
    assert run.code != 0
    assert run.messages[0] == (
        f"{REFUSED} 1 problem\n  stacks/Pulumi.dev.yaml: kthena-components:servings: is empty, and "
        "so are topology, queues and secrets; an update would delete all that this stack has "
        "deployed. Add servings, or run 'pulumi destroy'. [stack-empty]"
    )
    assert len(stack.resources) == made - 1, "the stack itself is not listed"


def test_a_program_that_is_refused_shows_the_findings_of_its_component(tmp_path: Path) -> None:
    stack = Stack.make(ROOT / "examples" / "ten-lines", "dev", tmp_path)
    stack.change(lambda config: config.update({"kubernetes:renderYamlToDirectory": "rendered"}))
    program = stack.project / "__main__.py"
    program.write_text(program.read_text().replace('"pipeline": 2', '"pipeline": 4'))
    assert_refused(
        stack,
        stack.up(),
        "ModelServing 'chat' is refused: 1 problem\n"
        "  roles[0].engine.parallelism: engine 'serve' starts tensor 8 × pipeline 4 = 32 ranks, "
        "but its 2 pods × 8 GPUs hold 16. Set pipeline to 2, or set tensor to 4, or give the "
        "engine 4 pods (worker_replicas: 3). [world-size-equals-gpus]",
    )


def test_without_its_plugin_the_engine_names_the_plugin_and_the_version(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    stack = Stack.make(ROOT, "dev", tmp_path, {"PULUMI_HOME": str(home)})
    run = stack.up()
    assert run.code != 0
    (message,) = (text for text in run.messages if "plugin" in text)
    assert message.startswith("no resource plugin 'pulumi-resource-kubernetes' found")
    assert "Traceback" not in run.text
    assert not stack.resources
