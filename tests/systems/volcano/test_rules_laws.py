"""Laws of the rules for Volcano and for stacks, on our own manifests and on any others."""

import time
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kthena_components.checker.cluster_rules import compare_objects
from kthena_components.checker.manifest import check_manifest
from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import Finding, Level
from kthena_components.core.objects.object import MODEL_SERVING
from kthena_components.systems import INDEX
from kthena_components.systems.volcano.system import SYSTEM
from tests.checker.cluster_samples import STACK
from tests.support.specs import ALL, Args, changed
from tests.support.strategies import damaged, json_trees, law, servings
from tests.systems.volcano.samples import (
    JOB,
    LATE,
    QUEUE,
    TREE,
    exact,
    hyper_node,
    lines,
    places,
    pods,
    with_value,
)

fuzz = settings(max_examples=150, deadline=None)
KINDS = (
    *(kind.group_kind for kind in SYSTEM.kinds),
    MODEL_SERVING,
    ("apps", "StatefulSet"),
    ("apps", "DaemonSet"),
    ("batch", "Job"),
    ("", "Pod"),
    ("", "Secret"),
    ("", "Service"),
    *sorted(INDEX),
)
ASKED: Args = {"budget": 8, "gpu_types": ["amd.com/gpu", "H100"]}
OWN_QUEUE = changed(QUEUE, {"spec": {"weight": 2}})


def is_said(findings: Sequence[Finding]) -> None:
    """Hold that findings can be read."""
    for finding in findings:
        assert "\n" not in str(finding)
        assert len(str(finding)) < 2000


def with_identity(identity: tuple[str, str], body: Args) -> Args:
    """Give an object of a kind that holds anything."""
    group, kind = identity
    return {**body, "apiVersion": f"{group}/v1" if group else "v1", "kind": kind}


ANY_OBJECTS = st.builds(
    with_identity,
    st.sampled_from(KINDS),
    st.fixed_dictionaries(
        {}, optional=dict.fromkeys(("metadata", "spec", "data", "status"), json_trees())
    ),
)


@pytest.mark.property
@fuzz
@given(st.lists(ANY_OBJECTS, max_size=4))
def test_any_objects_of_these_kinds_are_checked(bodies: list[Args]) -> None:
    is_said(compare_objects(bodies, **ASKED))
    for body in bodies:
        is_said(check_manifest(body))


@pytest.mark.property
@fuzz
@given(st.lists(json_trees(), max_size=3))
def test_anything_at_all_is_checked(bodies: list[Any]) -> None:
    is_said(compare_objects(bodies, ["a"]))


@pytest.mark.property
@fuzz
@given(st.sampled_from([*STACK, "job"]), st.data())
def test_any_damage_to_a_stack_is_checked(name: str, data: st.DataObject) -> None:
    stack = {**STACK, "job": JOB}
    stack[name] = data.draw(damaged(stack[name]))
    is_said(compare_objects(list(stack.values()), list(stack), budget=8))
    is_said(check_manifest(stack[name]))


@pytest.mark.parametrize("name", STACK)
def test_an_unknown_value_anywhere_in_a_stack_refuses_nothing(name: str) -> None:
    for place in places(STACK[name]):
        if place[0] in {"apiVersion", "kind"}:
            continue
        stack = {**STACK, name: with_value(STACK[name], place, LATE)}
        found = compare_objects(list(stack.values()), list(stack), budget=32)
        assert [str(f) for f in found if f.level is Level.MANDATORY] == [], place
        assert LATE not in "".join(map(str, found))


@pytest.mark.parametrize("backend", ["native", "kthena"])
@pytest.mark.parametrize("example", ALL)
def test_what_we_emit_fits_together(example: str, backend: str) -> None:
    args = {**ALL[example], "backend": backend, "queue": "research"}
    emitted = [dict(manifest.body) for manifest in compile_serving(args).manifests]
    stack = [*emitted, *TREE, OWN_QUEUE]
    assert lines(compare_objects(stack)) == []
    found = [finding for body in stack for finding in check_manifest(body)]
    assert [str(finding) for finding in found if finding.level is Level.MANDATORY] == []


@pytest.mark.property
@law
@given(st.sampled_from(["native", "kthena"]), st.data())
def test_any_serving_that_we_emit_fits_its_pods(backend: str, data: st.DataObject) -> None:
    args = data.draw(servings(backend))
    emitted = [dict(manifest.body) for manifest in compile_serving(args).manifests]
    found = [f for f in compare_objects(emitted) if f.level is Level.MANDATORY]
    # Templates may ask for nothing: then it is true that a topology does not hold for their pods.
    assert [str(f) for f in found if f.rule != "gang-requests"] == []


def test_the_order_of_the_objects_does_not_matter() -> None:
    broken = [changed(b, {"spec.minMember": 9}) if b["kind"] == "PodGroup" else b
              for b in STACK.values()]  # fmt: skip
    one, other = compare_objects(broken), compare_objects(broken[::-1])
    assert sorted(map(str, one)) == sorted(map(str, other)) != []


def seconds(size: int) -> float:
    """Measure the processor time of a stack of so many racks, pods and objects, at its best."""
    racks = [hyper_node(f"r-{i}", 1, exact(f"n-{i}")) for i in range(size)]
    top = hyper_node("top", 2, *(exact(f"r-{i}", "HyperNode") for i in range(size)))
    sets = [pods(f"p-{i}", 1, gang=f"g-{i % 9}") for i in range(size)]
    queues = [changed(QUEUE, {"metadata.name": f"q-{i}", "spec.parent": f"q-{i - 1}"})
              for i in range(1, size)]  # fmt: skip
    return min(_once([*racks, top, *sets, *queues]) for _ in range(3))


def _once(stack: list[Any]) -> float:
    start = time.process_time()
    compare_objects(stack, budget=1)
    return time.process_time() - start


def test_the_time_is_linear_in_the_objects() -> None:
    seconds(50)
    assert seconds(1600) < 16 * max(seconds(200), 0.005)
