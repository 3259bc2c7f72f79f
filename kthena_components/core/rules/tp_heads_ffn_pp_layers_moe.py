"""Rules of parallel sizes that divide a model's shape: heads, layers, inner layers, experts."""

import math
from collections.abc import Iterator
from dataclasses import replace

from kthena_components.core.engines.facts import set_size
from kthena_components.core.engines.trtllm import CONTEXT_KIND, MOE_CLUSTER, MOE_TENSOR, SPREAD
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.memory.engine import engines_on_gpu, engines_without_gpu
from kthena_components.core.memory.sharding import (
    NO_MODEL,
    Sharding,
    divisors,
    each_sharding,
    fits,
    kv_heads_fit,
    shapeless,
    shardings,
    unknown_part,
)
from kthena_components.core.remedies import Remedy, either, set_option, together
from kthena_components.core.rules.support.engine_pods import ALWAYS, Start, each_start
from kthena_components.core.rules.support.fixes import give_gpus, give_pods
from kthena_components.core.rules.support.messages import ranks_of_model, title
from kthena_components.core.rules.support.nearest_sizes import nearest_sizes
from kthena_components.core.values.unknown import Unknown, known, known_sizes

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
    unknown = _without_model(facts)
    for engine, because in shapeless(facts):
        if because == NO_MODEL.because and any(one is engine for one in unknown):
            continue  # memory-weights-fit says it, and how to name the model
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


def _without_model(facts: ServingFacts) -> list[EngineFacts]:
    """Return the engines that memory-weights-fit reports because nothing names their model."""
    without = engines_without_gpu(facts) if facts.gpu_option else ()
    found = (*engines_on_gpu(facts), *(one for one in without if one[0].entry.gpu is None))
    return [engine for engine, placed in found if placed == NO_MODEL]


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


EXPERTS = "moe-expert-shape"


@each_sharding
def moe_expert_shape(sharding: Sharding) -> Iterator[Finding]:
    """Expert parallelism has experts to distribute, and in SGLang equally many per rank.

    vLLM rejects a dense model; other engines gain nothing. vLLM accepts an uneven distribution.

    Pass: 256 experts and 32 redundant ones over 48 ranks.
    Fail: 256 experts over 48 ranks of SGLang; a dense model with --enable-expert-parallel.
    Level: mandatory; advisory for a dense model outside vLLM.
    Source: vllm/config/model.py _verify_with_expert_parallelism;
        sglang/srt/eplb/expert_location.py.
    """
    command, experts = sharding.command, sharding.shape.experts
    if isinstance(command.expert, Unknown):
        if not experts or command.engine == "sglang":
            yield from sharding.cannot_check(command.expert.because)
    elif command.expert is False or (command.expert == 1 and command.expert is not True):
        return
    elif experts is None:
        because = f"the table of models has no experts of {sharding.shape.name}"
        yield from sharding.cannot_check(because)
    elif experts == 0:
        hard = isinstance(command.expert, bool)
        seen = "enables expert parallelism, but its model is dense: it has no experts"
        level = Level.MANDATORY if hard else Level.ADVISORY
        yield sharding.finding(seen, "disable expert parallelism", level)
    elif command.engine == "sglang":
        yield from _uneven_experts(sharding, experts)


def _uneven_experts(sharding: Sharding, experts: int) -> Iterator[Finding]:
    """Report experts, with redundant copies, that do not spread evenly over their ranks.

    The remedy names the nearest numbers of ranks below and above that fit.
    """
    command = sharding.command
    ranks, more = known_sizes(command.expert_size, command.redundant_experts)
    if (experts + more) % ranks:
        total, tensor = experts + more, command.tensor
        spread = count_of(experts, "expert")
        spread += f" and {count_of(more, 'redundant one')}" if more else ""
        width = tensor if isinstance(tensor, int) else total
        sizes = [n for n in divisors(math.gcd(total, width)) if n > 1]
        sizes = [n for n in sizes if _fits(sharding, n)] or sizes
        below, above = [n for n in sizes if n < ranks][-1:], [n for n in sizes if n > ranks][:1]
        fewer = " or ".join(map(str, below + above))
        copies, flag = more + ranks - total % ranks, "--ep-num-redundant-experts"
        more_copies = set_option(flag, copies, f"set {flag} to {copies}")
        yield sharding.finding(
            f"spreads {spread} over {count_of(ranks, 'rank')}, which leaves a remainder of "
            f"{total % ranks}",
            either(f"spread them over {count_of(fewer, 'rank')}" if fewer else "", more_copies),
        )


def _fits(sharding: Sharding, ranks: int) -> bool:
    """Return whether the experts can be spread over other ranks, by the rules about shapes."""
    command = replace(sharding.command, expert=ranks)
    return fits(replace(sharding, command=command), blocks=True)


RULE = "moe-ranks"
_EXPERT = ("--moe_expert_parallel_size", "--ep_size", "--expert-parallel-size")
_DEFAULT_KIND = "ulysses"
_NOT_SET = -1
"""How a config file writes that a size is left to TensorRT-LLM."""


@each_start("trtllm")
def moe_ranks(start: Start) -> Iterator[Finding]:
    """MoE tensor × expert × cluster is the tensor size of a TensorRT-LLM engine.

    TensorRT-LLM derives the MoE tensor size, or the expert size, from the others, so it is enough
    that the stated ones divide the tensor size. This is so for any model. A cluster size above 1
    excludes an expert size above 1, and so does context parallelism of the default kind. With
    another kind, `cp_config` in the config file, the product is tensor × context. An engine with
    `dwdp_config` is not checked.

    Pass: --tp_size 8 --ep_size 4; --tp_size 8 --ep_size 8.
    Fail: --tp_size 8 --ep_size 3; --tp_size 4 --ep_size 8; --cp_size 2 --ep_size 2; --ep_size 2
    --cluster_size 2; moe_tensor_parallel_size 8 and moe_expert_parallel_size 8 in the config file
    with tensor 8.
    Level: mandatory, because each release with these options rejects it at startup; advisory for
    another kind of context parallelism, which only some releases have.
    Source: tensorrt_llm/mapping.py, which tensorrt_llm/llmapi/llm_args.py calls.
    """
    if start.option(SPREAD) is None:
        yield from _check(start)


def _check(start: Start) -> Iterator[Finding]:
    """Compare the expert sizes of TensorRT-LLM with its tensor size."""
    command, kind = start.command, start.option(CONTEXT_KIND)
    unread = command.expert if isinstance(command.expert, Unknown) else None
    stated = (
        unread or start.option(*_EXPERT),
        start.option(MOE_TENSOR),
        start.option(MOE_CLUSTER, "--cluster_size"),
    )
    given = [_NOT_SET if size is None else size for size in stated]
    if all(size == _NOT_SET for size in given):
        return
    sizes = known_sizes(*given, command.tensor, command.prefill_context)
    expert, moe_tensor, cluster, tensor, context = sizes
    usual = known(kind) is None or str(kind).lower() == _DEFAULT_KIND
    whole = tensor if usual else tensor * context
    level = ALWAYS if usual else Level.ADVISORY
    seen = misfit(whole, expert, moe_tensor, cluster)
    if not seen and expert == _NOT_SET != moe_tensor:
        expert = whole // (moe_tensor * max(cluster, 1))
    if seen:
        of = f"tensor {tensor}" + ("" if usual else f" × context {context}")
        remedy = f"write sizes whose product is {whole}, such as --ep_size {whole}"
        yield from start.refused(f"has {seen} {of}", remedy, level)
    elif expert > 1 and context > 1 and usual:
        seen = f"has expert {expert} with context {context}, and {start.product} accepts only one"
        yield from start.refused(
            seen, either(set_option("--cp_size", 1), set_option("--ep_size", 1, "--ep_size 1"))
        )
    elif expert > 1 and cluster > 1:
        seen = f"has expert {expert} with cluster {cluster}, and {start.product} accepts only one"
        yield from start.refused(seen, either(set_option("--ep_size", 1), "no cluster size"))


def misfit(whole: int, expert: int, moe_tensor: int, cluster: int) -> str:
    """Return why MoE sizes do not fit the ranks that share a layer; empty if they do.

    Args:
        whole: Ranks that share a layer.
        expert: Expert size. -1: derived.
        moe_tensor: MoE tensor size. -1: derived.
        cluster: Cluster size. -1: 1.
    """
    named = {"MoE tensor": moe_tensor, "expert": expert, "cluster": cluster}
    shown = " × ".join(f"{name} {size}" for name, size in named.items() if size != _NOT_SET)
    product = 1
    for size in named.values():
        product *= 1 if size == _NOT_SET else size
    if _NOT_SET in {moe_tensor, expert}:
        return "" if product > 0 and not whole % product else f"{shown}, which does not divide"
    return "" if product == whole else f"{shown} = {product}, which is not"
