"""Checks that an engine's image has code for the architecture of its GPU."""

from collections.abc import Iterator

from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.rules.support.engine_startup import Start, all_starts
from kthena_components.core.rules.support.gpu_capability import Capability, old_gpu, shown
from kthena_components.core.values.images import read_image

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
        for finding in _check(start):
            if finding not in told:
                told.add(finding)
                yield finding


def _check(start: Start) -> Iterator[Finding]:
    found = old_gpu(start.pod or start.engine.entry)
    least = None if found is None else _least(start)
    if found is None or least is None:
        return
    (name, capability), (needed, why, level) = found, least
    if capability < needed:
        seen = f"is on {name}, whose compute capability is {shown(capability)}, but {why}"
        yield from start.refused(seen, _remedy(start, needed), level)


def _least(start: Start) -> tuple[Capability, str, Level] | None:
    """Return the capability that an engine requires, why, and the level of less; None: any."""
    if start.command.engine == "trtllm":
        why = "NVIDIA neither develops nor tests TensorRT-LLM on GPUs before Ampere (8.0)"
        return _AMPERE, why, Level.ADVISORY
    if start.command.engine == "sglang":
        level = start.since(_SGLANG_SINCE)
        return None if level is None else (_TURING, "SGLang requires 7.5 and stops", level)
    own, level = (start.pod or start.engine.entry).own, start.since(_VLLM_WITHOUT_VOLTA)
    image = read_image(own.image) if own is not None and isinstance(own.image, str) else None
    if image is None or level is None or not image.is_own("vllm"):
        return None
    if _FOR_CUDA_12 in (image.tag or ""):
        return None
    return _TURING, f"the image of {start.product} has kernels for 7.5 and more", level


def _remedy(start: Start, needed: Capability) -> str:
    place = f"place the pods on GPUs of {shown(needed)} or more"
    older = ", or use an image of vLLM 0.19.1 or older" if start.command.engine == "vllm" else ""
    return f"{place}{older}"
