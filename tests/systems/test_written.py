"""docs/backends.md says of each argument what a backend does with it: held against the backend."""

from functools import cache
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from kthena_components.core.plan.limits import taken
from kthena_components.core.spec.serving_spec import ModelServingSpec, RoleSpec
from kthena_components.systems import EMITTERS, find_emitter
from kthena_components.systems.emitter import ARGUMENTS, Emitter
from tests.support.for_each import for_each
from tests.support.refusals import judged
from tests.support.specs import ALL, Args, changed, example_for
from tests.systems.test_laws import PACKAGE
from toolchain.pages import backends

_UPDATE = "rollout_strategy.rolling_update_configuration"
_BY_ROLE = {"rollout_strategy": {"type": "RoleRollingUpdate"}}
_SOFT = {"mode": "soft"}
PROBES: dict[str, list[Args]] = {
    "replicas": [{"replicas": number} for number in (0, 1, 2, 3)],
    "roles[].replicas": [{"roles[0].replicas": number} for number in (1, 2)],
    "roles[].worker_replicas": [{}],
    "gang_policy": [{"gang_policy": {"min_role_replicas": {}}}],
    "network_topology.group_policy": [{"network_topology": {"group_policy": _SOFT}}],
    "network_topology.role_policy": [{"network_topology": {"role_policy": _SOFT}}],
    "queue": [{"queue": "research"}],
    "priority_class": [{"priority_class": "gold"}],
    "spread_over": [{"spread_over": "example.com/rack"}],
    "scheduler_name": [{"scheduler_name": name} for name in ("volcano", "default-scheduler")],
    "rollout_strategy.type": [{"rollout_strategy": {"type": "ServingGroupRollingUpdate"}}],
    "rollout_strategy…max_unavailable": [{_UPDATE: {"max_unavailable": 1}}],
    "rollout_strategy…partition": [
        {"replicas": 3, _UPDATE: {"max_unavailable": 1, "partition": 1}}
    ],
    "rollout_strategy…max_surge": [{_UPDATE: {"max_unavailable": 1, "max_surge": 1}}],
    "roles[].max_unavailable": [
        {"replicas": 1, "roles[0].replicas": 2, "roles[0].max_unavailable": 1, **update}
        for update in ({}, _BY_ROLE)
    ],
    "recovery_policy": [
        {"recovery_policy": word} for word in ("None", "RoleRecreate", "ServingGroupRecreate")
    ],
    "autoscaled": [{"autoscaled": True}],
    "restart_grace_period_seconds": [{"restart_grace_period_seconds": 60}],
    "expose": [{"expose": {"role": None}}],
    "monitoring": [{"monitoring": True}],
    "ready_timeout_seconds": [{"ready_timeout_seconds": 60}],
    "labels": [{"labels": {"team": "chat"}}],
    "pod_disruption_budget": [{"pod_disruption_budget": True}],
    "fill_requests": [{}, {"fill_requests": False}],
    "waivers": [{"waivers": {"image-pinned": "2099-01-01 a test"}}],
}
"""Values of each argument, of which a backend that takes it takes at least one."""


def emitter_of(backend: str) -> Emitter:
    """Give the emitter of a backend."""
    emitter = find_emitter(backend)
    assert emitter is not None
    return emitter


def refused(args: Args) -> list[str]:
    """Give the rules that refuse a serving."""
    is_refused, findings = judged(args)
    return [finding.rule for finding in findings] if is_refused else []


@cache
def bases(backend: str) -> list[Args]:
    """Give the examples that a backend takes."""
    return [args for name in ALL if not refused(args := example_for(backend, name))]


def tried(backend: str, argument: str) -> list[list[str]]:
    """Give what refuses each example with each value of an argument."""
    found = []
    for base in bases(backend):
        for probe in PROBES[argument]:
            args = changed(base, probe)
            if args.get("expose") == {"role": None}:
                args["expose"] = {"role": args["roles"][0]["name"]}
            found.append(refused(args))
    return found


@pytest.mark.parametrize("backend", EMITTERS)
def test_each_argument_is_told(backend: str) -> None:
    emitter = emitter_of(backend)
    told = [name for name in ARGUMENTS if taken(name, emitter.limits) is not None]
    assert list(ARGUMENTS) == list(PROBES)
    assert {*told} <= {*emitter.written}


@pytest.mark.parametrize("backend", EMITTERS)
def test_a_limit_that_depends_on_the_value_says_what_is_taken(backend: str) -> None:
    """Else docs/backends.md would show a field as rejected that some servings may have."""
    emitter = emitter_of(backend)
    fields = [name.replace("…", ".rolling_update_configuration.") for name in ARGUMENTS]
    whole = {limit.field for limit in emitter.limits if limit.takes == ""} & {*fields}
    for field in whole:
        rows = [limit for limit in emitter.limits if limit.field == field]
        assert len(rows) == 1, (field, rows)


@pytest.mark.parametrize("backend", EMITTERS)
@for_each("argument", PROBES)
def test_what_is_told_of_an_argument_is_what_the_backend_does(backend: str, argument: str) -> None:
    told, found = taken(argument, emitter_of(backend).limits), tried(backend, argument)
    losses = [rules for rules in found if "backend-loss" in rules]

    assert found
    if told is None:
        assert all(found)
        assert losses
    else:
        assert not all(found)
    if told == "":
        assert losses == []


def names(model: type[BaseModel], path: str) -> bool:
    """Tell whether a path names a field of a model, through models in it."""
    first, _, more = path.partition(".")
    field = model.model_fields.get(first)
    inner = (field.annotation, *get_args(field.annotation)) if field else ()
    models = [one for one in inner if isinstance(one, type) and issubclass(one, BaseModel)]
    return field is not None and (not more or any(names(one, more) for one in models))


@pytest.mark.parametrize("backend", EMITTERS)
def test_every_limit_is_about_a_field_that_exists(backend: str) -> None:
    """A limit of a field that nobody can write would never be reported."""
    emitter = emitter_of(backend)
    for limit in emitter.limits:
        of_role = limit.field.removeprefix("roles[].")
        model: type[BaseModel]
        option = limit.field.removeprefix("backend_options.")
        path, model = of_role, ModelServingSpec if of_role == limit.field else RoleSpec
        if option != limit.field:
            assert emitter.options is not None
            path, model = option, emitter.options
        assert names(model, path), limit.field


def test_the_page_is_what_the_systems_say() -> None:
    """`make policies-docs` writes it."""
    page: Any = PACKAGE.parent / "docs" / "backends.md"
    assert page.read_text() == backends.render()
