"""The ranks of a StatefulSet's pods against the number that the command line counts."""

from functools import partial
from typing import Any

import pytest

from kthena_components.checker.manifest import check_manifest
from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Level
from kthena_components.core.naming import POD_INDEX, label_field
from kthena_components.core.rules.support.own_rank_and_unset_variables import (
    Ranked,
    number_in_shell,
    own_rank,
)
from tests.support.for_each import for_each

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


RANKED = partial(Ranked, option="--node-rank", count=2)
LABEL = frozenset({label_field(POD_INDEX)})
AS_SET = ("run the pods as a StatefulSet", "")
BY_NAME = "${HOSTNAME##*-}"
FROM_LABEL = f"set POD_INDEX in env from the label {POD_INDEX}"
# What a controller says of its pods: how each gets its rank, and how a shell reads its number.
NUMBERED: list[tuple[dict[str, Any], str, str]] = [
    ({"controller_env": ("WORKER_INDEX",)}, "write --node-rank $(WORKER_INDEX)", "$WORKER_INDEX"),
    ({"controller_env": ("LWS_",)}, "write --node-rank $(LWS_WORKER_INDEX)", "$LWS_WORKER_INDEX"),
    (
        {"controller_env": ("VC_TASK_INDEX",)},
        "write --node-rank $(VC_TASK_INDEX)",
        "$VC_TASK_INDEX",
    ),
    ({"controller_env": ()}, FROM_LABEL, BY_NAME),
    ({"controller_env": (), "added_fields": LABEL}, FROM_LABEL, BY_NAME),
    (
        {"controller_env": (), "added_fields": frozenset()},
        "give each pod its own --node-rank, from 0",
        "",
    ),
    ({"controller_env": None}, "give each pod its own --node-rank, from 0", ""),
    (
        {"controller_env": None, "added_fields": LABEL},
        "give each pod its own --node-rank, from 0",
        "",
    ),
    (
        {"controller_env": (), "numbered_with": AS_SET},
        f"{AS_SET[0]}: write --node-rank $(POD_INDEX)",
        "",
    ),
    (
        {"controller_env": None, "numbered_with": AS_SET},
        f"{AS_SET[0]}: write --node-rank $(POD_INDEX)",
        "",
    ),
    (
        {
            "controller_env": (),
            "numbered_with": ("write completionMode: Indexed", "JOB_COMPLETION_INDEX"),
        },
        "write completionMode: Indexed, and write --node-rank $(JOB_COMPLETION_INDEX)",
        "",
    ),
]


@for_each(("facts", "rank", "number"), NUMBERED)
def test_pods_get_their_ranks_from_what_their_controller_tells_them(
    facts: dict[str, Any], rank: str, number: str
) -> None:
    serving = ServingFacts(path="", name="", engines=(), **facts)
    assert rank in own_rank(RANKED(first=0), serving)
    assert number_in_shell(serving) == number


TERMS = [
    (RANKED(first=1), ("WORKER_INDEX",), "$(WORKER_INDEX)"),
    (RANKED(first=2), ("WORKER_INDEX",), "$((WORKER_INDEX + 1))"),
    (RANKED(first=2, step=2), ("WORKER_INDEX",), "$((WORKER_INDEX * 2))"),
    (RANKED(first=1), ("VC_TASK_INDEX",), "$((VC_TASK_INDEX + 1))"),
    (RANKED(first=1, alone=True), ("WORKER_INDEX", "VC_TASK_INDEX"), "$((VC_TASK_INDEX + 1))"),
    (RANKED(first=1, alone=True), ("WORKER_INDEX",), "$(WORKER_INDEX)"),
    (RANKED(first=3, count=1), ("VC_TASK_INDEX",), "--node-rank 3"),
    (RANKED(first=3, count=1), (), "--node-rank 3"),
]


@for_each(("pods", "controller_env", "said"), TERMS)
def test_a_rank_is_computed_from_the_number_of_its_pod(
    pods: Ranked, controller_env: tuple[str, ...], said: str
) -> None:
    serving = ServingFacts(path="", name="", engines=(), controller_env=controller_env)
    assert said in own_rank(pods, serving)
