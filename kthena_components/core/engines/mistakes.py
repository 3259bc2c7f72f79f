"""Messages about flags that an engine does not accept, with the remedy."""

import json
from collections.abc import Mapping, Sequence

from kthena_components.core.engines.option_table import load
from kthena_components.core.engines.options import TITLES, Dialect, Meaning, Option, probably
from kthena_components.core.engines.shapes import Meant, meant_option
from kthena_components.core.engines.values import Refused, convert
from kthena_components.core.remedies import either, rename_option, without
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.regex import regex

# What to write in place of an option that a release no longer has, or only another engine has.
#
# Sources: the help strings, deprecation notes and `new_flag` of the releases that had both
# (vllm/engine/arg_utils.py; sglang/srt/server_args.py), and vllm/config/parallel.py EPLBConfig.


_OPTION = regex(r"--[a-z0-9_-]+")
_SPECULATIVE = (
    "disable-by-batch-size",
    "draft-tensor-parallel-size",
    "max-model-len",
    "model",
    "model-quantization",
)
_CONTEXT = "--enable-prefill-cp"
_PREFILL_GRAPHS = "--cuda-graph-backend-prefill"
_MOE_KERNELS = (
    "flashinfer-cutedsl",
    "flashinfer-cutlass",
    "flashinfer-mxfp4",
    "flashinfer-trtllm",
    "triton-kernel",
)
SUCCESSORS: Mapping[str, Mapping[str, str]] = {
    "vLLM": {
        "--chat-template-text-format": "write --chat-template-content-format",
        "--cuda-graph-sizes": "write --cudagraph-capture-sizes",
        "--disable-log-requests": (
            "remove it: requests are logged only with --enable-log-requests"
        ),
        "--disable-mm-preprocessor-cache": "write --mm-processor-cache-gb 0",
        "--enable-multimodal-encoder-data-parallel": "write --mm-encoder-tp-mode data",
        "--enable-reasoning": "remove it: --reasoning-parser is enough",
        "--eplb-log-balancedness": "write --eplb-config.log_balancedness true",
        "--eplb-step-interval": "write --eplb-config.step_interval",
        "--eplb-window-size": "write --eplb-config.window_size",
        "--guided-decoding-backend": "write --structured-outputs-config.backend",
        "--guided-decoding-disable-additional-properties": (
            "write --structured-outputs-config.disable_additional_properties"
        ),
        "--guided-decoding-disable-any-whitespace": (
            "write --structured-outputs-config.disable_any_whitespace"
        ),
        "--max-context-len-to-capture": "write --max-seq-len-to-capture",
        "--ngram-prompt-lookup-max": "write --speculative-config",
        "--ngram-prompt-lookup-min": "write --speculative-config",
        "--num-redundant-experts": "write --eplb-config.num_redundant_experts",
        "--num-speculative-tokens": "write --speculative-config",
        "--override-pooler-config": "write --pooler-config",
        "--rope-scaling": "write rope_parameters in --hf-overrides",
        "--rope-theta": "write rope_parameters in --hf-overrides",
        **dict.fromkeys(
            (f"--speculative-{name}" for name in _SPECULATIVE), "write --speculative-config"
        ),
        "--task": "write --runner, and --convert for another use of the model",
        "--worker-use-ray": "write --distributed-executor-backend ray",
    },
    "SGLang": {
        "--cuda-graph-bs": "write --cuda-graph-bs-decode",
        "--cuda-graph-max-bs": "write --cuda-graph-max-bs-decode",
        "--disable-piecewise-cuda-graph": f"write {_PREFILL_GRAPHS} disabled",
        "--dsa-prefill-cp-mode": "write --cp-strategy",
        "--enable-breakable-cuda-graph": f"write {_PREFILL_GRAPHS} breakable",
        "--enable-deepep-moe": "write --moe-a2a-backend deepep",
        "--enable-dsa-prefill-context-parallel": f"write {_CONTEXT}",
        "--enable-ep-moe": "write --ep-size with the value of --tp-size",
        "--enable-gdn-replayssm-spec": "write --enable-linear-replayssm-spec",
        "--enable-nsa-prefill-context-parallel": f"write {_CONTEXT}",
        "--enable-prefill-context-parallel": f"write {_CONTEXT}",
        "--enforce-piecewise-cuda-graph": f"write {_PREFILL_GRAPHS} tc_piecewise",
        "--mamba-scheduler-strategy": "write --mamba-radix-cache-strategy",
        "--nsa-decode-backend": "write --dsa-decode-backend",
        "--nsa-prefill-backend": "write --dsa-prefill-backend",
        "--nsa-prefill-cp-mode": "write --cp-strategy",
        "--piecewise-cuda-graph-max-tokens": "write --cuda-graph-max-bs-prefill",
        "--piecewise-cuda-graph-tokens": "write --cuda-graph-bs-prefill",
        "--prefill-cp-mode": "write --cp-strategy",
        "--speculative-dflash-draft-window-size": "write --speculative-draft-window-size",
        "--stream-output": "write --incremental-streaming-output",
        **{
            f"--enable-{kernel}-moe": f"write --moe-runner-backend {kernel.replace('-', '_')}"
            for kernel in _MOE_KERNELS
        },
    },
}
"""By engine and removed option. The first option in a string is one that the release must have."""


EQUIVALENTS: Mapping[str, Mapping[str, str]] = {
    "vLLM": {
        "--disable-cuda-graph": "write --enforce-eager",
        "--disable-radix-cache": "write --no-enable-prefix-caching",
        "--enable-metrics": "remove it: vLLM serves metrics at /metrics in any case",
        "--max-running-requests": "write --max-num-seqs",
    },
    "SGLang": {
        "--enable-prefix-caching": "remove it: SGLang reuses prefixes in any case",
        "--enforce-eager": "write --disable-cuda-graph",
        "--max-num-seqs": "write --max-running-requests",
        "--no-enable-prefix-caching": "write --disable-radix-cache",
    },
    "TensorRT-LLM": {
        "--max-model-len": "write --max_seq_len",
        "--max-num-batched-tokens": "write --max_num_tokens",
        "--max-num-seqs": "write --max_batch_size",
    },
}
"""By engine and another engine's option. The first option in a text must be one of the release."""


def successor(flag: str, dialect: Dialect) -> str | None:
    """Return what to write for a removed option; None if the release has nothing in its place."""
    return _remedy_of(SUCCESSORS, flag, dialect)


def equivalent(flag: str, dialect: Dialect) -> str | None:
    """Return what to write for another engine's option; None if there is nothing in its place."""
    return _remedy_of(EQUIVALENTS, flag, dialect)


def _remedy_of(table: Mapping[str, Mapping[str, str]], flag: str, dialect: Dialect) -> str | None:
    remedy = table.get(dialect.engine, {}).get(flag)
    named = _OPTION.search(remedy) if remedy else None
    known = named is None or named[0] in dialect.options
    return remedy if known else None


_MAX_LISTED = 6


_NO = frozenset({"false", "no", "off", "0"})


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake in one flag."""

    text: str
    """The observation and the rule. A clause, no full stop."""
    remedy: str
    hard: bool = True
    """Whether the engine fails to start with it."""
    by_release: bool = False
    """Whether that depends on the engine's release."""


def repeated(option: Option, given: Sequence[str], dialect: Dialect) -> Mistake:
    """Report an option with several different values."""
    values = join_names(given, ", ")
    counts = "first" if option.field in dialect.firsts else "last"
    text = f"{option.name} is given different values ({values}); the {counts} one counts"
    return Mistake(text, "keep one", hard=False)


def valued(option: Option, head: str, shown: str, dialect: Dialect) -> Mistake:
    """Report a switch with a value. A value that turns the switch off means its opposite."""
    text = f"{head} is a switch and takes no value, but has '{shown}'"
    if shown.lower() not in _NO:
        return Mistake(text, f"write {head} alone")
    turned = (option.name, not option.off)
    opposite = (word for word, each in dialect.options.items() if (each.name, each.off) == turned)
    return Mistake(text, next((f"write {word}" for word in opposite), "remove it"))


def abbreviated(head: str, meaning: Meaning) -> Mistake:
    """Report a flag that is read as the only one that begins so."""
    full = meaning.candidates[0]
    text = f"'{head}' is short for {full}, and any new flag can make it ambiguous"
    return Mistake(text, _renamed(head, meaning.instead or full), hard=False)


def _renamed(head: str, meant: str) -> str:
    """Write another option with the same value, unless the words change with it."""
    return f"write {meant}" if " " in meant else rename_option(head, meant)


def no_value(head: str, given: int, fewest: int, *, by_release: bool = False) -> Mistake:
    """Report an option with too few values."""
    wanted = "no value" if fewest == 1 else f"{given} of {fewest} values"
    text, remedy = f"{head} has {wanted}", f"write {head} and its value"
    return Mistake(text, remedy, by_release=by_release)


def no_json(option: Option, head: str, key: str, value: object) -> Mistake | None:
    """Report `--a.b v` if the option --a takes no JSON, or only one of some words."""
    text = json.dumps({key: value}, default=str)
    given = None if option.arity == "0" else convert(option, "", text, in_shell=True)
    if given is not None and not isinstance(given, Refused):
        return None
    what = "is a switch" if option.arity == "0" else "takes no JSON"
    seen = f"{head} is a key in JSON for {option.name}, which {what}"
    return Mistake(seen, f"write {option.name} without the dot", by_release=True)


def not_taken(shown: str, dialect: Dialect, *, positional: bool, sure: bool) -> Mistake:
    """Report words that belong to no option, which is sure behind `--` in any release."""
    takes = "only one bare word, the model" if positional else "no bare word"
    text = f"{dialect.engine} takes {takes}: '{shown}' belongs to no option"
    remedy = "remove it, or write the option that it belongs to in front of it"
    if shown.startswith("--") and " " in shown:
        remedy = "write the option and its value as two items, without the space between them"
    return Mistake(text, remedy, by_release=not sure)


def misshaped(shown: str, meant: Meant) -> Mistake:
    """Report a word that would be an option in another shape."""
    return Mistake(f"'{shown}' {meant.why}", meant.remedy)


def not_accepted(
    head: str, shown: str, meaning: Meaning, dialect: Dialect
) -> tuple[Mistake | None, Sequence[str]]:
    """Report a flag that the engine does not have; return the options that may be meant, too."""
    known = None if meaning.refused else _of_other_release(head, shown, dialect)
    if meaning.candidates and known is not None:
        return known, meaning.candidates
    if meaning.candidates:
        listed = join_names(meaning.candidates)
        text = f"'{shown}' can mean {listed}, and {_title(dialect)} does not guess"
        return Mistake(text, "write the flag in full", by_release=True), meaning.candidates
    if meaning.refused:
        text = f"{_title(dialect)} has no flag '{shown}' and does not start with it"
        meant = " ".join(filter(None, (meaning.instead, meaning.value)))
        # No fix for another engine's option: this engine's own may be there, too.
        remedy = f"write {meant}" if head in dialect.refused else _renamed(head, meant)
        return Mistake(text, remedy), [meaning.instead.partition(" ")[0]]
    other = meant_option(head, dialect) if dialect.complete else None
    if other is not None:
        return misshaped(shown, other), [other.flag]
    return (known, []) if known is not None else _unknown(head, shown, dialect)


def _unknown(head: str, shown: str, dialect: Dialect) -> tuple[Mistake | None, Sequence[str]]:
    """Report a flag that no release is known to have."""
    near = probably(head, dialect).instead
    remedy = _renamed(head, near) if near else without(head, text="remove it")
    if other := _of_other_engine(head, dialect):
        equal = equivalent(head.replace("_", "-"), dialect)
        remedy = equal or f"remove it: it is an option of {other}"
    meant = [near] if near and not other else []
    if dialect.complete:
        text = f"{_title(dialect)} has no option '{shown}' and does not start with it"
        return Mistake(text, remedy, by_release=True), meant
    if not near:
        return None, []
    text = f"{dialect.engine} has no known flag '{shown}'"
    return Mistake(text, remedy, hard=False), meant


def _of_other_engine(head: str, dialect: Dialect) -> str:
    """Return the engine that has this option; empty if none has. A similar one means else."""
    spellings = (head.replace("_", "-"), f"--{head[2:].replace('-', '_')}")
    others = (engine for engine in TITLES if engine != dialect.table)
    return next((TITLES[other] for other in others if any(map(load(other).history, spellings))), "")


def _of_other_release(head: str, shown: str, dialect: Dialect) -> Mistake | None:
    """Report an option of an earlier or a later release."""
    release = dialect.release
    if release is None or not dialect.complete:
        return None
    table, engine = load(release.engine), TITLES[release.engine]
    spelling = head.replace("_", "-") if dialect.underscores else head
    spans = table.history(spelling)
    if not spans:
        return None
    here = table.place(release.version)
    gone = [until for _, until in spans if until < here]
    if gone:
        last = table.texts[gone[-1]]
        gone_now = either(without(spelling, text="remove it"), f"use {engine} {last}")
        remedy = successor(spelling, dialect) or gone_now
        text = f"{release.title} has no option '{shown}': {last} is the last release with it"
    else:
        first = table.texts[spans[0][0]]
        # No fix: options that came together, such as --nnodes and --master-addr, go together.
        remedy = f"use {engine} {first} or later, or remove it"
        text = f"{release.title} has no option '{shown}': {first} is the first release with it"
    return Mistake(text, remedy, by_release=True)


def _title(dialect: Dialect) -> str:
    """Name the engine, with its release if that is certain."""
    release = dialect.release
    return release.title if release and release.sure else dialect.engine


def join_names(names: Sequence[str], joint: str = " or ") -> str:
    """List names for a message: `a, b or c`."""
    if len(names) > _MAX_LISTED:
        return ", ".join([*names[:_MAX_LISTED], f"… {len(names) - _MAX_LISTED} more"])
    return joint.join(filter(None, (", ".join(names[:-1]), names[-1])))
