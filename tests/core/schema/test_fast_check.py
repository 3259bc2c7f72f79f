"""The quick test of a shape never says yes where the walk finds something."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.core.schema.crds import load
from kthena_components.core.schema.fast_check import quick_test
from kthena_components.core.schema.language import (
    Budget,
    Fields,
    Free,
    Items,
    Number,
    Schema,
    Switch,
    Table,
    Text,
    Whole,
    check_shape,
)
from kthena_components.core.schema.pod import ROOT_TYPE, shape_of
from kthena_components.core.values.unknown import OUTPUT_CLOSE, OUTPUT_OPEN, Unknown
from tests.support.strategies import json_trees

POD: dict[str, Any] = {
    "metadata": {"labels": {"app": "chat"}, "annotations": {"a": ""}},
    "spec": {
        "containers": [
            {
                "name": "engine",
                "image": "vllm/vllm-openai:v0.33.0",
                "args": ["-tp", "8"],
                "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}],
                "resources": {"limits": {"nvidia.com/gpu": 8, "memory": "64Gi", "cpu": "500m"}},
                "readinessProbe": {"httpGet": {"path": "/health", "port": "http"}},
                "securityContext": {"privileged": False, "runAsUser": 0},
            },
            {"name": "side", "image": "proxy"},
        ],
        "nodeSelector": {"pool": "gpus"},
        "terminationGracePeriodSeconds": 30,
        "hostAliases": None,
    },
}
SERVING: dict[str, Any] = {
    "apiVersion": "workload.serving.volcano.sh/v1alpha1",
    "kind": "ModelServing",
    "metadata": {"name": "llama", "labels": {"app": "chat"}},
    "spec": {
        "replicas": 1,
        "schedulerName": "volcano",
        "recoveryPolicy": "ServingGroupRecreate",
        "rolloutStrategy": {"type": "ServingGroupRollingUpdate"},
        "template": {
            "gangPolicy": {"minRoleReplicas": {"serve": 1}},
            "roles": [
                {
                    "name": "serve",
                    "replicas": 1,
                    "workerReplicas": 1,
                    "entryTemplate": POD,
                    "workerTemplate": POD,
                }
            ],
        },
    },
}
EVERYTHING = Fields(
    required=("name",),
    fields={
        "name": Text(shortest=2, longest=5),
        "form": Text(pattern="^a$"),
        "share": Number(),
        "mode": Text(one_of=("hard", "soft")),
        "free": Free(),
        "counts": Table(Whole(least=1)),
        "wide": Whole(bits=64),
        "set": Items(of=Text(), is_set=True),
        "switch": Switch(),
        "budget": Budget(),
        "few": Items(of=Whole(most=3), fewest=1, most=2),
        "keyed": Items(of=Fields(fields={"name": Text(), "at": Whole()}), keys=("name", "at")),
    },
)
FULL: dict[str, Any] = {
    "name": "chat",
    "mode": "hard",
    "free": {"any": [1]},
    "counts": {"a": 1},
    "wide": 9,
    "switch": True,
    "budget": 1,
    "few": [3],
    "form": "a",
    "keyed": [{"name": "a", "at": 1}, {"name": "a", "at": 2}],
}
KTHENA = load("kthena_components.systems.kthena")
assert KTHENA is not None
SERVED = [
    KTHENA.root(number, "ModelServing")[0]
    for _, number in KTHENA.kinds["ModelServing"][SERVING["apiVersion"]]
    if number is not None
]
"""The shapes of a ModelServing since 0.1."""
SOUND: list[tuple[Schema, dict[str, Any]]] = [
    (shape_of(ROOT_TYPE, by_crd=False), POD),
    (shape_of(ROOT_TYPE), POD),
    *((shape, SERVING) for shape in SERVED),
    (EVERYTHING, FULL),
]
ODD: tuple[object, ...] = (
    *(None, True, 0, 8, -1, 0.5, 2**31, 2**63, "", "8", "x", "a longer text", b"x"),
    *([], ["x"], ["x", "x"], {}, {"x": 1}, {"name": []}, [{"name": "x"}, {"name": "x"}]),
    *(Unknown("it is late"), f"{OUTPUT_OPEN}0{OUTPUT_CLOSE}"),
)


def walked(value: object, schema: Schema) -> list[str]:
    return [str(finding) for finding in check_shape(value, schema)]


def places(value: object, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    pairs = value.items() if isinstance(value, dict) else ()
    for key, item in enumerate(value) if isinstance(value, list) else pairs:
        yield (*at, key)
        yield from places(item, (*at, key))


def with_value(body: Any, path: tuple[Any, ...], value: object) -> Any:
    """Give a copy with another value at a place; a string that is not there yet is a new field."""
    body = inner = deepcopy(body)
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return body


@pytest.mark.parametrize(("schema", "body"), SOUND)
def test_what_is_right_takes_no_walk(schema: Schema, body: Any) -> None:
    assert quick_test(schema)(body)
    assert walked(body, schema) == []


@pytest.mark.parametrize(("schema", "body"), SOUND)
def test_what_is_surely_right_is_right(schema: Schema, body: Any) -> None:
    sure = quick_test(schema)
    found = 0
    for path in [*places(body), ("more",), ("set",)]:
        for odd in ODD:
            one = with_value(body, path, odd)
            wrong = walked(one, schema)
            found += bool(wrong)
            assert not (sure(one) and wrong), (path, odd, wrong)
    assert found > len(ODD)


@pytest.mark.parametrize(("schema", "body"), SOUND)
def test_what_stands_twice_is_walked(schema: Schema, body: Any) -> None:
    sure = quick_test(schema)
    for path in places(body):
        items: Any = body
        for key in path:
            items = items[key]
        if isinstance(items, list):
            one = with_value(body, path, [*items, *items])
            assert not (sure(one) and walked(one, schema)), path


@pytest.mark.parametrize("path", ["containers[0].env", "containers", "containers[0].ports"])
def test_doubles_of_a_list_with_keys_are_found(path: str) -> None:
    spec = deepcopy(POD["spec"])
    items = spec["containers"] if path == "containers" else spec["containers"][0][path[14:]]
    items += deepcopy(items[:1])
    template = {**POD, "spec": spec}
    assert not quick_test(shape_of(ROOT_TYPE))(template)
    assert walked(template, shape_of(ROOT_TYPE))


def test_a_list_is_told_apart_by_scalars_alone() -> None:
    """The quick test hashes them, and nothing that a manifest contains makes it raise."""
    waiting: list[Any] = [shape_of(ROOT_TYPE), *SERVED]
    keyed, seen = 0, set()
    while waiting:
        schema = waiting.pop()
        if isinstance(schema, Table | Items):
            waiting.append(schema.of)
            for key in schema.keys if isinstance(schema, Items) else ():
                assert isinstance(schema.of, Fields)
                assert isinstance(schema.of.fields[key], Text | Whole | Budget), key
                keyed += 1
        elif isinstance(schema, Fields) and id(schema) not in seen:
            seen.add(id(schema))
            waiting += schema.fields.values()
    assert keyed > 0


@pytest.mark.property
@given(
    json_trees(),
    st.sampled_from(["env", "livenessProbe", "resources", "ports", "name"]),
    st.booleans(),
)
def test_what_is_surely_right_is_right_in_any_tree(tree: Any, field: str, by_crd: bool) -> None:
    schema = shape_of(ROOT_TYPE, by_crd=by_crd)
    body = with_value(POD, ("spec", "containers", 0, field), tree)
    assert not (quick_test(schema)(body) and walked(body, schema))
