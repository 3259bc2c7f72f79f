"""KServe's arithmetic, and what kserve-node-arithmetic says of it."""

from typing import Any

import pytest

from kthena_components.systems.kserve.nodes import (
    RayNodes,
    Shortage,
    compute_mp_nodes,
    compute_ray_nodes,
)
from tests.support.peers import GPU, LATE, RUNTIME, gpus, isvc, said_by

RULE = "kserve-node-arithmetic"
SERVICE = "spec.predictor.workerSpec"
WORKER, HEAD = f"{SERVICE}.containers[0].resources", "spec.predictor.model.resources"


@pytest.mark.parametrize(
    ("total", "worker", "head", "expected"),
    [
        (2, None, None, (2, 1, 1)),
        (16, 8, None, (2, 8, 8)),
        (16, 8, 8, (2, 8, 8)),
        (8, 2, None, (4, 2, 2)),
        (8, 3, None, (3, 3, 2)),
        (8, 3, 2, (3, 3, 2)),
        (8, None, 4, (5, 1, 4)),
        (16, None, 8, (9, 1, 8)),
        (8, None, 8, (1, 1, 8)),
        (8, 3, 8, (1, 0, 8)),
        (8, 8, None, (1, 0, 8)),
        (4, 8, None, (1, 0, 4)),
        (16, 4, 8, (4, 4, 8)),
    ],
)
def test_gpus_are_dealt_out_as_kserve_does(
    total: int, worker: int | None, head: int | None, expected: tuple[int, int, int]
) -> None:
    pods, worker_gets, head_gets = expected
    nodes = RayNodes(pods=pods, worker_gpus=worker_gets, head_gpus=head_gets)
    assert compute_ray_nodes(total, worker, head) == nodes
    assert compute_ray_nodes(total, worker or 0, head or 0) == nodes


@pytest.mark.parametrize(
    ("total", "worker", "head", "pods", "held"), [(8, 3, 1, 3, 7), (16, 8, 4, 2, 12)]
)
def test_a_head_that_is_too_small_is_a_shortage(
    total: int, worker: int, head: int, pods: int, held: int
) -> None:
    found = compute_ray_nodes(total, worker, head)
    assert isinstance(found, Shortage)
    assert (found.nodes.pods, found.nodes.held) == (pods, held)


def test_without_ray_there_is_a_pod_for_each_stage() -> None:
    assert compute_mp_nodes(8, 2) == RayNodes(pods=2, worker_gpus=8, head_gpus=8)


@pytest.mark.parametrize(
    ("tensor", "pipeline", "worker", "head"),
    [(8, 2, 8, None), (8, 2, 8, 8), (1, 2, None, None), (2, 4, 2, None), (2, 1, None, 1)],
)
def test_pods_that_were_meant_pass(
    tensor: int, pipeline: int, worker: int | None, head: int | None
) -> None:
    assert said_by(RULE, isvc(tensor, pipeline, worker, head)) == []


@pytest.mark.parametrize(
    ("sizes", "requests", "said"),
    [
        (
            (8, 2),
            (None, 8),
            (
                f"{WORKER}: has no GPU request, so each worker gets 1: KServe creates 9 pods, a "
                "head with 8 GPUs and 8 workers of 1 GPU. Request 8 GPUs in the worker container"
            ),
        ),
        (
            (8, 1),
            (None, 4),
            (
                f"{WORKER}: has no GPU request, so each worker gets 1: KServe creates 5 pods, a "
                "head with 4 GPUs and 4 workers of 1 GPU. Request 4 GPUs in the worker container"
            ),
        ),
        (
            (8, 2),
            (4, 8),
            (
                f"{WORKER}: tensor 8 × pipeline 2 = 16 ranks, but KServe creates 4 pods, a head "
                "with 8 GPUs and 3 workers of 4 GPUs: 20 GPUs reserved for 16. Request 4 GPUs in "
                "the head and in the worker container"
            ),
        ),
        (
            (4, 1),
            (None, 8),
            (
                f"{HEAD}: tensor 4 × pipeline 1 = 4 ranks, but KServe creates 1 pod, a head with 8 "
                "GPUs: 8 GPUs reserved for 4. Request 4 GPUs in the head container"
            ),
        ),
        (
            (8, 2),
            (8, 4),
            (
                f"{HEAD}: tensor 8 × pipeline 2 = 16 ranks, but a head with 4 GPUs and 1 worker × "
                "8 have 12, and KServe deploys nothing. Request 8 GPUs in the head and in the "
                "worker container"
            ),
        ),
        (
            (8, 1),
            (3, 1),
            (
                f"{HEAD}: tensor 8 × pipeline 1 = 8 ranks, but a head with 1 GPU and 2 workers × 3 "
                "have 7, and KServe deploys nothing. Request 2 GPUs in the head and in the worker "
                "container"
            ),
        ),
        (
            (8, 1),
            (3, None),
            (
                f"{WORKER}: for tensor 8 × pipeline 1 = 8 KServe creates 3 pods, a head with 2 "
                "GPUs and 2 workers of 3 GPUs, which is uneven. Request 2 GPUs in each"
            ),
        ),
        (
            (8, 1),
            (3, 8),
            (
                f"{SERVICE}: is given, but KServe creates only the head, with 8 GPUs; the worker's "
                "request of 3 is not used. Remove workerSpec, or request fewer GPUs"
            ),
        ),
        (
            (8, 1),
            (None, 8),
            (
                f"{SERVICE}: is given, but KServe creates only the head, with 8 GPUs. Remove "
                "workerSpec, or request fewer GPUs"
            ),
        ),
        (
            (8, 2),
            (None, None),
            (
                f"{WORKER}: has no GPU request, nor has the head: for tensor 8 × pipeline 2 = 16 "
                "KServe creates 16 pods, a head with 1 GPU and 15 workers of 1 GPU. Request 8 GPUs "
                "in the head and in the worker container"
            ),
        ),
    ],
)
def test_what_kserve_accepts_and_nobody_meant_is_said(
    sizes: tuple[int, int], requests: tuple[int | None, int | None], said: str
) -> None:
    assert said_by(RULE, isvc(*sizes, *requests)) == [f"{said}. [{RULE}]"]


LIMITS = {
    "spec/predictor/model/resources": gpus("8", both=False),
    "spec/predictor/workerSpec/containers": [{"resources": gpus("8", both=False)}],
}


def test_limits_without_requests_count_as_nothing() -> None:
    makes = (
        "has a limit of 8 GPUs and no request; KServe only reads requests, so for tensor 8 × "
        "pipeline 2 = 16 it creates 16 pods, a head with 1 GPU and 15 workers of 1 GPU. "
        f"Write 8 in requests, too. [{RULE}]"
    )
    assert said_by(RULE, isvc(8, 2, changes=LIMITS)) == [f"{HEAD}: {makes}", f"{WORKER}: {makes}"]


def test_limits_that_change_nothing_pass() -> None:
    one = {"spec/predictor/model/resources": gpus(1, both=False)}
    assert said_by(RULE, isvc(1, 2, changes=one)) == []


@pytest.mark.parametrize(
    ("manifest", "because"),
    [
        (isvc(LATE, 2, 8, 8), "the value is known only after the deployment"),
        (isvc(8, 2, LATE, 8), "the value is known only after the deployment"),
        (isvc(8, 2, 8, "x"), f"the amount of {GPU} is not a count"),
        (isvc(0, 2, 8, 8), "tensorParallelSize is not a size"),
        (
            isvc(8, 2, 8, changes={"spec/predictor/model/runtime": "mine"}),
            "its runtime mine may state what is missing here",
        ),
    ],
)
def test_what_is_not_known_is_not_checked(manifest: dict[str, Any], because: str) -> None:
    assert said_by(RULE, manifest) == [f"{SERVICE}: not checked, because {because}. [{RULE}]"]


def test_without_ray_requests_are_replaced() -> None:
    changes = {
        "spec/annotations": {"multinode/executor-backend": "mp"},
        "spec/workerSpec/tensorParallelSize": 8,
        "spec/workerSpec/pipelineParallelSize": 2,
        "spec/containers/0/resources": gpus(4),
    }
    assert said_by(RULE, RUNTIME, changes) == [
        (
            "spec.containers[0].resources: requests 4 GPUs, but without Ray (executor-backend mp) "
            "KServe gives each of 2 pods the tensor size, 8. Write 8, or set tensorParallelSize to "
            f"4. [{RULE}]"
        )
    ]
    assert said_by(RULE, RUNTIME, {**changes, "spec/containers/0/resources": gpus(8)}) == []
