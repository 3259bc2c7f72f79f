"""Checks that an engine's parallelism divides the layers of its model.

The shapes are those of core/models. If the model of an engine with parallelism is not there, the
first rule reports it once for all of them.
"""

import math
from collections.abc import Iterator

from kthena_components.core.engines.sizes import set_size
from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.memory.sharding import (
    Sharding,
    divisors,
    fits,
    kv_heads_fit,
    shapeless,
    shardings,
    unknown_part,
)
from kthena_components.core.remedies import Remedy, either, set_option, together
from kthena_components.core.rules.fixes import give_gpus, give_pods
from kthena_components.core.rules.fp8_block_multiple import BLOCKS
from kthena_components.core.values.unknown import Unknown

HEADS = "tp-divides-heads"
KV_HEADS = "tp-divides-kv-heads"
STAGES = "pp-within-layers"
EXPERTS = "moe-expert-shape"
FEED_FORWARD = "ffn-divisible"
MODEL_RULES = frozenset({HEADS, KV_HEADS, STAGES, EXPERTS, FEED_FORWARD, BLOCKS})
"""The rules about the shapes of models."""


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
            seen=f"engine '{engine.name}' was not checked, because {because}",
            rule=HEADS,
            level=Level.UNKNOWN,
        )
    for sharding in shardings(facts):
        heads, ranks = sharding.shape.heads, sharding.attention
        if isinstance(ranks, Unknown):
            yield from sharding.unjudged(HEADS, ranks.because)
        elif heads % ranks:
            seen = (
                f"splits {count_of(heads, 'attention head')} over {_ranks(sharding, ranks)}, "
                f"which leaves a remainder of {heads % ranks}"
            )
            yield sharding.finding(HEADS, seen, sharding.near(fits))


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
                f"splits {count_of(kv_heads, 'KV head')} over {_ranks(sharding, ranks)}, "
                "and neither is a multiple of the other"
            )
            yield sharding.finding(KV_HEADS, seen, sharding.near(fits))


def _ranks(sharding: Sharding, ranks: int) -> str:
    command = sharding.command
    widths = {"data": command.attention_data, "context": command.attention_context}
    parts = [f" ÷ attention {what} {width}" for what, width in widths.items() if width != 1]
    return f"tensor {command.tensor}{''.join(parts)}" + (f" = {ranks}" if parts else "")


def pp_within_layers(facts: ServingFacts) -> Iterator[Finding]:
    """Pipeline parallelism has at most as many stages as the model has layers, ideally a divisor.

    With an uneven split the engine starts, but the GPUs of the fullest stage need more memory than
    the others, and the others wait for them. Layers that a variable assigns are not checked.

    Pass: 126 layers over pipeline 3.
    Fail: 126 layers over pipeline 127; advisory: over pipeline 4.
    Level: mandatory; advisory for an uneven split.
    Source: vllm/distributed/utils.py get_pp_indices; tensorrt_llm/mapping.py pp_layers.
    """
    for sharding in shardings(facts):
        layers, stages = sharding.shape.layers, sharding.command.pipeline
        if isinstance(stages, Unknown):
            yield from sharding.unjudged(STAGES, stages.because)
        elif stages > layers:
            seen = (
                f"splits {count_of(layers, 'layer')} over pipeline {stages}, and a stage needs one"
            )
            yield sharding.finding(
                STAGES, seen, set_size(sharding.command, "pipeline", layers).then(" or less")
            )
        elif layers % stages:
            least = layers // stages
            seen = (
                f"splits {layers} layers over pipeline {stages}, so that its fullest stage has "
                f"{least + 1} and its emptiest {least}"
            )
            memory = f"leave memory for {least + 1} layers on each GPU"
            remedy = either(_even(sharding, layers, stages), memory)
            yield sharding.finding(STAGES, seen, remedy, Level.ADVISORY)


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
        return together(size, give_pods(engine, pods * wanted // stages, ""))
    if pods == 1 and isinstance(gpus, int) and gpus * wanted % stages == 0:
        return together(size, give_gpus(engine, gpus * wanted // stages, ""))
    return Remedy("")


def moe_expert_shape(facts: ServingFacts) -> Iterator[Finding]:
    """Expert parallelism has experts to distribute, and in SGLang equally many per rank.

    vLLM rejects a dense model; other engines gain nothing. vLLM accepts an uneven distribution.

    Pass: 256 experts and 32 redundant ones over 48 ranks.
    Fail: 256 experts over 48 ranks of SGLang; a dense model with --enable-expert-parallel.
    Level: mandatory; advisory for a dense model outside vLLM.
    Source: vllm/config/model.py _verify_with_expert_parallelism;
        sglang/srt/eplb/expert_location.py.
    """
    for sharding in shardings(facts):
        command, experts = sharding.command, sharding.shape.experts
        if isinstance(command.expert, Unknown):
            if not experts or command.engine == "sglang":
                yield from sharding.unjudged(EXPERTS, command.expert.because)
        elif command.expert is False or (command.expert == 1 and command.expert is not True):
            continue
        elif experts is None:
            because = f"the table of models has no experts of {sharding.shape.name}"
            yield from sharding.unjudged(EXPERTS, because)
        elif experts == 0:
            hard = isinstance(command.expert, bool)
            seen = "enables expert parallelism, but its model is dense: it has no experts"
            level = Level.MANDATORY if hard else Level.ADVISORY
            yield sharding.finding(EXPERTS, seen, "disable expert parallelism", level)
        elif command.engine == "sglang":
            yield from _uneven_experts(sharding, experts)


def _uneven_experts(sharding: Sharding, experts: int) -> Iterator[Finding]:
    ranks, more = sharding.command.expert_size, sharding.command.redundant_experts
    unknown = next((value for value in (ranks, more) if isinstance(value, Unknown)), None)
    if unknown is not None:
        yield from sharding.unjudged(EXPERTS, unknown.because)
    elif isinstance(ranks, int) and isinstance(more, int) and (experts + more) % ranks:
        total, tensor = experts + more, sharding.command.tensor
        spread = count_of(experts, "expert")
        spread += f" and {count_of(more, 'redundant one')}" if more else ""
        known = tensor if isinstance(tensor, int) else total
        sizes = [n for n in divisors(math.gcd(total, known)) if n > 1]
        below, above = [n for n in sizes if n < ranks][-1:], [n for n in sizes if n > ranks][:1]
        fewer = " or ".join(map(str, below + above))
        copies, flag = more + ranks - total % ranks, "--ep-num-redundant-experts"
        more_copies = set_option(flag, copies, f"set {flag} to {copies}")
        yield sharding.finding(
            EXPERTS,
            f"spreads {spread} over {ranks} ranks, which leaves a remainder of {total % ranks}",
            either(f"spread them over {fewer} ranks" if fewer else "", more_copies),
        )


def ffn_divisible(facts: ServingFacts) -> Iterator[Finding]:
    """Tensor parallelism divides the inner width of the feed-forward layers.

    The same applies to each expert, unless expert parallelism keeps experts whole. vLLM splits an
    expert over its data parallel ranks, too.

    Pass: 29568 over tensor 8.
    Fail: 29568 over tensor 5.
    Level: mandatory.
    Source: vllm/model_executor/layers/linear.py and fused_moe/layer.py.
    """
    for sharding in shardings(facts):
        unknown = unknown_part(sharding)
        if unknown is not None:
            yield from sharding.unjudged(FEED_FORWARD, unknown.because)
        for part in sharding.feed_forward:
            if part.rest:
                a = "an" if part.what.startswith("e") else "a"
                seen = (
                    f"splits {a} {part.what} of {part.size} over {part.ranks} ranks, "
                    f"which leaves a remainder of {part.rest}"
                )
                yield sharding.finding(FEED_FORWARD, seen, sharding.near(fits))
