"""What is held of an object is little, and the rules for a whole stack say the same of it."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kthena_components.checker.cluster_rules import compare_objects
from kthena_components.checker.manifest import check_whole, read_demand, read_ports, reduce_object
from kthena_components.core.objects.object import Object, read_object
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems import INDEX
from kthena_components.systems.kubernetes import facts
from tests.checker.cluster_samples import ENV, STACK
from tests.rules.cases import Case, case_files, documents, read_cases
from tests.support.for_each import for_each
from tests.support.specs import Args, changed
from tests.support.strategies import damaged, json_trees
from tests.systems.volcano.samples import JOB, secret_env

BASES = {name: documents(name) for name in ("shared", "racks")}
OBJECTS = [*STACK.values(), JOB, *BASES["shared"], *BASES["racks"]]
SERVING: Args = documents("kthena")[0]


def said(bodies: list[Any]) -> list[str]:
    found = compare_objects(bodies, budget=8, gpu_types=["amd.com/gpu", "H100"])
    return [str(finding) for finding in found]


def test_a_stack_is_checked_alike() -> None:
    assert said(list(map(reduce_object, OBJECTS))) == said(OBJECTS) != []


TOGETHER = [
    case
    for rule in case_files()
    for case in read_cases(rule)
    if case.none is None and case.before is None and len(documents(case.base)) > 1
]


@for_each("case", TOGETHER, ids=lambda case: f"{case.rule}-{case.kind}-{case.number}")
def test_the_objects_of_a_case_are_checked_alike(case: Case) -> None:
    """The rules of all files say the same of what is kept of each object."""
    bodies = list(case.input().values())
    held = {i: demand for i, body in enumerate(bodies) if (demand := read_demand(body))}
    ports = {i: read_ports(read_object(body)) for i, body in enumerate(bodies)}

    def compared(objects: list[Any]) -> list[str]:
        asked: dict[str, Any] = {"budget": case.budget, "versions": case.versions}
        found = compare_objects(objects, held=held, ports=ports, gpu_types=case.gpu_types, **asked)
        return [str(finding) for finding in found]

    assert compared(list(map(reduce_object, bodies))) == compared(bodies)


def test_an_object_that_was_checked_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    (group, stateful) = documents("coscheduled-set")
    checked = check_whole(stateful)
    reads = list[Object]()
    plain = facts._facts

    def counted(found: Object, *rest: Any) -> Any:
        reads.append(found)
        return plain(found, *rest)

    monkeypatch.setattr(facts, "_facts", counted)
    assert reduce_object(stateful, checked.found) == reduce_object(stateful)
    assert [found is checked.found for found in reads] == [False]
    assert reduce_object(group, check_whole(group).found) == reduce_object(group)


@pytest.mark.property
@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(OBJECTS) - 1), st.data())
def test_a_damaged_stack_is_checked_alike(index: int, data: st.DataObject) -> None:
    bodies = copy.deepcopy(OBJECTS)
    bodies[index] = data.draw(damaged(bodies[index]))
    kept = [reduce_object(body) for body in bodies]
    assert said(kept) == said(bodies)


@pytest.mark.property
@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(INDEX)), json_trees(), json_trees())
def test_anything_is_reduce_object(kind: tuple[str, str], spec: Any, metadata: Any) -> None:
    body = {"apiVersion": f"{kind[0]}/v1", "kind": kind[1], "metadata": metadata, "spec": spec}
    said([reduce_object(body)])


def test_values_of_secrets_command_lines_and_long_annotations_are_not_held() -> None:
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "x" * 999, "a": "b"}
    serving = reduce_object(changed(SERVING, {"metadata.annotations": annotations}))
    text = json.dumps([serving, reduce_object(STACK["secret"])], default=str)
    for gone in ("c2VjcmV0", "vllm serve", "xxx", "command"):
        assert gone not in text
    assert '"token": null' in text
    # It is there, and no rule takes its text for a name.
    assert serving["metadata"]["annotations"] == {
        "kubectl.kubernetes.io/last-applied-configuration": Unknown(
            "it has more than 256 characters"
        ),
        "a": "b",
    }


def test_places_keep_their_numbers() -> None:
    env = [{"name": "A", "value": "1"}, *secret_env("tokens"), {"name": "B", "value": "2"}]
    stack = {**STACK, "leader": changed(STACK["leader"], {ENV: env})}
    bodies = [reduce_object(body) for body in stack.values()]
    found = compare_objects(bodies, list(stack))
    assert [f.path for f in found] == [f"leader.{ENV}[1].valueFrom.secretKeyRef.key"]
    assert (
        len(bodies[list(stack).index("leader")]["spec"]["template"]["spec"]["containers"][0]["env"])
        == 2
    )
