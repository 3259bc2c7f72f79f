"""The rule offload-within-memory."""

from collections.abc import Iterator
from decimal import Decimal

from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, advise, count_of, part_of_rule
from kthena_components.core.rules.support.engine_pods import pods_of
from kthena_components.core.rules.support.messages import title
from kthena_components.core.values.unknown import known

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
