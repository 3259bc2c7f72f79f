"""The program in docs/backends/kthena.md, whose AutoscalingPolicy scales two servings."""

import copy
import re
from pathlib import Path
from typing import Any

import pytest

from kthena_components.checker.check_cluster_objects import check_objects_together
from kthena_components.checker.manifest import check_manifest
from kthena_components.core.findings import Level
from tests.support.crds import schema_errors
from tests.support.recorder import record

PAGE = Path(__file__).parents[3] / "docs" / "backends" / "kthena.md"


@pytest.fixture(scope="module")
def registered() -> dict[str, dict[str, Any]]:
    """Run the program, and give its objects by name and kind."""
    section = PAGE.read_text().partition("## Objects beside the components")[2]
    (program,) = re.findall(r"```python\n(.*?)```", section.partition("\n## ")[0], re.DOTALL)
    seen = record(lambda: exec(compile(program, str(PAGE), "exec"), {}))  # noqa: S102 - our own page
    assert seen.error is None
    made = [whole(one.props) for one in seen.resources if one.type.startswith("kubernetes:")]
    return {f"{body['kind']}/{body['metadata']['name']}": body for body in made}


def whole(value: Any) -> Any:
    """Give whole numbers back their type: protobuf has floats only."""
    if isinstance(value, dict):
        return {key: whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def test_the_program_registers_two_servings_and_a_policy(
    registered: dict[str, dict[str, Any]],
) -> None:
    assert sorted(registered) == [
        "AutoscalingPolicy/qwen",
        "ModelServing/qwen-h100",
        "ModelServing/qwen-l40s",
    ]


def test_its_objects_break_no_rule_and_fit_the_crds(registered: dict[str, dict[str, Any]]) -> None:
    for body in registered.values():
        assert [f for f in check_manifest(body) if f.level is Level.MANDATORY] == []
        assert schema_errors(body) == []
    assert [f for f in check_objects_together(registered) if f.level is Level.MANDATORY] == []


@pytest.mark.parametrize(
    ("path", "value", "rule"),
    [
        ("target", {"targetRef": {"kind": "ModelServing"}}, "kthena-autoscaling-target"),
        ("minimumReplicas", 1, "kthena-schema"),
    ],
)
def test_a_mistake_in_its_targets_is_reported(
    registered: dict[str, dict[str, Any]], path: str, value: Any, rule: str
) -> None:
    body = copy.deepcopy(registered["AutoscalingPolicy/qwen"])
    body["spec"]["heterogeneousTarget"]["params"][0][path] = value

    (found,) = (one for one in check_manifest(body) if one.level is Level.MANDATORY)

    assert found.rule == rule
    assert "heterogeneousTarget.params[0]" in found.path
