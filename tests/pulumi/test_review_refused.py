"""A review of a program of one's own that stops at a refused component, on the real engine."""

from pathlib import Path
from typing import Any

import pytest

from kthena_components.cli.main import main
from kthena_components.cli.review.preview_runner import Previewer, state_of
from tests.cli.previews import cells
from tests.support.engine import ROOT, Stack

pytestmark = pytest.mark.programs
PROGRAM = """\
from kthena_components import ModelServing


def serve(name, replicas, gpus, tensor):
    engine = {
        "kind": "vllm",
        "image": "vllm/vllm-openai:v0.33.0",
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "parallelism": {"tensor": tensor},
    }
    role = {"name": "serve", "replicas": replicas, "resources": {"gpus_per_pod": gpus}}
    ModelServing(name, {"roles": [{**role, "engine": engine}]})


"""


@pytest.fixture
def deployed(tmp_path: Path) -> Stack:
    """Deploy three servings with 16 + 16 + 12 = 44 GPUs."""
    stack = Stack.make(ROOT / "examples" / "ten-lines", "dev", tmp_path)
    stack.change(lambda config: config.update({"kubernetes:renderYamlToDirectory": "rendered"}))
    write(stack, ("alpha", 2, 8, 8), ("gamma", 2, 8, 8), ("beta", 3, 4, 4))
    stack.up().require()
    return stack


def write(stack: Stack, *servings: tuple[str, int, int, int]) -> None:
    """Write a program of some servings."""
    lines = [f"serve{one!r}\n" for one in servings]
    (stack.project / "__main__.py").write_text(PROGRAM + "".join(lines))


@pytest.mark.parametrize("last", ["beta", "gamma"])
def test_a_refused_component_is_named_and_counts_as_deployed(
    deployed: Stack, last: str, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program stops at beta; the one after it is not registered either."""
    wrong = [("beta", 3, 4, 8), ("gamma", 2, 8, 8)]
    write(deployed, ("alpha", 7, 8, 8), *(wrong if last == "gamma" else wrong[::-1]))
    for name, value in deployed.variables.items():
        monkeypatch.setenv(name, value)
    previewer = Previewer(tree=deployed.project, policies=ROOT / "policies", work=tmp_path)
    log = tmp_path / "0.jsonl"
    assert previewer.preview("dev", deployed.settings, log) == ""
    capsys.readouterr()
    status = main(["review", f"dev={log}", "--state", f"dev={state_of(log)}"])
    told = capsys.readouterr().out
    assert status == 1
    assert "GPUs: **44 → 84 (+40)**" in told
    assert "- ModelServing beta: roles\\[0\\].engine.parallelism: engine 'serve' starts" in told
    assert cells(told, "default/beta (refused, as deployed)")[-2] == "12"
    assert ("default/gamma (as deployed)" in told) is (last == "gamma")


def test_a_program_that_ends_needs_no_state(
    deployed: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in deployed.variables.items():
        monkeypatch.setenv(name, value)
    previewer = Previewer(tree=deployed.project, policies=ROOT / "policies", work=tmp_path)
    log = tmp_path / "0.jsonl"
    previewer.preview("dev", deployed.settings, log)
    assert log.stat().st_size
    assert not state_of(log).exists()
