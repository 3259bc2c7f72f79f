"""The rule pp-within-layers."""

from collections.abc import Iterator

from kthena_components.core.engines.facts import set_size
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.memory.sharding import (
    Sharding,
    divisors,
    each_sharding,
)
from kthena_components.core.remedies import Remedy, either, together
from kthena_components.core.rules.support.fixes import give_gpus, give_pods
from kthena_components.core.values.unknown import known

STAGES = "pp-within-layers"
_LITTLE = 0.1
"""By how much the fullest stage may be above the mean."""


@each_sharding
def pp_within_layers(sharding: Sharding) -> Iterator[Finding]:
    """Pipeline parallelism has at most as many stages as the model has layers, and fills them.

    Engines split any number of layers by themselves: a stage has at most one layer more than
    another. This is advice only where the fullest stage has over 10 % more than the mean, because
    the others wait for it. The rules about memory count the layers of the fullest stage. Layers
    that a variable assigns are not checked.

    Pass: 126 layers over pipeline 3; 61 layers over pipeline 2, 4, 8 or 16.
    Fail: 126 layers over pipeline 127; advisory: over pipeline 40.
    Level: mandatory; advisory for an uneven split.
    Source: vllm/distributed/utils.py and sglang/srt/distributed/utils.py, get_pp_indices;
    tensorrt_llm/mapping.py pp_layers.
    """
    layers, stages = sharding.shape.layers, known(sharding.command.pipeline)
    if stages > layers:
        seen = f"splits {count_of(layers, 'layer')} over pipeline {stages}, and a stage needs one"
        yield sharding.finding(
            seen, set_size(sharding.command, "pipeline", layers).then(" or less")
        )
    elif (above := -(-layers // stages) * stages / layers - 1) > _LITTLE:
        least = layers // stages
        seen = (
            f"splits {count_of(layers, 'layer')} over pipeline {stages}, so that its "
            "fullest stage has "
            f"{least + 1} and its emptiest {least}: the others wait for it, and a step takes "
            f"{above:.0%} longer than with an even split"
        )
        memory = f"leave memory for {count_of(least + 1, 'layer')} on each GPU"
        remedy = either(_even(sharding, layers, stages), memory)
        yield sharding.finding(seen, remedy, Level.ADVISORY)


def _even(sharding: Sharding, layers: int, stages: int) -> Remedy:
    """Suggest the nearest pipeline sizes that split evenly; 1 is left out."""
    near = [n for n in divisors(layers) if 1 < n <= 2 * stages]
    sizes = [n for n in near if n < stages][-1:] + [n for n in near if n > stages][:1]
    ways = [_resized(sharding, stages, n) for n in sizes]
    said = f"set pipeline to {' or '.join(map(str, sizes))} and change the GPUs with it"
    return Remedy(said if sizes else "", [fix for way in ways for fix in way.fixes])


def _resized(sharding: Sharding, stages: int, wanted: int) -> Remedy:
    """Set the pipeline, and give the engine the pods, or its pod the GPUs, for as many stages."""
    engine, pods, gpus = sharding.engine, sharding.engine.pods, sharding.engine.entry.gpus
    size = set_size(sharding.command, "pipeline", wanted)
    if isinstance(pods, int) and pods > 1 and pods * wanted % stages == 0:
        return together(size, give_pods(engine, pods * wanted // stages))
    if pods == 1 and isinstance(gpus, int) and gpus * wanted % stages == 0:
        return together(size, give_gpus(engine, gpus * wanted // stages, ""))
    return Remedy("")
