"""Rules of options about memory: the range of a fraction, and what is offloaded."""

from collections.abc import Iterator
from decimal import Decimal

from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level, advise, count_of, part_of_rule
from kthena_components.core.remedies import set_option
from kthena_components.core.rules.support.engine_pods import pods_of
from kthena_components.core.rules.support.engine_startup import ALWAYS, POSITIVE, all_starts
from kthena_components.core.rules.support.messages import title
from kthena_components.core.values.unknown import known

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


_GIB = 2**30


def offload_within_memory(facts: ServingFacts) -> Iterator[Finding]:
    """Weights that --cpu-offload-gb keeps in host memory fit into the container's memory limit.

    The option is an amount for each GPU. The weights are in pinned memory, which counts as the
    container's, and which the kernel cannot free. Weights that are only read from files do not
    count: their pages are a cache.

    Pass: --cpu-offload-gb 10 on 8 GPUs with a memory limit of 128Gi; no limit.
    Fail: --cpu-offload-gb 10 on 8 GPUs with a memory limit of 64Gi.
    Level: advisory, because fewer weights than the option allows may be kept there.
    Source: vllm/config/offload.py UVAOffloadConfig, vllm/model_executor/offloader/uva.py; SGLang
    srt/model_executor/model_runner.py set_cpu_offload_max_bytes; Kubernetes documentation,
    Resource Management for Pods and Containers.
    """
    for engine in facts.engines:
        yield from dict.fromkeys(f for pod in pods_of(engine) for f in _check(engine, pod))


@part_of_rule
def _check(engine: EngineFacts, pod: PodFacts) -> Iterator[Finding]:
    command, own = pod.command, pod.own
    if command is None or own is None or not command.cpu_offload_gib or own.memory_limit is None:
        return
    path = pod.flags_path or pod.command_path
    each = known(command.cpu_offload_gib, path)
    gpus, most = known(pod.gpus, pod.gpus_path), known(own.memory_limit, own.path)
    if each * gpus * _GIB >= most > 0 and gpus:
        seen = (
            f"{title(engine)} keeps up to {each:g} GiB of weights of each of "
            f"{count_of(gpus, 'GPU')} in host memory, {each * gpus:g} GiB, but container "
            f"'{own.name}' may use {Decimal(most) / _GIB:.4g} GiB"
        )
        remedy = f"raise its limit above {each * gpus:g}Gi, or write a smaller --cpu-offload-gb"
        yield advise(path, seen, remedy)
