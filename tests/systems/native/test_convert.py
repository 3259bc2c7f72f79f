"""Objects of the native backend come back to the serving that they were written for."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kthena_components.cli.convert.output import plain
from kthena_components.compiler.compile import Compiled, compile_serving
from kthena_components.convert.conversion import SAME, Changes, Conversion, Kept
from kthena_components.convert.convert import convert
from kthena_components.core import naming
from kthena_components.core.plan.facts import facts_from_plan
from tests.support.specs import GANG, GUIDE, NATIVE_8B, PREFILL_DECODE, Args, changed
from tests.support.strategies import law, servings

_HASHES = (naming.ROLE_TEMPLATE_HASH, naming.REVISION)


def emitted(compiled: Compiled, *, by_pulumi: bool = True) -> list[dict[str, Any]]:
    """Give the objects of a serving, as a file would hold them."""
    bodies = [manifest.body for manifest in compiled.manifests]
    found: list[dict[str, Any]] = [
        json.loads(json.dumps(body if by_pulumi else plain(body))) for body in bodies
    ]
    return found


def back(bodies: list[dict[str, Any]], target: str = SAME, **changes: Any) -> Conversion:
    return convert(bodies, Changes(target=target, arguments=changes))


def without_hashes(value: Any) -> Any:
    """Leave out the hashes of templates: they also cover what no object shows."""
    if isinstance(value, dict):
        return {k: without_hashes(v) for k, v in value.items() if k not in _HASHES}
    return [without_hashes(item) for item in value] if isinstance(value, list) else value


def written(bodies: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(without_hashes(plain(body)), sort_keys=True) for body in bodies)


@pytest.mark.property
@law
@given(servings("native"), st.booleans(), st.randoms())
def test_emitted_objects_come_back_to_an_equal_plan_and_equal_objects(
    args: Args, by_pulumi: bool, shuffled: Any
) -> None:
    before = compile_serving(args)
    bodies = emitted(before, by_pulumi=by_pulumi)
    assume(any(body["kind"] == "StatefulSet" for body in bodies))
    empty = [role["name"] for role in args["roles"] if not role["replicas"]]
    shuffled.shuffle(bodies)
    result = back(bodies)
    assert result.errors == ()
    (serving,) = result.servings
    kept = [dict(part.body) for part in result.parts if isinstance(part, Kept)]
    after = serving.compiled
    assert written([*emitted(after), *kept]) == written(bodies) or empty
    same = [role for role in before.plan.roles if role.name not in empty]
    if before.plan.gang:  # without a PodGroup, the order of the roles is that of the file
        assert [role.name for role in after.plan.roles] == [role.name for role in same]
    expected = facts_from_plan(replace(before.plan, roles=tuple(same)))
    found = facts_from_plan(after.plan)
    assert sorted(found.engines, key=repr) == sorted(expected.engines, key=repr)
    assert (found.gang, after.plan.groups) == (expected.gang, before.plan.groups)
    lost = {loss.name for part in result.parts for loss in part.losses}
    assert all(name.endswith(_HASHES) or ".subGroupPolicy" in name for name in lost)


@pytest.mark.parametrize("args", [NATIVE_8B, GUIDE, PREFILL_DECODE, GANG])
def test_each_example_loses_nothing_not_even_the_hash_of_a_template(args: Args) -> None:
    alone = {"backend": "native", "pod_disruption_budget": False}
    before = compile_serving(changed(args, alone))
    result = back(emitted(before, by_pulumi=False))
    (serving,) = result.servings
    assert [*serving.losses, *serving.notes[len(before.manifests) :]] == []
    assert [plain(m.body) for m in serving.compiled.manifests] == [
        plain(m.body) for m in before.manifests
    ]


def serving_of(changes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return emitted(compile_serving(changed(NATIVE_8B, changes)), by_pulumi=False)


def test_each_serving_of_a_file_is_converted() -> None:
    bodies = [*serving_of({"name": "a"}), *serving_of({"name": "b", "namespace": "other"})]
    names = [
        (part.compiled.plan.namespace, part.compiled.plan.name) for part in back(bodies).servings
    ]
    assert names == [("default", "a"), ("other", "b")]


def test_what_differs_in_one_object_is_a_loss_with_its_object() -> None:
    bodies = serving_of({"replicas": 2})
    sets = [body for body in bodies if body["kind"] == "StatefulSet"]
    chosen = next(body for body in sets if "-1-" in body["metadata"]["name"])
    chosen["metadata"]["annotations"] = {"team": "chat"}
    chosen["spec"]["template"]["spec"]["containers"][0]["image"] = "another:1"
    (serving,) = back(bodies).servings
    name = chosen["metadata"]["name"]
    assert [loss.name for loss in serving.losses] == [
        f"StatefulSet/{name}.metadata.annotations.team",
        f"StatefulSet/{name}.spec.template.spec.containers[0].image",
    ]


def test_a_missing_object_is_an_addition() -> None:
    bodies = [body for body in serving_of({}) if body["kind"] != "PodGroup"]
    (serving,) = back(bodies).servings
    assert any(note.startswith("adds PodGroup/") for note in serving.notes)


def test_a_number_in_a_name_may_have_more_digits_than_python_reads() -> None:
    bodies = serving_of({"replicas": 2})
    for body in bodies:
        body["metadata"].get("labels", {})[naming.GROUP_NAME] = f"a-{'1' * 5000}"
    assert back(bodies).parts


def test_a_stateful_set_recreates_only_the_pod_that_failed() -> None:
    (serving,) = back(serving_of({}), "kthena").servings
    body = serving.compiled.manifests[0].body
    assert (body["kind"], body["spec"]["recoveryPolicy"]) == ("ModelServing", "None")
