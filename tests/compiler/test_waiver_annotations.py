"""A component, its manifests and whoever judges them agree on what is waived."""

from datetime import date
from typing import Any

import pytest

from kthena_components.checker.check_cluster_objects import check_objects_together
from kthena_components.checker.manifest import check_manifest
from kthena_components.checker.waivers import PREFIX, RULE
from kthena_components.compiler.compile import (
    Compiled,
    compile_group,
    compile_role,
    compile_serving,
)
from kthena_components.core.findings import Finding, Level, SpecError
from tests.support.specs import ENGINE_RAY, GROUP, GUIDE, ROLE, changed

TODAY = date(2026, 6, 30)
WORLD = "world-size-equals-gpus"
REASON = "2026-12-31 two GPUs of each node wait for repair"
WRONG = {"roles[0].engine.parallelism.pipeline": 1}
"""Tensor 8 × pipeline 1 on 2 pods × 8 GPUs."""


def compiled(waivers: dict[str, str], backend: str = "native", **changes: Any) -> Compiled:
    """Compile a serving of 8 ranks on 16 GPUs."""
    args = changed(ENGINE_RAY, {**WRONG, "backend": backend, **changes})
    return compile_serving({**args, "waivers": waivers}, today=TODAY)


def refusals(waivers: dict[str, str], **changes: Any) -> list[Finding]:
    """Give why that serving is refused."""
    with pytest.raises(SpecError) as caught:
        compiled(waivers, **changes)
    return list(caught.value.findings)


@pytest.mark.parametrize("backend", ["native", "kthena"])
def test_a_waived_serving_is_planned_and_its_manifests_carry_the_waiver(backend: str) -> None:
    made = compiled({WORLD: REASON}, backend)
    levels = {finding.rule: finding.level for finding in made.findings}
    assert (levels[WORLD], RULE in levels) == (Level.WAIVED, False)
    bodies = {str(number): manifest.body for number, manifest in enumerate(made.manifests)}
    alone = [f for body in bodies.values() for f in check_manifest(body, today=TODAY)]
    found = [*alone, *check_objects_together(bodies, TODAY)]
    assert {f.level for f in found if f.rule == WORLD} == {Level.WAIVED}
    assert [str(f) for f in found if f.level is Level.MANDATORY or f.rule == RULE] == []


def test_only_the_manifests_in_which_something_is_found_carry_a_waiver() -> None:
    made = compiled({WORLD: REASON})
    carriers = {
        manifest.name
        for manifest in made.manifests
        if f"{PREFIX}{WORLD}" in manifest.body["metadata"].get("annotations", {})
    }
    assert carriers == {"chat-0-decode-0", "chat-1-decode-0"}


def test_an_option_of_a_backend_is_waived_like_the_field_that_it_becomes() -> None:
    order, reason = "start-order", "2026-12-31 the probe of the leader does not wait"
    args = {**GUIDE, "backend": "lws", "backend_options": {"startup_policy": "LeaderReady"}}
    made = compile_serving({**args, "waivers": {order: reason}}, today=TODAY)
    found = [f for each in made.manifests for f in check_manifest(each.body, today=TODAY)]
    for findings in (made.findings, found):
        assert {f.rule: f.level for f in findings}[order] is Level.WAIVED


def test_a_rule_over_all_objects_is_waived_in_each_of_them() -> None:
    made = compiled({WORLD: REASON, "headless-service": "2026-12-31 another stack has it"})
    key = f"{PREFIX}headless-service"
    kinds = {m.kind for m in made.manifests if key in m.body["metadata"].get("annotations", {})}
    assert kinds == {"StatefulSet", "PodGroup"}
    bodies = {f"{m.kind} {m.name}": m.body for m in made.manifests}
    addressed = {
        name: {**body, "spec": {**body["spec"], "clusterIP": ""}}
        if body["kind"] == "Service"
        else body
        for name, body in bodies.items()
    }
    found = check_objects_together(addressed, TODAY)
    assert {f.level for f in found if f.rule == "headless-service"} == {Level.WAIVED}
    assert [str(f) for f in found if f.rule == RULE] == []


def test_a_waiver_keeps_the_annotations_that_are_there() -> None:
    (serving, *_) = compiled({WORLD: REASON}, "kthena").manifests
    annotations = serving.body["metadata"]["annotations"]
    assert annotations[f"{PREFIX}{WORLD}"] == REASON
    assert "pulumi.com/waitFor" in annotations


def test_pods_are_the_same_with_a_waiver_and_without() -> None:
    plain = compile_serving(changed(ENGINE_RAY), today=TODAY)
    waived = compile_serving(
        changed(ENGINE_RAY, {"waivers": {"headless-service": REASON}}), today=TODAY
    )
    assert [m.body["spec"] for m in plain.manifests] == [m.body["spec"] for m in waived.manifests]


@pytest.mark.parametrize(
    ("waivers", "said"),
    [
        ({WORLD: "2026-06-29 over"}, f"waivers.{WORLD}: ended on 2026-06-29, and today is "),
        ({WORLD: "soon"}, f"waivers.{WORLD}: begins with 'soon', which is not a day"),
        ({WORLD: ""}, f"waivers.{WORLD}: gives neither a day nor a reason"),
        ({"world": REASON}, "waivers.world: there is no rule 'world'"),
    ],
)
def test_a_waiver_with_a_mistake_is_refused_with_the_finding(
    waivers: dict[str, str], said: str
) -> None:
    found = refusals(waivers)
    assert [f.rule for f in found] == [WORLD, RULE]
    assert str(found[1]).startswith(said)


def test_what_leaves_no_plan_cannot_be_waived() -> None:
    found = refusals({"role-names-unique": REASON, WORLD: REASON}, **{"roles[1]": ROLE_AGAIN})
    (told,) = [str(f) for f in found if f.rule == RULE]
    assert told == (
        "waivers.role-names-unique: cannot waive 'role-names-unique': its finding prevents the "
        "plan of the component. Fix the finding, and remove the waiver. [waiver]"
    )


ROLE_AGAIN = changed(ENGINE_RAY)["roles"][0]


def test_a_waiver_that_waives_nothing_is_advice() -> None:
    made = compile_serving(changed(ENGINE_RAY, {"waivers": {WORLD: REASON}}), today=TODAY)
    (told,) = [f for f in made.findings if f.rule == RULE]
    assert (told.path, told.level) == (f"waivers.{WORLD}", Level.ADVISORY)


def test_a_shape_is_still_refused() -> None:
    with pytest.raises(SpecError) as caught:
        compile_serving(changed(ENGINE_RAY, {"waivers": {WORLD: 7}}), today=TODAY)
    assert [str(f) for f in caught.value.findings] == [
        f"waivers.{WORLD}: is 7, but must be text. Put it in quotes: '7'. [type]"
    ]


def test_without_a_day_no_waiver_is_heeded() -> None:
    with pytest.raises(SpecError):
        compile_serving({**changed(ENGINE_RAY, WRONG), "waivers": {WORLD: REASON}})


@pytest.mark.parametrize(
    ("compiler", "args", "path"),
    [
        (compile_group, GROUP, "roles[0].engine.parallelism.pipeline"),
        (compile_role, ROLE, "engine.parallelism.pipeline"),
    ],
)
def test_groups_and_roles_by_themselves_are_waived_too(
    compiler: Any, args: dict[str, Any], path: str
) -> None:
    wrong = changed(args, {path: 3})
    with pytest.raises(SpecError) as caught:
        compiler(wrong, today=TODAY)
    rules = {f.rule for f in caught.value.findings}
    made = compiler({**wrong, "waivers": dict.fromkeys(rules, REASON)}, today=TODAY)
    assert {f.rule for f in made.findings if f.level is Level.WAIVED} == rules
    assert any("annotations" in manifest.body["metadata"] for manifest in made.manifests)
