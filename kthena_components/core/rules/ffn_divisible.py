"""The rule ffn-divisible: tensor parallelism divides the inner width of the feed-forward layers."""

from collections.abc import Iterator

from kthena_components.core.findings import Finding
from kthena_components.core.memory.sharding import (
    Sharding,
    each_sharding,
    fits,
    unknown_part,
)
from kthena_components.core.rules.support.nearest_sizes import nearest_sizes

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
                f"splits {a} {part.what} of {part.size} over {part.ranks} ranks, "
                f"which leaves a remainder of {part.rest}"
            )
            yield sharding.finding(seen, nearest_sizes(sharding, fits))
