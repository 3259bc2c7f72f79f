"""Laying changes over a pod template: Kubernetes' strategic merge, and its laws."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.core.templates import lay_over
from tests.support.strategies import law

MAPS = st.recursive(
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 3), max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner | st.integers(0, 3), max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("base", "changes", "merged"),
    [
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"c": 3}}, {"a": {"b": 1, "c": 3}}),
        ({"a": 1, "b": 2}, {"a": None}, {"b": 2}),
        ({}, {"a": None}, {}),
        ({"a": {"b": 1}}, {"a": 2}, {"a": 2}),
        ({"args": ["x", "y"]}, {"args": ["z"]}, {"args": ["z"]}),
    ],
    ids=["adds", "goes-down", "null-removes", "null-of-nothing", "replaces", "plain-list"],
)
def test_maps_merge_and_all_else_is_replaced(
    base: dict[str, Any], changes: dict[str, Any], merged: dict[str, Any]
) -> None:
    assert lay_over(base, changes) == merged


# Source: patchMergeKey tags in k8s.io/api/core/v1/types.go.
@pytest.mark.parametrize(
    ("field", "key"),
    [
        ("containers", "name"),
        ("initContainers", "name"),
        ("volumes", "name"),
        ("env", "name"),
        ("ports", "containerPort"),
        ("volumeMounts", "mountPath"),
        ("volumeDevices", "devicePath"),
        ("imagePullSecrets", "name"),
        ("hostAliases", "ip"),
        ("topologySpreadConstraints", "topologyKey"),
    ],
)
def test_named_lists_merge_item_by_item(field: str, key: str) -> None:
    base = {field: [{key: "a", "x": 1}, {key: "b", "x": 1}]}
    changes = {field: [{key: "b", "x": 2}, {key: "c", "x": 3}]}
    assert lay_over(base, changes) == {
        field: [{key: "a", "x": 1}, {key: "b", "x": 2}, {key: "c", "x": 3}]
    }


def test_an_item_without_its_key_is_added() -> None:
    assert lay_over({"env": [{"name": "A"}]}, {"env": [{"value": "x"}, "odd"]}) == {
        "env": [{"name": "A"}, {"value": "x"}, "odd"]
    }


@pytest.mark.property
@law
@given(MAPS)
def test_laying_nothing_over_changes_nothing(base: dict[str, Any]) -> None:
    assert lay_over(base, {}) == base


@pytest.mark.property
@law
@given(MAPS, MAPS)
def test_the_same_changes_twice_are_the_changes_once(
    base: dict[str, Any], changes: dict[str, Any]
) -> None:
    once = lay_over(base, changes)
    assert lay_over(once, changes) == once


@pytest.mark.property
@law
@given(MAPS, MAPS)
def test_neither_argument_is_touched(base: dict[str, Any], changes: dict[str, Any]) -> None:
    before = copy.deepcopy((base, changes))
    lay_over(base, changes)
    assert (base, changes) == before


@pytest.mark.parametrize(
    ("old", "change", "merged"),
    [
        ({"sleep": {"seconds": 15}}, {"exec": {"command": ["a"]}}, {"exec": {"command": ["a"]}}),
        (
            {"httpGet": {"path": "/health", "port": 80}, "periodSeconds": 10},
            {"tcpSocket": {"port": 80}},
            {"tcpSocket": {"port": 80}, "periodSeconds": 10},
        ),
        (
            {"httpGet": {"path": "/health", "port": 80}},
            {"httpGet": {"port": 81}},
            {"httpGet": {"path": "/health", "port": 81}},
        ),
        (
            {"httpGet": {"port": 80}},
            {"periodSeconds": 5},
            {"httpGet": {"port": 80}, "periodSeconds": 5},
        ),
        ({"sleep": {"seconds": 15}}, {"sleep": None}, {}),
    ],
    ids=["hook", "probe", "same", "none", "removed"],
)
def test_another_handler_replaces_the_old_one(old: Any, change: Any, merged: Any) -> None:
    assert lay_over({"preStop": old}, {"preStop": change}) == {"preStop": merged}


def test_a_label_is_no_handler() -> None:
    assert lay_over({"labels": {"exec": "a"}}, {"labels": {"sleep": "b"}}) == {
        "labels": {"exec": "a", "sleep": "b"}
    }
