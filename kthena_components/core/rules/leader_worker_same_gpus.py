"""The rule leader-worker-same-gpus."""

from collections.abc import Iterator

from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ranks_of
from kthena_components.core.findings import Finding, count_of
from kthena_components.core.remedies import either
from kthena_components.core.rules.support.fixes import give_gpus
from kthena_components.core.rules.support.messages import (
    cannot_check,
    each_engine,
    title,
)
from kthena_components.core.values.read import require_known
from kthena_components.core.values.unknown import Unknown

_NO_ENGINE = Unknown("no command line of a known engine was found")


@each_engine
def leader_worker_same_gpus(engine: EngineFacts) -> Iterator[Finding]:
    """Entry and workers of one engine have equally many GPUs: ranks are distributed evenly.

    This is true for the engines that are known here. Leaders of JetStream and Pathways run on CPUs.

    Pass: 8 GPUs in the entry pod, 8 in each worker.
    Fail: 4 GPUs in the entry pod, 8 in each worker.
    Level: mandatory.
    Source: vllm/config/parallel.py, local world size = world size / nodes.
    """
    if engine.worker is None or engine.pods == 1:
        return
    entry, worker = engine.entry.gpus, engine.worker.gpus
    if not _is_known(engine.entry) and not _is_known(engine.worker):
        # If the entry has GPUs, world-size-equals-gpus reports that the engine is unknown.
        if entry == 0 and worker != 0:
            gap = engine.entry.gap or _NO_ENGINE
            yield from cannot_check(engine, gap, path=engine.worker.gpus_path)
        return
    require_known(engine.worker.gpus_path, entry, worker)
    if isinstance(entry, int) and isinstance(worker, int) and entry != worker:
        yield Finding(
            path=engine.worker.gpus_path,
            seen=f"{title(engine)} gives its entry pod {entry} GPUs and each worker {worker}, "
            "and an engine distributes its ranks evenly",
            remedy=either(*_alike(engine, entry, worker)),
        )


def _alike(engine: EngineFacts, *stated: int) -> Iterator[str]:
    """Return the numbers that both may have: those with which the GPUs are as many as the ranks."""
    command, pods = engine.entry.command, engine.pods
    ranks = ranks_of(engine, command) if command is not None and command.engine else None
    some = [number for number in stated if number > 0]
    fit = [number for number in some if isinstance(pods, int) and number * pods == ranks]
    for place, number in enumerate(fit or some):
        text = f"{'write ' if place == 0 else ''}{number} in both"
        other = ranks // number if isinstance(ranks, int) and ranks % number == 0 else 0
        if not fit and isinstance(pods, int) and other > 1:
            yield f"{text} and give the engine {count_of(other, 'pod')}"
        else:
            yield give_gpus(engine, number, text)


def _is_known(pod: PodFacts) -> bool:
    """Return whether a pod starts a known engine."""
    return pod.command is not None and pod.command.engine is not None
