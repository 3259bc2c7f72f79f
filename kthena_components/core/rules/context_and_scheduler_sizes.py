"""Rules of sizes of requests: within the model's maximum, and within the scheduler's sizes."""

from collections.abc import Iterator

from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.memory.sharding import model_shape
from kthena_components.core.models import ModelShape
from kthena_components.core.remedies import either, set_option
from kthena_components.core.rules.support.engine_pods import (
    ALWAYS,
    POSITIVE,
    Start,
    each_start,
    sglang_for_amd,
    starts,
)
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import known

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
    """Compare the tokens and the sequences of one batch."""
    tokens, sequences = start.number("--max-num-batched-tokens"), start.number("--max-num-seqs")
    level = start.since(POSITIVE)
    if tokens is not None and tokens < 1 and sequences != 0:
        seen = f"has --max-num-batched-tokens {tokens}"
        least = sequences or (_FEWEST_SEQUENCES if start.since((0, 6), _SEQUENCES_FOLLOW) else 1)
        remedy = set_option("--max-num-batched-tokens", least, then=" or more")
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
    """Refuse more active sequences than the scheduler admits (--max-num-seqs)."""
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
    """Refuse a token budget below the longest request if prefills are not split into chunks."""
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
            "enable chunked prefill",
        )
        yield from start.refused(seen, remedy, level)


def _pages(start: Start) -> Iterator[Finding]:
    """Refuse chunks of a prefill that are no whole number of SGLang's cache pages."""
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
    """Return advisory if the attention may set the page size, as latent attention does."""
    shape = model_shape(start.command, start.engine.entry.shape)
    usual = isinstance(shape, ModelShape) and shape.kv_heads is not None and shape.full_cache
    stated = any(start.option(name) is not None for name in _BACKENDS)
    return Level.MANDATORY if usual and not stated and not start.hidden else Level.ADVISORY


CONTEXT = "context-within-model"
_SGLANG_REFUSES = (0, 5, 1)
"""The first SGLang that rejects a longer context; older ones warn."""
_OF_CONFIG = ("--hf-overrides", "--hf-config-path", "--rope-scaling", "--rope-theta")
_OTHER_CONTEXT = {
    "vllm": _OF_CONFIG,
    "sglang": ("--json-model-override-args", "--model-config-parser"),
    "huggingfaceserver": (*_OF_CONFIG, "--backend"),
}
"""Options that override a model's config.json, or with which KServe's server starts no vLLM."""
_ALLOW = {
    "vllm": "VLLM_ALLOW_LONG_MAX_MODEL_LEN",
    "sglang": "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN",
    "huggingfaceserver": "VLLM_ALLOW_LONG_MAX_MODEL_LEN",
}
_CONFIG_OF = regex(r"config\.json of (\S+?)(?:,|;| on | as |$)")
_CATALOG = "kaito-project/kaito, presets/workspace/models/model_catalog.yaml"
"""Its modelTokenLimit is the maximum of the config.json of each model that it names."""
_CLASS_OF = regex(r"transformers [0-9.]+, models/\S+")


@each_start(*_OTHER_CONTEXT)
def context_within_model(start: Start) -> Iterator[Finding]:
    """The longest request does not exceed the model's maximum.

    The maximum comes from the model's config.json, including its scaling. Not checked: models that
    are not in the table of models, models whose config the command line overrides, and engines with
    the variable VLLM_ALLOW_LONG_MAX_MODEL_LEN or SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN, which
    SGLang's own images for AMD set.

    Pass: --max-model-len 131072 for Llama-3.1-8B.
    Fail: --max-model-len 131073 for it; --context-length 65536 for Qwen3-8B in SGLang 0.5.1 and
    later.
    Level: mandatory if the maximum is from the config.json of this very model, or of its sister and
    KAITO's catalog says the same of it; otherwise, or if the image states no release of SGLang,
    advisory, and for KServe's own server, which starts vLLM for most models.
    Source: vllm/config/model.py _get_and_verify_max_len; sglang/srt/configs/model_config.py;
    kaito-project/kaito presets/workspace/models/model_catalog.yaml.
    """
    command, longest = start.command, start.command.max_model_len
    if not isinstance(longest, int) or _changed(start) or start.hidden:
        return
    if sglang_for_amd(start.engine.entry):
        return
    shape = model_shape(command, start.engine.entry.shape)
    allowed = command.long_context_allowed
    if not isinstance(shape, ModelShape) or shape.context is None or allowed is True:
        return
    if longest > shape.context:
        known(allowed)
        yield from _too_long(start, longest, shape, shape.context)


def _changed(start: Start) -> bool:
    names = _OTHER_CONTEXT[start.command.engine or ""]
    return any(start.option(name) is not None for name in names)


def _too_long(start: Start, longest: int, shape: ModelShape, context: int) -> Iterator[Finding]:
    """Report a context above the model's own maximum, with the level that the engine gives it."""
    engine = start.command.engine or ""
    level = start.since(_SGLANG_REFUSES) if engine == "sglang" else ALWAYS
    if level is None:
        return
    if engine == "huggingfaceserver" or not _is_own_config(start, shape):
        level = Level.ADVISORY
    option = "--context-length" if engine == "sglang" else "--max-model-len"
    model = start.command.model
    name = model if isinstance(model, str) else shape.name
    seen = f"has {option} {longest}, and {name} supports {context} tokens"
    remedy = either(
        set_option(option, context, then=" or less"),
        f"set {_ALLOW[engine]}=1 and check the answers",
    )
    yield from start.refused(seen, remedy, level)


def _renamed(model: str) -> str:
    """Return the name of a model, whose repository may have had another one."""
    return model.casefold().replace("/meta-llama-", "/llama-")


def _is_own_config(start: Start, shape: ModelShape) -> bool:
    """Return whether the maximum is from the config.json, or class, of this very model."""
    if shape.source == "config.json":
        return True
    if "context" in shape.source:
        return False
    found = _CONFIG_OF.match(shape.source)
    model = start.command.model
    names = {shape.name.casefold(), model.casefold() if isinstance(model, str) else ""}
    own = found is not None and found[1].casefold() in names
    if found is not None and _CATALOG in shape.source:
        # The config.json is a sister's, and the catalog states the same of the first of the row.
        stated = model if isinstance(model, str) else shape.name
        own = own or _renamed(stated) == _renamed(shape.name)
    return own or (_CLASS_OF.match(shape.source) is not None and f"of {shape.name}" in shape.source)
