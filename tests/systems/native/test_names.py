"""Names that the native backend makes: how long they may be, and that no two are one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import SpecError
from kthena_components.core.plan.build import build_plan
from kthena_components.core.spec.parse import parse_spec
from kthena_components.core.spec.serving_spec import ModelServingSpec
from kthena_components.systems.native import emit as native
from kthena_components.systems.native.emit import refuse
from tests.support.specs import ENGINE_RAY, NATIVE_8B, TEMPLATES_PLAIN, Args, changed
from tests.support.strategies import law


@pytest.mark.parametrize(
    ("args", "tail"),
    [(NATIVE_8B, "-0-server-0"), (ENGINE_RAY, "-1-decode-0-w")],
    ids=["entry", "workers"],
)
def test_the_longest_stateful_set_decides_how_long_a_name_may_be(args: Args, tail: str) -> None:
    longest = "c" * (52 - len(tail))
    names = [m.name for m in compile_serving(changed(args, {"name": longest})).manifests]
    assert f"{longest}{tail}" in names
    with pytest.raises(SpecError, match="53 characters; at most 52 are allowed"):
        compile_serving(changed(args, {"name": f"{longest}c"}))


def test_the_last_group_and_the_last_replica_have_the_longest_names() -> None:
    many = {"replicas": 11, "roles[0].replicas": 101}
    longest = "c" * (52 - len("-10-server-100"))
    compile_serving(changed(NATIVE_8B, {"name": longest, **many}))
    with pytest.raises(SpecError, match="-10-server-100', 53 characters"):
        compile_serving(changed(NATIVE_8B, {"name": f"{longest}c", **many}))


def test_a_worker_pod_with_a_long_number_has_a_name_that_fits() -> None:
    longest = "c" * (52 - len("-1-decode-0-w"))
    sizes = {"roles[0].worker_replicas": 70_000, "roles[0].engine.parallelism.pipeline": 70_001}
    deep = {"roles[0].engine.model": "ours/deep"}  # no known model has as many layers as stages
    compile_serving(changed(ENGINE_RAY, {"name": longest, **sizes, **deep}))


@pytest.mark.parametrize(
    ("names", "replicas"), [(("a", "a-0"), 1), (("a-2", "a"), 3)], ids=["first", "third"]
)
def test_roles_whose_services_would_be_one_are_refused(
    names: tuple[str, str], replicas: int
) -> None:
    changes: dict[str, Any] = {f"roles[{i}].name": name for i, name in enumerate(names)}
    changes |= {f"roles[{i}].replicas": replicas for i in range(2)}
    longer = max(range(2), key=lambda i: len(names[i]))
    with pytest.raises(SpecError) as refusal:
        compile_serving(changed(TEMPLATES_PLAIN, changes))
    assert str(refusal.value) == (
        f"roles[{longer}].name: is '{names[longer]}', which is also the name of a replica of role "
        "'a', so two Services would have one name. Rename one of the two roles. [name-unique]"
    )


@pytest.mark.property
@law
@given(st.sampled_from(["a-0", "a-1", "a-01", "1", "a-0-0"]), st.integers(0, 2), st.integers(0, 2))
def test_roles_are_refused_exactly_when_two_objects_would_have_one_name(
    name: str, first: int, second: int
) -> None:
    names = {"roles[0].name": "a", "roles[1].name": name}
    args = changed(
        TEMPLATES_PLAIN, names | {"roles[0].replicas": first, "roles[1].replicas": second}
    )
    plan = build_plan(parse_spec(ModelServingSpec, args))
    keys = [manifest.key for manifest in native.emit(plan)]
    assert bool(list(refuse(plan))) is (len(set(keys)) < len(keys))
