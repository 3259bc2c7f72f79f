"""The sizes of an engine that fit and that other rules do not refuse, for remedies."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from kthena_components.core.engines import CommandFacts
from kthena_components.core.engines.dialects import dialect_of
from kthena_components.core.engines.facts import OPTIONS_BY_FIELD, one_of_sizes, set_size
from kthena_components.core.facts.serving import EngineFacts, gpus_of, ranks_of
from kthena_components.core.memory import Split
from kthena_components.core.memory.engine import EngineOnGpu, engine_on_gpu
from kthena_components.core.memory.sharding import Sharding, divisors, fits, is_whole, split_of
from kthena_components.core.remedies import Remedy, either, together
from kthena_components.core.values.unknown import all_known


def larger_sizes(placed: EngineOnGpu) -> list[tuple[int, int]]:
    """Return the tensor and pipeline sizes of the fewest GPUs on which the weights fit.

    One of both sizes is the present one, and the other is larger. The model has to divide by them,
    and tensor groups must not share pods. Stages with as many layers each are preferred. Empty if
    there are none.
    """
    found = [pair for pair in (*_tensors(placed), *_pipelines(placed)) if has_room(placed, *pair)]
    found = [pair for pair in found if placed.shape.layers % pair[1] == 0] or found
    least = min((tensor * pipeline for tensor, pipeline in found), default=0)
    return [(tensor, pipeline) for tensor, pipeline in found if tensor * pipeline == least]


def _tensors(placed: EngineOnGpu) -> Iterator[tuple[int, int]]:
    """List larger tensor sizes, with the pipeline, that fit heads, blocks and whole pods."""
    command, gpus = placed.command, placed.engine.entry.gpus
    data, context = command.attention_data, command.attention_context
    if not (isinstance(data, int) and isinstance(context, int)):
        return
    sharding = Sharding(placed.engine, command, placed.shape)
    for heads in divisors(placed.shape.heads):
        tensor = heads * data * context
        whole = not isinstance(gpus, int) or gpus < 1 or not tensor % gpus or not gpus % tensor
        if tensor > placed.split.tensor and whole and fits(sharding.at(tensor), blocks=True):
            yield tensor, placed.split.pipeline


def _pipelines(placed: EngineOnGpu) -> Iterator[tuple[int, int]]:
    """Yield the tensor size with each larger pipeline size."""
    most = 0 if placed.engine.one_stage else placed.shape.layers
    for pipeline in range(placed.split.pipeline + 1, most + 1):
        yield placed.split.tensor, pipeline


def has_room(placed: EngineOnGpu, tensor: int, pipeline: int) -> bool:
    """Return whether the weights fit into the GPUs with other sizes."""
    command = replace(placed.command, tensor=tensor, pipeline=pipeline)
    split = split_of(command)
    if not isinstance(split, Split):
        return False
    larger = replace(placed, command=command, split=split)
    return larger.weights <= larger.budget


_ANY_WAY = "change the parallelism"
_VOCABULARY = 64
"""vLLM pads a vocabulary to a multiple of this (vocab_parallel_embedding.py)."""


def nearest_sizes(sharding: Sharding, fits: Callable[[Sharding], bool]) -> Remedy | str:
    """Suggest the tensor sizes that fit below and above one that does not.

    Sizes with which the engine has a rank for each of its GPUs, if necessary with another pipeline,
    are suggested alone. So are sizes that divide every padded vocabulary, since it is split as
    well, stages with as many layers, and sizes with which the weights fit into the GPUs.

    Args:
        sharding: The engine and its model.
        fits: Whether the rule accepts other sizes.
    """
    command = sharding.command
    tensor, pipeline = command.tensor, command.pipeline
    if not (isinstance(tensor, int) and isinstance(pipeline, int)):
        return _ANY_WAY
    legal = [size for size in _legal(sharding) if size != tensor and fits(sharding.at(size))]
    legal = [size for size in legal if _VOCABULARY % size == 0] or legal
    pairs = list(_on_all_gpus(sharding, legal)) or [(size, pipeline) for size in legal]
    pairs = [pair for pair in pairs if sharding.shape.layers % pair[1] == 0] or pairs
    room = [pair for pair in pairs if _has_room(sharding, *pair)] or pairs
    below = max((pair for pair in room if pair[0] < tensor), default=None)
    above = min((pair for pair in room if pair[0] > tensor), default=None)
    named = [pair for pair in (below, above) if pair is not None]
    if all(each == pipeline for _, each in named):
        return one_of_sizes(command, "tensor", [size for size, _ in named]) or _ANY_WAY
    return either(*(_both(sharding, *pair) for pair in named))


def _legal(sharding: Sharding) -> Iterator[int]:
    """Return the tensor sizes that divide the attention heads."""
    command = sharding.command
    widths = all_known(command.attention_data, command.attention_context)
    if isinstance(widths, list):
        data, context = widths
        yield from (heads * data * context for heads in divisors(sharding.shape.heads))


def _on_all_gpus(sharding: Sharding, sizes: list[int]) -> Iterator[tuple[int, int]]:
    """Return tensor and pipeline sizes that make as many ranks as the engine has GPUs."""
    engine, command = sharding.engine, sharding.command
    known = all_known(
        ranks_of(engine, command), gpus_of(engine), engine.entry.gpus, engine.pods,
        command.tensor, command.pipeline,
    )  # fmt: skip
    if not isinstance(known, list):
        return
    ranks, held, gpus, pods, tensor, pipeline = known
    if not tensor * pipeline or not gpus:
        return
    for size in sizes:
        stages, rest = divmod(held * tensor * pipeline, ranks * size)
        given = stages == pipeline or _has_pipeline(engine, command)
        fit = not rest and 0 < stages <= sharding.shape.layers and is_whole(size, gpus, pods)
        if fit and given:
            yield size, stages


def _has_pipeline(engine: EngineFacts, command: CommandFacts) -> bool:
    """Return whether the release of an engine has pipelines, and its controller keeps them."""
    option = OPTIONS_BY_FIELD.get(command.engine or "", {}).get("pipeline")
    if engine.one_stage or command.release is None or option is None:
        return not engine.one_stage
    return option in dialect_of(command.release).options


def _has_room(sharding: Sharding, tensor: int, pipeline: int) -> bool:
    """Return whether the weights fit into the GPUs, as far as that is known."""
    placed = engine_on_gpu(sharding.engine)
    return not isinstance(placed, EngineOnGpu) or has_room(placed, tensor, pipeline)


def _both(sharding: Sharding, tensor: int, pipeline: int) -> Remedy:
    """Write the remedy that sets tensor and pipeline; a pipeline that stays is not named."""
    command = sharding.command
    if pipeline == command.pipeline:
        return set_size(command, "tensor", tensor)
    return together(
        set_size(command, "tensor", tensor),
        set_size(command, "pipeline", pipeline),
        text=f"set tensor to {tensor} and pipeline to {pipeline}",
    )
