"""Which nodes take a pod, case by case; the sandbox tries the same on Volcano's scheduler."""

from typing import Any

import pytest

from kthena_components.core.topology.node_fit import obstacles, tolerating_devices
from tests.cluster.objects import node
from tests.support.for_each import for_each

GPU = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [*terms]}}
    return {"affinity": {"nodeAffinity": required}}


def label(key: str, operator: str, *values: str) -> dict[str, Any]:
    expression = {"key": key, "operator": operator, **({"values": [*values]} if values else {})}
    return {"matchExpressions": [expression]}


def named(operator: str, *names: str) -> dict[str, Any]:
    return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": [*names]}]}


@pytest.mark.parametrize(
    ("toleration", "taken"),
    [
        ({}, False),
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "nvidia.com/gpu", "operator": "Exists"}, True),
        ({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "nvidia.com/gpu"}, False),
        ({"key": "nvidia.com/gpu", "value": "present"}, True),
        ({"key": "nvidia.com/gpu", "operator": "Equal", "value": "absent"}, False),
        ({"key": "amd.com/gpu", "operator": "Exists"}, False),
        ({"key": "nvidia.com/gpu", "operator": "Gt", "value": "1"}, False),
    ],
)
def test_tolerations(toleration: dict[str, str], taken: bool) -> None:
    found = list(obstacles({"tolerations": [toleration]}, node("n", taints=[GPU])))
    assert found == ([] if taken else ["with the taint nvidia.com/gpu=present:NoSchedule"])


def test_a_taint_that_keeps_nothing_out_or_passes_is_none() -> None:
    prefers = {"key": "a", "effect": "PreferNoSchedule"}
    cordoned = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    assert not list(obstacles({}, node("n", taints=[prefers, cordoned])))
    assert list(obstacles({}, node("n", taints=[{"key": "a", "effect": "NoExecute"}])))


def test_a_toleration_without_value_tolerates_a_taint_without_one() -> None:
    bare = node("n", taints=[{"key": "a", "effect": "NoSchedule"}])
    assert not list(obstacles({"tolerations": [{"key": "a"}]}, bare))
    assert not list(obstacles({"tolerations": [{"key": "a", "value": ""}]}, bare))


@for_each(
    ("spec", "taken"),
    [
        ({"nodeSelector": {"rack": "r0"}}, True),
        ({"nodeSelector": {"rack": "r0", "gpu": "h100"}}, False),
        (affinity(label("rack", "In", "r1", "r0")), True),
        (affinity(label("rack", "NotIn", "r0")), False),
        (affinity(label("gpu", "NotIn", "h100")), True),
        (affinity(label("rack", "Exists")), True),
        (affinity(label("gpu", "Exists")), False),
        (affinity(label("gpu", "DoesNotExist")), True),
        (affinity(label("size", "Gt", "7")), True),
        (affinity(label("size", "Gt", "8")), False),
        (affinity(label("size", "Lt", "9")), True),
        (affinity(label("rack", "Gt", "1")), False),
        (affinity(label("gpu", "Lt", "9")), False),
        (affinity(named("In", "n")), True),
        (affinity(named("NotIn", "n")), False),
        (affinity({}), False),
        (affinity({}, label("rack", "Exists")), True),
        (affinity(label("rack", "In", "r0") | named("In", "m")), False),
        (affinity(label("rack", "In", "r9"), named("In", "n")), True),
        ({"nodeSelector": {"rack": "r0"}, **affinity(label("gpu", "Exists"))}, False),
    ],
)
def test_selectors_and_affinity(spec: dict[str, Any], taken: bool) -> None:
    body = node("n", "r0")
    body["metadata"]["labels"]["size"] = "8"
    assert (not list(obstacles(spec, body))) is taken


def test_the_labels_that_are_lacking_are_named() -> None:
    found = list(obstacles({"nodeSelector": {"a": "1", "rack": "r0", "b": "2"}}, node("n", "r0")))
    assert found == ["without the labels a=1, b=2"]


def test_the_api_server_tolerates_taints_of_devices_alone() -> None:
    spec = tolerating_devices({"tolerations": [{"key": "team", "operator": "Exists"}]},
                              ["cpu", "nvidia.com/gpu", "kubernetes.io/batteries"])  # fmt: skip
    keys = [toleration["key"] for toleration in spec["tolerations"]]
    assert keys == ["team", "nvidia.com/gpu"]
    taints = [GPU, {"key": "team", "effect": "NoSchedule"}]
    assert not list(obstacles(spec, node("n", taints=taints)))
    executes = {**GPU, "effect": "NoExecute"}
    assert list(obstacles(spec, node("n", taints=[executes])))
