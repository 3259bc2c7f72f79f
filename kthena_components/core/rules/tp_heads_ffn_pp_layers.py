"""Rules of tensor and pipeline parallelism: they divide heads, inner layers and layers."""

from collections.abc import Iterator

from kthena_components.core.engines.facts import set_size
from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.memory.sharding import (
    Sharding,
    divisors,
    each_sharding,
    fits,
    kv_heads_fit,
    shapeless,
    shardings,
    unknown_part,
)
from kthena_components.core.remedies import Remedy, either, together
from kthena_components.core.rules.support.fixes import give_gpus, give_pods
from kthena_components.core.rules.support.messages import ranks_of_model, title
from kthena_components.core.rules.support.nearest_sizes import nearest_sizes
from kthena_components.core.values.unknown import Unknown, known

HEADS = "tp-divides-heads"


def tp_divides_heads(facts: ServingFacts) -> Iterator[Finding]:
    """Tensor parallelism divides the attention heads: all ranks get equally many.

    SGLang's attention data parallelism splits the tensor group first. Neither this rule nor the
    other rules about shapes check a model that is not in the table of models, unless its
    config.json is given: as hf_config of a component's engine, as the annotation
    kthena-components/model-config of an object or a pod template, or with --model-config on the
    command line.

    Pass: 64 heads over tensor 8.
    Fail: 64 heads over tensor 6.
    Level: mandatory.
    Source: vllm/config/model.py verify_with_parallel_config.
    """
    for engine, because in shapeless(facts):
        yield Finding(
            path=engine.entry.command_path,
            seen=f"{title(engine)} was not checked, because {because}",
            rule=HEADS,
            level=Level.UNKNOWN,
        )
    for sharding in shardings(facts):
        heads, ranks = sharding.shape.heads, sharding.attention
        if isinstance(ranks, Unknown):
            yield from sharding.cannot_check(ranks.because)
        elif heads % ranks:
            seen = (
                f"splits {count_of(heads, 'attention head')} over "
                f"{ranks_of_model(sharding, ranks)}, which leaves a remainder of {heads % ranks}"
            )
            yield sharding.finding(seen, nearest_sizes(sharding, fits))


KV_HEADS = "tp-divides-kv-heads"


@each_sharding
def tp_divides_kv_heads(sharding: Sharding) -> Iterator[Finding]:
    """Tensor parallelism divides the KV heads, or they divide it and ranks have copies of them.

    Latent attention has no KV heads to split.

    Pass: 8 KV heads over tensor 4, or over tensor 16.
    Fail: 8 KV heads over tensor 12.
    Level: mandatory.
    Source: vllm/model_executor/layers/linear.py QKVParallelLinear.
    """
    kv_heads, ranks = sharding.shape.kv_heads, sharding.attention
    if kv_heads is None:
        return
    ranks = known(ranks)
    if not kv_heads_fit(sharding.shape, ranks):
        seen = (
            f"splits {count_of(kv_heads, 'KV head')} over {ranks_of_model(sharding, ranks)}, "
            "and neither is a multiple of the other"
        )
        yield sharding.finding(seen, nearest_sizes(sharding, fits))


FEED_FORWARD = "ffn-divisible"


@each_sharding
def ffn_divisible(sharding: Sharding) -> Iterator[Finding]:
    """Tensor parallelism divides the inner width of the feed-forward layers.

    The same applies to each expert, unless expert parallelism keeps experts whole. vLLM splits an
    expert over its data parallel ranks, too.

    Pass: 29568 over tensor 8.
    Fail: 29568 over tensor 5.
    Level: mandatory.
    Source: vllm/model_executor/layers/linear.py and fused_moe/layer.py.
    """
    unknown = unknown_part(sharding)
    if unknown is not None:
        yield from sharding.cannot_check(unknown.because)
    for part in sharding.feed_forward:
        if part.rest:
            a = "an" if part.what.startswith("e") else "a"
            seen = (
                f"splits {a} {part.what} of {part.size} over {count_of(part.ranks, 'rank')}, "
                f"which leaves a remainder of {part.rest}"
            )
            yield sharding.finding(seen, nearest_sizes(sharding, fits))


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
