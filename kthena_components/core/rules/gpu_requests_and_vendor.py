"""Rules of an engine's GPUs: requests equal limits, and one vendor."""

from collections.abc import Iterator

from kthena_components.core.facts.pod import DeviceFacts, PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.rules.support.engine_pods import pods_of
from kthena_components.core.rules.support.fixes import devices
from kthena_components.core.rules.support.messages import cannot_check, each_engine, title
from kthena_components.core.values.read import first_unknown
from kthena_components.core.values.unknown import MaybeInt


@each_engine
def gpu_requests_equal_limits(engine: EngineFacts) -> Iterator[Finding]:
    """GPU requests equal GPU limits: Kubernetes requires it for extended resources.

    A request without a limit is invalid, too. A limit without a request is valid in a Pod, where
    the API server copies it, but counts as zero inside a custom resource.

    Pass: limits nvidia.com/gpu 8, requests nvidia.com/gpu 8.
    Fail: limits nvidia.com/gpu 8, requests nvidia.com/gpu 4.
    Level: mandatory; advisory for a limit without a request, and for a request without a limit on
    nodes of GKE: Autopilot adds the limit.
    Source: kubernetes pkg/apis/core/validation/validation.go
    ValidateContainerResourceRequirements; Google Cloud documentation, Resource requests in
    Autopilot.
    """
    for pod in (engine.entry, engine.worker):
        yield from _unequal(engine, pod)


def _unequal(engine: EngineFacts, pod: PodFacts | None) -> Iterator[Finding]:
    for device in pod.devices if pod else ():
        limit, request = device.limit, device.request
        if limit == request:
            continue
        if unknown := first_unknown(limit, request):
            yield from cannot_check(engine, unknown, path=device.path)
        elif request is None:
            yield _not_requested(engine, device)
        else:
            yield _not_equal(engine, device)


def _not_equal(engine: EngineFacts, device: DeviceFacts) -> Finding:
    limit, request = device.limit, device.request
    stated = "no limit" if limit is None else f"a limit of {limit}"
    added = limit is None and device.on_gke
    unless = ", unless Autopilot of GKE adds the limit" if added else ""
    return Finding(
        path=device.path,
        seen=f"{title(engine)}, container '{device.container}' states {device.resource} with "
        f"a request of {request} and {stated}, and Kubernetes requires both to be equal{unless}",
        remedy=_both(device, limit if limit is not None else request),
        rule="gpu-requests-equal-limits",
        level=Level.ADVISORY if added else Level.MANDATORY,
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


def one_gpu_vendor(facts: ServingFacts) -> Iterator[Finding]:
    """All GPUs of an engine are by one vendor.

    An engine runs on one platform: CUDA, ROCm, TPUs and so on. The GPUs of another vendor in its
    container add no ranks, and ranks on the GPUs of two vendors have no library to exchange data.
    Not checked are resources whose name does not tell the vendor.

    Pass: nvidia.com/gpu 8; nvidia.com/gpu 8 and rdma/ib 8.
    Fail: nvidia.com/gpu 4 and amd.com/gpu 4 in a container; nvidia.com/gpu in the entry pod and
    amd.com/gpu in its workers.
    Level: mandatory.
    Source: vllm/platforms/__init__.py resolve_current_platform_cls_qualname ("Only one platform
    plugin can be activated"); pytorch documentation, Get Started (one build per platform).
    """
    for engine in facts.engines:
        pods = pods_of(engine)
        mixed = next((pod for pod in pods if len(pod.vendors) > 1), None)
        stated = [pod for pod in pods if pod.vendors]
        if not any(pod.command is not None and pod.command.engine for pod in pods):
            continue
        if mixed is not None:
            yield _finding(engine, mixed, f"requests {_listed(mixed)} in one container")
        elif len({tuple(pod.vendors) for pod in stated}) > 1:
            first, other = stated
            seen = f"requests {_listed(first)} in its entry pod and {_listed(other)} in its workers"
            yield _finding(engine, other, seen)


def _listed(pod: PodFacts) -> str:
    return " and ".join(pod.vendors.values())


def _finding(engine: EngineFacts, pod: PodFacts, seen: str) -> Finding:
    return Finding(
        path=pod.gpus_path,
        seen=f"{title(engine)} {seen}, and an engine runs on the GPUs of one vendor",
        remedy="request the GPUs of the vendor for which its image is built",
    )
