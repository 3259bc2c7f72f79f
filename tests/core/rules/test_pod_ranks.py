"""The ranks of a StatefulSet's pods against the number that the command line counts."""

from typing import Any

import pytest

from kthena_components.checker.manifest import check_manifest
from kthena_components.core.findings import Level

INDEX = "metadata.labels['apps.kubernetes.io/pod-index']"
ADDRESS = ["--data-parallel-address", "llama-0.llama"]


def said(replicas: int, *words: str, start: int = 0, script: str = "") -> list[str]:
    """Return what is mandatory about the ranks of the pods of a StatefulSet."""
    env = [{"name": "INDEX", "valueFrom": {"fieldRef": {"fieldPath": INDEX}}}]
    command = ["sh", "-c", script] if script else ["vllm", "serve", "m", *words]
    container: dict[str, Any] = {"name": "engine", "image": "own:1", "command": command, "env": env}
    container["resources"] = {"limits": {"nvidia.com/gpu": 1}}
    spec: dict[str, Any] = {"replicas": replicas, "ordinals": {"start": start}}
    spec["template"] = {"spec": {"containers": [container]}}
    body = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "llama"}}
    found = check_manifest({**body, "spec": spec})
    return [f.seen for f in found if f.rule == "pod-ranks" and f.level is Level.MANDATORY]


@pytest.mark.parametrize("replicas", [2, 3, 4, 5, 8])
def test_a_stateful_set_has_a_pod_for_each_node(replicas: int) -> None:
    words = ["-pp=4", "--nnodes=4", "--node-rank=$(INDEX)", "--master-addr=llama-0.llama"]
    assert bool(said(replicas, *words)) is (replicas != 4)


@pytest.mark.parametrize("replicas", [2, 3, 4, 5, 8])
def test_a_stateful_set_has_a_pod_for_each_copy(replicas: int) -> None:
    words = ["-dp=4", "--data-parallel-rank=$(INDEX)", *ADDRESS]
    assert bool(said(replicas, *words)) is (replicas != 4)


@pytest.mark.parametrize(("start", "replicas"), [(1, 3), (2, 2), (3, 1)])
def test_ranks_that_start_above_0_continue_another_object(start: int, replicas: int) -> None:
    words = ["-dp=4", "--data-parallel-rank=$(INDEX)", *ADDRESS]
    assert said(replicas, *words, start=start) == []
    assert said(replicas + 1, *words, start=start)


@pytest.mark.parametrize(("replicas", "whole"), [(2, True), (4, True), (3, False)])
def test_ranks_that_repeat_evenly_are_several_engines(replicas: int, *, whole: bool) -> None:
    script = "vllm serve m -pp 2 --nnodes 2 --node-rank $((INDEX % 2)) --master-addr $MASTER"
    assert bool(said(replicas, script=script)) is not whole


def test_a_pod_that_serves_several_copies_starts_at_a_multiple() -> None:
    script = "vllm serve m -dp 4 --data-parallel-size-local 2 --data-parallel-hybrid-lb"
    script += " --data-parallel-start-rank $((INDEX * 2))"
    assert said(2, script=script) == []
    assert said(3, script=script)
