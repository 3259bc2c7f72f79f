"""GPUs that a LimitRange gives to the containers of its namespace."""

import dataclasses
from typing import Any

import pytest

from kthena_components.checker.manifest import check_manifest
from kthena_components.core.facts.context import Context
from kthena_components.core.facts.pod_policies_and_sharing import LimitRanges
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.values.unknown import Unknown

GPU = "nvidia.com/gpu"


def limit_range(namespace: str = "", kind: str = "Container", **item: Any) -> dict[str, Any]:
    """Return a LimitRange about GPUs: `max=8` is `max: {nvidia.com/gpu: 8}`."""
    limits = [{"type": kind, **{key: {GPU: value} for key, value in item.items()}}]
    metadata = {"name": "gpus", **({"namespace": namespace} if namespace else {})}
    body = {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata}
    return {**body, "spec": {"limits": limits}}


def context(*bodies: dict[str, Any], namespace: str = "") -> Context:
    found = LimitRanges()
    for body in bodies:
        found.add(body)
    return Context(limits=found, namespace=namespace)


def gpus(of: Context, **resources: Any) -> object:
    container = {"name": "engine", "command": ["vllm", "serve", "m"], "resources": resources}
    return read_pod({"spec": {"containers": [container]}}, "", context=of).gpus


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        # Verdicts of SetDefaults_LimitRangeItem and of the admission plugin.
        ({"default": 4}, 4),
        ({"max": 8}, 8),
        ({"max": 8, "default": 2}, 2),
        ({"defaultRequest": 2}, 2),
        ({"min": 1}, 1),
        ({"kind": "Pod", "max": 8}, 0),
    ],
)
def test_a_container_without_gpus_gets_those_of_its_namespace(
    item: dict[str, Any], expected: int
) -> None:
    assert gpus(context(limit_range(**item))) == expected


def test_what_a_container_states_stays() -> None:
    of = context(limit_range(default=4))
    assert gpus(of, limits={GPU: 8}) == 8
    assert gpus(of, limits={GPU: 8}, requests={GPU: 8}) == 8


def test_a_limit_range_counts_in_its_own_namespace() -> None:
    other = limit_range("other", default=4)
    assert gpus(context(other, namespace="serving")) == 0
    assert gpus(context(other, namespace="other")) == 4
    assert gpus(context(other)) == 4
    both = context(other, limit_range("serving", default=2), namespace="serving")
    assert gpus(both) == 2
    assert gpus(dataclasses.replace(both, namespace="")) == 0


def test_limit_ranges_that_differ_leave_the_number_open() -> None:
    assert isinstance(gpus(context(limit_range(default=4), limit_range(default=2))), Unknown)


def test_an_engine_is_compared_with_the_gpus_of_its_namespace() -> None:
    container = {"name": "engine", "image": "own:1", "command": ["vllm", "serve", "m", "-tp", "4"]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "llama"}}
    body |= {"spec": {"containers": [container]}}

    def rules(of: Context) -> set[str]:
        return {f.rule for f in check_manifest(body, context=of) if f.level.value == "mandatory"}

    assert "world-size-equals-gpus" in rules(Context())
    assert "world-size-equals-gpus" not in rules(context(limit_range(default=4)))
    assert "world-size-equals-gpus" in rules(context(limit_range(default=2)))
