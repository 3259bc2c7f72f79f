"""The rule engine-option-keys."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.engines.option_table import Keys, Table, load
from kthena_components.core.engines.options import TITLES
from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, Level, suggest
from kthena_components.core.remedies import plain
from kthena_components.core.rules.support.engine_startup import Start, starts
from kthena_components.core.values.display import display
from kthena_components.core.values.read import mapping
from kthena_components.core.values.unknown import is_unresolved


def engine_option_keys(facts: ServingFacts) -> Iterator[Finding]:
    """The engine's release has every key of the JSON objects in its options, and some words there.

    The options are --speculative-config, --compilation-config with its pass_config,
    --kv-transfer-config, --kv-events-config and --eplb-config of vLLM, whole or as
    --eplb-config.num_redundant_experts, and --kv-events-config of SGLang.
    The keys are those of the classes of each release: docs/engines.md. Older releases ignore other
    keys, so what they say has no effect; newer ones refuse them. The words are those of `method` in
    --speculative-config and of cudagraph_mode in --compilation-config, since vLLM 0.10.1, and of
    publisher in --kv-events-config, since 0.11.1. SGLang ignores other keys, and does not start
    with another publisher.

    Pass: --speculative-config '{"model": "m", "num_speculative_tokens": 3}'.
    Fail: --speculative-config '{"model": "m", "num_speculative_token": 3}'; with vLLM 0.12,
    --compilation-config.cudagraph_modes=NONE; --compilation-config.cudagraph_mode=FULL_DECODE;
    --speculative-config.method=eagel.
    Level: mandatory; advisory if the release ignores the key, or the image states no release, or
    the words are those of the releases before and after.
    Source: vllm/config of the releases, run as they are published; KVEventsConfig and
    EventPublisherFactory in sglang/srt/disaggregation/kv_events.py of each release.
    """
    for start in starts(facts, "vllm", "sglang"):
        release, table = start.command.release, load(str(start.command.engine))
        if release is None:
            continue
        for option in table.keyed:
            name, _, inner = option.partition(".")
            stated = _stated(start, name)
            if not isinstance(stated, Mapping):
                continue
            taken = table.keys_in(option, release.version)
            if taken is None:
                continue
            for key in _inside(stated, inner) if inner else stated:
                if isinstance(key, str) and not _is_in(key, taken.keys):
                    yield from _wrong(start, table, taken, key)
        yield from _words(start, table)


def _stated(start: Start, option: str) -> Any:
    """Return the value of an option. SGLang's parser takes it as text, and reads it later."""
    stated = start.option(option)
    if not isinstance(stated, str) or is_unresolved(stated):
        return stated
    try:
        return json.loads(stated)
    except (ValueError, RecursionError):
        return None


def _words(start: Start, table: Table) -> Iterator[Finding]:
    """Report words that a release does not take in a key. Those in capitals may be lower case."""
    release = start.command.release
    for option, key in sorted({(row.option, row.key) for row in table.words}):
        stated = _stated(start, option)
        word = stated.get(key) if isinstance(stated, Mapping) else None
        if release is None or not isinstance(word, str) or is_unresolved(word):
            continue
        taken = table.words_in(option, key, release.version)
        if taken is None:
            continue
        near = word.upper() if all(map(str.isupper, taken.words)) else word
        if near not in taken.words:
            level = Level.MANDATORY if release.sure and not taken.between else Level.ADVISORY
            seen = (
                f"states {display(word)} as {key} of {option}, which {start.product} does not take"
            )
            yield from start.refused(seen, plain(suggest(near, taken.words)), level)


def _inside(stated: Mapping[Any, Any], outer: str) -> Iterator[Any]:
    """Yield the keys of a map in an option: of {"outer": {"a": 1}}, and of {"outer.a": 1}."""
    yield from mapping(stated.get(outer))
    for key in stated:
        first, _, inner = key.partition(".") if isinstance(key, str) else ("", "", "")
        if inner and first.replace("-", "_") == outer:
            yield inner


def _is_in(key: str, taken: frozenset[str]) -> bool:
    """Return whether a release takes a key; newer ones take hyphens as underscores."""
    first = key.rstrip("+").partition(".")[0]  # vLLM also takes a.b=c, and a+=c for a list
    return key in taken or first.replace("-", "_") in taken


def _wrong(start: Start, table: Table, taken: Keys, key: str) -> Iterator[Finding]:
    release = start.command.release
    sure = release is not None and release.sure and not taken.ignores
    lacks = "ignores" if taken.ignores else "does not have there"
    seen = f"states {display(key)} in {taken.option}, which {start.product} {lacks}"
    remedy = plain(suggest(key, taken.keys))
    if span := table.releases_with(taken.option, key):
        seen += f": {TITLES[table.engine]} {span[0]} to {span[1]} have it"
        remedy = "remove it, or use one of these releases"
    yield from start.refused(seen, remedy, Level.MANDATORY if sure else Level.ADVISORY)
