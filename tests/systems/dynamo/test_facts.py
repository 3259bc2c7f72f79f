"""Dynamo: what its operator adds, which GPUs count, and where things are written."""

from typing import Any

import pytest

from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.dynamo import facts as dynamo
from tests.support import groups
from tests.support.groups import DATA, DYNAMO, DYNAMO_BETA, PIPELINE, TENSOR, service
from tests.support.peers import changed, gpus, refused, said_by, told

WORLD = "world-size-equals-gpus"
MAIN = "spec/services/decode/extraPodSpec/mainContainer"


def decode(changes: dict[str, Any]) -> tuple[object, ...]:
    """Give the name, the pods, the replicas and the GPUs a pod of the first engine."""
    facts = dynamo.read(changed(DYNAMO, changes))
    assert facts is not None
    engine = facts.engines[0]
    return engine.name, engine.pods, engine.replicas, engine.entry.gpus


def test_the_kind_of_gpu_may_be_stated() -> None:
    limits = {"gpu": "8", "gpuType": "gpu.intel.com/xe"}
    changes = {"spec/services/decode/resources": {"limits": limits}}
    assert decode(changes) == ("decode", 2, 1, 8)


def test_two_counts_of_gpus_that_differ_are_not_judged() -> None:
    changes = {f"{MAIN}/resources": gpus("4")}
    assert isinstance(decode(changes)[3], Unknown)


def test_the_operator_joins_the_pods_so_nothing_has_to_be_stated() -> None:
    assert [line for line in told(DYNAMO) if "executor-stated" in line] == []
    facts = dynamo.read(DYNAMO)
    assert facts is not None
    command = facts.engines[0].entry.command
    assert command is not None
    assert (command.nnodes, command.executor) == (2, "mp")


def test_an_annotation_asks_for_ray() -> None:
    facts = dynamo.read(groups.DYNAMO_RICH)
    assert facts is not None
    command = facts.engines[0].entry.command
    assert command is not None
    assert (command.nnodes, command.executor) == (None, "ray")


@pytest.mark.parametrize(
    ("args", "nodes", "gpu", "found"),
    [
        ((TENSOR, "8", DATA, "4"), 4, "8", []),
        ((TENSOR, "8", DATA, "3"), 4, "8", ["tensor 8 × pipeline 1 × data 3 = 24 ranks"]),
        ((TENSOR, "8", DATA, "4", "--data-parallel-hybrid-lb"), 4, "8", []),
        ((TENSOR, "8"), 2, "8", ["tensor 8 × pipeline 1 = 8 ranks, but its 2 pods"]),
        ((TENSOR, "8", PIPELINE, "2"), 2, "8", []),
        ((TENSOR, "1", DATA, "8", "--enable-elastic-ep"), 2, "8", []),
    ],
)
def test_copies_over_nodes_are_counted(
    args: tuple[str, ...], nodes: int, gpu: str, found: list[str]
) -> None:
    changes = {"spec/services": {"decode": service(gpu, *args, nodes=nodes)}}
    lines = [line for line in refused(DYNAMO, changes) if WORLD in line]
    assert len(lines) == len(found)
    assert all(part in line for part, line in zip(found, lines, strict=True))


def test_shared_memory_is_there_unless_it_is_turned_off() -> None:
    assert said_by("shm-present", DYNAMO) == []
    changes = {"spec/services/decode/sharedMemory": {"disabled": True}}
    assert len(said_by("shm-present", DYNAMO, changes)) == 1
    assert said_by("shm-present", DYNAMO_BETA) == []
    assert (
        len(said_by("shm-present", DYNAMO_BETA, {"spec/components/1/sharedMemorySize": "0"})) == 1
    )


def test_a_token_is_found_where_it_is_written() -> None:
    token = [{"name": "HF_TOKEN", "value": "secret"}]
    (line,) = said_by("hf-token-from-secret", DYNAMO, {f"{MAIN}/env": token})
    at = "spec.services.decode.extraPodSpec.mainContainer.env[0].value: "
    assert line.startswith(at)
    (line,) = said_by("hf-token-from-secret", groups.DYNAMO_RICH, {"spec/envs": token})
    assert line.startswith("spec.envs[0].value: ")
    changes = {"spec/services/decode/envs": token}
    (line,) = said_by("hf-token-from-secret", groups.DYNAMO_RICH, changes)
    assert line.startswith("spec.services.decode.envs[0].value: ")
