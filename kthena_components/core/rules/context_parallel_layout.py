"""Checks that context parallel groups fit into the ranks that they share."""

from collections.abc import Iterator

from kthena_components.core.engines.facts import set_size
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.memory.sharding import divisors, model_shape
from kthena_components.core.models import ModelShape
from kthena_components.core.remedies import either, set_option, without
from kthena_components.core.rules.support.engine_pods import ALWAYS, Start, each_start
from kthena_components.core.values.unknown import known_sizes

RULE = "context-parallel-layout"
_PREFILL_SINCE = (0, 12)
"""The first vLLM with prefill context."""
_PREFILL_WORKS = (0, 26)
"""The first vLLM in which some attention supports it; decode context groups span it."""
_PREFILL_WITH_DATA = (0, 30)
"""The first vLLM that accepts it with several copies."""
_HEADS_JUDGED = (0, 11, 1)
"""The first vLLM that compares decode context with the heads of the model."""
_SGLANG_SINCE = (0, 5, 15)
_NOT_BOTH = (0, 5, 22)
"""The first SGLang that rejects decode context with prefill context (parallel_hook.py)."""
_STRATEGY_SINCE = (0, 5, 14)
"""The first SGLang with --enable-prefill-cp."""
_STRATEGIES = (
    "--cp-strategy",
    *(f"--{kind}prefill-cp-mode" for kind in ("", "dsa-", "nsa-")),
    *(f"--enable-{kind}prefill-context-parallel" for kind in ("", "dsa-", "nsa-")),
)
"""Options that set the strategy: the new one, and those that it replaced."""
_MOST = 1 << 20
"""No engine has this many ranks: larger sizes are not factorised."""


@each_start("vllm", "sglang")
def context_parallel_layout(start: Start) -> Iterator[Finding]:
    """Decode context divides tensor and the copies of a KV head; prefill context is supported.

    For a model with KV heads, tensor must exceed their number, and decode context must be at most
    the number of copies of a KV head and divide the query heads of one (vLLM 0.11.1 and later).
    Latent attention has no KV heads. vLLM supports prefill context since 0.26, and only for latent
    attention; decode context must then be 1, the prefill context, or tensor × prefill context. It
    works with several copies since 0.30. SGLang 0.5.22 and later accepts either decode context or
    prefill context; --enable-prefill-cp needs --cp-strategy.

    Pass: tensor 8 with decode context 8 for latent attention; 4 KV heads over tensor 8 with 2.
    Fail: tensor 8 with decode context 3; 8 KV heads over tensor 8 with 2; tensor 8, prefill context
    2 and decode context 4.
    Level: mandatory; advisory if releases differ and the image states none.
    Source: vllm/config/parallel.py _validate_parallel_config; vllm/config/model.py
        verify_with_parallel_config; vllm/v1/worker/cp_utils.py;
        sglang/srt/distributed/parallel_state.py; sglang/srt/arg_groups/parallel_hook.py.
    """
    command = start.command
    yield from _strategy(start)
    if command.decode_context == 1 and command.prefill_context == 1:
        return
    sizes = known_sizes(
        command.tensor, command.prefill_context, command.decode_context, command.data
    )
    if all(0 < size < _MOST for size in sizes):
        tensor, prefill, decode, data = sizes
        yield from _checked(start, tensor, prefill, decode, data)


def _checked(start: Start, tensor: int, prefill: int, decode: int, data: int) -> Iterator[Finding]:
    """Check the arguments, then the model: one reason is enough."""
    if start.command.engine == "sglang":
        yield from _divides(start, tensor, decode, start.since(_SGLANG_SINCE), "--dcp-size")
        yield from _both(start, decode)
        return
    if prefill == 1:
        found = [*_divides(start, tensor, decode, ALWAYS, "--decode-context-parallel-size")]
    else:
        found = [*_prefill(start, tensor, prefill, decode, data)]
    yield from found or _in_heads(start, tensor, prefill, decode)


def _strategy(start: Start) -> Iterator[Finding]:
    """Check that SGLang's prefill context has a strategy, which old options state as well."""
    level = None if start.command.engine != "sglang" else start.since(_STRATEGY_SINCE)
    if level is None or start.is_on("--enable-prefill-cp") is not True or start.hidden:
        return
    if all(start.option(name) is None for name in _STRATEGIES):
        seen = "has --enable-prefill-cp without --cp-strategy, and SGLang requires both"
        yield from start.refused(seen, "add --cp-strategy zigzag or interleave", level)


def _both(start: Start, decode: int) -> Iterator[Finding]:
    """Refuse decode context parallelism together with SGLang's prefill context parallelism."""
    level = start.since(_NOT_BOTH)
    if level is not None and start.is_on("--enable-prefill-cp") is True:
        seen = (
            f"has decode context {decode} with --enable-prefill-cp, and {start.product} accepts "
            "only"
        )
        remedy = either(
            without("--dcp-size"),
            without("--enable-prefill-cp", text="--enable-prefill-cp"),
            word=" or ",
        )
        yield from start.refused(f"{seen} one of them", remedy, level)


def _divides(
    start: Start, tensor: int, decode: int, level: Level | None, flag: str
) -> Iterator[Finding]:
    if tensor % decode and level is not None:
        shape = model_shape(start.command, start.engine.entry.shape)
        near = max(n for n in divisors(tensor) if n <= decode and _suits(shape, tensor, n))
        seen = f"has decode context {decode}, which does not divide tensor {tensor}"
        yield from start.refused(seen, set_option(flag, near), level)


def _suits(shape: object, tensor: int, decode: int) -> bool:
    """Return whether the KV heads of the model, if it has some, allow a decode context."""
    if not isinstance(shape, ModelShape) or shape.kv_heads is None or shape.latent is not None:
        return True
    return decode == 1 or not any(_over_heads(shape.heads, shape.kv_heads, tensor, decode))


def _prefill(start: Start, tensor: int, prefill: int, decode: int, data: int) -> Iterator[Finding]:
    """Check the sizes beside prefill context parallelism, by release of vLLM."""
    level = start.since(_PREFILL_SINCE, _PREFILL_WORKS)
    if level is not None:
        seen = f"has prefill context {prefill}, which no attention of {start.product} supports"
        remedy = either(without("--prefill-context-parallel-size"), "use vLLM 0.26 or later")
        yield from start.refused(seen, remedy, level)
        return
    level = start.since(_PREFILL_WORKS)
    taken = sorted({1, prefill, tensor * prefill})
    if level is not None and decode not in taken:
        *others, last = taken
        seen = (
            f"has decode context {decode} with tensor {tensor} and prefill context {prefill}, and "
            f"{start.product} accepts {', '.join(map(str, others))} or {last}"
        )
        near = max(size for size in taken if size < decode)
        yield from start.refused(
            seen, set_size(start.command, "decode_context", near, f"write {_flag(near)}"), level
        )
    level = start.since(_PREFILL_WORKS, _PREFILL_WITH_DATA)
    if level is not None and data > 1:
        seen = (
            f"has prefill context {prefill} and data {data}, and {start.product} accepts only "
            "one of"
        )
        remedy = either(set_option("--data-parallel-size", 1), "use vLLM 0.30 or later")
        yield from start.refused(f"{seen} them", remedy, level)


def _in_heads(start: Start, tensor: int, prefill: int, decode: int) -> Iterator[Finding]:
    """Check against the KV heads of the model, if it is known and has some."""
    shape = model_shape(start.command, start.engine.entry.shape)
    if not isinstance(shape, ModelShape) or shape.kv_heads is None or shape.latent is not None:
        return
    level = start.since(_PREFILL_WORKS)
    if prefill > 1 and level is not None:
        seen = f"has prefill context {prefill}, which vLLM supports for latent attention only"
        remedy = without("--prefill-context-parallel-size")
        yield from start.refused(f"{seen}, and {shape.name} has another one", remedy, level)
        return
    level = start.since(_HEADS_JUDGED)
    if level is not None and decode > 1:
        for seen, near in _over_heads(shape.heads, shape.kv_heads, tensor, decode):
            remedy = set_size(start.command, "decode_context", near, f"write {_flag(near)}")
            yield from start.refused(seen, remedy, level)


def _over_heads(heads: int, kv_heads: int, tensor: int, decode: int) -> Iterator[tuple[str, int]]:
    """Say why the decode context does not fit the KV heads, and the largest one that does.

    vLLM shares the copies of a KV head among the ranks of its decode context, so their number is
    tensor ÷ KV heads, and the size must divide the queries of a head.
    """
    copies, queries = tensor // kv_heads, heads // kv_heads
    if tensor <= kv_heads:
        seen = f"which needs more than tensor {tensor} for {kv_heads} KV heads"
    elif decode > copies:
        seen = (
            f"but tensor {tensor} has only {count_of(copies, 'copy')} of each of "
            f"{kv_heads} KV heads"
        )
    elif queries % decode:
        seen = f"which does not divide the {queries} attention heads of a KV head"
    else:
        return
    good = (n for n in divisors(tensor) if n <= copies and queries % n == 0 and n < decode)
    yield f"has decode context {decode}, {seen}", max(good, default=1)


def _flag(size: int) -> str:
    return f"--decode-context-parallel-size {size}"
