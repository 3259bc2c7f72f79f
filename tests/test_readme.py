"""The README and the pages under docs/ show what the code prints today."""

import copy
import json
import re
from datetime import date
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest
import yaml

from kthena_components.checker.levels import LevelOverride, parse_settings
from kthena_components.checker.manifest import check_manifest
from kthena_components.checker.waivers import annotated, read_waiver
from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import SpecError, Waiver
from kthena_components.core.plan.report import render_rows, shape
from sandbox.cluster import Size
from tests.support.specs import GUIDE

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
REVIEW, LEVELS, SANDBOX = (
    (ROOT / "docs" / f"{page}.md").read_text() for page in ("review", "levels", "sandbox")
)


def dev_serving() -> dict[str, Any]:
    config = yaml.safe_load((ROOT / "stacks" / "Pulumi.dev.yaml").read_text())["config"]
    serving: dict[str, Any] = config["kthena-components:servings"][0]
    return copy.deepcopy(serving)


def test_the_table_is_the_one_of_the_dev_stack() -> None:
    assert render_rows(shape(compile_serving(dev_serving()).plan)) in README


def test_the_refusal_is_the_one_of_the_changed_number() -> None:
    serving = dev_serving()
    assert serving["roles"][0]["engine"]["parallelism"] == {"pipeline": 2}
    serving["roles"][0]["engine"]["parallelism"] = {"pipeline": 3}
    with pytest.raises(SpecError) as refused:
        compile_serving(serving)
    (finding,) = refused.value.findings
    shown = f"  stacks/Pulumi.dev.yaml: kthena-components:{finding.under('servings[0]')}"
    assert f"1 problem\n{shown}\n" in README


def test_the_program_is_the_example() -> None:
    example = (ROOT / "examples" / "ten-lines" / "__main__.py").read_text()
    (shown,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert shown in example


def test_the_policy_finding_is_the_one_of_three_nodes() -> None:
    (serving, *_) = compile_serving({**GUIDE, "backend": "kthena"}).manifests
    body = copy.deepcopy(dict(serving.body))
    role = body["spec"]["template"]["roles"][0]
    role["name"], role["workerReplicas"] = "decode", 2
    found = [f for f in check_manifest(body) if f.rule == "world-size-equals-gpus"]
    assert [f"  {finding}\n" in REVIEW for finding in found] == [True]


def test_the_config_of_the_policies_can_be_used() -> None:
    (shown,) = re.findall(r"```json\n(.*?)```", LEVELS, re.DOTALL)
    config = json.loads(shown)
    settings = parse_settings(config["serving-rules"])
    assert settings.levels.weights["image-pinned"] is LevelOverride.ADVISORY
    assert settings.versions == {"kthena": "0.4"}
    together = parse_settings(config["serving-groups"], together=True)
    assert together.levels.weights
    assert (together.gpu_budget, together.gpu_types) == (64, ("nvidia.com/gpu",))


def test_the_waiver_can_be_used() -> None:
    (shown,) = re.findall(r"```yaml\n(metadata:.*?)```", LEVELS, re.DOTALL)
    (waiver,) = annotated(yaml.safe_load(shown))
    assert isinstance(read_waiver(waiver, date(2026, 1, 1)), Waiver)
    assert f'`waivers: {{{waiver.rule}: "{waiver.text}"}}`' in LEVELS


def test_the_table_of_the_sandbox_is_the_one_of_its_stack() -> None:
    config = yaml.safe_load((ROOT / "stacks" / "Pulumi.sandbox.yaml").read_text())["config"]
    servings = copy.deepcopy(config["kthena-components:servings"])
    table = render_rows(
        [row for serving in servings for row in shape(compile_serving(serving).plan)]
    )
    assert indent(table, "    ") in SANDBOX
    assert f"starting a cluster of {Size()}, about" in SANDBOX
