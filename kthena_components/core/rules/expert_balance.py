"""Checks that an engine that balances experts has experts and ranks to balance."""

import re
from collections.abc import Iterator, Mapping

from kthena_components.core.findings import Finding, count_of
from kthena_components.core.memory.sharding import model_shape
from kthena_components.core.models.config import ModelShape
from kthena_components.core.remedies import Remedy, either, set_option, together, without
from kthena_components.core.rules.support.engine_pods import ALWAYS, Start, each_start
from kthena_components.core.rules.support.messages import part_of_engine
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import known, known_sizes

RULE = "expert-balance"
_WANTS_EXPERTS = (0, 10)
"""The first vLLM whose EPLB requires expert parallelism and several ranks."""
_WITH_PREFILL = (0, 26)
"""The first vLLM that counts prefill context among those ranks."""
_ELASTIC_EXTERNAL = (0, 33)
"""The first vLLM whose elastic expert parallelism supports external load balancing."""
_EVEN = (0, 9, 2)
"""The first vLLM with EPLB, which divides experts evenly."""
_V4 = (0, 20)
"""The first vLLM with DeepSeek-V4, and with its assertion about the ranks."""
_NEW = regex(r"DeepSeek-V4")
_SGLANG_SINCE = (0, 5, 1)
_SGLANG_GROUPS = (0, 4, 9)
"""The first SGLang known to balance groups of experts over nodes, without a check at the start."""
_GROUPED = regex(r"deepseek-?(?:v3|r1)", re.IGNORECASE)
"""Models with 8 groups of experts (n_group)."""
_BY_GROUPS = frozenset({None, "auto", "deepseek_hierarchical", "deepseek_vec_hierarchical"})
_NUMBER_OF_GROUPS = 8
_WHOLE_GROUP = ("--enable-ep-moe", "--enable-deepep-moe")
"""Switches of SGLang up to 0.5.4 that spread the experts over the whole tensor group.

Of a release without them, engine-option-known says what to write instead.
"""


@each_start("vllm", "sglang")
def expert_balance(start: Start) -> Iterator[Finding]:
    """Balancing experts (EPLB) requires expert parallelism over several ranks.

    In vLLM each rank has the same number of experts, the redundant ones included; DeepSeek-V4
    requires that without EPLB, too. Redundant experts require EPLB. So does elastic expert
    parallelism, which also requires one pipeline stage and a single load balancer. Ranks that join
    an SGLang engine later (--elastic-ep-join-mode scale) are not counted. SGLang up to 0.5.0 starts
    with one rank, and the first balancing ends it if groups of experts are shared among nodes.

    Pass: --enable-eplb --enable-expert-parallel -tp 8; SGLang: --enable-eplb --ep-size 8.
    Fail: --enable-eplb alone; --enable-eplb with 128 experts and 3 redundant ones over 4 ranks;
    --eplb-config.num_redundant_experts 32 without --enable-eplb; --enable-elastic-ep with pipeline
    2.
    Level: mandatory; advisory if releases differ and the image states none.
    Source: vllm/config/parallel.py _validate_parallel_config and __post_init__;
        vllm/model_executor/layers/fused_moe/layer.py (even distribution);
        vllm/models/deepseek_v4/nvidia/model.py; sglang/srt/arg_groups/parallel_hook.py
        handle_eplb_and_dispatch; sglang/srt/eplb/eplb_algorithms/deepseek.py
        rebalance_experts_hierarchical.
    """
    if start.command.engine == "vllm":
        balanced = known(start.is_on("--enable-eplb"))
        yield from _ranks(start) if balanced else _redundant(start)
        yield from _evenly(start, balanced=balanced)
        yield from _elastic(start, balanced=balanced)
    elif start.is_on("--enable-eplb") is True:
        yield from _sglang(start)


@part_of_engine
def _ranks(start: Start) -> Iterator[Finding]:
    """Check that vLLM balances experts only with expert parallelism and over more than one rank."""
    command, level = start.command, start.since(_WANTS_EXPERTS)
    if level is None:
        return
    if known(command.expert) is False:
        seen = "balances experts (--enable-eplb) without expert parallelism"
        experts = set_option("--enable-expert-parallel", True)
        remedy = either("" if _is_dense(start) else experts, without("--enable-eplb"))
        yield from start.refused(seen, remedy, level)
        return
    counted = start.since(_WITH_PREFILL) is not None
    sizes = known_sizes(command.tensor, command.data, command.prefill_context if counted else 1)
    if all(size == 1 for size in sizes):
        seen = "balances experts (--enable-eplb) over one rank: tensor 1 and data 1"
        yield from start.refused(seen, without("--enable-eplb"), level)


def _evenly(start: Start, *, balanced: bool) -> Iterator[Finding]:
    """Check that the ranks get the same number of experts, in releases that require it."""
    command, shape = start.command, model_shape(start.command, start.engine.entry.shape)
    if command.expert is not True or not isinstance(shape, ModelShape) or not shape.experts:
        return
    level = start.since(_EVEN if balanced else _V4)
    ranks, extra = command.expert_size, _redundant_experts(start) if balanced else 0
    if level is None or not isinstance(ranks, int) or extra is None:
        return
    whole = shape.experts + extra
    if not (balanced or _NEW.search(shape.name)) or whole % ranks == 0:
        return
    more = -whole % ranks
    experts = f"{shape.experts} experts" + (f" and {extra} redundant ones" if extra else "")
    remedy = "change the parallelism"
    if balanced:
        option = "--num-redundant-experts"
        if start.option(option) is None:
            option = "--eplb-config.num_redundant_experts"
        remedy = set_option(option, extra + more, f"write {extra + more} redundant experts")
    seen = (
        f"divides {experts} over {count_of(ranks, 'rank')}, which leaves a remainder of "
        f"{whole % ranks}"
    )
    yield from start.refused(f"{seen}, but every rank must get the same number", remedy, level)


def _redundant_experts(start: Start) -> int | None:
    """Return the number of redundant experts; None if it is unclear."""
    stated, config = start.option("--num-redundant-experts"), start.option("--eplb-config")
    if isinstance(config, Mapping) and stated is None:
        stated = config.get("num_redundant_experts")
    elif config is not None and not isinstance(config, Mapping):
        return None
    number = 0 if stated is None else stated
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def _is_dense(start: Start) -> bool:
    """Return whether the model is known to have no experts."""
    shape = model_shape(start.command, start.engine.entry.shape)
    return isinstance(shape, ModelShape) and shape.experts == 0


def _balance(start: Start) -> Remedy | str:
    """Balance experts, with what that requires; empty if the model has none."""
    if _is_dense(start):
        return ""
    balance = set_option("--enable-eplb", True)
    if start.command.expert is not False or start.since(_WANTS_EXPERTS) is None:
        return balance
    said = "add --enable-eplb and --enable-expert-parallel"
    return together(balance, set_option("--enable-expert-parallel", True), text=said)


def _redundant(start: Start) -> Iterator[Finding]:
    stated, config = start.option("--num-redundant-experts"), start.option("--eplb-config")
    if isinstance(config, Mapping) and stated is None:  # up to 0.11.2 vLLM has both
        stated = config.get("num_redundant_experts")
    if isinstance(stated, int) and not isinstance(stated, bool) and stated and not start.hidden:
        seen = f"has {stated} redundant experts, and vLLM supports them with --enable-eplb only"
        yield from start.refused(seen, either(_balance(start), "remove them"), ALWAYS)


def _elastic(start: Start, *, balanced: bool) -> Iterator[Finding]:
    """Check what elastic expert parallelism of vLLM requires."""
    if start.is_on("--enable-elastic-ep") is not True:
        return
    command = start.command
    if not balanced and not start.hidden:
        seen = "has elastic expert parallelism, which vLLM supports with --enable-eplb only"
        yield from start.refused(
            seen, either(set_option("--enable-eplb", True), without("--enable-elastic-ep"))
        )
    if isinstance(command.pipeline, int) and command.pipeline > 1:
        seen = (
            f"has elastic expert parallelism with pipeline {command.pipeline}, and it supports one"
        )
        yield from start.refused(f"{seen} stage", set_option("--pipeline-parallel-size", 1))
    outside = start.since((0, 17), _ELASTIC_EXTERNAL)
    if command.data_mode == "hybrid":
        seen = "has elastic expert parallelism and one load balancer for each pod (hybrid)"
        yield from start.refused(seen, without("--data-parallel-hybrid-lb"))
    elif command.data_mode == "external" and outside is not None:
        seen = "has elastic expert parallelism and is balanced externally"
        remedy = either(without("--data-parallel-external-lb"), "use vLLM 0.33 or later")
        yield from start.refused(
            f"{seen}, and {start.product} accepts only one of them", remedy, outside
        )
    most = start.number("--elastic-ep-max-dp-size")
    if most is not None and isinstance(command.data, int) and most < command.data:
        seen = f"has data {command.data}, and grows to {most} at most (--elastic-ep-max-dp-size)"
        yield from start.refused(
            seen,
            set_option(
                "--elastic-ep-max-dp-size",
                command.data,
                f"write --elastic-ep-max-dp-size {command.data} or more",
            ),
        )


def _sglang(start: Start) -> Iterator[Finding]:
    """Check that SGLang balances experts over more than one rank, unless more ranks join later."""
    level, ranks = start.since(_SGLANG_SINCE), start.command.expert_size
    if start.option("--elastic-ep-join-mode") == "scale":  # more ranks join later
        return
    if any(start.is_on(name) is not False for name in _WHOLE_GROUP):
        return
    grouped = start.since(_SGLANG_GROUPS, _SGLANG_SINCE) if _shares_groups(start) else None
    if known(ranks) == 1 and (level or grouped):
        seen = "balances experts (--enable-eplb) over one rank"
        if level is None:
            seen += (
                f", and {start.product} divides it by "
                f"{count_of(start.command.nnodes, 'node')} and ends"
            )
        remedy = either(
            "write --ep-size and the ranks that share the experts", without("--enable-eplb")
        )
        yield from start.refused(seen, remedy, level or grouped or ALWAYS)


def _shares_groups(start: Start) -> bool:
    """Return whether SGLang gives each node as many groups of experts when it balances them."""
    nodes, model = start.command.nnodes, start.command.model
    several = isinstance(nodes, int) and nodes > 1 and _NUMBER_OF_GROUPS % nodes == 0
    grouped = isinstance(model, str) and _GROUPED.search(model) is not None
    return several and grouped and start.option("--eplb-algorithm") in _BY_GROUPS
