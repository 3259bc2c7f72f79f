"""How resources reach the rules: once each, and only those that rules are for."""

from collections.abc import Mapping
from typing import Any

import pytest
from pulumi_policy import ResourceValidationArgs

from kthena_components.checker.levels import Settings
from kthena_components.checker.manifest import CheckedObject, check_whole
from kthena_components.core.hardware import parse_choice
from kthena_components.policies import resource_checks
from kthena_components.policies.resource_checks import kept_of, unchecked_memory_of
from tests.policies.objects import DEPLOYMENT, policy, resource, vllm, workload

GPU: Any = parse_choice(["h200"])
RIGHT, WRONG = workload(vllm("-tp", "8")), workload(vllm("-tp", "16"))


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, Any]]:
    """Give the manifests that the rules were asked about."""
    asked: list[Mapping[str, Any]] = []

    def note(body: Mapping[str, Any], **by: Any) -> CheckedObject:
        asked.append(body)
        return check_whole(body, **by)

    monkeypatch.setattr(resource_checks, "check_whole", note)
    return asked


def hand_over(args: ResourceValidationArgs) -> list[str]:
    """Ask both resource policies about a resource, as the SDK does."""
    said: list[str] = []
    for name in ("serving-rules", "serving-advice"):
        policy(name).validate(args, lambda message, _: said.append(message))
    return said


def test_two_policies_cost_one_judgement(checked: list[Mapping[str, Any]]) -> None:
    assert (
        len(hand_over(resource(DEPLOYMENT, {**WRONG, "metadata": {"name": "two-policies"}}))) == 1
    )
    assert len(checked) == 1


def test_a_resource_that_has_changed_is_checked_again(checked: list[Mapping[str, Any]]) -> None:
    args = resource(DEPLOYMENT, WRONG)
    assert len(hand_over(args)) == 1
    args.props = resource(DEPLOYMENT, RIGHT).props
    assert hand_over(args) == []
    assert len(checked) == 2


def test_a_type_without_rules_is_not_even_read(checked: list[Mapping[str, Any]]) -> None:
    untouchable: Any = object()
    args = resource("kubernetes:core/v1:Namespace", {})
    args.props = untouchable
    assert hand_over(args) == []
    assert checked == []


def test_what_was_found_alone_is_kept_for_an_equal_object_and_the_same_settings() -> None:
    args = resource(DEPLOYMENT, WRONG)
    hand_over(args)
    one = resource_checks._kept[args.urn]
    same, other = {args.urn: one.body}, {args.urn: {**one.body, "metadata": {"name": "other"}}}
    assert kept_of(same, Settings()) == {args.urn: one.checked}
    assert unchecked_memory_of(same, Settings()) == {0: one.memory_unchecked}
    assert one.checked.findings
    assert kept_of(other, Settings()) == {}
    assert kept_of({"elsewhere": one.body}, Settings()) == {}
    assert kept_of(same, Settings(versions={"kthena": "0.4"})) == {}
    assert unchecked_memory_of(same, Settings(gpus=GPU)) == {}
