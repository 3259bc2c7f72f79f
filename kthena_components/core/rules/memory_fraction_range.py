"""The rule memory-fraction-range."""

from collections.abc import Iterator

from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.remedies import set_option
from kthena_components.core.rules.support.engine_startup import ALWAYS, POSITIVE, all_starts

MEMORY = "memory-fraction-range"
_SHARES = {"vllm": "--gpu-memory-utilization", "sglang": "--mem-fraction-static"}


def memory_fraction_range(facts: ServingFacts) -> Iterator[Finding]:
    """An engine's share of each GPU's memory is above 0 and at most 1.

    vLLM up to 0.11.0 has no lower bound. SGLang has no upper bound, and asks the GPU for more
    memory than it has.

    Pass: --gpu-memory-utilization 0.95.
    Fail: --gpu-memory-utilization 90; --gpu-memory-utilization 0 from vLLM 0.11.1 on;
    --mem-fraction-static 0.
    Level: mandatory; advisory above 1 in SGLang, and for 0 and less if the image states no release
    of vLLM.
    Source: vllm/config/cache.py gpu_memory_utilization; sglang/srt/model_executor/model_runner.py
        (0.5.1) and pool_configurator.py (0.5.23).
    """
    for start in all_starts(facts, *_SHARES):
        share, option = start.command.memory_fraction, _SHARES[start.command.engine or ""]
        if not isinstance(share, int | float):
            continue
        checked = option == _SHARES["vllm"]
        if share > 1:
            percent = 1 < share <= 100  # noqa: PLR2004 - per cent
            right = share / 100 if percent and share > 10 else 0.9  # noqa: PLR2004
            near = set_option(option, f"{right:g}", f"write {right:g}")
            seen = f"has {option} {share:g}, and the whole memory is 1"
            yield from start.refused(seen, near, ALWAYS if checked else Level.ADVISORY)
        elif share <= 0 and (level := start.since(POSITIVE) if checked else ALWAYS) is not None:
            seen = f"has {option} {share:g}, and {start.product} requires more than 0"
            yield from start.refused(seen, set_option(option, "0.9", "write 0.9"), level)
