"""Advice about a serving's objects is given once, with the fields of the component."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import Finding, Level
from kthena_components.policies import resource_checks
from kthena_components.policies.resource_checks import advice_of_component, check_resource
from tests.support.specs import ENGINE_RAY, changed

OURS = "urn:pulumi:dev::p::kthena:index:ModelServing$kubernetes:apps/v1:StatefulSet::"
OTHERS = "urn:pulumi:dev::p::kubernetes:apps/v1:StatefulSet::"
ASKED = frozenset({"production-availability", "production-cache"})


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    resource_checks._first.clear()
    yield
    resource_checks._first.clear()


def objects(**changes: Any) -> list[tuple[str, dict[str, Any]]]:
    args = changed(ENGINE_RAY, {"roles[0].resources": {"gpus_per_pod": 8}, **changes})
    bodies = [json.loads(json.dumps(one.body)) for one in compile_serving(args).manifests]
    return [(body["metadata"]["name"], body) for body in bodies if body["kind"] == "StatefulSet"]


def advice(place: str, **changes: Any) -> list[Finding]:
    said = []
    for name, body in objects(**changes):
        found = check_resource("kubernetes:apps/v1:StatefulSet", body, asked=ASKED)
        said += [advice_of_component(f"{place}{name}", body, each) for each in found]
    return [each for each in said if each is not None]


def test_each_fact_is_said_once_for_all_objects_of_a_serving() -> None:
    alone, many = advice(OTHERS), advice(OURS)
    assert len(objects()) == 4
    assert len(many) == len({str(each) for each in alone})
    assert len(many) < len(alone)
    assert {each.seen for each in many} == {each.seen for each in alone}


def test_the_remedies_are_fields_of_the_component_and_work() -> None:
    rules = {each.rule: each.remedy for each in advice(OURS)}
    assert rules["production-availability"].startswith("write priority_class of the serving")
    assert rules["production-cache"] == "write cache.claim or cache.host_path of the role"
    resource_checks._first.clear()
    done = advice(OURS, **{"priority_class": "gold", "roles[0].cache": {"claim": "weights"}})
    assert "production-cache" not in {each.rule for each in done}
    assert not [each for each in done if "priority_class" in each.remedy]


def test_an_object_that_is_analyzed_again_says_it_again() -> None:
    assert [str(each) for each in advice(OURS)] == [str(each) for each in advice(OURS)]


def test_what_is_mandatory_is_said_of_each_object() -> None:
    (name, body), (other, second), *_ = objects()
    found = Finding(path="a", seen="b", remedy="priorityClassName", rule="c", level=Level.MANDATORY)
    for each, its in ((name, body), (other, second)):
        assert advice_of_component(f"{OURS}{each}", its, found) is found
    advised = replace(found, level=Level.ADVISORY)
    assert advice_of_component(f"{OURS}{name}", body, advised) is not None
    assert advice_of_component(f"{OURS}{other}", second, advised) is None


def test_another_serving_is_told_by_itself() -> None:
    (name, body), *_ = objects()
    found = Finding(path="a", seen="b", remedy="c", rule="d", level=Level.ADVISORY)
    other = {**body, "metadata": {**body["metadata"], "namespace": "apart"}}
    assert advice_of_component(f"{OURS}{name}", body, found) is found
    assert advice_of_component(f"{OURS}other", other, found) is found
    assert advice_of_component(f"{OURS}odd", {"metadata": None}, found) is found
