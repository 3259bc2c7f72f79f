"""The rule tp-divides-kv-heads."""

from collections.abc import Iterator

from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, count_of
from kthena_components.core.memory.sharding import (
    fits,
    kv_heads_fit,
    shardings,
)
from kthena_components.core.rules.support.model_ranks import ranks_of_model
from kthena_components.core.values.unknown import Unknown

KV_HEADS = "tp-divides-kv-heads"


def tp_divides_kv_heads(facts: ServingFacts) -> Iterator[Finding]:
    """Tensor parallelism divides the KV heads, or they divide it and ranks have copies of them.

    Latent attention has no KV heads to split.

    Pass: 8 KV heads over tensor 4, or over tensor 16.
    Fail: 8 KV heads over tensor 12.
    Level: mandatory.
    Source: vllm/model_executor/layers/linear.py QKVParallelLinear.
    """
    for sharding in shardings(facts):
        kv_heads, ranks = sharding.shape.kv_heads, sharding.attention
        if kv_heads is None:
            continue
        if isinstance(ranks, Unknown):
            yield from sharding.unjudged(KV_HEADS, ranks.because)
        elif not kv_heads_fit(sharding.shape, ranks):
            seen = (
                f"splits {count_of(kv_heads, 'KV head')} over {ranks_of_model(sharding, ranks)}, "
                "and neither is a multiple of the other"
            )
            yield sharding.finding(KV_HEADS, seen, sharding.near(fits))
