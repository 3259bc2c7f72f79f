"""Rules of /dev/shm: a container with several ranks has one, and it is large enough."""

from collections.abc import Iterator
from decimal import Context, Decimal

from kthena_components.core.facts.container import SHM_PATH, ContainerFacts, SharedMemory
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level, advise, count_of, part_of_rule
from kthena_components.core.remedies import together, write
from kthena_components.core.rules.support.engine_pods import Start, pods_of
from kthena_components.core.rules.support.messages import each_engine, part_of_engine, title
from kthena_components.core.values.images import Version
from kthena_components.core.values.read import first_unknown, require_known
from kthena_components.core.values.unknown import MaybeInt, Unknown, known


@each_engine
def shm_present(engine: EngineFacts) -> Iterator[Finding]:
    """An engine of several ranks has shared memory: NCCL and Ray exchange data at /dev/shm.

    Without a volume there, the container runtime's default is 64 MiB; CRI-O has an annotation with
    another size. vLLM with the executor mp and several ranks in a pod does not start with that
    since 0.27: its queues there have 240 MiB. Otherwise it is advice, because 64 MiB are enough for
    small models. On TPUs and on AWS Neuron one process serves all devices of a pod. It stays
    advisory for a ModelBooster, whose pods Kthena writes. KubeRay mounts memory there, unless
    plasma-directory is in rayStartParams.

    Pass: tensor 8 with an emptyDir of medium Memory at /dev/shm, the node's own, or hostIPC.
    Fail: --tensor-parallel-size 8 in a container without a mount at /dev/shm.
    Level: advisory; mandatory if the release does not start with 64 MiB.
    Source: containerd pkg/cri/server/helpers_linux.go defaultShmSize;
    vllm/distributed/device_communicators/shm_broadcast.py check_shm_free_space; NCCL user guide,
    Shared memory; vllm/platforms/neuron.py, which sets the executor uni; kuberay
    ray-operator/controllers/ray/common/pod.go addEmptyDir.
    """
    # One entry in an overlay applies to the entry and the workers.
    yield from dict.fromkeys(f for pod in pods_of(engine) for f in _shm(engine, pod))


_SHM_SEEN = {
    SharedMemory.NOTHING: "has nothing mounted at /dev/shm and gets 64 MiB there",
    SharedMemory.DISK: "has a volume at /dev/shm that is not in memory",
    SharedMemory.MISSING: "mounts a volume at /dev/shm that the pod does not have",
    SharedMemory.FIXED: "gets 64 MiB at /dev/shm, which its object has no field for",
}
_SEVERAL = 2
_SHM_VOLUME = "dshm"
_MOUNT = "mount an emptyDir with medium Memory at /dev/shm"


@part_of_engine
def _shm(engine: EngineFacts, pod: PodFacts) -> Iterator[Finding]:
    """Report an engine of several ranks whose /dev/shm has no memory of its own."""
    own = pod.own
    if own is None or own.shm is SharedMemory.MEMORY or pod.one_process is True:
        return
    if isinstance(engine.pods, Unknown) and pod.gpus == 0:  # the ranks may be in other pods
        return
    ranks = _ranks(engine, pod)
    if isinstance(ranks, int) and ranks <= 1:
        return
    require_known(own.path, pod.one_process, own.shm, ranks)
    if isinstance(own.shm, SharedMemory):
        is_fixed = own.shm is SharedMemory.FIXED
        refused = _refused(engine, pod) if own.shm is SharedMemory.NOTHING else ""
        yield Finding(
            path=own.path,
            seen=f"{title(engine)}, container '{own.name}' {_SHM_SEEN[own.shm]}, and its ranks "
            f"exchange data through it{refused}",
            remedy=f"write a ModelServing, and {_MOUNT}" if is_fixed else _mounted(own),
            level=Level.MANDATORY if refused else Level.ADVISORY,
            most=Level.ADVISORY if is_fixed else Level.MANDATORY,
        )


def _refused(engine: EngineFacts, pod: PodFacts) -> str:
    """Say why the release surely does not start with the default; empty if it may."""
    command = pod.command
    if command is None:
        return ""
    start = Start(engine, command)
    queue, _ = largest_queue(start)
    ranks, gpus = command.per_rank_world, pod.gpus
    if start.since(COMPARED_SINCE) is not Level.MANDATORY or queue <= USUAL:
        return ""
    if not isinstance(ranks, int) or not isinstance(gpus, int) or min(ranks, gpus) < _SEVERAL:
        return ""
    if ranks > gpus and command.nnodes is None:  # Ray may start the ranks of other pods.
        return ""
    return (
        f": {start.product} has a queue of {queue // MIB} MiB there, and does not start with less"
    )


def _mounted(own: ContainerFacts) -> str:
    """Mount memory into a container of a template that has nothing at that path."""
    pod, found, _ = own.path.rpartition(".containers[")
    if own.shm is not SharedMemory.NOTHING or not found:
        return _MOUNT
    volume = {"name": _SHM_VOLUME, "emptyDir": {"medium": "Memory"}}
    mount = {"name": _SHM_VOLUME, "mountPath": SHM_PATH}
    return together(
        write(volume, at=f"{pod}.volumes[-]"),
        write(mount, at=f"{own.path}.volumeMounts[-]"),
        text=_MOUNT,
    )


def _ranks(engine: EngineFacts, pod: PodFacts) -> MaybeInt:
    """Return a number above 1 if ranks communicate: several GPUs, or a shared model."""
    sizes: list[MaybeInt] = [pod.gpus]
    for command in (engine.entry.command, pod.command):
        if command is not None and command.engine is not None:
            sizes += [command.tensor, command.pipeline]
    several = [size for size in sizes if isinstance(size, int) and size > 1]
    return several[0] if several else first_unknown(*sizes) or 1


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
    """Report a limit of /dev/shm above the container's memory, or below what the ranks need."""
    own, command = pod.own, pod.command
    if own is None or own.shm_limit is None or command is None or pod.one_process is True:
        return
    limit, most = known(own.shm_limit, own.shm_path), own.memory_limit
    if isinstance(most, int) and limit > most:
        seen = (
            f"is {_shown(limit)}, but container '{own.name}' may use {_shown(most)} of memory, and "
            "the files in /dev/shm count as memory"
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
        seen = (
            f"is {_shown(limit)}, and the {count_of(ranks, 'rank')} of {title(engine)} "
            "exchange data there"
        )
        yield advise(own.shm_path, seen, "write several GiB")


def _small(path: str, limit_bytes: int, queue_bytes: int, level: Level, start: Start) -> Finding:
    """Write the finding of a /dev/shm below vLLM's message queue."""
    release = start.command.release
    note = release.note if release is not None and level is Level.ADVISORY else ""
    consequence = "does not start with less"
    if start.since(COMPARED_SINCE) is None:
        consequence = "is killed when it writes beyond the limit"
    seen = (
        f"is {_shown(limit_bytes)}, but {title(start.engine)} has a queue of "
        f"{_shown(queue_bytes)} there for the messages of its ranks, and {start.product} "
        f"{consequence}{note}"
    )
    return Finding(path=path, seen=seen, remedy=write("2Gi"), level=level)


def _shown(amount: int) -> str:
    unit, name = (2**30, "GiB") if amount % 2**30 == 0 and amount else (MIB, "MiB")
    return f"{_DIGITS.divide(Decimal(amount), unit):g} {name}"


MIB = 2**20
USUAL = 64 * MIB
"""What a container gets without a volume (containerd pkg/cri/server/helpers_linux.go)."""
COMPARED_SINCE = (0, 27)
"""The first vLLM that compares /dev/shm with its queues when it starts."""
_QUEUES: tuple[tuple[Version, int], ...] = (((0, 12), 240 * MIB), ((0, 11), 160 * MIB))
"""The largest queue between the processes of an engine, without some bytes of its own, by the first
vLLM that has it."""


def largest_queue(start: Start) -> tuple[int, Level | None]:
    """Return the largest queue of a release, and the level of less room for it."""
    command = start.command
    if command.engine != "vllm" or command.executor not in (None, "mp") or command.ray_role:
        return 0, None
    for first, size in _QUEUES:
        level = start.since(first)
        if level is not None:
            return size, level
    return 0, None
