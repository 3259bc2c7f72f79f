"""What a config of the policy pack leads to, under the real engine."""

import json
from pathlib import Path
from typing import Any

import pytest

from kthena_components.checker.enforcement import Reader, read_pack
from kthena_components.checker.levels import SettingError
from kthena_components.reading.settings import parse_map
from tests.support.engine import Run, Stack

pytestmark = pytest.mark.programs
PROGRAM = Path(__file__).parent.parent / "policies" / "program"
RULE, ADVICE = "world-size-equals-gpus", "gpu-requests-equal-limits"
OFF = {"levels": {RULE: "disabled"}}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Stack:
    made = Stack.make(PROGRAM, "test", tmp_path_factory.mktemp("enforcement"))

    def edit(config: dict[str, Any]) -> None:
        values = {"tensor": "16", "workers": 2, "late": False}  # the program breaks the rule
        config.update({f"policies-under-the-engine:{key}": v for key, v in values.items()})
        config["kubernetes:renderYamlToDirectory"] = "rendered"

    made.change(edit)
    return made


def outcome(run: Run) -> str:
    """Return how the findings of the rule ended."""
    levels = {
        event["policyEvent"]["enforcementLevel"]
        for event in run.events
        if "policyEvent" in event and f"[{RULE}]" in event["policyEvent"]["message"]
    }
    assert len(levels) < 2, levels
    return levels.pop() if levels else "disabled"


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"serving-rules": "advisory"},
        {"serving-rules": "disabled"},
        {"serving-rules": "remediate"},
        {"serving-rules": {"enforcementLevel": "disabled"}},
        {"serving-rules": {"environment": "prod"}},
        {"serving-rules": {}},
        {"all": "disabled"},
        {"all": {"enforcementLevel": "disabled"}},
        {"all": {}},
        {"all": "disabled", "serving-rules": "mandatory"},
        {"all": "disabled", "serving-rules": {"environment": "dev"}},
        {"all": "mandatory", "serving-rules": {"levels": {RULE: "advisory"}}},
        {"serving-rules": {"levels": {RULE: "advisory"}}},
        {"serving-rules": {"levels": {RULE: "advisory"}}, "serving-advice": "disabled"},
        {"serving-rules": {"levels": {RULE: "advisory"}}, "serving-advice": "mandatory"},
        {"serving-rules": OFF},
        {"serving-rules": {"levels": {"*": "disabled", RULE: "mandatory"}}},
        {"serving-advice": OFF},
        {"serving-rules": "disabled", "serving-advice": {"levels": {RULE: "advisory"}}},
        {"serving-rule": "disabled"},
        {"environments": []},
    ],
    ids=json.dumps,
)
def test_a_config_leads_to_what_the_engine_does(
    stack: Stack, tmp_path: Path, config: dict[str, Any]
) -> None:
    file = tmp_path / "levels.json"
    file.write_text(json.dumps(config))
    run = stack.preview_with_pack(file)
    reader: Reader = read_pack(config).readers[0]
    assert outcome(run) == reader.outcome(RULE, "mandatory"), run.text
    assert (run.code != 0) is (outcome(run) == "mandatory"), run.text


@pytest.mark.parametrize(
    "text",
    [
        '{"serving-rules": "Disabled"}',
        '{"serving-rules": null}',
        '{"serving-rules": {"enforcementLevel": ""}}',
        '{"serving-rules": {"enforcementLevel": 0}}',
        '{"serving-rules": {"environment": "Prod"}}',
        '{"serving-groups": {"gpuBudget": "64"}}',
        '{"all": {"environment": "dev"}}',
        '{"environments": ["team/lax"]}',
        "[]",
        "{",
    ],
)
def test_what_this_refuses_the_engine_refuses_too(stack: Stack, tmp_path: Path, text: str) -> None:
    file = tmp_path / "levels.json"
    file.write_text(text)
    run = stack.preview_with_pack(file)
    assert run.code != 0
    assert outcome(run) == "disabled", run.text
    stated = parse_map(text, file.name)
    if isinstance(stated, dict):
        with pytest.raises(SettingError):
            read_pack(stated)
