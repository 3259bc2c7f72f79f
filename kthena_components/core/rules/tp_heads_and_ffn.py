"""Rules of tensor parallelism: it divides heads, heads of keys and values, and inner layers."""

from collections.abc import Iterator

from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.memory.sharding import (
    Sharding,
    each_sharding,
    fits,
    kv_heads_fit,
    shapeless,
    shardings,
    unknown_part,
)
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
