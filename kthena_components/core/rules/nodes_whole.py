"""The rule nodes-whole."""

import math
from collections.abc import Iterator

from kthena_components.core.engines import CommandFacts
from kthena_components.core.engines.facts import one_of_sizes
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, count_of
from kthena_components.core.memory.sharding import Sharding, fits, is_whole, model_shape
from kthena_components.core.models import ModelShape
from kthena_components.core.remedies import Remedy
from kthena_components.core.rules.support.messages import title
from kthena_components.core.rules.support.nearest_sizes import nearest_sizes


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
        if not is_whole(tensor, gpus, pods):
            nearest = one_of_sizes(command, "tensor", _nearest_whole(tensor, gpus))
            yield Finding(
                path=engine.entry.command_path,
                seen=f"{title(engine)} has tensor {tensor} on pods of "
                f"{count_of(gpus, 'GPU')}, so one tensor "
                "group would fill a part of a pod, and a pod would hold parts of two groups",
                remedy=_whole_sizes(engine, command, (gpus, pods)) or nearest,
            )


def _whole_sizes(engine: EngineFacts, command: CommandFacts, held: tuple[int, int]) -> Remedy | str:
    """Suggest sizes that fit the model as well; nothing if its shape is not known."""
    shape = model_shape(command, engine.entry.shape)
    if not isinstance(shape, ModelShape):
        return ""

    def fits_both(other: Sharding) -> bool:
        tensor = other.command.tensor
        return isinstance(tensor, int) and is_whole(tensor, *held) and fits(other, blocks=True)

    return nearest_sizes(Sharding(engine, command, shape), fits_both)


def _nearest_whole(tensor: int, gpus: int) -> tuple[int, int]:
    """Return the valid sizes just below and above an invalid one: multiples or divisors."""
    if tensor > gpus:
        return tensor // gpus * gpus, (tensor // gpus + 1) * gpus
    small = [n for n in range(1, math.isqrt(gpus) + 1) if gpus % n == 0]
    divisors = [*small, *(gpus // n for n in small)]
    return max(n for n in divisors if n < tensor), min(n for n in divisors if n > tensor)
