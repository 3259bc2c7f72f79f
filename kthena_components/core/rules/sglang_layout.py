"""Checks that the sizes in SGLang's command line fit each other, independent of GPUs."""

from collections.abc import Iterator

from kthena_components.core.findings import Finding, Level
from kthena_components.core.remedies import either, set_option, without
from kthena_components.core.rules.data_parallel_layout import counted_elsewhere, divisor, product
from kthena_components.core.rules.support.engine_pods import Start, each_start
from kthena_components.core.rules.support.messages import part_of_engine
from kthena_components.core.values.display import listing
from kthena_components.core.values.read import require_known
from kthena_components.core.values.unknown import known, known_sizes

RULE = "sglang-layout"
_CONTEXT_SINCE = (0, 5, 9)
"""The first SGLang with attention context and MoE data parallelism."""
_CONTEXT_OF_STAGES = (0, 5, 10)
"""The first SGLang that supports attention context in a pipeline."""
_MOE_DATA_IS_CONTEXT = (0, 5, 11)
"""The first SGLang in which MoE data parallelism must be attention context or 1."""
_ATTENTION_DATA = (0, 5, 22)
"""The first SGLang with --attn-dp-size; before it --dp-size alone narrowed attention context."""
_DENSE_IS_TENSOR = (0, 5, 13)
"""The first SGLang that accepts tensor as --moe-dense-tp-size, besides 1."""
_STAGES_DRAFT = (0, 5, 21)
"""The first SGLang that supports speculative decoding over several stages."""
_EAGLE, _PREFILL_ONLY = frozenset({"EAGLE", "NEXTN"}), "DSPARK"
"""Algorithms that it supports there; the last on prefill nodes only."""
_VARIABLE = "SGLANG_ENABLE_PP_SPEC"


@each_start("sglang")
def sglang_layout(start: Start) -> Iterator[Finding]:
    """The ranks of an SGLang engine fill its nodes evenly, and its copies are within one node.

    (TP × PP) is a multiple of --nnodes; data parallelism over several nodes is not supported;
    attention data × attention context divides tensor, and attention data excludes ordinary data
    parallelism. MoE data × expert parallel equals tensor, with one pipeline stage.
    --moe-dense-tp-size is 1 or tensor, --dwdp-size is tensor. Speculative decoding needs one stage;
    since 0.5.21 EAGLE has several on prefill nodes, or with SGLANG_ENABLE_PP_SPEC=1.

    Pass: --tp-size 16 --nnodes 2; --tp-size 8 --attn-dp-size 4; --tp-size 8 --attn-dp-size 2
    --attn-cp-size 4.
    Fail: --tp-size 6 --nnodes 4; --dp-size 2 --nnodes 2; --tp-size 8 --attn-dp-size 3; --dp-size 2
    with --attn-dp-size 2; --tp-size 8 --moe-dense-tp-size 4.
    Level: mandatory, because SGLang rejects each of them at startup; advisory if releases differ
    and the image states none.
    Source: sglang/srt/server_args.py (0.5.23), sglang/srt/arg_groups/parallel_hook.py and
    validation_hook.py.
    """
    if start.command.nnodes not in {None, 0, 1}:
        yield from dict.fromkeys(_nodes(start))
    found = [*_attention(start), *_moe(start), *_experts_on_demand(start), *_drafting(start)]
    yield from dict.fromkeys(found)


@part_of_engine
def _nodes(start: Start) -> Iterator[Finding]:
    """Check that SGLang's ranks divide evenly over --nnodes, and that plain copies share a node."""
    command = start.command
    nodes, tensor, pipeline, data = known_sizes(
        command.nnodes or 0, command.tensor, command.pipeline, command.data
    )
    grows = start.option("--elastic-ep-join-mode") == "scale"  # the other nodes join later
    if tensor * pipeline % nodes and not grows and not counted_elsewhere(start):
        seen = f"has {product(tensor, pipeline)}, which do not spread evenly over --nnodes"
        remedy = f"make tensor × pipeline a multiple of {nodes}, or change --nnodes"
        yield from start.refused(f"{seen} {nodes}", remedy)
    if data > 1:
        seen = (
            f"has data {data} over --nnodes {nodes}, and SGLang supports copies within one node "
            "only"
        )
        option = _attention_option(start, "--enable-dp-attention")
        yield from start.refused(seen, f"write --dp-size 1 and run more engines, or use {option}")


@part_of_engine
def _attention(start: Start) -> Iterator[Finding]:
    """Check the sizes of data parallel attention."""
    command = start.command
    if command.attention_data == 1 and command.attention_context == 1:
        return
    tensor, data, attention, context = known_sizes(
        command.tensor, command.data, command.attention_data, command.attention_context
    )
    if attention and tensor % attention:
        seen = f"has attention data {attention}, which does not divide tensor {tensor}"
        option = _attention_option(start, "--dp-size")
        yield from start.refused(seen, set_option(option, divisor(tensor, attention)))
    if data > 1 and attention > 1:
        seen = (
            f"has both data {data} and attention data {attention}, and SGLang accepts only one "
            "of them"
        )
        yield from start.refused(
            seen,
            either(
                without("--dp-size"), without("--attn-dp-size", text="--attn-dp-size"), word=" or "
            ),
        )
    if context > 1 and start.is_on("--enable-prefill-cp") is False:  # it may set another size
        yield from _attention_context(start, tensor, data, attention, context)


def _attention_option(start: Start, before: str) -> str:
    """Return --attn-dp-size, or what older releases have for it."""
    release = start.command.release
    return before if release and release.version < _ATTENTION_DATA else "--attn-dp-size"


def _attention_context(
    start: Start, tensor: int, data: int, attention: int, context: int
) -> Iterator[Finding]:
    """Check the sizes of context parallel attention, by release of SGLang."""
    stages = start.since(_CONTEXT_SINCE, _CONTEXT_OF_STAGES)
    pipeline = start.command.pipeline
    if stages is not None and isinstance(pipeline, int) and pipeline > 1:
        seen = f"has attention context {context} with pipeline {pipeline}, and {start.product}"
        yield from start.refused(
            f"{seen} accepts only one of them", set_option("--pp-size", 1), stages
        )
    if tensor % context:
        seen = f"has attention context {context}, which does not divide tensor {tensor}"
        yield from start.refused(seen, set_option("--attn-cp-size", divisor(tensor, context)))
        return
    if not attention or tensor % attention:
        return
    width, what, level = attention, "attention data", start.since(_CONTEXT_SINCE)
    if attention == 1:
        width, what, level = data, "data", start.since(_CONTEXT_SINCE, _ATTENTION_DATA)
    if level is not None and width and tensor % (width * context):
        seen = (
            f"has {what} {width} × attention context {context} = {width * context}, which does not "
            f"divide tensor {tensor}"
        )
        near = divisor(tensor // width, context) if tensor % width == 0 else 1
        yield from start.refused(seen, set_option("--attn-cp-size", near), level)


def _moe(start: Start) -> Iterator[Finding]:
    """Check the parallel sizes of the expert layers."""
    command, tensor = start.command, start.command.tensor
    dense = start.number("--moe-dense-tp-size")
    if dense is not None and dense != 1 and isinstance(tensor, int):
        same = start.since(_DENSE_IS_TENSOR)
        taken = "1" if same is None else f"1 or {tensor}"
        if same is None or dense != tensor:
            level = _level(start, same)
            seen = f"has --moe-dense-tp-size {dense}, and {start.product} accepts {taken}"
            yield from start.refused(seen, set_option("--moe-dense-tp-size", taken), level)
    copies = start.number("--moe-dp-size", "--moe-data-parallel-size")
    if copies is None or copies <= 1:
        return
    tensor, experts, pipeline, context = known_sizes(
        tensor, command.expert_size, command.pipeline, command.attention_context
    )
    alike = start.since(_MOE_DATA_IS_CONTEXT)
    product_ = f"MoE data {copies} × expert parallel {experts} = {copies * experts}"
    if tensor % copies or copies * experts > tensor or (experts > 1 and copies * experts != tensor):
        wanted = f"is not tensor {tensor}" if experts > 1 else f"does not divide tensor {tensor}"
        yield from start.refused(f"has {product_}, which {wanted}", "change --moe-dp-size")
    if pipeline > 1:
        seen = (
            f"has MoE data {copies} with pipeline {pipeline}, and SGLang accepts only one of them"
        )
        yield from start.refused(seen, set_option("--pp-size", 1))
    if alike is not None and context != copies and start.is_on("--enable-prefill-cp") is False:
        seen = f"has MoE data {copies} with attention context {context}, which must be equal"
        yield from start.refused(
            seen,
            either(
                set_option("--attn-cp-size", copies),
                set_option("--moe-dp-size", 1, "--moe-dp-size 1"),
            ),
            alike,
        )


def _level(start: Start, same: Level | None) -> Level:
    """Return the level of a --moe-dense-tp-size that every release rejects in some way."""
    release = start.command.release
    if release is None:
        return Level.ADVISORY
    return same or Level.MANDATORY


def _experts_on_demand(start: Start) -> Iterator[Finding]:
    """Check DWDP: every rank stores some experts, and fetches the others."""
    command, size = start.command, start.number("--dwdp-size")
    if size is None or size <= 1:
        return
    tensor, stages = command.tensor, command.pipeline
    if isinstance(tensor, int) and size != tensor:
        seen = f"has --dwdp-size {size} with tensor {tensor}, and SGLang requires them to be equal"
        yield from start.refused(seen, set_option("--dwdp-size", tensor))
    drafts = start.option("--speculative-algorithm")
    for other, stated in {
        f"pipeline {stages}": isinstance(stages, int) and stages > 1,
        "--enable-eplb": start.is_on("--enable-eplb") is True,
        "--enable-two-batch-overlap": start.is_on("--enable-two-batch-overlap") is True,
        f"--speculative-algorithm {drafts}": isinstance(drafts, str),
        "--disaggregation-mode decode": start.option("--disaggregation-mode") == "decode",
    }.items():
        if stated:
            seen = f"has --dwdp-size {size} with {other}, and SGLang accepts only one of them"
            yield from start.refused(seen, "remove one of them")


def _drafting(start: Start) -> Iterator[Finding]:
    """Report speculative decoding with pipeline stages, which releases of SGLang refuse."""
    stages, algorithm = start.command.pipeline, start.option("--speculative-algorithm")
    if not isinstance(stages, int) or stages < 2 or not isinstance(algorithm, str):  # noqa: PLR2004
        return
    level, later = start.since((0, 4, 6, 2), _STAGES_DRAFT), start.since(_STAGES_DRAFT)
    seen = f"drafts tokens ({algorithm}) over pipeline {stages}"
    if level is not None:
        seen += f", and {start.product} accepts only one of them"
        yield from start.refused(seen, either(set_option("--pp-size", 1), "do not draft"), level)
    elif later is not None:
        yield from _drafting_in_stages(start, seen, algorithm.upper(), later)


@part_of_engine
def _drafting_in_stages(start: Start, seen: str, algorithm: str, level: Level) -> Iterator[Finding]:
    """Check releases that draft over several stages: on prefill nodes, or with a variable."""
    mode, everywhere = start.option("--disaggregation-mode") or "null", start.command.stages_draft
    if algorithm not in _EAGLE and algorithm != _PREFILL_ONLY:
        seen += f", and {start.product} supports only EAGLE there"
        yield from start.refused(
            seen, either(set_option("--pp-size", 1), "draft with EAGLE"), level
        )
        return
    mode = known(mode)
    require_known("", everywhere, mode, start.command.hidden)
    if everywhere:
        yield from _drafting_everywhere(start, seen, algorithm, mode, level)
    elif mode != "prefill":
        others = f", or with {_VARIABLE}=1" if algorithm in _EAGLE and mode == "null" else ""
        remedy = (
            either(set_option("--pp-size", 1), "set that") if others else set_option("--pp-size", 1)
        )
        seen += f", which SGLang supports on prefill nodes{others}"
        yield from start.refused(seen, remedy, level)


def _drafting_everywhere(
    start: Start, seen: str, algorithm: str, mode: str, level: Level
) -> Iterator[Finding]:
    """Check what the variable excludes."""
    width = start.command.attention_data
    for other, stated in {
        algorithm: algorithm == _PREFILL_ONLY,
        f"--disaggregation-mode {mode}": mode != "null",
        f"attention data {width}": isinstance(width, int) and width > 1,
    }.items():
        if stated:
            seen += f" with {_VARIABLE}, which SGLang does not accept with {other}"
            yield from start.refused(seen, f"remove {_VARIABLE}", level)
            return


_PRIORITY_SINCE, _MULTIPLEXING_SINCE, _PADDING_SINCE = (0, 5, 3), (0, 5, 4), (0, 5, 12)
"""The first SGLang with each of these assertions."""
_POLICY = "--schedule-policy"
_OF_PRIORITIES = ("fcfs", "lof")


@each_start("sglang")
def sglang_options_fit(start: Start) -> Iterator[Finding]:
    """SGLang's options fit each other: priorities, CUDA graphs, PD multiplexing.

    Since 0.5.3 --enable-priority-scheduling needs --schedule-policy fcfs or lof. Since 0.5.4
    --enable-pdmux needs --pp-size 1, --chunked-prefill-size -1 and --disable-overlap-schedule, and
    excludes --disaggregation-mode. Since 0.5.12 --disable-cuda-graph-padding excludes
    --enable-torch-compile.

    Pass: --enable-priority-scheduling --schedule-policy lof with SGLang 0.5.3.
    Fail: --enable-priority-scheduling --schedule-policy lpm with SGLang 0.5.3; --enable-pdmux
    without --chunked-prefill-size -1.
    Level: mandatory, because SGLang stops; advisory if the image states no release, and for
    --enable-pdmux alone, because SGLang sets both other options itself for some models.
    Source: check_server_args in sglang/srt/server_args.py of 0.5.3 to 0.5.22, and in
    sglang/srt/arg_groups/validation_hook.py of 0.5.23.
    """
    level = start.since(_PADDING_SINCE)
    padding, compiled = "--disable-cuda-graph-padding", "--enable-torch-compile"
    if level is not None and start.is_on(padding) is True and start.is_on(compiled) is True:
        seen = f"has {padding} and {compiled}, and {start.product} stops with both"
        yield from start.refused(seen, without(padding), level)
    yield from _multiplexing(start)
    level = start.since(_PRIORITY_SINCE)
    if level is None or start.is_on("--enable-priority-scheduling") is not True:
        return
    policy = known(start.option(_POLICY)) or _OF_PRIORITIES[0]
    if policy not in _OF_PRIORITIES:
        seen = (
            f"has --enable-priority-scheduling with {_POLICY} {policy}, and {start.product} takes "
        )
        yield from start.refused(f"{seen}fcfs or lof there", set_option(_POLICY, "fcfs"), level)


def _multiplexing(start: Start) -> Iterator[Finding]:
    """Report what --enable-pdmux needs and excludes."""
    level, chunk = start.since(_MULTIPLEXING_SINCE), start.option("--chunked-prefill-size")
    if level is None or start.is_on("--enable-pdmux") is not True:
        return
    stages, mode = start.command.pipeline, start.option("--disaggregation-mode")
    wrong = {
        "--pp-size 1": isinstance(stages, int) and stages > 1,
        "--chunked-prefill-size -1": isinstance(chunk, int) and chunk != -1,
        "--disaggregation-mode null": isinstance(mode, str) and mode != "null",
    }
    # For some models, and with --speculative-algorithm, SGLang sets these two itself.
    unset = {
        "--chunked-prefill-size -1": chunk is None,
        "--disable-overlap-schedule": start.is_on("--disable-overlap-schedule") is False,
    }
    lacking = [what for what, is_wrong in (*wrong.items(), *unset.items()) if is_wrong]
    if not any(wrong.values()):
        level = Level.ADVISORY
    if lacking:
        needs = listing(lacking)
        seen = f"has --enable-pdmux, which {start.product} takes only with {needs}"
        remedy = without("--enable-pdmux", text=f"remove --enable-pdmux, or write {needs}")
        yield from start.refused(seen, remedy, level)
