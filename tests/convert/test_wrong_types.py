"""Objects with fields of wrong types: convert says what is wrong, and never ends in a traceback."""

from functools import cache
from typing import Any

import pytest
import yaml

from kthena_components.convert.conversion import SAME, Changes
from kthena_components.convert.convert import convert
from tests.rules.cases import bases, documents
from tests.support.for_each import for_each
from tests.toughness.corpus import OTHER_TYPES, TESTS, of_another_type, places, put

pytestmark = pytest.mark.property
EACH = 128
"""Of these places and values, one is tried: all take 40 minutes."""


@cache
def stacks() -> dict[str, list[dict[str, Any]]]:
    """Give the objects that belong together, by the names of their files."""
    goldens = {
        f"{path.parent.name}/{path.name}": list(yaml.load_all(path.read_text(), yaml.CSafeLoader))
        for path in sorted((TESTS / "goldens").glob("*/*.yaml"))
    }
    found = {**{name: documents(name) for name in bases()}, **goldens}
    return {
        name: [body for body in bodies if body]
        for name, bodies in found.items()
        if "apiVersion" in (bodies[0] or {})
    }


@for_each("name", stacks())
def test_a_place_of_another_type_ends_no_conversion_in_a_traceback(name: str) -> None:
    bodies, number = stacks()[name], 0
    for index, body in enumerate(bodies):
        for place in places(body):
            for value in OTHER_TYPES:
                number += 1
                if number % EACH == 0:
                    odd = of_another_type(body, place, value)
                    convert([*bodies[:index], odd, *bodies[index + 1 :]], Changes(target=SAME))


@for_each(
    "base, place, value, says",
    [
        (
            "ray-cluster-fleet",
            "spec.template.spec.workerGroupSpecs.0.template.spec.containers.0.name",
            [["x"]],
            ".containers[0].name: is a list, but must be a string",
        ),
        (
            "inference-service",
            "spec.predictor.workerSpec.containers.0.resources",
            7,
            "spec.predictor.workerSpec.containers[0].resources: is 7, but must be a map",
        ),
        (
            "inference-service",
            "spec.predictor.workerSpec.containers.0.resources.requests",
            True,
            "containers[0].resources.requests: is true, but must be a map",
        ),
    ],
)
def test_a_wrong_type_is_reported(base: str, place: str, value: object, says: str) -> None:
    steps = tuple(int(step) if step.isdecimal() else step for step in place.split("."))
    first, *others = documents(base)
    conversion = convert([put(first, steps, value), *others], Changes(target=SAME))
    assert says in "\n".join(str(error) for error in conversion.errors)
