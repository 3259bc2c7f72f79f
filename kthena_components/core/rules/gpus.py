"""Checks that an engine starts as many ranks as its pods have GPUs."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from kthena_components.core.engines import CommandFacts
from kthena_components.core.engines.sizes import one_of_sizes, set_size
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.totals import gpus_of, ranks_of
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.memory.sharding import Sharding, fits, model_shape
from kthena_components.core.models.shape import ModelShape
from kthena_components.core.remedies import Remedy, either, together
from kthena_components.core.rules.fixes import give_gpus, give_pods
from kthena_components.core.rules.fp8_blocks import breaks_blocks
from kthena_components.core.rules.joined_share import joined_share
from kthena_components.core.values.unknown import Unknown

_GROWING = ("--enable-elastic-ep", "--elastic-ep-initial-size", "--max-ep-size")
"""Options of engines that start with a part of their GPUs, and take others when told to.

Source: vllm/config/parallel.py (enable_elastic_ep); sglang/srt/server_args.py.
"""


def world_size_equals_gpus(facts: ServingFacts) -> Iterator[Finding]:
    """The ranks of an engine, TP × PP × DP, equal its pods × GPUs per pod.

    With fewer ranks, GPUs stay idle; with more, ranks wait forever for devices that do not exist.
    Context parallelism also counts; SGLang's attention DP does not: it is inside TP.

    Fewer ranks than devices are reported although the engine starts: unused devices stay idle, and
    no other pod can have them. If that is intended, for example to use their memory or links, waive
    the rule with an annotation on the object: waive.kthena-components/world-size-equals-gpus:
    "2026-12-31 why". They are not checked where a configuration of NVIDIA's device plugin in the
    same files offers time slices of a GPU, or shares of MPS, under the requested name. Nor are
    engines on CPUs, whose ranks use NUMA nodes: an image, a variable or an option says so.

    A pod of vLLM that joins an engine of another object (--headless, without --nnodes) is counted
    alone: by the copies that it starts.

    Pass: tensor 8 × pipeline 2 = 16 ranks on 2 pods × 8 GPUs.
    Fail: tensor 8 × pipeline 2 = 16 ranks on 3 pods × 8 GPUs = 24 GPUs.
    Level: mandatory.
    Source: vllm/config/parallel.py (world_size), sglang/srt/server_args.py, vllm ray_utils; vllm
    docs/getting_started/installation/cpu.md and vllm/v1/worker/cpu_worker.py.
    """
    for engine in facts.engines:
        yield from _world(engine)


def _world(engine: EngineFacts) -> Iterator[Finding]:
    command = engine.entry.command
    if command is None or command.engine is None:
        yield from _no_engine(engine, command)
        return
    hard = [problem for problem in command.problems if problem.hard]
    for problem in hard:
        if problem.option:
            continue  # engine-option-known reports it
        yield Finding(
            path=engine.entry.command_path,
            seen=f"{_title(engine)}: {problem.text}",
            remedy=problem.remedy or f"correct {problem.flag}",
            rule="world-size-equals-gpus",
        )
    ranks, held = ranks_of(engine, command), gpus_of(engine)
    unknown = next((value for value in (ranks, held) if isinstance(value, Unknown)), None)
    if unknown is not None:
        if unknown.because not in {problem.text for problem in hard}:
            yield _unjudged(engine, unknown.because)
    elif isinstance(ranks, int) and held == 0 and (why := _on_cpus(engine, ranks)):
        yield _unjudged(engine, why)
    elif isinstance(ranks, int) and isinstance(held, int) and ranks != held:
        if ranks > held and (more := _claimed(engine)):
            yield _unjudged(engine, more.because)
            return
        if ranks < held and (why := _on_purpose(engine, command)):
            yield _unjudged(engine, why)
            return
        yield Finding(
            path=engine.entry.command_path,
            seen=f"{_title(engine)} starts {_product(engine, command)} = "
            f"{count_of(ranks, 'rank')}{_by_file(command)}, but its {_pods(engine, held)}",
            remedy=_remedy(engine, command, ranks, held),
            rule="world-size-equals-gpus",
        )


def _on_cpus(engine: EngineFacts, ranks: int) -> str:
    """Say why an engine may rightly have no GPU; empty if it may not."""
    cpus = engine.entry.on_cpus
    if isinstance(cpus, Unknown):
        return cpus.because
    if ranks == 1:
        return "it requests no GPU, like an engine on CPUs"
    return f"it runs on CPUs, and its {ranks} ranks use NUMA nodes of the node" if cpus else ""


def _claimed(engine: EngineFacts) -> Unknown | None:
    pods = (engine.entry, engine.worker)
    return next((pod.claimed for pod in pods if pod is not None and pod.claimed), None)


def _on_purpose(engine: EngineFacts, command: CommandFacts) -> str:
    """Say why an engine may rightly have more GPUs than ranks; empty if nothing says so."""
    for pod in (engine.entry, engine.worker):
        if pod is not None and pod.sliced is not None:
            return pod.sliced.because
    if any(command.options.get(flag) for flag in _GROWING):
        return "an elastic engine may grow into its other GPUs while it runs"
    return ""


def _by_file(command: CommandFacts) -> str:
    """Name the config files that state a size: the finding's path only leads to the command."""
    texts = (command.where.get(size, "") for size in ("tensor", "pipeline", "data"))
    files = dict.fromkeys(text.rpartition(" in ")[2] for text in texts if " in /" in text)
    return f", as {' and '.join(files)} says" if files else ""


def _no_engine(engine: EngineFacts, command: CommandFacts | None) -> Iterator[Finding]:
    """Explain why a pod with GPUs was not checked; a Ray worker's head is checked instead."""
    gpus, gap = engine.entry.gpus, engine.entry.gap
    joins = command is not None and command.ray_role == "worker"
    if engine.entry.joined is not None and not _on_purpose(engine, engine.entry.joined):
        yield from joined_share(engine, engine.entry.joined)
    if gap is not None and gpus != 0:
        yield _unjudged(engine, gap.because)
    elif isinstance(gpus, Unknown):
        yield _unjudged(engine, gpus.because)
    elif gpus and not joins:
        yield _unjudged(engine, "no command line of a known engine was found")


def nodes_whole(facts: ServingFacts) -> Iterator[Finding]:
    """Tensor groups fill pods evenly: TP divides the GPUs of a pod, or they divide TP.

    Otherwise one tensor group uses parts of two pods, and SGLang fails to start if (TP × PP) is not
    a multiple of its nodes.

    Pass: tensor 16 on 2 pods of 8 GPUs; tensor 4 on pods of 8.
    Fail: tensor 6 on pods of 8 GPUs: the second group has 2 ranks in one pod and 4 in the next.
    Level: mandatory.
    Source: sglang/srt/server_args.py; vllm/executor/ray_utils.py warns about split nodes.
    """
    for engine in facts.engines:
        command, gpus, pods = engine.entry.command, engine.entry.gpus, engine.pods
        if command is None or not isinstance(pods, int) or pods < 2:  # noqa: PLR2004 - one pod is always whole
            continue
        tensor = command.tensor
        if not isinstance(gpus, int) or not isinstance(tensor, int) or gpus == 0:
            continue
        if not _whole(tensor, gpus, pods):
            smaller, larger = _nearest_whole(tensor, gpus)
            yield Finding(
                path=engine.entry.command_path,
                seen=f"{_title(engine)} has tensor {tensor} on pods of {gpus} GPUs, so one tensor "
                "group would fill a part of a pod, and a pod would hold parts of two groups",
                remedy=one_of_sizes(command, "tensor", (smaller, larger)),
                rule="nodes-whole",
            )


def _whole(tensor: int, gpus: int, pods: int) -> bool:
    """Return whether tensor groups do not share pods partially."""
    return pods == 1 or tensor % gpus == 0 or gpus % tensor == 0


def _nearest_whole(tensor: int, gpus: int) -> tuple[int, int]:
    """Return the valid sizes just below and above an invalid one: multiples or divisors."""
    if tensor > gpus:
        return tensor // gpus * gpus, (tensor // gpus + 1) * gpus
    small = [n for n in range(1, math.isqrt(gpus) + 1) if gpus % n == 0]
    divisors = [*small, *(gpus // n for n in small)]
    return max(n for n in divisors if n < tensor), min(n for n in divisors if n > tensor)


def _title(engine: EngineFacts) -> str:
    return f"engine '{engine.name}'"


def _pods(engine: EngineFacts, held: int) -> str:
    pods, entry = engine.pods, engine.entry.gpus
    worker = engine.worker.gpus if engine.worker else entry
    if pods == 1:
        return f"pod has {count_of(held, 'GPU')}"
    if worker != entry:
        return f"{pods} pods (entry {entry}, workers {worker} GPUs) hold {held}"
    return f"{pods} pods × {count_of(entry, 'GPU')} hold {held}"


def _product(engine: EngineFacts, command: CommandFacts) -> str:
    parts = [f"{word} {size}" for word, size in _sizes(command)]
    if command.data_mode == "hybrid":
        parts.append(f"data {command.data_local} a pod")
    if command.data_mode != "internal":
        parts.append(count_of(engine.pods, "pod"))
    return " × ".join(parts)


def _sizes(command: CommandFacts) -> list[tuple[str, int]]:
    """Return the sizes whose product is the number of ranks, with their names in messages."""
    sizes = [("tensor", command.tensor), ("pipeline", command.pipeline)]
    if command.data_mode == "internal":
        sizes.append(("data", command.data))
    sizes.append(("context", command.prefill_context))
    return [
        (word, size)
        for word, size in sizes
        if isinstance(size, int) and (size != 1 or word in _always(command))
    ]


def _always(command: CommandFacts) -> frozenset[str]:
    """Return the sizes that a message names even if they are 1: those that the engine has."""
    return frozenset({"tensor"} if command.engine in _ONE_STAGE else {"tensor", "pipeline"})


def _remedy(engine: EngineFacts, command: CommandFacts, ranks: int, held: int) -> Remedy:
    """Return the smallest changes that make both sides equal and that no other rule reports."""
    sizes, gpus, pods = dict(_sizes(command)), engine.entry.gpus, engine.pods
    if not (isinstance(gpus, int) and isinstance(pods, int)) or ranks < 1 or pods < 1:
        return Remedy(_ANY_WAY)
    ways: list[str] = []
    apart: list[str] = []
    # If pods that nothing connects share a copy already, executor-stated reports that.
    torn = _is_torn(engine, command, sizes, gpus)
    # Within a pod prefer tensor, between pods pipeline: the usual way to split an engine.
    for word, size in sizes.items() if pods == 1 else reversed(sizes.items()):
        wanted, rest = divmod(held, ranks // size)
        changed = {**sizes, word: wanted}
        if word == "pipeline" and engine.one_stage:
            continue
        if word == "data" and command.data_local and wanted != pods * int(str(command.data_local)):
            continue  # the pods follow from the copies in each
        fits_model = _suits(engine, command, changed)
        if wanted and not rest and fits_model and _fits(command, changed, gpus, pods):
            spans = not torn and _is_torn(engine, command, changed, gpus)
            (apart if spans else ways).append(
                set_size(command, _FIELD.get(word, word), wanted, f"set {word} to {wanted}")
            )
    alike = 0 < held == gpus * pods and command.data_mode == "internal"
    alike = alike and command.engine != _ONE_POD
    if alike and ranks % gpus == 0 and _fits(command, sizes, gpus, ranks // gpus):
        given = count_of(ranks // gpus, "pod")
        ways.append(give_pods(engine, ranks // gpus, f"give the engine {given}"))
    each = ranks // pods
    spans = not torn and _is_torn(engine, command, sizes, each)
    if ranks % pods == 0 and _fits(command, sizes, each, pods) and not spans:
        ways.append(give_gpus(engine, each, f"give each pod {count_of(each, 'GPU')}"))
    if not ways and alike and set(sizes) == {"tensor", "pipeline"}:
        both = (set_size(command, "tensor", gpus), set_size(command, "pipeline", pods))
        ways.append(together(*both, text=f"set tensor to {gpus} and pipeline to {pods}"))
    if apart:
        ways.append(f"{' or '.join(apart)} and connect the pods with {_connecting(command, pods)}")
    return either(*ways) if ways else Remedy(_ANY_WAY)


def _suits(engine: EngineFacts, command: CommandFacts, sizes: Mapping[str, int]) -> bool:
    """Return whether the model can be split into these sizes, if its shape is known."""
    shape = model_shape(command, engine.entry.shape)
    if not isinstance(shape, ModelShape):
        return True
    made = replace(
        command,
        tensor=sizes.get("tensor", command.tensor),
        pipeline=sizes.get("pipeline", command.pipeline),
        data=sizes.get("data", command.data),
    )
    split = Sharding(engine, made, shape)
    return fits(split) and sizes.get("pipeline", 1) <= shape.layers and not breaks_blocks(split)


def _is_torn(
    engine: EngineFacts, command: CommandFacts, sizes: Mapping[str, int], gpus: int
) -> bool:
    """Return whether a copy of these sizes spans pods that nothing in the command connects."""
    if engine.pods == 1 or command.engine not in _CONNECTED_BY or command.hidden is not None:
        return False
    alone = command.nnodes in {None, 1} and command.executor is None and command.ray_role is None
    copy = math.prod(size for word, size in sizes.items() if word != "data")
    return alone and command.data_backend != "ray" and copy > gpus


def _connecting(command: CommandFacts, pods: int) -> str:
    return f"--nnodes {pods}, --node-rank and {_CONNECTED_BY[str(command.engine)]}"


_CONNECTED_BY = {"vllm": "--master-addr", "sglang": "--dist-init-addr"}
"""Engines that connect their pods by options, and the option with the first pod's address."""
_ONE_POD = "tgi"
"""The engine that cannot be spread over pods (text-generation-inference launcher/src/main.rs)."""
_ONE_STAGE = frozenset({_ONE_POD, "lmdeploy"})
"""Engines that have no pipelines."""
_FIELD = {"context": "prefill_context"}
"""Fields of CommandFacts with another name in messages."""
_ANY_WAY = "change the parallelism or the GPUs"


def _fits(command: CommandFacts, sizes: Mapping[str, int], gpus: int, pods: int) -> bool:
    """Return whether an engine of these sizes fits on pods with so many GPUs.

    vLLM distributes copies of a model evenly over pods, each within one; SGLang keeps them all in
    one pod.
    """
    data = sizes.get("data", 1)
    even = command.engine != "sglang" and data % pods == 0
    spread = data == 1 or pods == 1 or even
    return spread and gpus > 0 and _whole(sizes["tensor"], gpus, pods)


def _unjudged(engine: EngineFacts, because: str) -> Finding:
    return Finding(
        path=engine.entry.command_path,
        seen=f"{_title(engine)} was not checked, because {because}",
        rule="world-size-equals-gpus",
        level=Level.UNKNOWN,
    )
