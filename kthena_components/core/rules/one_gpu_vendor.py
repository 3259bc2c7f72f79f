"""Checks that an engine runs on the GPUs of one vendor."""

from collections.abc import Iterator

from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding
from kthena_components.core.rules.support.engine_pods import pods_of
from kthena_components.core.rules.support.messages import title


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
