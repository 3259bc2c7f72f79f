"""docs/pods.md shows what the package writes and says today."""

import re
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import SpecError
from kthena_components.core.templates import MERGE_KEYS
from tests.resources.build import late, serving
from tests.support.recorder import attempt, record
from tests.support.specs import NATIVE_8B, changed

PAGE = (Path(__file__).parents[2] / "docs" / "pods.md").read_text()
OVERLAY, TEMPLATES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
IN_YAML, MADE = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
UNNAMED, LATE = re.findall(r"```\n(roles.*|replicas.*)\n```", PAGE)


def values(program: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(program, names)  # noqa: S102 - it is a program of the page
    return names


def test_the_overlay_makes_the_pods_that_are_shown() -> None:
    args = changed(NATIVE_8B, {"roles[0].overlay": values(OVERLAY)["overlay"]})
    entry = compile_serving(args).plan.roles[0].entry["spec"]
    told = yaml.safe_load(MADE)
    (engine,) = entry["containers"]
    assert told["containers"] == [{key: engine[key] for key in told["containers"][0]}]
    assert told["tolerations"] == entry["tolerations"]
    assert {each["name"] for each in told["volumes"]} == {each["name"] for each in entry["volumes"]}
    assert "automountServiceAccountToken" not in entry


def test_the_role_in_yaml_has_the_tolerations_of_the_overlay_in_python() -> None:
    (role,) = compile_serving({"name": "chat", **yaml.safe_load(IN_YAML)}).plan.roles
    overlay = values(OVERLAY)["overlay"]
    assert role.entry["spec"]["tolerations"] == overlay["spec"]["tolerations"]


def test_all_merge_keys_are_listed() -> None:
    assert dict(re.findall(r"^  \| `(\w+)` \| `(\w+)` \|$", PAGE, re.MULTILINE)) == MERGE_KEYS


def test_the_errors_are_those_of_the_package() -> None:
    wrong = {"roles[0].overlay.spec.containers": [{"name": "vllm", "tty": True}]}
    with pytest.raises(SpecError) as refused:
        compile_serving(changed(NATIVE_8B, wrong))
    assert [str(finding) for finding in refused.value.findings] == [UNNAMED]
    seen = attempt(lambda: serving({**NATIVE_8B, "replicas": late("2")}))
    assert isinstance(seen.error, pulumi.RunError)
    assert str(seen.error).splitlines()[1:] == [f"  {LATE}"]


def test_both_templates_make_the_same_pods() -> None:
    made = values(TEMPLATES)

    def pods(template: object) -> list[dict[str, Any]]:
        roles = [{"name": "router", "entry_template": template}]
        return [each.props for each in record(lambda: serving({"roles": roles})).resources]

    assert pods(made["typed"]) == pods(made["plain"])
