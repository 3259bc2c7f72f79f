"""Laws of conversions, for every serving that a backend takes."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kthena_components.compiler.compile import Compiled, compile_serving
from kthena_components.convert.conversion import SAME, Changes, Conversion, Kept, title_of
from kthena_components.convert.convert import convert
from kthena_components.convert.lost_fields import find_additions, find_losses
from kthena_components.convert.sources_and_kept import converters
from kthena_components.core.naming import INJECTED_ENV, LWS_ENV
from kthena_components.core.values.read import group_kind
from kthena_components.systems import EMITTERS, find_emitter
from tests.support.strategies import damaged, law, servings

DESCRIBED = [name for name, _, _ in converters()]
ONE_OBJECT = [name for name, _, converter in converters() if converter.gathered is None]
"""Without the native backend: tests/systems/native/test_convert.py has its law."""
pytestmark = [pytest.mark.property]
each_described = pytest.mark.parametrize("backend", DESCRIBED)


def emitted(args: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Give the objects of a serving, as a file would hold them."""
    text = json.dumps([manifest.body for manifest in compile_serving(args).manifests])
    bodies: list[dict[str, Any]] = json.loads(text)
    return bodies


def converted(
    bodies: list[dict[str, Any]], target: str, changed: Mapping[str, Any] | None = None
) -> Conversion:
    return convert(bodies, Changes(target=target, arguments=changed or {}))


def filled(backend: str, bodies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give the objects of a backend with their defaults, without Services."""
    emitter = find_emitter(backend)
    assert emitter is not None
    assert emitter.converter is not None
    converter = emitter.converter
    return [converter.filled(body) for body in bodies if group_kind(body) in converter.kinds]


@law
@pytest.mark.parametrize("backend", ONE_OBJECT)
@given(st.data())
def test_a_described_serving_gives_the_same_objects(backend: str, data: st.DataObject) -> None:
    args = data.draw(servings(backend))
    # Budgets of a DisaggregatedSet without pods do not show how many engines a group had.
    assume(backend != "lws" or args["replicas"] or len(args["roles"]) == 1)
    options = args.get("backend_options", {})
    # Without its config, the pods are those of a preset of KServe, and refused.
    assume(options.get("write_configs", True) or not options.get("replaces_presets"))
    bodies = emitted(args)
    result = converted(bodies, SAME)
    assert result.errors == ()
    (serving,) = result.servings  # the front Service is part of it
    for part in result.parts:
        losses = [str(loss) for loss in part.losses]
        notes = [note for note in part.notes if not note.startswith("states kthena_version: ")]
        assert (losses, notes) == ([], [])
    kept = [dict(part.body) for part in result.parts if isinstance(part, Kept)]
    again = [dict(manifest.body) for manifest in serving.compiled.manifests]
    assert sorted(map(title_of, [*again, *kept])) == sorted(map(title_of, bodies))
    assert all(body in bodies for body in kept)
    for before, after in zip(filled(backend, bodies), filled(backend, again), strict=True):
        assert list(find_losses(before, after)) == []
        assert list(find_additions(before, after)) == []


@law
@each_described
@given(st.data())
def test_a_serving_comes_back_with_the_same_pods_or_is_refused(
    backend: str, data: st.DataObject
) -> None:
    args = data.draw(servings(backend))
    bodies = emitted(args)
    same = converted(bodies, SAME)
    assume(same.servings)  # a native serving of no groups has no objects
    target = data.draw(st.sampled_from([name for name in DESCRIBED if name != backend]))
    there = converted(bodies, target)
    if there.errors:
        assert there.servings == []
        return
    (moved,) = there.servings
    objects = [dict(manifest.body) for manifest in moved.compiled.manifests]
    if not converted(objects, SAME).servings:  # native, with no pods
        assert moved.compiled.plan.pods == 0
        return
    changed: dict[str, Any] = {}
    if needs_options(backend):
        # Objects of other systems do not say which nodes KAITO uses, and it recovers no groups.
        options = args.get("backend_options", {})
        changed = {"backend_options": options, "recovery_policy": None}
        if "preset" in options:
            return  # KAITO writes these pods; the result has pods of its own.
    back = converted(json.loads(json.dumps(objects)), backend, changed)
    expected = pods_of(same.servings[0].compiled)
    if target == "native":  # which has no objects for a role without copies
        expected = [engine for engine in expected if not engine.startswith("[0,")]
    assert pods_of(back.servings[0].compiled) == expected


@law
@each_described
@given(st.data())
def test_no_object_breaks_the_conversion(backend: str, data: st.DataObject) -> None:
    bodies = emitted(data.draw(servings(backend)))
    broken = [data.draw(damaged(body)) for body in bodies]
    target = data.draw(st.sampled_from([*EMITTERS, SAME]))
    result = convert(broken, Changes(target=target))
    assert len(result.parts) + len(result.errors) <= len(broken)


def needs_options(backend: str) -> bool:
    emitter = find_emitter(backend)
    assert emitter is not None
    assert emitter.converter is not None
    return bool(emitter.converter.only_here)


def pods_of(compiled: Compiled) -> list[str]:
    """Give the engines of a serving, with Kthena's names for the variables of their commands."""
    plan = compiled.plan
    engines = [
        [
            plan.groups * role.replicas,
            role.worker_replicas,
            without_own(role.entry),
            without_own(role.worker) if role.worker_replicas else None,
        ]
        for role in plan.roles
    ]
    text = [json.dumps(engine, sort_keys=True, default=str) for engine in engines]
    for name, same in LWS_ENV.items():
        text = [engine.replace(name, same) for engine in text]
    return sorted(text)


def without_own(value: Any) -> Any:
    """Leave out variables that every controller replaces by its own, and a list without others."""
    if isinstance(value, list):
        return [without_own(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = [each for each in value.get("env") or [] if each["name"] not in INJECTED_ENV]
    rest = {key: without_own(item) for key, item in value.items() if key != "env"}
    return {**rest, "env": kept} if kept else rest
