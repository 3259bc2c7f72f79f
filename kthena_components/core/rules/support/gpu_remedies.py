"""What makes the ranks of an engine equal its GPUs."""

import math
from collections.abc import Mapping
from dataclasses import replace

from kthena_components.core.engines import CommandFacts
from kthena_components.core.engines.sizes import set_size
from kthena_components.core.facts.serving import EngineFacts
from kthena_components.core.findings import count_of
from kthena_components.core.memory.sharding import Sharding, fits, model_shape
from kthena_components.core.models.shape import ModelShape
from kthena_components.core.remedies import Remedy, either, together
from kthena_components.core.rules.fp8_block_multiple import breaks_blocks
from kthena_components.core.rules.support.fixes import give_gpus, give_pods


def gpu_remedy(engine: EngineFacts, command: CommandFacts, ranks: int, held: int) -> Remedy:
    """Return the smallest changes that make both sides equal and that no other rule reports."""
    sizes, gpus, pods = dict(sizes_of(command)), engine.entry.gpus, engine.pods
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
    return spread and gpus > 0 and is_whole(sizes["tensor"], gpus, pods)


def sizes_of(command: CommandFacts) -> list[tuple[str, int]]:
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


def is_whole(tensor: int, gpus: int, pods: int) -> bool:
    """Return whether tensor groups do not share pods partially."""
    return pods == 1 or tensor % gpus == 0 or gpus % tensor == 0
