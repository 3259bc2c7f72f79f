"""No backend ignores an argument: another value changes what is deployed, or is refused by name."""

import json
from dataclasses import fields, is_dataclass
from datetime import date
from functools import cache
from itertools import combinations

import pytest

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import SpecError
from kthena_components.core.spec.serving_spec import ModelServingSpec
from kthena_components.systems import EMITTERS
from tests.support.fields import CHANGES, ELSEWHERE, fields_of
from tests.support.for_each import for_each
from tests.support.specs import PAIR, Args, changed, example_for

BASES = ("guide", "engine-native", "native-8b", "data-parallel", "templates-plain")
ALIKE: dict[str, dict[str, str]] = {
    "ready_timeout_seconds": {"lws": "LWS 0.9 gives a DisaggregatedSet no status to wait for"},
    "rollout_strategy.type": {
        "lws": "LWS updates engine by engine",
        "kserve": "KServe updates pod by pod, or engine by engine",
    },
    "recovery_policy": {"kserve": "a pod that is recreated alone is a whole engine"},
    "roles[].engine.launcher": dict.fromkeys(EMITTERS, "an engine of one pod has none to join"),
}
"""Backends for which two accepted values of a field are the same, and why. docs/ say each."""


def written(args: Args) -> str | list[str]:
    """Give all that is deployed, or the paths of what is refused."""
    try:
        made = compile_serving(args, today=date(2026, 1, 1)).manifests
    except SpecError as error:
        return [finding.path for finding in error.findings]
    return json.dumps(made, sort_keys=True, default=plain)


def plain(value: object) -> object:
    """Give JSON the fields of a dataclass; unlike `asdict`, this copies nothing."""
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return str(value)


@cache
def bases(backend: str) -> dict[str, Args]:
    """Give servings that a backend takes: templates and engines, of one pod and of several."""
    found = {name: example_for(backend, name) for name in BASES}
    found["pair"] = changed(PAIR, {"backend": backend})
    if backend == "kserve":
        llm = {"backend_options": {"kind": "LLMInferenceService"}}
        found["llm"] = changed(example_for(backend, "engine-native"), llm)
    return {name: args for name, args in found.items() if isinstance(written(args), str)}


def asked(base: Args, change: Args) -> Args:
    """Give a serving with a change; ROLE stands for the name of its first role."""
    named = json.dumps(change).replace("ROLE", base["roles"][0]["name"])
    return changed(base, json.loads(named))


def names(path: str, field: str) -> bool:
    """Tell whether the path of a finding is that of a field, of what holds it, or of a part."""
    steps, own = path.replace("[0]", "").split("."), field.replace("[]", "").split(".")
    shorter = min(len(steps), len(own))
    return steps[:shorter] == own[:shorter]


def test_each_field_has_changes() -> None:
    assert set(fields_of(ModelServingSpec)) == CHANGES.keys() | ELSEWHERE.keys()


@pytest.mark.parametrize("backend", EMITTERS)
@for_each("field", CHANGES)
def test_a_field_is_seen_or_refused_by_name(backend: str, field: str) -> None:
    seen, refused = False, False
    for base in bases(backend).values():
        results = [written(asked(base, change)) for change in CHANGES[field]]
        paths = [path for result in results if not isinstance(result, str) for path in result]
        refused = refused or any(names(path, field) for path in paths)
        for one, other in combinations([each for each in results if isinstance(each, str)], 2):
            seen = seen or one != other
            assert one != other or backend in ALIKE.get(field, {})
    assert seen or refused or backend in ALIKE.get(field, {})
