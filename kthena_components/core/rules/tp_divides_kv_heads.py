"""The rule tp-divides-kv-heads."""

from collections.abc import Iterator

from kthena_components.core.findings import Finding, count_of
from kthena_components.core.memory.sharding import (
    Sharding,
    each_sharding,
    fits,
    kv_heads_fit,
)
from kthena_components.core.rules.support.messages import ranks_of_model
from kthena_components.core.rules.support.nearest_sizes import nearest_sizes
from kthena_components.core.values.unknown import known

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
