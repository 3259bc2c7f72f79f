"""Checks that the pods of an engine get the GPUs that their templates request."""

from collections.abc import Iterator

from kthena_components.core.facts.pod import DeviceFacts, PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.rules.wording import title, unjudged
from kthena_components.core.values.read import first_unknown


def leader_worker_same_gpus(facts: ServingFacts) -> Iterator[Finding]:
    """Entry and workers of one engine have equally many GPUs: ranks are distributed evenly.

    Pass: 8 GPUs in the entry pod, 8 in each worker.
    Fail: 4 GPUs in the entry pod, 8 in each worker.
    Level: mandatory.
    Source: vllm/config/parallel.py, local world size = world size / nodes.
    """
    for engine in facts.engines:
        if engine.worker is None or engine.pods == 1:
            continue
        entry, worker = engine.entry.gpus, engine.worker.gpus
        if unknown := first_unknown(entry, worker):
            yield from unjudged(engine, unknown, "leader-worker-same-gpus", engine.worker.gpus_path)
        elif isinstance(entry, int) and isinstance(worker, int) and entry != worker:
            yield Finding(
                path=engine.worker.gpus_path,
                seen=f"{title(engine)} gives its entry pod {entry} GPUs and each worker {worker}, "
                "and an engine distributes its ranks evenly",
                remedy=f"write {entry} in both, or {worker} in both",
                rule="leader-worker-same-gpus",
            )


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
        remedy=f"write {limit if limit is not None else request} in both",
        rule="gpu-requests-equal-limits",
    )


def _not_requested(engine: EngineFacts, device: DeviceFacts) -> Finding:
    return Finding(
        path=device.path,
        seen=f"{title(engine)}, container '{device.container}' states {device.resource} with "
        f"a limit of {device.limit} and no request; the pods get both, but a gang is sized by "
        "requests",
        remedy=f"write {device.limit} in both",
        rule="gpu-requests-equal-limits",
        level=Level.ADVISORY,
    )
