"""Checks that the GPU of an engine computes in the data type that its command line states."""

from collections.abc import Iterator

from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding
from kthena_components.core.remedies import set_option
from kthena_components.core.rules.support.engine_startup import Start, all_starts
from kthena_components.core.rules.support.gpu_capability import old_gpu, shown
from kthena_components.core.values.unknown import Unknown

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
        for finding in _check(start):
            if finding not in told:
                told.add(finding)
                yield finding


def _check(start: Start) -> Iterator[Finding]:
    stated, found = start.command.options.get(_OPTION), old_gpu(start.pod or start.engine.entry)
    if stated != _TYPE or isinstance(stated, Unknown) or found is None:
        return
    name, capability = found
    seen = f"has {_OPTION} {_TYPE} on {name}, whose compute capability is "
    seen += f"{shown(capability)}, and vLLM requires 8.0 for {_TYPE}"
    yield from start.refused(seen, set_option(_OPTION, "half"))
