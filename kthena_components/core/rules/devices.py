"""Checks that the pods of an engine get the GPUs that their templates request."""

from collections.abc import Iterator

from kthena_components.core.facts.pod import DeviceFacts, PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.remedies import either
from kthena_components.core.rules.fixes import devices, give_gpus
from kthena_components.core.rules.support.messages import title, unjudged
from kthena_components.core.values.read import first_unknown
from kthena_components.core.values.unknown import MaybeInt, Unknown

_SAME_GPUS = "leader-worker-same-gpus"
_NO_ENGINE = Unknown("no command line of a known engine was found")


def leader_worker_same_gpus(facts: ServingFacts) -> Iterator[Finding]:
    """Entry and workers of one engine have equally many GPUs: ranks are distributed evenly.

    This is true for the engines that are known here. Leaders of JetStream and Pathways run on CPUs.

    Pass: 8 GPUs in the entry pod, 8 in each worker.
    Fail: 4 GPUs in the entry pod, 8 in each worker.
    Level: mandatory.
    Source: vllm/config/parallel.py, local world size = world size / nodes.
    """
    for engine in facts.engines:
        if engine.worker is None or engine.pods == 1:
            continue
        entry, worker = engine.entry.gpus, engine.worker.gpus
        if not _is_known(engine.entry) and not _is_known(engine.worker):
            # If the entry has GPUs, world-size-equals-gpus reports that the engine is unknown.
            if entry == 0 and worker != 0:
                gap = engine.entry.gap or _NO_ENGINE
                yield from unjudged(engine, gap, _SAME_GPUS, engine.worker.gpus_path)
        elif unknown := first_unknown(entry, worker):
            yield from unjudged(engine, unknown, _SAME_GPUS, engine.worker.gpus_path)
        elif isinstance(entry, int) and isinstance(worker, int) and entry != worker:
            yield Finding(
                path=engine.worker.gpus_path,
                seen=f"{title(engine)} gives its entry pod {entry} GPUs and each worker {worker}, "
                "and an engine distributes its ranks evenly",
                remedy=either(
                    give_gpus(engine, entry, f"write {entry} in both"),
                    give_gpus(engine, worker, f"{worker} in both"),
                ),
                rule=_SAME_GPUS,
            )


def _is_known(pod: PodFacts) -> bool:
    """Return whether a pod starts a known engine."""
    return pod.command is not None and pod.command.engine is not None


def gpu_requests_equal_limits(facts: ServingFacts) -> Iterator[Finding]:
    """GPU requests equal GPU limits: Kubernetes requires it for extended resources.

    A request without a limit is invalid, too. A limit without a request is valid in a Pod, where
    the API server copies it, but counts as zero inside a custom resource.

    Pass: limits nvidia.com/gpu 8, requests nvidia.com/gpu 8.
    Fail: limits nvidia.com/gpu 8, requests nvidia.com/gpu 4.
    Level: mandatory; advisory for a limit without a request.
    Source: kubernetes pkg/apis/core/validation/validation.go
    ValidateContainerResourceRequirements.
    """
    for engine in facts.engines:
        for pod in (engine.entry, engine.worker):
            yield from _unequal(engine, pod)


def _unequal(engine: EngineFacts, pod: PodFacts | None) -> Iterator[Finding]:
    for device in pod.devices if pod else ():
        limit, request = device.limit, device.request
        if limit == request:
            continue
        if unknown := first_unknown(limit, request):
            yield from unjudged(engine, unknown, "gpu-requests-equal-limits", device.path)
        elif request is None:
            yield _not_requested(engine, device)
        else:
            yield _not_equal(engine, device)


def _not_equal(engine: EngineFacts, device: DeviceFacts) -> Finding:
    limit, request = device.limit, device.request
    stated = "no limit" if limit is None else f"a limit of {limit}"
    return Finding(
        path=device.path,
        seen=f"{title(engine)}, container '{device.container}' states {device.resource} with "
        f"a request of {request} and {stated}, and Kubernetes requires both to be equal",
        remedy=_both(device, limit if limit is not None else request),
        rule="gpu-requests-equal-limits",
    )


def _not_requested(engine: EngineFacts, device: DeviceFacts) -> Finding:
    return Finding(
        path=device.path,
        seen=f"{title(engine)}, container '{device.container}' states {device.resource} with "
        f"a limit of {device.limit} and no request; the pods get both, but a gang is sized by "
        "requests",
        remedy=_both(device, device.limit),
        rule="gpu-requests-equal-limits",
        level=Level.ADVISORY,
    )


def _both(device: DeviceFacts, number: MaybeInt | None) -> str:
    """Write a number as the limit and the request."""
    said = f"write {number} in both"
    return devices(device, number, said) if isinstance(number, int) else said
