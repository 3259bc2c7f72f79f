"""The rule kv-halves-complete."""

from collections.abc import Iterator

from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.rules.support.kv_halves import (
    halves_of,
    others_readable,
)


def kv_halves_complete(facts: ServingFacts) -> Iterator[Finding]:
    """A serving with several roles that sends its KV cache also receives it, and the reverse.

    Only if every role can be read. kv_both is either half.

    Pass: 2 roles, prefill and decode; 1 role alone, whose other half is another object.
    Fail: 2 roles, prefill and router; --disaggregation-mode prefill in both of 2 roles.
    Level: advisory, because the other half may be elsewhere.
    Source: vllm/config/kv_transfer.py is_kv_producer, is_kv_consumer; sglang/srt/server_args.py
    disaggregation_mode.
    """
    halves = halves_of(facts)
    if len(facts.engines) == 1 or not halves or not others_readable(facts, halves):
        return
    if any(half.sends for half in halves) and any(half.receives for half in halves):
        return
    half = halves[0]
    missing = "receives it" if half.sends else "sends one"
    seen = f"{half.verb} ({half.connector}), and no role of the serving {missing}"
    other = "decode" if half.sends else "prefill"
    remedy = f"add the {other} half, or make one of the roles that half"
    yield from half.start.refused(seen, remedy, Level.ADVISORY)
