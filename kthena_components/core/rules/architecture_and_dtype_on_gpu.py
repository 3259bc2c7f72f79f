"""Checks that the image and the data type of an engine work on its GPU."""

from collections.abc import Iterator

from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.hardware import GpuFacts
from kthena_components.core.remedies import set_option
from kthena_components.core.rules.support.engine_pods import Start, all_starts
from kthena_components.core.values.unknown import Unknown

Capability = tuple[int, int]
_BELOW_8: dict[str, Capability] = {
    "NVIDIA T4": (7, 5),
    "NVIDIA V100 16GB": (7, 0),
    "NVIDIA V100 32GB": (7, 0),
}
"""The compute capability of the GPUs below 8.0, by their names in the table of GPUs.

Source: NVIDIA's list of CUDA GPU compute capabilities.
"""


def old_gpu(pod: PodFacts) -> tuple[str, Capability] | None:
    """Return the name and the capability of the one kind of GPU of a pod, if it is below 8.0."""
    gpu = pod.gpu
    if not pod.asks_for_gpus or not pod.has_cuda:
        return None
    name = gpu.name.partition(" of ")[0] if isinstance(gpu, GpuFacts) and gpu.alone else ""
    return (name, _BELOW_8[name]) if name in _BELOW_8 else None


def shown(capability: Capability) -> str:
    """Write a capability as NVIDIA does: 7.5."""
    return ".".join(map(str, capability))


_TURING: Capability = (7, 5)
_AMPERE: Capability = (8, 0)
_VLLM_WITHOUT_VOLTA = (0, 20)
"""The first release whose Dockerfile has no 7.0 in torch_cuda_arch_list: it builds with CUDA 13."""
_SGLANG_SINCE = (0, 4, 6)
_FOR_CUDA_12 = "cu12"
"""Part of the tags of images that are built with an older CUDA."""


def architecture_on_gpu(facts: ServingFacts) -> Iterator[Finding]:
    """The image of an engine has kernels for the compute capability of its GPUs.

    Checked if the placement of its pods names one kind of GPU. vLLM's own images since 0.20.0 are
    built for 7.5 and more, which excludes the V100. SGLang stops on GPUs below 7.5. TensorRT-LLM is
    neither developed nor tested on GPUs before Ampere (8.0).

    Pass: vllm/vllm-openai:v0.20.0 on a T4; v0.11.0 on a V100; lmsysorg/sglang on a T4.
    Fail: vllm/vllm-openai:v0.20.0 on a V100; lmsysorg/sglang:v0.5.2 on a V100.
    Level: mandatory; advisory for TensorRT-LLM, and if the image states no release.
    Source: vLLM docker/Dockerfile torch_cuda_arch_list of 0.6.6 to 0.33.0, 7.0 up to 0.19.1;
    sglang/srt/model_executor/model_runner.py load_model of 0.4.6 to 0.5.2, and
    model_runner_components/load_model_utils.py of 0.5.23; NVIDIA/TensorRT-LLM
    docs/source/legacy/reference/support-matrix.md.
    """
    told: set[Finding] = set()
    for start in all_starts(facts, "vllm", "sglang", "trtllm"):
        for finding in _check_image(start):
            if finding not in told:
                told.add(finding)
                yield finding


def _check_image(start: Start) -> Iterator[Finding]:
    """Refuse a GPU whose compute capability is below what the engine's image is built for."""
    found = old_gpu(start.pod)
    least = None if found is None else _least(start)
    if found is None or least is None:
        return
    (name, capability), (needed, why, level) = found, least
    if capability < needed:
        seen = f"is on {name}, whose compute capability is {shown(capability)}, but {why}"
        yield from start.refused(seen, _remedy(start, needed), level)


def _least(start: Start) -> tuple[Capability, str, Level] | None:
    """Return the capability that an engine needs, why, and the level; None if it takes any."""
    if start.command.engine == "trtllm":
        why = "NVIDIA neither develops nor tests TensorRT-LLM on GPUs before Ampere (8.0)"
        return _AMPERE, why, Level.ADVISORY
    if start.command.engine == "sglang":
        level = start.since(_SGLANG_SINCE)
        return None if level is None else (_TURING, "SGLang requires 7.5 and stops", level)
    image, level = start.pod.image, start.since(_VLLM_WITHOUT_VOLTA)
    if image is None or level is None or not image.is_own("vllm"):
        return None
    if _FOR_CUDA_12 in (image.tag or ""):
        return None
    return _TURING, f"the image of {start.product} has kernels for 7.5 and more", level


def _remedy(start: Start, needed: Capability) -> str:
    place = f"place the pods on GPUs of {shown(needed)} or more"
    older = ", or use an image of vLLM 0.19.1 or older" if start.command.engine == "vllm" else ""
    return f"{place}{older}"


_OPTION, _TYPE = "--dtype", "bfloat16"


def dtype_on_gpu(facts: ServingFacts) -> Iterator[Finding]:
    """A vLLM engine with --dtype bfloat16 is on GPUs of compute capability 8.0 or more.

    Checked if the placement of its pods names one kind of GPU. Without the option, vLLM chooses
    float16 on older GPUs. SGLang chooses it in any case.

    Pass: --dtype bfloat16 on nodes with an A10; --dtype auto or half on a T4.
    Fail: --dtype bfloat16 on a T4 or a V100.
    Level: mandatory, because vLLM stops at startup.
    Source: vllm/platforms/cuda.py check_if_supports_dtype, before vllm/worker/worker.py
    _check_if_gpu_supports_dtype, of 0.6.0 to 0.33.0.
    """
    told: set[Finding] = set()
    for start in all_starts(facts, "vllm"):
        for finding in _check_dtype(start):
            if finding not in told:
                told.add(finding)
                yield finding


def _check_dtype(start: Start) -> Iterator[Finding]:
    stated, found = start.command.options.get(_OPTION), old_gpu(start.pod)
    if stated != _TYPE or isinstance(stated, Unknown) or found is None:
        return
    name, capability = found
    seen = f"has {_OPTION} {_TYPE} on {name}, whose compute capability is "
    seen += f"{shown(capability)}, and vLLM requires 8.0 for {_TYPE}"
    yield from start.refused(seen, set_option(_OPTION, "half"))
