"""Entry and workers that both start the engine."""

import pytest

from kthena_components.core.facts.pod import read_pod
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.rules.entry_worker import leader_worker_same_parallelism
from kthena_components.core.values.unknown import MaybeInt
from kthena_components.judge.manifest import judge_manifest
from tests.support.specs import gpu_template
from tests.support.strategies import LATE

RIGHT = "-tp 8 -pp 2 --nnodes 2"
SHARED = f"{RIGHT} --node-rank $(WORKER_INDEX)"
REMEDY = (
    "Write --node-rank $(WORKER_INDEX), or the index that your controller gives the pod. "
    "[leader-worker-same-parallelism]"
)


def said(entry: str, worker: str, pods: MaybeInt = 2) -> list[str]:
    """Judge an engine whose entry and workers run vLLM with these flags, or another command."""
    commands = (
        c if c.startswith(("python", "ray")) else f"vllm serve m {c}" for c in (entry, worker)
    )
    first, second = (read_pod(gpu_template(command), "t", command_path="w") for command in commands)
    engine = EngineFacts(path="e", name="e", pods=pods, replicas=1, entry=first, worker=second)
    serving = ServingFacts(path="", name="s", engines=(engine,))
    return [str(finding) for finding in leader_worker_same_parallelism(serving)]


@pytest.mark.parametrize(
    ("entry", "worker"),
    [
        (SHARED, f"{SHARED} --headless"),
        (RIGHT, f"{RIGHT} --node-rank 1"),
        ("-tp 8 -dp 2 -dpl 1", "-tp 8 -dp 2 -dpl 1 --headless --data-parallel-start-rank 1"),
        ("-tp 8 -pp 2", "ray start --address=x:6379 --block"),
    ],
    ids=["index", "number", "copies", "ray"],
)
def test_pods_that_state_the_same_are_right(entry: str, worker: str) -> None:
    assert said(entry, worker) == []


@pytest.mark.parametrize(
    ("worker", "mine", "theirs"),
    [
        ("-tp 4 -pp 2 --nnodes 2", "tensor 8", "tensor 4"),
        ("-tp 8 --nnodes 2", "pipeline 2", "pipeline 1"),
        ("-tp 4 -pp 4 --nnodes 2", "tensor 8, pipeline 2", "tensor 4, pipeline 4"),
        ("-tp 8 -pp 2 --nnodes 3", "--nnodes 2", "--nnodes 3"),
        ("-tp 8 -pp 2 --nnodes 2 -dp 2", "data 1", "data 2"),
    ],
)
def test_workers_of_other_sizes_are_refused(worker: str, mine: str, theirs: str) -> None:
    assert said(RIGHT, f"{worker} --node-rank 1") == [
        (
            f"w: engine 'e' states {mine} in its entry and {theirs} in its workers, and all pods "
            f"of an engine must state the same. Write {mine} in both. "
            "[leader-worker-same-parallelism]"
        )
    ]


def test_workers_of_another_engine_are_refused() -> None:
    assert said(RIGHT, "python -m sglang.launch_server --tp 8") == [
        (
            "w: engine 'e' starts vllm in its entry and sglang in its workers. Start vllm in both. "
            "[leader-worker-same-parallelism]"
        )
    ]


@pytest.mark.parametrize(
    ("rank", "pods", "seen"),
    [
        ("--node-rank 0", 2, "gives its workers --node-rank 0, which is the entry's rank"),
        ("", 2, "gives its workers no --node-rank, which means 0, which is the entry's rank"),
        ("--node-rank 2", 2, "gives its workers --node-rank 2, and with --nnodes 2 the last is 1"),
        ("--node-rank 1", 3, "gives each of its 2 workers --node-rank 1"),
    ],
    ids=["zero", "none", "too-high", "for-several"],
)
def test_a_rank_that_another_pod_has_is_refused(rank: str, pods: int, seen: str) -> None:
    assert said(RIGHT, f"{RIGHT} {rank}", pods) == [f"w: engine 'e' {seen}. {REMEDY}"]


def test_a_size_of_the_workers_that_is_not_known_is_told() -> None:
    assert said(RIGHT, f"-tp {LATE} -pp 2 --nnodes 2 --node-rank 1") == [
        (
            "w: engine 'e' was not checked, because it is an output that only the deployment "
            "knows. [leader-worker-same-parallelism]"
        )
    ]


def test_a_worker_that_no_pod_is_made_of_is_not_judged() -> None:
    assert said(RIGHT, "-tp 4", pods=1) == []


def test_a_manifest_of_anyone_is_judged() -> None:
    role = {
        "name": "decode",
        "entryTemplate": gpu_template(f"vllm serve m {RIGHT}"),
        "workerReplicas": 1,
        "workerTemplate": gpu_template(f"vllm serve m {RIGHT}"),
    }
    body = {
        "apiVersion": "workload.serving.volcano.sh/v1alpha1",
        "kind": "ModelServing",
        "metadata": {"name": "chat"},
        "spec": {"template": {"roles": [role]}},
    }
    assert [str(f) for f in judge_manifest(body) if f.rule == "leader-worker-same-parallelism"] == [
        (
            "spec.template.roles[0].workerTemplate.spec.containers[0].command: engine 'decode' "
            f"gives its workers no --node-rank, which means 0, which is the entry's rank. {REMEDY}"
        )
    ]
