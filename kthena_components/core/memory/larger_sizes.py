"""The sizes with which a model that does not fit would fit, for remedies."""

from collections.abc import Iterator
from dataclasses import replace

from kthena_components.core.memory import Split
from kthena_components.core.memory.engine import Placed, split_of
from kthena_components.core.memory.sharding import Sharding, divisors, fits


def larger_sizes(placed: Placed) -> list[tuple[int, int]]:
    """Return the tensor and pipeline sizes of the fewest GPUs on which the weights fit.

    One of both sizes is the present one, and the other is larger. The model has to divide by them,
    and tensor groups must not share pods. Stages with as many layers each are preferred. Empty if
    there are none.
    """
    found = [pair for pair in (*_tensors(placed), *_pipelines(placed)) if has_room(placed, *pair)]
    found = [pair for pair in found if placed.shape.layers % pair[1] == 0] or found
    least = min((tensor * pipeline for tensor, pipeline in found), default=0)
    return [(tensor, pipeline) for tensor, pipeline in found if tensor * pipeline == least]


def _tensors(placed: Placed) -> Iterator[tuple[int, int]]:
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


def _pipelines(placed: Placed) -> Iterator[tuple[int, int]]:
    most = 0 if placed.engine.one_stage else placed.shape.layers
    for pipeline in range(placed.split.pipeline + 1, most + 1):
        yield placed.split.tensor, pipeline


def has_room(placed: Placed, tensor: int, pipeline: int) -> bool:
    """Return whether the weights fit into the GPUs with other sizes."""
    command = replace(placed.command, tensor=tensor, pipeline=pipeline)
    split = split_of(command)
    if not isinstance(split, Split):
        return False
    larger = replace(placed, command=command, split=split)
    return larger.weights <= larger.budget
