"""Rules of a mixture of experts: the shape of an expert on its ranks, and the ranks."""

import math
from collections.abc import Iterator
from dataclasses import replace

from kthena_components.core.engines.trtllm import CONTEXT_KIND, MOE_CLUSTER, MOE_TENSOR, SPREAD
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.memory.sharding import (
    Sharding,
    divisors,
    each_sharding,
    fits,
)
from kthena_components.core.remedies import either, set_option
from kthena_components.core.rules.support.engine_startup import ALWAYS, Start, each_start
from kthena_components.core.values.unknown import Unknown, known, known_sizes

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
