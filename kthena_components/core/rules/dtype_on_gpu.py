"""Checks that the GPU of an engine computes in the data type that its command line states."""

from collections.abc import Iterator

from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding
from kthena_components.core.hardware import GpuFacts
from kthena_components.core.remedies import set_option
from kthena_components.core.rules.support.engine_pods import Start, all_starts
from kthena_components.core.values.unknown import Unknown

_OPTION, _TYPE = "--dtype", "bfloat16"
_CAPABILITIES = {
    "NVIDIA T4": "7.5",
    "NVIDIA V100 16GB": "7.0",
    "NVIDIA V100 32GB": "7.0",
}
"""The compute capability of the GPUs below 8.0, by their names in the table of GPUs.

Source: NVIDIA's list of CUDA GPU compute capabilities.
"""


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
        for finding in _check(start):
            if finding not in told:
                told.add(finding)
                yield finding


def _check(start: Start) -> Iterator[Finding]:
    pod = start.pod or start.engine.entry
    stated, gpu = start.command.options.get(_OPTION), pod.gpu
    if stated != _TYPE or isinstance(stated, Unknown) or not pod.asks_for_gpus or not pod.has_cuda:
        return
    name = gpu.name.partition(" of ")[0] if isinstance(gpu, GpuFacts) and gpu.alone else ""
    if name in _CAPABILITIES:
        seen = f"has {_OPTION} {_TYPE} on {name}, whose compute capability is "
        seen += f"{_CAPABILITIES[name]}, and vLLM requires 8.0 for {_TYPE}"
        yield from start.refused(seen, set_option(_OPTION, "half"))
