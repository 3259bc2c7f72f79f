"""Laws of conversions of kinds without a backend, for each kind's own manifest.

They are described by their pods, or by their engines if their controllers complete the pods.
"""

import copy
import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.checker.manifest import read_manifest
from kthena_components.convert.conversion import SAME, Changes, Conversion, Converted
from kthena_components.convert.convert import convert
from kthena_components.convert.describe_engines import describe_engines, is_sketched
from kthena_components.convert.from_engines import joins_pods
from kthena_components.convert.lost_fields import leaves
from kthena_components.convert.sources_and_kept import converters
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import path_of
from kthena_components.core.values.read import group_kind
from kthena_components.core.values.unknown import product
from kthena_components.systems import EMITTERS, find_emitter, find_kind
from tests.rules.cases import bases, documents
from tests.support.strategies import damaged, law

_DESCRIBED = {kind for _, _, converter in converters() for kind in converter.kinds}
_NATIVE = ("apps", "StatefulSet")


def _by_pods(body: Mapping[str, Any]) -> bool:
    kind = find_kind(group_kind(body)) if "apiVersion" in body else None
    ours = group_kind(body) not in _DESCRIBED - {_NATIVE}
    return kind is not None and kind.facts is not None and ours


OBJECTS = {
    name: documents(name)[0]
    for name in bases()
    if len(documents(name)) == 1 and _by_pods(documents(name)[0])
}
"""A manifest of each kind that is converted by its pods, or refused."""


def converted(body: Mapping[str, Any], target: str = "native") -> Conversion:
    return convert([json.loads(json.dumps(body))], Changes(target=target))


@cache
def conversion_of(name: str, target: str = "native") -> Conversion:
    """Convert a manifest as it is. No test changes what is in the result."""
    return converted(OBJECTS[name], target)


WHOLE = {
    name: body
    for name, body in OBJECTS.items()
    if conversion_of(name).servings and read_manifest(body) is not None
}
each_object = pytest.mark.parametrize("name", OBJECTS)
each_whole = pytest.mark.parametrize("name", WHOLE)


def test_the_kinds_whose_pods_are_whole_are_converted() -> None:
    """A change of this list is a change of docs/convert.md."""
    assert {group_kind(body) for body in WHOLE.values()} == {
        ("", "Pod"),
        ("", "ReplicationController"),
        ("apps", "Deployment"),
        ("apps", "ReplicaSet"),
        ("apps", "StatefulSet"),
        ("argoproj.io", "Rollout"),
        ("batch", "CronJob"),
        ("batch", "Job"),
        ("batch.volcano.sh", "Job"),
        ("grove.io", "PodCliqueSet"),
        ("inference.llmaz.io", "Service"),
        ("jobset.x-k8s.io", "JobSet"),
        ("kubeai.org", "Model"),
        ("kubeflow.org", "MPIJob"),
        ("nvidia.com", "DynamoComponentDeployment"),
        ("nvidia.com", "DynamoGraphDeployment"),
        ("ome.io", "InferenceService"),
        ("orchestration.aibrix.ai", "RayClusterFleet"),
        ("orchestration.aibrix.ai", "RoleSet"),
        ("orchestration.aibrix.ai", "StormService"),
        ("ray.io", "RayCluster"),
        ("ray.io", "RayJob"),
        ("serving.knative.dev", "Configuration"),
        ("serving.knative.dev", "Service"),
        ("workload.serving.volcano.sh", "ModelBooster"),
        ("workloads.x-k8s.io", "RoleBasedGroup"),
        ("workloads.x-k8s.io", "RoleBasedGroupSet"),
    }


@each_object
def test_an_object_that_serves_is_converted_or_refused_by_name(name: str) -> None:
    """Kept as it is beside the result, it would serve twice."""
    facts = read_manifest(OBJECTS[name])
    result = conversion_of(name)
    if name in WHOLE or facts is None or not facts.engines:
        return
    assert result.parts == ()
    (error,) = result.errors
    rules = {finding.rule for finding in error.findings}
    assert rules == {"convertible"}
    assert all(finding.remedy for finding in error.findings)


def engines_of(facts: ServingFacts) -> dict[tuple[object, ...], object]:
    """Count engines by what they start, on how many pods and GPUs."""
    found: dict[tuple[object, ...], object] = {}
    for engine in facts.engines:
        found[_key(engine)] = product(engine.replicas, facts.copies)
    return found


def _key(engine: EngineFacts) -> tuple[object, ...]:
    command = engine.entry.command
    sizes = (
        (command.engine, command.tensor, command.pipeline, command.data, command.expert)
        if command
        else ()
    )
    return (engine.pods, engine.entry.gpus, engine.entry.all_gpus, command and command.model, sizes)


@each_whole
def test_the_checks_read_the_same_engines_from_the_objects_of_the_result(name: str) -> None:
    """The emitted objects are read, and not the plan that they were written from."""
    before = read_manifest(WHOLE[name])
    assert before is not None
    (serving,) = conversion_of(name).servings
    emitter = find_emitter("native")
    assert emitter is not None
    found: dict[tuple[object, ...], Any] = {}
    for group in emitter.read_back([m.body for m in serving.compiled.manifests]):
        for engine in group.engines:
            if engine.entry.asks_for_gpus:
                found[_key(engine)] = found.get(_key(engine), 0) + engine.replicas
    assert found == engines_of(before)


@pytest.mark.parametrize("target", ["kthena", "lws"])
@each_whole
def test_other_backends_have_the_same_engines(name: str, target: str) -> None:
    before, result = read_manifest(WHOLE[name]), conversion_of(name, target)
    emitter = find_emitter(target)
    assert before is not None
    assert emitter is not None
    if result.errors:  # what the backend cannot express
        assert {f.rule for error in result.errors for f in error.findings} == {"backend-loss"}
        return
    (serving,) = result.servings
    groups = emitter.read_back([manifest.body for manifest in serving.compiled.manifests])
    found = {_key(one) for group in groups for one in group.engines if one.entry.asks_for_gpus}
    assert found == set(engines_of(before))


def outcome(found: Conversion) -> object:
    """Give the objects of a conversion, its losses and notes, or that there are none."""
    made = [m.body for part in found.servings for m in part.compiled.manifests]
    losses = {loss.name for part in found.servings for loss in part.losses}
    notes = {note for part in found.servings for note in part.notes}
    return (made, losses, notes) if made else None


@pytest.mark.property
@law
@given(data=st.data())
@each_whole
def test_each_field_is_in_the_result_or_is_a_loss(name: str, data: st.DataObject) -> None:
    """A field that is not a loss makes another result or another note if it is another, or none.

    A field of a worker that says what the entry says is a loss once it says something else.
    """
    body = WHOLE[name]
    (part,) = conversion_of(name).parts
    assert isinstance(part, Converted)
    lost = tuple(loss.name for loss in part.losses)
    steps, value = data.draw(st.sampled_from([*leaves(body)]))
    path, named = path_of(steps), {*replaced_in(name), "apiVersion", "kind"}
    inside = path.startswith((*(f"{name}." for name in lost), *(f"{name}[" for name in lost)))
    if path in {*lost, *named} or inside or "selector" in steps:
        return
    usual = outcome(conversion_of(name))
    assert any(outcome(converted(other)) != usual for other in others(body, steps, value))


@cache
def replaced_in(name: str) -> tuple[str, ...]:
    """List the fields that the package's launcher replaces, or that say what others say."""
    body = WHOLE[name]
    if not is_sketched(body):
        return ()
    joins = [path_of(steps) for steps, value in leaves(body) if joins_pods(steps, value)]
    return (*describe_engines(body).known, *joins)


def others(body: Mapping[str, Any], steps: tuple[str | int, ...], value: object) -> list[Any]:
    """Give the object with another value at a place, and without it."""
    found: list[Any] = []
    for other in another(value):
        changed: Any = copy.deepcopy(body)
        holder = changed
        for step in steps[:-1]:
            holder = holder[step]
        holder[steps[-1]] = other
        found.append(changed)
    return found


def another(value: object) -> list[object]:
    if isinstance(value, bool):
        return [not value, None]
    if isinstance(value, int):
        return [value + 1, value - 1, None]
    text = str(value)
    return [str(int(text) + 1) if text.isdecimal() else f"{text}-other", None]


@pytest.mark.property
@law
@given(data=st.data())
@each_object
def test_no_object_breaks_the_conversion(name: str, data: st.DataObject) -> None:
    body = data.draw(damaged(OBJECTS[name]))
    target = data.draw(st.sampled_from([*EMITTERS, SAME]))
    result = convert([body], Changes(target=target))
    assert len(result.parts) + len(result.errors) == 1
