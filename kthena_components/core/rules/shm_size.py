"""The rule shm-size."""

from collections.abc import Iterator
from decimal import Context, Decimal

from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level, advise, part_of_rule
from kthena_components.core.remedies import write
from kthena_components.core.rules.support.engine_pods import pods_of
from kthena_components.core.rules.support.engine_startup import Start
from kthena_components.core.rules.support.messages import title
from kthena_components.core.rules.support.shm_queues import MIB, REFUSES, USUAL, largest_queue
from kthena_components.core.values.unknown import known

_DIGITS = Context(prec=6)
"""Amounts in messages. A float has no room for each one that may be stated."""


def shm_size(facts: ServingFacts) -> Iterator[Finding]:
    """A limit of /dev/shm is large enough for the engine, and not above the container's memory.

    vLLM with the executor mp makes queues there for the messages of its ranks: of 240 MiB since
    0.12, of 160 MiB in 0.11. Since 0.27 it does not start if one does not fit; before, the kernel
    kills the process that writes beyond the limit. NCCL needs some MiB for each pair of ranks. What
    is in /dev/shm counts as the container's memory.

    Pass: sizeLimit 16Gi; no sizeLimit.
    Fail: sizeLimit 64Mi with tensor 8; sizeLimit 80Gi in a container with a memory limit of 64Gi.
    Level: mandatory if a queue of the release does not fit; advisory for another engine with at
    most 64 MiB, and for a limit above the container's memory.
    Source: vllm/distributed/device_communicators/shm_broadcast.py ShmRingBuffer and
    check_shm_free_space, vllm/v1/executor/multiproc_executor.py, vllm/envs.py
    VLLM_MQ_MAX_CHUNK_BYTES_MB; Kubernetes documentation, Volumes, emptyDir.
    """
    for engine in facts.engines:
        yield from dict.fromkeys(f for pod in pods_of(engine) for f in _check(engine, pod))


@part_of_rule
def _check(engine: EngineFacts, pod: PodFacts) -> Iterator[Finding]:
    own, command = pod.own, pod.command
    if own is None or own.shm_limit is None or command is None or pod.one_process is True:
        return
    limit, most = known(own.shm_limit, own.shm_path), own.memory_limit
    if isinstance(most, int) and limit > most:
        seen = (
            f"is {_shown(limit)}, but container '{own.name}' may use {_shown(most)} of memory, and "
            "what is in /dev/shm counts"
        )
        yield advise(own.shm_path, seen, write(f"{most // MIB}Mi"))
    ranks = command.per_rank_world
    if not isinstance(ranks, int) or ranks < 2:  # noqa: PLR2004 - several
        return
    start = Start(engine, command)
    queue, level = largest_queue(start)
    if level is not None and limit <= queue:
        yield _small(own.shm_path, limit, queue, level, start)
    elif limit <= USUAL:
        seen = f"is {_shown(limit)}, and the {ranks} ranks of {title(engine)} exchange data there"
        yield advise(own.shm_path, seen, "write some GiB")


def _small(path: str, limit: int, queue: int, level: Level, start: Start) -> Finding:
    release = start.command.release
    note = release.note if release is not None and level is Level.ADVISORY else ""
    so = "does not start with less"
    if start.since(REFUSES) is None:
        so = "is killed when it writes beyond the limit"
    seen = (
        f"is {_shown(limit)}, but {title(start.engine)} has a queue of {_shown(queue)} there "
        f"for the messages of its ranks, and {start.product} {so}{note}"
    )
    return Finding(path=path, seen=seen, remedy=write("2Gi"), level=level)


def _shown(amount: int) -> str:
    unit, name = (2**30, "GiB") if amount % 2**30 == 0 and amount else (MIB, "MiB")
    return f"{_DIGITS.divide(Decimal(amount), unit):g} {name}"
