"""Random questions to `size`: every row must be what the compiler and `check` accept.

    python -m bench.sizing 200 7

asks 200 questions of the seed 7, and writes one line per mistake, the slowest question, and how
many rows each backend took.
"""

import copy
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from kthena_components.checker.manifest import check_manifest
from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import Finding, Level, SpecError
from kthena_components.core.hardware import GpuFacts, known_gpus
from kthena_components.core.hardware.gpu_table import find_gpu
from kthena_components.core.models import known_models
from kthena_components.core.spec.enums import EngineKind, Gpu
from kthena_components.sizing import Answer, Question, Row, find_shapes
from kthena_components.sizing.question_and_shapes import newest_image
from kthena_components.systems import EMITTERS

_NODES = ((1, 8), (2, 8), (4, 8), (1, 4), (4, 4), (8, 8), (3, 8), (1, 1), (2, 6))
_CONTEXTS = (None, 1024, 8192, 32768)
_REQUESTS = (None, None, 4, 64)
_NOT_TAKEN = frozenset({"backend-loss", "backend-options"})
"""The rules by which a backend says that it cannot express a serving."""
_GPU = "nvidia.com/gpu.product"
_IMAGE = "registry.example.com/engine:v1"
"""An image for GPUs for which the engine's project has none."""


def questions(seed: int, count: int) -> Iterator[Question]:
    """Draw questions about models with weights of known size."""
    drawn = random.Random(seed)  # noqa: S311 - no secret
    models = [model for model in known_models() if model.weights_gib is not None]
    gpus = [gpu for gpu in known_gpus() if gpu.labels and not gpu.resources[0].startswith("aws")]
    for _ in range(count):
        model, gpu = drawn.choice(models), drawn.choice(gpus)
        nodes, gpus_per_node = drawn.choice(_NODES)
        context, engine = drawn.choice(_CONTEXTS), drawn.choice(list(EngineKind))
        asked = Question(
            model=model,
            gpu=GpuFacts(name=gpu.name, memory_gib=gpu.memory_gib),
            resource=gpu.resources[0],
            gpu_word=next((word.value for word in Gpu if find_gpu(word) == gpu), ""),
            nodes=nodes,
            gpus_per_node=gpus_per_node,
            context=context if (model.context or 0) > (context or 0) else None,
            requests=drawn.choice(_REQUESTS),
            engine=engine,
            image=newest_image(engine, gpu.resources[0]),
        )
        yield replace(asked, image=_IMAGE) if asked.lacks_image else asked


def mistakes_of(question: Question, answer: Answer, taken: Counter[str]) -> Iterator[str]:
    """Yield what the compiler or `check` says of each row, written for each backend.

    Args:
        question: The question.
        answer: Its answer.
        taken: Counts the rows that each backend took.
    """
    for row in answer.rows:
        for backend in EMITTERS:
            args = _completed(question, row, backend)
            try:
                manifests = compile_serving(args).manifests
            except SpecError as error:
                if _NOT_TAKEN.isdisjoint(finding.rule for finding in error.findings):
                    yield f"{_title(question, row)}, {backend}: {error}"
                continue
            taken[backend] += 1
            for manifest in manifests:
                for finding in check_manifest(manifest.body):
                    if _counts(finding, row):
                        yield f"{_title(question, row)}, {backend}: {finding}"


def _counts(finding: Finding, row: Row) -> bool:
    about_memory = finding.rule.startswith("memory-") and finding.level is Level.ADVISORY
    return finding.level is Level.MANDATORY or (about_memory and row.doubt is None)


def _title(question: Question, row: Row) -> str:
    return f"{question.engine} {question.model.name} on {question.gpu.name}: {row.shape.title}"


def _completed(question: Question, row: Row, backend: str) -> dict[str, Any]:
    """Add what a backend needs and `size` cannot know, and the node label of the GPU."""
    args = copy.deepcopy(question.args(row.shape, engines=row.engines, backend=backend))
    (role,) = args["roles"]
    if backend == "booster":
        role |= {"name": "leader", "cache": {"claim": "weights", "download": True}}
        role["engine"]["port"] = 8000
        return args
    if not question.gpu_word:
        label = next(gpu.labels[0] for gpu in known_gpus() if gpu.name == question.gpu.name)
        role["overlay"] = {"spec": {"nodeSelector": {_GPU: label}}}
    if backend == "kserve":
        role["resources"] |= {"cpu": "8", "memory": "64Gi"}
        if row.shape.pods > 1:
            args["backend_options"] = {"keeps_workers": True, "storage_uri": "pvc://weights/model"}
    elif backend == "kaito":
        args["backend_options"] = {"label_selector": {"pool": "gpus"}}
    return args


def main(count: int = 200, seed: int = 1) -> int:
    """Ask and compare, and return 1 if there is a mistake."""
    taken: Counter[str] = Counter()
    slowest, rows, wrong = 0.0, 0, 0
    for question in questions(seed, count):
        before = time.process_time()
        answer = find_shapes(question)
        slowest = max(slowest, time.process_time() - before)
        rows += len(answer.rows)
        for mistake in mistakes_of(question, answer, taken):
            wrong += 1
            sys.stdout.write(f"{mistake}\n")
    sys.stdout.write(f"{count} questions, {rows} rows, {wrong} mistakes; slowest {slowest:.2f} s\n")
    sys.stdout.write(f"rows by backend: {dict(taken)}\n")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
