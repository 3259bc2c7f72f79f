"""The rule tp-divides-heads."""

from collections.abc import Iterator

from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.memory.sharding import (
    fits,
    shapeless,
    shardings,
)
from kthena_components.core.rules.support.messages import ranks_of_model, title
from kthena_components.core.rules.support.nearest_sizes import nearest_sizes
from kthena_components.core.values.unknown import Unknown

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
