"""The rule engine-option-keys."""

from collections.abc import Iterator, Mapping

from kthena_components.core.engines.table import Table, load
from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, Level, suggest
from kthena_components.core.remedies import plain
from kthena_components.core.rules.support.engine_startup import Start, starts
from kthena_components.core.values.display import display


def engine_option_keys(facts: ServingFacts) -> Iterator[Finding]:
    """The engine's release has every key of the JSON objects in its options.

    The options are --speculative-config, --compilation-config, --kv-transfer-config and
    --eplb-config of vLLM, whole or as --eplb-config.num_redundant_experts. The keys are those of
    the classes of each release, where that release refuses others: docs/engines.md.

    Pass: --speculative-config '{"model": "m", "num_speculative_tokens": 3}'.
    Fail: --speculative-config '{"model": "m", "num_speculative_token": 3}'.
    Level: mandatory; advisory if the image states no release.
    Source: vllm/config of the releases, run as they are published.
    """
    for start in starts(facts, "vllm"):
        release, table = start.command.release, load("vllm")
        if release is None:
            continue
        for option in table.keyed:
            stated = start.option(option)
            if not isinstance(stated, Mapping):
                continue
            taken = table.keys_in(option, release.version)
            if taken is None:
                continue
            wrong = [key for key in stated if isinstance(key, str) and not _is_in(key, taken)]
            for key in wrong:
                yield from _refused(start, table, option, key, taken)


def _is_in(key: str, taken: frozenset[str]) -> bool:
    """Return whether a release takes a key; newer ones take hyphens as underscores."""
    return key in taken or key.replace("-", "_") in taken


def _refused(
    start: Start, table: Table, option: str, key: str, taken: frozenset[str]
) -> Iterator[Finding]:
    release = start.command.release
    level = Level.MANDATORY if release is not None and release.sure else Level.ADVISORY
    seen = f"states {display(key)} in {option}, which {start.product} does not have there"
    remedy = plain(suggest(key, taken))
    if span := table.releases_with(option, key):
        seen += f": vLLM {span[0]} to {span[1]} do"
        remedy = f"remove it, or use one of these releases; {remedy}"
    yield from start.refused(seen, remedy, level)
