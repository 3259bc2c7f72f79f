"""A wrong role hides no finding about another role."""

from typing import Any

import pytest

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import SpecError
from tests.support.for_each import for_each

ENGINE = {
    "kind": "vllm",
    "image": "vllm/vllm-openai:v0.9.2",
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "parallelism": {"tensor": 8},
}
RIGHT = {"engine": ENGINE, "resources": {"gpus_per_pod": 8}}
TOO_MANY_RANKS = {"engine": ENGINE, "resources": {"gpus_per_pod": 4}}
HEADS = {"engine": {**ENGINE, "parallelism": {"tensor": 6}}, "resources": {"gpus_per_pod": 6}}
NO_FIELD = {**RIGHT, "bogus": 3}
NO_PLAN = {"resources": {"gpus_per_pod": 8}}


def told(*roles: dict[str, Any], **more: Any) -> list[str]:
    """Return the findings about a serving of some roles, in order."""
    named = [{"name": f"r{index}", **role} for index, role in enumerate(roles)]
    with pytest.raises(SpecError) as caught:
        compile_serving({"name": "chat", "backend": "native", "roles": named, **more})
    return [f"{each.path} {each.rule}" for each in caught.value.findings]


@for_each("wrong", [NO_FIELD, NO_PLAN])
def test_findings_about_other_roles(wrong: dict[str, Any]) -> None:
    alone = told(TOO_MANY_RANKS, HEADS)
    moved = [each.replace("roles[1]", "roles[3]").replace("roles[0]", "roles[1]") for each in alone]
    found = told(wrong, TOO_MANY_RANKS, RIGHT, HEADS)
    assert len(alone) > 1
    assert set(found) >= set(moved)
    assert found[0].startswith("roles[0]")
    assert len(found) == len(set(found))


@for_each("more", [{"name": "A_B"}, {"bogus": 1}])
def test_findings_beside_a_wrong_field_of_the_serving(more: dict[str, Any]) -> None:
    found = told(TOO_MANY_RANKS, RIGHT, **more)
    assert set(found) > set(told(TOO_MANY_RANKS, RIGHT))


def test_a_wrong_role_and_wrong_fields_of_the_serving_end() -> None:
    found = told(NO_FIELD, TOO_MANY_RANKS, NO_PLAN, name="A_B", replicas="many", bogus=1)
    assert len(found) == len(set(found))
    assert "roles[1].engine.parallelism world-size-equals-gpus" in found


def test_a_field_with_dots_in_its_name_ends() -> None:
    more = {"modelserving.volcano.sh/revision": "a", "replicas": 0}
    assert "roles[0].engine.parallelism world-size-equals-gpus" in told(TOO_MANY_RANKS, **more)


def test_right_roles_get_no_finding() -> None:
    decode = {**RIGHT, "engine": {**ENGINE, "kv_transfer": {"role": "decode", "connector": "nixl"}}}
    assert told(NO_FIELD, decode) == ["roles[0].bogus unknown-field"]
    assert told(NO_FIELD, RIGHT, gang_policy={"min_role_replicas": {"r0": 1}}) == [
        "roles[0].bogus unknown-field"
    ]
