"""Rules of a container's GPUs: requests equal limits, one vendor, and those that ranks see."""

from collections.abc import Iterator, Mapping

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.pod import DeviceFacts, PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts, ranks_of
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.remedies import either, without
from kthena_components.core.rules.support.engine_pods import pods_of
from kthena_components.core.rules.support.fixes import devices
from kthena_components.core.rules.support.messages import (
    cannot_check,
    each_engine,
    part_of_engine,
    title,
)
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.images import shown_image
from kthena_components.core.values.read import first_unknown, require_known
from kthena_components.core.values.unknown import MaybeInt, Unknown, all_known, known


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
    """Compare request and limit of each GPU resource in a pod, where one of them is missing too."""
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
    """Report a request that is not the limit; GKE's Autopilot may add a missing limit itself."""
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
    """Advise to state the request: Kubernetes copies the limit, but a gang is sized by requests."""
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
        if not any(pod.command is not None and pod.command.engine for pod in pods):
            continue
        stated = [(pod, vendors) for pod in pods if (vendors := pod.vendors)]
        mixed = next((pod for pod, vendors in stated if len(vendors) > 1), None)
        if mixed is not None:
            yield _finding(engine, mixed, f"requests {_listed(mixed)} in one container")
        elif len({tuple(vendors) for _, vendors in stated}) > 1:
            (first, _), (other, _) = stated
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


_VENDORS: Mapping[str, str] = {
    "nvidia.com": "NVIDIA's GPUs",
    "amd.com": "AMD's GPUs",
    "google.com": "Google's TPUs",
}


def image_gpu_vendor(facts: ServingFacts) -> Iterator[Finding]:
    """The image of an engine is built for the accelerators that its pods request.

    An engine's image has the libraries of one platform. vLLM's for CUDA finds no device on AMD's
    GPUs, and stops. The rule knows the images that the projects of the engines, NVIDIA and AMD
    publish, under their own names: a mirror may hold another build.

    Pass: vllm/vllm-openai:v0.33.0 with nvidia.com/gpu; vllm/vllm-openai-rocm with amd.com/gpu.
    Fail: vllm/vllm-openai:v0.33.0 with amd.com/gpu or google.com/tpu; an image of SGLang for ROCm,
    lmsysorg/sglang:v0.5.9-rocm700, with nvidia.com/gpu.
    Level: mandatory; advisory if the tag states no release.
    Source: docs.vllm.ai, Using Docker; vllm/platforms/__init__.py (cuda_platform_plugin asks NVML);
    docs.sglang.ai, Install SGLang; the NGC catalog.
    """
    for engine in facts.engines:
        every = (found for pod in pods_of(engine) for found in _other_platform(engine, pod))
        yield from dict.fromkeys(every)


def _other_platform(engine: EngineFacts, pod: PodFacts) -> Iterator[Finding]:
    image = pod.image
    built = None if image is None else image.built_for
    if pod.command is None or pod.command.engine is None or built is None or image is None:
        return
    other = next((vendor for vendor in pod.vendors if vendor != built), None)
    if other is None or built in pod.vendors:
        return
    yield Finding(
        path=pod.gpus_path,
        seen=f"{title(engine)} requests {_listed(pod)}, and its image, "
        f"'{shown_image(str(pod.own.image if pod.own else ''))}', is built for {_VENDORS[built]}",
        remedy=f"use an image for {_VENDORS.get(other, f'accelerators of {other}')}, or request "
        f"accelerators of {built}",
        level=Level.MANDATORY if image.states_release else Level.ADVISORY,
    )


RULE = "visible-gpus"
_VARIABLE = "CUDA_VISIBLE_DEVICES"
_FIRST, _STEP = "--base-gpu-id", "--gpu-id-step"
"""SGLang's options for the first GPU of its ranks, and for the distance between two."""
_WHOLE = frozenset({"nvidia.com/gpu"})
_BY_NAME = ("GPU-", "MIG-")


@each_engine
def visible_gpus(engine: EngineFacts) -> Iterator[Finding]:
    """An engine sees as many GPUs of its container as it starts ranks there.

    CUDA_VISIBLE_DEVICES numbers the GPUs of the container, from 0 on, whatever numbers they have on
    the node. CUDA ignores what follows the first number that does not exist, and shows no GPU if
    one is named twice. SGLang counts its ranks from --base-gpu-id on, among those GPUs, in steps of
    --gpu-id-step. Containers that may see all GPUs of their node are not checked: privileged ones,
    and those with NVIDIA_VISIBLE_DEVICES.

    Pass: 4 GPUs, tensor 4, CUDA_VISIBLE_DEVICES=0,1,2,3.
    Fail: 8 GPUs, tensor 8, CUDA_VISIBLE_DEVICES=0,1,2,3; 4 GPUs, tensor 4,
    CUDA_VISIBLE_DEVICES=4,5,6,7; SGLang: 8 GPUs, tensor 8, --base-gpu-id 4.
    Level: mandatory.
    Source: torch/cuda/__init__.py _parse_visible_devices and _device_count_nvml, which vLLM's
        vllm/platforms/cuda.py calls; sglang/srt/entrypoints/engine.py and
        sglang/srt/managers/data_parallel_controller.py (gpu_id) of 0.4.6 to 0.5.23.
    """
    for pod in pods_of(engine):
        if pod.command is not None and pod.command.engine is not None:
            yield from _in_pod(engine, pod, pod.command)


@dataclass(frozen=True, slots=True)
class VisibleGpus:
    """The GPUs that a variable shows."""

    count: int
    why: str = ""
    """What ends the list early. Empty: nothing."""
    by_name: bool = False
    """Whether they are named by UUIDs, which may not exist."""


def seen_by(text: str, held: int) -> VisibleGpus:
    """Return how many of a container's GPUs a value of CUDA_VISIBLE_DEVICES shows."""
    items = text.split(",")
    if text.startswith(_BY_NAME):
        prefix = next(filter(text.startswith, _BY_NAME))
        end = next((i for i, item in enumerate(items) if not item.startswith(prefix)), len(items))
        return VisibleGpus(end if len(set(items[:end])) == len(items[:end]) else 0, by_name=True)
    numbers: list[int] = []
    for item in items:
        number = _number(item.strip())
        if number in numbers:
            return VisibleGpus(0, f"names GPU {number} twice, and CUDA then shows none")
        if number < 0:
            break
        numbers.append(number)
    for at, number in enumerate(numbers):
        if number >= held:
            why = f"names GPU {number}, which the container does not have: it counts from 0"
            return VisibleGpus(at, why)
    return VisibleGpus(len(numbers))


def _number(item: str) -> int:
    """Return the number that an item starts with, as strtoul reads it; -1 for none."""
    digits = item[1:] if item[:1] in {"+", "-"} else item
    length = next((i for i, c in enumerate(digits) if c not in "0123456789"), len(digits))
    number = int(digits[: min(length, 9)] or -1)
    return -1 if item.startswith("-") else number


@part_of_engine
def _in_pod(engine: EngineFacts, pod: PodFacts, command: CommandFacts) -> Iterator[Finding]:
    """Check that CUDA_VISIBLE_DEVICES of a pod shows at least the GPUs that its ranks use."""
    stated = _choosing_values(command)
    if not stated or not _has_whole_gpus(pod):
        return
    held, needed = pod.gpus, _ranks_here(engine, command)
    if not isinstance(held, int) or not isinstance(needed, int):
        return
    if needed > held:
        return  # world-size-equals-gpus reports it
    seen = seen_by(command.devices, held) if isinstance(command.devices, str) else VisibleGpus(held)
    require_known(pod.command_path, *stated, pod.sees_more)
    if seen.by_name and needed <= seen.count:
        known(Unknown(f"{_VARIABLE} has UUIDs, which only their node knows"), pod.command_path)
    if needed > seen.count:
        yield _hidden(engine, pod, seen, needed)
        return
    last = _last_stated(command)
    if last is not None and last >= seen.count:
        yield _beyond(engine, pod, seen, last)


def _choosing_values(command: CommandFacts) -> list[object]:
    """List the values that choose GPUs: of the variable, and of SGLang's options."""
    values = (command.devices, *(_option(command, name) for name in (_FIRST, _STEP)))
    return [value for value in values if value is not None]


def _option(command: CommandFacts, name: str) -> object:
    return command.options.get(name) if command.engine == "sglang" else None


def _has_whole_gpus(pod: PodFacts) -> bool:
    """Return whether the container has whole GPUs of NVIDIA, and no other devices."""
    own = {device.resource for device in pod.devices if device.container == pod.container}
    return own == _WHOLE


def _ranks_here(engine: EngineFacts, command: CommandFacts) -> int | None:
    """Count the ranks in one pod; None if it is unknown, or if they are not spread evenly."""
    ranks, pods = ranks_of(engine, command), engine.pods
    if not isinstance(ranks, int) or not isinstance(pods, int) or pods < 1 or ranks % pods:
        return None
    return ranks // pods


def _last_stated(command: CommandFacts) -> int | None:
    """Return the largest number of a GPU by SGLang's options; None if it is unknown."""
    first, step = (_option(command, name) for name in (_FIRST, _STEP))
    if not isinstance(first, int | None) or not isinstance(step, int | None):
        return None
    return _last(command, first or 0, step or 1)


def _last(command: CommandFacts, first: int, step: int) -> int | None:
    """Return the largest number of a GPU that SGLang uses in a pod; None if it is unknown."""
    tensor, pipeline, data = command.tensor, command.pipeline, command.data
    nodes = 1 if command.nnodes is None else command.nnodes
    sizes = all_known(tensor, pipeline, data, nodes)
    if isinstance(sizes, Unknown) or min(sizes) < 1:
        return None
    tensor, pipeline, data, nodes = sizes
    stages = max(pipeline // nodes, 1)
    width = tensor // max(nodes // pipeline, 1)
    before = (data - 1) * tensor * pipeline * step
    return first + before + (stages - 1) * width + (width - 1) * step


def _hidden(engine: EngineFacts, pod: PodFacts, seen: VisibleGpus, needed: int) -> Finding:
    """Report ranks that see fewer GPUs than they need, with the numbers to write instead."""
    text = display(str(pod.command.devices) if pod.command else "")
    why = f", because it {seen.why}" if seen.why else ""
    numbers = ",".join(map(str, range(needed)))
    return Finding(
        path=pod.command_path,
        seen=f"{title(engine)} starts {count_of(needed, 'rank')} in a pod, but {_VARIABLE} {text} "
        f"shows it {seen.count} of the container's {count_of(pod.gpus, 'GPU')}{why}",
        remedy=f"remove {_VARIABLE}, which the container's own GPUs do not need, or write "
        f"{numbers}",
    )


def _beyond(engine: EngineFacts, pod: PodFacts, seen: VisibleGpus, last: int) -> Finding:
    return Finding(
        path=pod.command_path,
        seen=f"{title(engine)} uses GPUs up to number {last} ({_FIRST}, {_STEP}), but "
        f"its container shows {count_of(seen.count, 'GPU')}, counted from 0",
        remedy=either(without(_FIRST, _STEP), "give the container more GPUs"),
    )
