"""The pack under the real engine: what stops a preview, what only speaks, and what is silent."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kthena_components.core.rules.production import PRODUCTION_NAMES
from tests.policies.process import PACK
from tests.support.engine import Run, Stack

pytestmark = pytest.mark.programs

PROGRAM = Path(__file__).with_name("program")
DEPLOYMENT = (
    "spec.template.spec.containers[0].command: engine 'llama-70b' starts tensor 16 × pipeline 1 = "
    "16 ranks, but its pod has 8 GPUs. Set tensor to 8, or give the engine 2 pods and connect "
    "them with --nnodes 2, --node-rank and --master-addr. "
    "[world-size-equals-gpus]"
)
MODEL_SERVING = (
    "spec.template.roles[0].entryTemplate.spec.containers[0].command: engine 'decode' starts "
    "tensor 8 × pipeline 2 = 16 ranks, but its 3 pods × 8 GPUs hold 24. Set pipeline to 3, or give "
    "the engine 2 pods. [world-size-equals-gpus]"
)
NOT_CHECKED = (
    "spec.template.spec.containers[0].command: engine 'llama-70b' was not checked, because its "
    "value is a Pulumi Output, which is known only after the deployment. [world-size-equals-gpus]"
)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Stack:
    return Stack.make(PROGRAM, "test", tmp_path_factory.mktemp("policies"))


def preview(
    stack: Stack,
    environment: str | Path,
    *,
    tensor: int,
    workers: int,
    late: bool = False,
    waiver: str = "",
    gpu: str = "h200",
) -> Run:
    """Preview the program under the levels of an environment, or of a file."""
    values = {"tensor": str(tensor), "workers": workers, "late": late, "waiver": waiver}

    def edit(config: dict[str, Any]) -> None:
        config.update({f"policies-under-the-engine:{key}": v for key, v in values.items()})
        config["kubernetes:renderYamlToDirectory"] = "rendered"  # no cluster is needed
        config["kthena-components:gpu"] = gpu

    stack.change(edit)
    levels = environment
    if isinstance(environment, str):
        levels = PACK / "levels" / f"{environment}.json"
    return stack.preview_with_pack(levels)


def findings(run: Run) -> dict[str, str]:
    """Give what rules other than those about production reported."""
    return {text: level for text, level in reported(run).items() if "[production-" not in text}


def reported(run: Run) -> dict[str, str]:
    """Give what the policies reported: the sentence, and the level it had."""
    events = (event["policyEvent"] for event in run.events if "policyEvent" in event)
    plain = ((re.sub(r"<\{%.*?%\}>", "", e["message"]), e["enforcementLevel"]) for e in events)
    return {text.strip().splitlines()[-1].strip(): level for text, level in plain}


def test_wrong_servings_stop_a_preview_under_the_levels_of_prod(stack: Stack) -> None:
    run = preview(stack, "prod", tensor=16, workers=2)
    assert run.code != 0
    assert findings(run) == {DEPLOYMENT: "mandatory", MODEL_SERVING: "mandatory"}
    assert DEPLOYMENT in run.text
    assert MODEL_SERVING in run.text


def config(tmp_path: Path, levels: dict[str, str]) -> Path:
    """Write a config of the pack that weighs rules one by one."""
    path = tmp_path / "levels.json"
    path.write_text(json.dumps({"serving-rules": {"levels": levels}}))
    return path


def test_the_same_servings_are_advice_where_the_rule_weighs_less(
    stack: Stack, tmp_path: Path
) -> None:
    levels = config(tmp_path, {"world-size-equals-gpus": "advisory"})
    run = preview(stack, levels, tensor=16, workers=2)
    assert run.code == 0, run.text
    assert findings(run) == {DEPLOYMENT: "advisory", MODEL_SERVING: "advisory"}


def test_pods_that_do_not_fit_an_inventory_are_advice_before_anything_is_applied(
    stack: Stack, tmp_path: Path
) -> None:
    inventory, levels = tmp_path / "prod.yaml", tmp_path / "levels.json"
    head = "apiVersion: kthena-components/v1\nkind: Inventory\nracks: 1\nnodes_per_rack: 1\n"
    inventory.write_text(f"{head}gpus: 8\ncpu: 192\nmemory: 2Ti\n")
    levels.write_text(json.dumps({"serving-groups": {"inventory": str(inventory)}}))
    run = preview(stack, levels, tensor=8, workers=1)
    assert run.code == 0, run.text
    told = {text: level for text, level in reported(run).items() if "[placement-fits]" in text}
    assert set(told.values()) == {"advisory"}
    groups = sorted(text.partition(" on ")[0] for text in told)
    assert groups == ["default/llama-405b-0 never fits", "default/llama-70b fits in part"]
    assert all("placed" in text for text in told)


@pytest.mark.parametrize(
    ("levels", "told"),
    [
        (
            {"world-size-equal-gpu": "advisory"},
            "levels: there is no rule 'world-size-equal-gpu'; write 'world-size-equals-gpus'. [",
        ),
        (
            {"world-size-equals-gpus": "error"},
            'levels.world-size-equals-gpus must be one of the following: "mandatory", "advisory", ',
        ),
    ],
    ids=["rule", "level"],
)
def test_levels_that_cannot_be_used_stop_a_preview_with_one_sentence(
    stack: Stack, tmp_path: Path, levels: dict[str, str], told: str
) -> None:
    run = preview(stack, config(tmp_path, levels), tensor=8, workers=1)
    assert run.code != 0
    assert told in run.text
    assert "Traceback" not in run.text


def test_a_waived_serving_is_advice_with_its_day_and_reason(stack: Stack) -> None:
    run = preview(stack, "prod", tensor=16, workers=1, waiver="9999-12-31 more nodes come")
    assert run.code == 0, run.text
    said = DEPLOYMENT.replace(" [", " Waived until 9999-12-31: more nodes come. [")
    assert findings(run) == {said: "advisory"}


def test_a_waiver_that_is_over_stops_a_preview(stack: Stack) -> None:
    run = preview(stack, "prod", tensor=16, workers=1, waiver="2025-01-01 more nodes come")
    assert run.code != 0
    assert DEPLOYMENT in findings(run)
    assert "ended on 2025-01-01, and today is" in run.text


def test_right_servings_are_not_spoken_of(stack: Stack) -> None:
    run = preview(stack, "staging", tensor=8, workers=1)
    assert run.code == 0, run.text
    assert reported(run) == {}


def test_memory_that_was_not_checked_is_said_once_of_a_stack(stack: Stack) -> None:
    run = preview(stack, "staging", tensor=8, workers=1, gpu="")
    assert run.code == 0, run.text
    ((text, level),) = reported(run).items()
    assert text.startswith("memory of Deployment default/llama-70b and 1 other was not checked, ")
    assert "pulumi config set kthena-components:gpu h200" in text
    assert level == "advisory"


def test_right_servings_are_reviewed_in_prod(stack: Stack) -> None:
    run = preview(stack, "prod", tensor=8, workers=1)
    assert run.code == 0, run.text
    assert findings(run) == {}
    assert set(reported(run).values()) == {"advisory"}
    rules = {text.rpartition("[")[2].removesuffix("]") for text in reported(run)}
    assert rules == PRODUCTION_NAMES


def test_what_a_preview_does_not_know_is_said_and_stops_nothing(stack: Stack) -> None:
    run = preview(stack, "prod", tensor=8, workers=1, late=True)
    assert run.code == 0, run.text
    said = NOT_CHECKED.removesuffix("[world-size-equals-gpus]")
    about_shape = ("ffn-divisible", "tp-divides-heads", "tp-divides-kv-heads")
    lines = [NOT_CHECKED, *(f"{said}[{rule}]" for rule in about_shape)]
    assert findings(run) == dict.fromkeys(lines, "advisory")
