"""Waivers under the policies: told as advice with day and reason, each where its object is."""

from datetime import date
from typing import Any

import pytest

from kthena_components.checker.waivers import PREFIX
from kthena_components.compiler.compile import compile_serving
from kthena_components.core.plan.report import shape
from kthena_components.policies import pack, resource_checks
from kthena_components.policies.secret_marks_and_stack_gpu import read_props
from tests.policies.broken import native
from tests.policies.objects import (
    COMPONENT,
    DEPLOYMENT,
    Args,
    advice,
    group_advice,
    group_refusals,
    in_stack,
    policy,
    refusals,
    resource,
    vllm,
    workload,
)
from tests.support.specs import ENGINE_RAY, changed

TODAY = date(2026, 6, 30)
WORLD, REASON = "world-size-equals-gpus", "2026-12-31 new nodes come"
WAIVED = f"Waived until 2026-12-31: new nodes come. [{WORLD}]"
PIPELINE = {"roles[0].engine.parallelism.pipeline": 1}


@pytest.fixture(autouse=True)
def a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (pack, resource_checks):
        monkeypatch.setattr(module, "today", lambda: TODAY)


def annotate(body: Args, text: object, rule: str = WORLD) -> Args:
    """Give an object a waiver."""
    body["metadata"].setdefault("annotations", {})[f"{PREFIX}{rule}"] = text
    return body


def test_a_waived_resource_is_advice_with_its_day_and_reason() -> None:
    wrong = annotate(workload(vllm("-tp", "16")), REASON)
    assert refusals(DEPLOYMENT, wrong) == ""
    assert advice(DEPLOYMENT, wrong).endswith(WAIVED)


def test_a_waiver_that_is_over_is_refused_with_what_it_waived() -> None:
    wrong = annotate(workload(vllm("-tp", "16")), "2026-06-29 new nodes come")
    rules = [line.rpartition(" ")[2] for line in refusals(DEPLOYMENT, wrong).splitlines()]
    assert rules == [f"[{WORLD}]", "[waiver]"]
    assert advice(DEPLOYMENT, wrong) == ""


def test_a_waiver_of_nothing_is_advice() -> None:
    right = annotate(workload(vllm("-tp", "8")), REASON)
    assert refusals(DEPLOYMENT, right) == ""
    assert "has nothing to waive" in advice(DEPLOYMENT, right)


def test_a_component_is_waived_as_its_objects_are() -> None:
    args = changed(ENGINE_RAY, {**PIPELINE, "waivers": {WORLD: REASON}})
    compiled = compile_serving(args, today=TODAY)
    props = {"name": "chat", "shape": shape(compiled.plan), "waivers": {WORLD: REASON}}
    assert refusals(COMPONENT, props) == ""
    assert advice(COMPONENT, props).endswith(WAIVED)
    assert WORLD in refusals(COMPONENT, {**props, "waivers": {WORLD: "over"}})
    objects = [in_stack(manifest.body) for manifest in compiled.manifests]
    assert group_refusals(objects) == []
    assert all(refusals(each.resource_type, plain(each.props)) == "" for each in objects)
    assert not any("waiver]" in line for _, line in group_advice(objects))


def plain(props: Any) -> Args:
    """Take the proxies off."""
    body: Args = read_props(props)
    return body


def uneven(text: object = None, rule: str = "leader-worker-same-gpus") -> list[Any]:
    """Give a group whose workers have other GPUs than its entry, with a waiver at the workers."""
    parts = native()
    engine = parts["workers"]["spec"]["template"]["spec"]["containers"][0]
    engine["resources"] = {kind: {"nvidia.com/gpu": "4"} for kind in ("limits", "requests")}
    if text is not None:
        annotate(parts["workers"], text, rule)
    return [in_stack(parts[part]) for part in ("gang", "entry", "workers")]


def rules(found: list[tuple[str, str]]) -> list[str]:
    """Give the rules of what was reported, without those of the missing Service."""
    listed = [line.rpartition(" ")[2].strip("[]") for _, line in found]
    return [rule for rule in listed if rule != "headless-service"]


def test_a_finding_of_the_stack_is_waived_at_the_object_that_it_is_about() -> None:
    assert rules(group_refusals(uneven())) == [WORLD, "leader-worker-same-gpus"]
    waived = uneven(REASON)
    assert rules(group_refusals(waived)) == [WORLD]
    assert rules(group_advice(waived)) == ["leader-worker-same-gpus"]
    (said,) = [line for _, line in group_advice(waived) if "leader-worker" in line]
    assert "Waived until 2026-12-31: new nodes come. " in said


def test_a_waiver_at_another_object_waives_nothing_and_is_told() -> None:
    stack = uneven(REASON, WORLD)
    assert rules(group_refusals(stack)) == [WORLD, "leader-worker-same-gpus"]
    assert rules(group_advice(stack)) == ["waiver"]


def test_a_wrong_waiver_is_told_once_by_the_policy_that_sees_its_object_alone() -> None:
    stack = uneven("soon")
    assert rules(group_refusals(stack)) == [WORLD, "leader-worker-same-gpus"]
    workers = stack[-1]
    alone = refusals(workers.resource_type, plain(workers.props))
    assert "begins with 'soon', which is not a day" in alone


def test_a_wrong_waiver_of_an_object_without_rules_of_its_own_is_told_with_the_stack() -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "chat", "annotations": {f"{PREFIX}headless-service": "soon"}},
        "spec": {"clusterIP": "None"},
    }
    assert rules(group_refusals([in_stack(service)])) == ["waiver"]


@pytest.mark.parametrize("kind", ["rules", "groups"])
def test_what_was_checked_for_one_policy_is_kept_for_the_other(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[object] = []
    module, name = {
        "rules": (resource_checks, "check_whole"),
        "groups": (pack, "check_objects_together"),
    }[kind]
    real = getattr(module, name)

    def count(*asked: Any, **by: Any) -> Any:
        checked.append(asked)
        return real(*asked, **by)

    monkeypatch.setattr(module, name, count)
    wrong = annotate(workload(vllm("-tp", "16"), name=f"kept-{kind}"), REASON)
    if kind == "rules":
        args, said = resource(DEPLOYMENT, wrong), list[str]()
        for policy_name in ("serving-rules", "serving-advice"):
            policy(policy_name).validate(args, lambda message, _: said.append(message))
        assert len(said) == 1
    else:
        stack = uneven(f"2026-12-31 for {kind}")
        assert group_refusals(stack) != []
        assert group_advice(stack) != []
    assert len(checked) == 1
