"""Rules of the ranks of an engine: as many as its GPUs, and on whole ones."""

from collections.abc import Iterator

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.pod import DeviceFacts, PodFacts
from kthena_components.core.facts.serving import (
    EngineFacts,
    ServingFacts,
    gpus_of,
    ranks_of,
    starts_later_copies,
)
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.remedies import either, set_option
from kthena_components.core.rules.data_parallel_layout import product
from kthena_components.core.rules.gpu_requests_vendor_visible import seen_by
from kthena_components.core.rules.support.engine_pods import pods_of
from kthena_components.core.rules.support.fixes import give_gpus, gpu_remedy, sizes_of
from kthena_components.core.rules.support.messages import each_engine, title
from kthena_components.core.values.unknown import Unknown, all_known

_GROWING = ("--enable-elastic-ep", "--elastic-ep-initial-size", "--max-ep-size")
"""Options of engines that start with a part of their GPUs, and take others when told to.

Source: vllm/config/parallel.py (enable_elastic_ep); sglang/srt/server_args.py.
"""


@each_engine
def world_size_equals_gpus(engine: EngineFacts) -> Iterator[Finding]:
    """The ranks of an engine, TP × PP × DP, equal its pods × GPUs per pod.

    With fewer ranks, GPUs stay idle; with more, ranks wait forever for devices that do not exist.
    Context parallelism also counts; SGLang's attention DP does not: it is inside TP.

    Fewer ranks than devices are reported although the engine starts: unused devices stay idle, and
    no other pod can have them. If that is intended, for example to use their memory or links, waive
    the rule with an annotation on the object: waive.kthena-components/world-size-equals-gpus:
    "2026-12-31 why". They are not checked where CUDA_VISIBLE_DEVICES shows the engine as many as it
    has ranks, or where a configuration of NVIDIA's device plugin in the same files offers time
    slices of a GPU, or shares of MPS, under the requested name. Nor are engines on CPUs, whose
    ranks use NUMA nodes: an image, a variable or an option says so.

    A pod of vLLM that joins an engine of another object (--headless, without --nnodes) is counted
    alone: by the copies that it starts.

    GPUs by resource claims count if the claim or its template is among the objects. All pods that
    name one ResourceClaim share its GPUs, which count once. Their number is not known for
    allocationMode All, adminAccess, alternatives that differ, parts of a device, and unknown
    classes of devices.

    Pods that each start the same whole server on all of their GPUs, and that nothing joins, are
    advisory: each is an engine alone.

    Pass: tensor 8 × pipeline 2 = 16 ranks on 2 pods × 8 GPUs.
    Fail: tensor 8 × pipeline 2 = 16 ranks on 3 pods × 8 GPUs = 24 GPUs.
    Level: mandatory; advisory where each pod is an engine alone.
    Source: vllm/config/parallel.py (world_size), sglang/srt/server_args.py, vllm ray_utils; vllm
    docs/getting_started/installation/cpu.md and vllm/v1/worker/cpu_worker.py; kubernetes
    staging/src/k8s.io/api/resource/v1/types.go.
    """
    yield from _world(engine)


def _world(engine: EngineFacts) -> Iterator[Finding]:
    """Compare the ranks that an engine starts with the GPUs of its pods."""
    command = engine.entry.command
    if command is None or command.engine is None:
        yield from _no_engine(engine, command)
        return
    hard = [problem for problem in command.problems if problem.hard]
    for problem in hard:
        if problem.option:
            continue  # engine-option-known reports it
        yield Finding(
            path=engine.entry.command_path,
            seen=f"{title(engine)}: {problem.text}",
            remedy=problem.remedy or f"correct {problem.flag}",
        )
    ranks, held = ranks_of(engine, command), gpus_of(engine)
    unknown = next((value for value in (ranks, held) if isinstance(value, Unknown)), None)
    if unknown is not None:
        if unknown.because not in {problem.text for problem in hard}:
            yield _unchecked(engine, unknown.because)
    elif isinstance(ranks, int) and held == 0 and (why := _on_cpus(engine, ranks)):
        yield _unchecked(engine, why)
    elif isinstance(ranks, int) and isinstance(held, int) and ranks != held:
        if ranks > held and (more := _claimed(engine)):
            yield _unchecked(engine, more.because)
            return
        if ranks < held and (why := _on_purpose(engine, command) or _hidden(engine, ranks)):
            yield _unchecked(engine, why)
            return
        yield _unequal(engine, command, ranks, held)


def _unequal(engine: EngineFacts, command: CommandFacts, ranks: int, held: int) -> Finding:
    """Write the finding of ranks that are not the GPUs of the engine's pods."""
    if _each_alone(engine, command, ranks):
        return _several(engine, command, ranks)
    return Finding(
        path=engine.entry.command_path,
        seen=f"{title(engine)} starts {_product(engine, command)} = "
        f"{count_of(ranks, 'rank')}{_by_file(command)}, but its {_pods(engine, held)}",
        remedy=gpu_remedy(engine, command, ranks, held),
    )


def _on_cpus(engine: EngineFacts, ranks: int) -> str:
    """Say why an engine may rightly have no GPU; empty if it may not."""
    cpus = engine.entry.on_cpus
    if isinstance(cpus, Unknown):
        return cpus.because
    if ranks == 1:
        return "it requests no GPU, like an engine on CPUs"
    return (
        f"it runs on CPUs, and its {count_of(ranks, 'rank')} use NUMA nodes of the node"
        if cpus
        else ""
    )


def _each_alone(engine: EngineFacts, command: CommandFacts, ranks: int) -> bool:
    """Return whether each pod starts the same whole server on all of its GPUs, and none joins."""
    worker = engine.worker
    if worker is None or worker.command != command or not ranks == engine.entry.gpus == worker.gpus:
        return False
    joined = (command.node_rank, command.ray_role, command.mpi_ranks, command.data_rank)
    if any(each is not None for each in joined) or command.nnodes not in {None, 1}:
        return False
    alone = {command.executor, command.data_backend} <= _NOT_RAY and command.headless is False
    return alone and command.data_mode == "internal" and not _MEETING & command.options.keys()


def _several(engine: EngineFacts, command: CommandFacts, ranks: int) -> Finding:
    """Advise against pods that each start all ranks: nothing joins them into one engine."""
    return Finding(
        path=engine.entry.command_path,
        seen=f"{title(engine)} starts {_product(engine, command)} = {count_of(ranks, 'rank')} in "
        f"each of its {count_of(engine.pods, 'pod')}, and nothing joins them: each pod is "
        "an engine alone",
        remedy="give the engine 1 pod and the group more replicas, or connect the pods",
        level=Level.ADVISORY,
    )


def _claimed(engine: EngineFacts) -> Unknown | None:
    pods = (engine.entry, engine.worker)
    return next((pod.claimed for pod in pods if pod is not None and pod.claimed), None)


def _on_purpose(engine: EngineFacts, command: CommandFacts) -> str:
    """Say why an engine may rightly have more GPUs than ranks; empty if nothing says so."""
    for pod in (engine.entry, engine.worker):
        if pod is not None and pod.sliced is not None:
            return pod.sliced.because
    if any(command.options.get(flag) for flag in _GROWING):
        return "an elastic engine may grow into its other GPUs while it runs"
    return ""


def _hidden(engine: EngineFacts, ranks: int) -> str:
    """Say that CUDA_VISIBLE_DEVICES leaves an engine as many GPUs as it has ranks, or may do so."""
    entry, pods = engine.entry, engine.pods
    devices = entry.command.devices if entry.command is not None else None
    if isinstance(devices, Unknown):
        return devices.because
    if devices is None or not isinstance(entry.gpus, int) or not isinstance(pods, int):
        return ""
    worker = engine.worker
    if pods > 1 and worker is not None:
        theirs = worker.command.devices if worker.command is not None else None
        if isinstance(theirs, Unknown):
            return theirs.because
        if (theirs, worker.gpus) != (devices, entry.gpus):
            return ""
    seen = seen_by(devices, entry.gpus).count
    each = "its pod" if pods == 1 else "each pod"
    shown = f"CUDA_VISIBLE_DEVICES shows it {seen} of the {count_of(entry.gpus, 'GPU')} of {each}"
    return shown if seen * pods == ranks else ""


def _by_file(command: CommandFacts) -> str:
    """Name the config files that state a size: the finding's path only leads to the command."""
    texts = (command.where.get(size, "") for size in ("tensor", "pipeline", "data"))
    files = dict.fromkeys(text.rpartition(" in ")[2] for text in texts if " in /" in text)
    return f", as {' and '.join(files)} says" if files else ""


def _no_engine(engine: EngineFacts, command: CommandFacts | None) -> Iterator[Finding]:
    """Explain why a pod with GPUs was not checked; a Ray worker's head is checked instead."""
    gpus, gap = engine.entry.gpus, engine.entry.gap
    joins = command is not None and command.ray_role == "worker"
    if engine.entry.joined is not None and not _on_purpose(engine, engine.entry.joined):
        yield from joined_share(engine, engine.entry.joined)
    if gap is not None and gpus != 0:
        yield _unchecked(engine, gap.because)
    elif isinstance(gpus, Unknown):
        yield _unchecked(engine, gpus.because)
    elif gpus and not joins:
        yield _unchecked(engine, "no command line of a known engine was found")


def _pods(engine: EngineFacts, held: int) -> str:
    """Phrase the pods of an engine and the GPUs that they hold together."""
    pods, entry = engine.pods, engine.entry.gpus
    worker = engine.worker.gpus if engine.worker else entry
    shared = next((each.shared for each in engine.entry.own_devices if each.shared), "")
    if pods == 1:
        return f"pod has {count_of(held, 'GPU')}"
    if shared:
        return f"{count_of(pods, 'pod')} hold {held}, because they share those of {shared}"
    if worker != entry:
        return (
            f"{count_of(pods, 'pod')} (entry {entry}, workers "
            f"{count_of(worker, 'GPU')}) hold {held}"
        )
    return f"{count_of(pods, 'pod')} × {count_of(entry, 'GPU')} hold {held}"


def _product(engine: EngineFacts, command: CommandFacts) -> str:
    parts = [f"{word} {size}" for word, size in sizes_of(command)]
    later = starts_later_copies(command)
    if command.data_mode == "hybrid" or later:
        parts.append(f"data {command.data_local} a pod")
    if command.data_mode != "internal" or later:
        parts.append(count_of(engine.pods, "pod"))
    return " × ".join(parts)


def _unchecked(engine: EngineFacts, because: str) -> Finding:
    return Finding(
        path=engine.entry.command_path,
        seen=f"{title(engine)} was not checked, because {because}",
        level=Level.UNKNOWN,
    )


_MEETING = frozenset({"--dist-init-addr", "--master-addr", "--data-parallel-address"})
_NOT_RAY = frozenset({None, "mp", "uni"})


def joined_share(engine: EngineFacts, command: CommandFacts) -> Iterator[Finding]:
    """Check the copies that a headless pod of vLLM starts, each of them whole.

    --data-parallel-size-local counts them, or else --data-parallel-size. With --nnodes a copy spans
    pods, and the whole engine is counted where it is. Source:
    vllm/engine/arg_utils.py, create_engine_config; vllm/entrypoints/cli/serve.py, run_headless.
    """
    entry = engine.entry
    if command.engine != "vllm" or command.headless is not True or entry.claimed:
        return
    if command.nnodes not in {None, 1}:
        return
    if not {command.executor, command.data_backend} <= _NOT_RAY:
        return
    copies = command.data if command.data_local is None else command.data_local
    sizes = all_known(command.tensor, command.pipeline, command.prefill_context, copies, entry.gpus)
    if isinstance(sizes, Unknown):
        return  # The other object has the same sizes, and says that they are unknown.
    tensor, pipeline, context, copies, gpus = sizes
    copy = tensor * pipeline * context
    if gpus == 0 or not copy or copy * copies == gpus:
        return
    fewer = "" if gpus % copy else set_option("--data-parallel-size-local", gpus // copy)
    yield Finding(
        path=entry.command_path,
        seen=f"{title(engine)} joins an engine of another object, and each of its pods starts "
        f"{product(tensor, pipeline, copies, context)}, but has {count_of(gpus, 'GPU')}",
        remedy=either(
            fewer,
            give_gpus(engine, copy * copies, f"give each pod {count_of(copy * copies, 'GPU')}"),
        ),
    )


# The ranks of an engine run on GPUs of their own.


_WHY = {
    "a MIG device": "CUDA shows a process only one of them, and they cannot reach each other's "
    "memory",
    "a share of a GPU": "several may be shares of the same GPU, on which NCCL rejects two ranks",
}


def whole_gpus(facts: ServingFacts) -> Iterator[Finding]:
    """An engine of several ranks runs on whole GPUs, not on MIG devices or shares of GPUs.

    A process sees one MIG device at a time, and NCCL supports them between ranks only as an
    experiment. A resource that ends with .shared is one of several references to a GPU: with two of
    them a container may get the same GPU twice. An engine of one rank runs on either.

    Pass: tensor 1 on nvidia.com/mig-3g.40gb 1.
    Fail: tensor 2 on nvidia.com/mig-1g.10gb 2; tensor 2 on nvidia.com/gpu.shared 2.
    Level: advisory.
    Source: NVIDIA Multi-Instance GPU User Guide, CUDA Device Enumeration; NVIDIA/nccl#1716;
        NVIDIA/k8s-device-plugin README, Shared Access to GPUs.
    """
    for engine in facts.engines:
        command = engine.entry.command
        ranks = ranks_of(engine, command) if command is not None and command.engine else None
        if not isinstance(ranks, int) or ranks <= 1:
            continue
        for pod in pods_of(engine):
            yield from (_finding(engine, device, ranks) for device in _parts(pod))


def _parts(pod: PodFacts) -> Iterator[DeviceFacts]:
    for device in pod.devices:
        own = pod.container in {None, device.container}
        if own and device.part and isinstance(device.count, int) and device.count > 0:
            yield device


def _finding(engine: EngineFacts, device: DeviceFacts, ranks: int) -> Finding:
    return Finding(
        path=device.path,
        seen=f"{title(engine)} starts {count_of(ranks, 'rank')} on {device.resource}, of which "
        f"each is {device.part}, and {_WHY[device.part]}",
        remedy="request whole GPUs (nvidia.com/gpu), or start one rank",
        level=Level.ADVISORY,
    )
