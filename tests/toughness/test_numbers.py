"""Examples that are right refuse nothing; with one number changed they are refused by it."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from kthena_components.checker.manifest import check_manifest, is_compared, read_manifest
from kthena_components.core.findings import Finding, Level
from tests.toughness.corpus import Place, at, bases, places, put

COUNTS = re.compile(
    r"(^|\.)(workerReplicas|size|nodeCount|numOfHosts|(tensor|pipeline)ParallelSize|tensor|pipeline"
    r"|tensor-parallel-size|pipeline-parallel-size|requestGPU|[a-z.]+\.com/gpu)$"
)
"""Fields whose number counts pods of an engine, its ranks, or GPUs."""
FLAGS = re.compile(
    r"(--tensor[-_]parallel[-_]size|--pipeline[-_]parallel[-_]size|--tp|--pp|-tp|-pp"
    r"|--nnodes|--ray_cluster_size)([ =])([0-9]+)(?![0-9])"
)
FINE = {
    # Nothing is known of a container that starts no engine which we read.
    "disaggregated-set-0 spec.roles.0.spec.leaderWorkerTemplate.size": "starts no engine",
    "disaggregated-set-0 spec.roles.1.spec.leaderWorkerTemplate.size": "starts no engine",
    "shared-1 spec.leaderWorkerTemplate.size": "starts no engine",
    "kueue-queues-3 spec.leaderWorkerTemplate.size": "starts no engine",
    "kueue-queues-3 spec.leaderWorkerTemplate.workerTemplate.spec.containers.0.resources.limits."
    "nvidia.com/gpu": "starts no engine",
    # KServe reads requests alone, writes both, and makes as many nodes as the ranks need.
    "inference-service-0 spec.predictor.model.resources.limits.nvidia.com/gpu": "is written over",
    "inference-service-0 spec.predictor.workerSpec.containers.0.resources.limits.nvidia.com/gpu": (
        "is written over"
    ),
    "inference-service-0 spec.predictor.workerSpec.pipelineParallelSize": "adds a node",
    # As above; its runtime is in another file, so the command line is not known.
    "pvc-models-0 spec.predictor.model.resources.limits.nvidia.com/gpu": "is written over",
    "pvc-models-0 spec.predictor.workerSpec.containers.0.resources.limits.nvidia.com/gpu": (
        "is written over"
    ),
    "pvc-models-0 spec.predictor.workerSpec.pipelineParallelSize": "adds a node",
    # The NIM operator makes a pod for each stage, and nothing of a service that is switched off.
    "nim-service-0 spec.multiNode.parallelism.pipeline": "adds a node",
    "nim-scaled-0 spec.resources.limits.nvidia.com/gpu": "NIM chooses a profile for its GPUs",
    "nim-pipeline-0 spec.services.1.spec.resources.limits.nvidia.com/gpu": "is not enabled",
    "playground-0 spec.backendRuntimeConfig.args.1 --tensor-parallel-size": (
        "the flavors of its OpenModel say how many GPUs there are"
    ),
    # The other pods of the engine are an object of their own, so the rules read both together.
    "rbg-split-0 spec.roles.0.standalonePattern.template.spec.containers.0.command.2 "
    "--tensor-parallel-size": "the pods of other roles may join, so the size is not checked",
    "rbg-split-0 spec.roles.0.standalonePattern.template.spec.containers.0.command.2 "
    "--pipeline-parallel-size": "the pods of other roles may join, so the size is not checked",
    "rbg-behind-0 spec.roles.0.standalonePattern.template.spec.containers.0.command.2 "
    "--tensor-parallel-size": "the pods of other roles may join, so the size is not checked",
    "rbg-behind-0 spec.roles.0.standalonePattern.template.spec.containers.0.command.2 "
    "--pipeline-parallel-size": "the pods of other roles may join, so the size is not checked",
    "split-1 spec.template.spec.containers.0.command.2 -tp": "other pods may join",
    "split-1 spec.template.spec.containers.0.command.2 -pp": "other pods may join",
    # Its queue is an object of its own.
    "kai-queues-2 spec.template.cliques.0.spec.podSpec.containers.0.resources.limits."
    "nvidia.com/gpu": "no engine is known",
    "kai-queues-2 spec.template.cliques.1.spec.podSpec.containers.0.resources.limits."
    "nvidia.com/gpu": "no engine is known",
}
"""Numbers that may be one higher, and why that is right."""
SERVING = {
    name: body
    for name, body in bases().items()
    if read_manifest(body) is not None and is_compared(body)
}
"""Those that serve: a runtime is a template, whose numbers an InferenceService overrides."""


def changes(body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], int]]:
    """Give the body once for each number that counts, with that number one higher."""
    for place in places(body):
        value, path = at(body, place), ".".join(map(str, place))
        if COUNTS.search(path) and (isinstance(value, int) or str(value).isdecimal()):
            more = int(value) + 1
            yield path, put(body, place, more if isinstance(value, int) else str(more)), more
        elif isinstance(value, str):
            yield from _flags(body, place, path, value)
            yield from _flag_and_word(body, place, path, value)


def _flags(
    body: dict[str, Any], place: Place, path: str, text: str
) -> Iterator[tuple[str, dict[str, Any], int]]:
    for found in FLAGS.finditer(text):
        more = int(found[3]) + 1
        written = f"{text[: found.start(3)]}{more}{text[found.end(3) :]}"
        yield f"{path} {found[1]}", put(body, place, written), more


def _flag_and_word(
    body: dict[str, Any], place: Place, path: str, text: str
) -> Iterator[tuple[str, dict[str, Any], int]]:
    """Change a number that stands in the list after its flag."""
    *_, index = place
    if isinstance(index, int) and index and text.isdecimal():
        before = at(body, (*place[:-1], index - 1))
        if FLAGS.fullmatch(f"{before} {text}"):
            yield f"{path} {before}", put(body, place, str(int(text) + 1)), int(text) + 1


def refused(body: dict[str, Any]) -> list[Finding]:
    return [finding for finding in check_manifest(body) if finding.level is Level.MANDATORY]


@pytest.mark.parametrize("name", SERVING)
def test_an_example_that_is_right_is_not_refused(name: str) -> None:
    assert [str(finding) for finding in refused(SERVING[name])] == []


def test_each_number_one_higher_is_refused_and_named() -> None:
    wrong = {}
    for name, body in SERVING.items():
        for path, changed, more in changes(body):
            text = "\n".join(map(str, refused(changed)))
            # A count of workers is told as pods, of which the entry is one more.
            if not re.search(rf"(?<![0-9])({more}|{more + 1})(?![0-9])", text):
                wrong[f"{name} {path}"] = text
    assert wrong == dict.fromkeys(FINE, "")
