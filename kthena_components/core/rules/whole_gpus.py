"""Checks that the ranks of an engine run on GPUs of their own."""

from collections.abc import Iterator

from kthena_components.core.facts.pod import DeviceFacts, PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts, ranks_of
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.rules.support.engine_pods import pods_of
from kthena_components.core.rules.support.messages import title

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
