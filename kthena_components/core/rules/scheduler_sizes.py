"""The rule scheduler-sizes."""

from collections.abc import Iterator

from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.memory.sharding import model_shape
from kthena_components.core.models import ModelShape
from kthena_components.core.remedies import either, set_option
from kthena_components.core.rules.support.engine_startup import POSITIVE, Start, starts

SCHEDULER = "scheduler-sizes"
_FEWEST_SEQUENCES = 256
"""vLLM's smallest default for concurrent sequences."""
_SEQUENCES_FOLLOW = (0, 10, 1)
"""The first vLLM whose default for them depends on the tokens of a batch."""
_CHUNKS_FORCED = (0, 8), (0, 11, 1)
"""The first vLLM that always chunks prefills, and the first that no longer does."""
_BACKENDS = ("--attention-backend", "--prefill-attention-backend", "--decode-attention-backend")
"""Options of SGLang that may override the stated page size."""


def scheduler_sizes(facts: ServingFacts) -> Iterator[Finding]:
    """A batch has room for one token per sequence, and for a whole prompt without chunked prefill.

    vLLM: --max-num-batched-tokens is at least --max-num-seqs, whose default is 256 up to 0.10.0.
    Without chunked prefill it is at least --max-model-len, except in 0.8 to 0.11.0, which always
    chunk. SGLang: --chunked-prefill-size is a multiple of --page-size.

    Pass: --max-num-batched-tokens 8192 --max-num-seqs 256.
    Fail: --max-num-batched-tokens 128 --max-num-seqs 256; --no-enable-chunked-prefill with
    --max-num-batched-tokens 2048 --max-model-len 8192; SGLang: --chunked-prefill-size 1000
    --page-size 64.
    Level: mandatory; advisory if releases differ and the image states none, and if SGLang's
    attention may set another page size.
    Source: vllm/config/scheduler.py verify_max_model_len; vllm/engine/arg_utils.py;
        sglang/srt/arg_groups/validation_hook.py check_server_args.
    """
    for start in starts(facts, "vllm"):
        yield from _batch(start)
    for start in starts(facts, "sglang"):
        yield from _pages(start)


def _batch(start: Start) -> Iterator[Finding]:
    tokens, sequences = start.number("--max-num-batched-tokens"), start.number("--max-num-seqs")
    level = start.since(POSITIVE)
    if tokens is not None and tokens < 1 and sequences != 0:
        seen = f"has --max-num-batched-tokens {tokens}"
        least = sequences or (_FEWEST_SEQUENCES if start.since((0, 6), _SEQUENCES_FOLLOW) else 1)
        remedy = set_option("--max-num-batched-tokens", least, f"write {least}", then=" or more")
        yield from start.refused(f"{seen}, and each sequence needs a token", remedy)
        return
    if sequences is not None and sequences < 1:
        if level is not None:
            seen = f"has --max-num-seqs {sequences}, and {start.product} requires 1 or more"
            yield from start.refused(seen, set_option("--max-num-seqs", 1, then=" or more"), level)
        return
    yield from _active(start, sequences)
    if tokens is None:
        return
    default = start.since((0, 6), _SEQUENCES_FOLLOW)
    if sequences is not None and tokens < sequences:
        seen = f"has --max-num-batched-tokens {tokens} for --max-num-seqs {sequences}"
        remedy = set_option("--max-num-batched-tokens", sequences, then=" or more")
        yield from start.refused(f"{seen}, and each sequence needs a token", remedy)
    elif sequences is None and tokens < _FEWEST_SEQUENCES and default and not start.hidden:
        seen = f"has --max-num-batched-tokens {tokens}, and {start.product} has at least"
        more = f"--max-num-batched-tokens {_FEWEST_SEQUENCES} or more"
        remedy = either(
            set_option("--max-num-seqs", tokens, then=" or less"),
            set_option("--max-num-batched-tokens", _FEWEST_SEQUENCES, more),
        )
        yield from start.refused(f"{seen} {_FEWEST_SEQUENCES} sequences at once", remedy, default)
    else:
        yield from _prompt(start, tokens)


def _active(start: Start, sequences: int | None) -> Iterator[Finding]:
    active = start.number("--max-num-active-seqs")
    if active is not None and sequences is not None and active > sequences:
        seen = f"has --max-num-active-seqs {active}, and --max-num-seqs {sequences} only"
        yield from start.refused(
            seen,
            set_option(
                "--max-num-active-seqs",
                sequences,
                f"write --max-num-active-seqs {sequences} or less",
            ),
        )


def _prompt(start: Start, tokens: int) -> Iterator[Finding]:
    longest = start.command.max_model_len
    if start.option("--enable-chunked-prefill") is not False or not isinstance(longest, int):
        return
    first, gone = _CHUNKS_FORCED
    level = start.since((0, 6), first) or start.since(gone)
    if level is not None and tokens < longest:
        seen = (
            f"has --max-num-batched-tokens {tokens} and does not chunk a prefill, which may have "
            f"{longest} tokens (--max-model-len)"
        )
        remedy = either(
            set_option(
                "--max-num-batched-tokens",
                longest,
                f"write --max-num-batched-tokens {longest} or more",
            ),
            "chunk prefills",
        )
        yield from start.refused(seen, remedy, level)


def _pages(start: Start) -> Iterator[Finding]:
    chunk, page = start.number("--chunked-prefill-size"), start.number("--page-size")
    width = start.command.attention_data
    if chunk is None or page is None or page < 1 or not isinstance(width, int) or width < 1:
        return
    if chunk < 1 or start.option("--disaggregation-mode") == "decode":
        return
    each, share = chunk // width, f" ÷ attention data {width}" if width > 1 else ""
    if each % page:
        seen = (
            f"has --chunked-prefill-size {chunk}{share} and --page-size {page}, and SGLang requires"
        )
        near = max(each // page, 1) * page * width
        remedy = set_option("--chunked-prefill-size", near)
        yield from start.refused(f"{seen} whole pages", remedy, _page_level(start))


def _page_level(start: Start) -> Level:
    """Return advisory if an attention may set the page size: that of latent attention."""
    shape = model_shape(start.command, start.engine.entry.shape)
    usual = isinstance(shape, ModelShape) and shape.kv_heads is not None and shape.full_cache
    stated = any(start.option(name) is not None for name in _BACKENDS)
    return Level.MANDATORY if usual and not stated and not start.hidden else Level.ADVISORY
