"""Checks that the other half of an engine reaches it to ask for its KV cache."""

from collections.abc import Iterator

from kthena_components.core.facts.network import EVERY_ADDRESS, LOOPBACK, NIXL_HOST
from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.rules.support.kv_halves import NIXL, Half, halves_of, pairs_of
from kthena_components.core.values.display import display
from kthena_components.core.values.unknown import Unknown


def nixl_side_channel_host(facts: ServingFacts) -> Iterator[Finding]:
    """An engine that sends its KV cache by NIXL states an address at which other pods ask for it.

    The prefill engine puts VLLM_NIXL_SIDE_CHANNEL_HOST into its answer, and the decode engine
    connects to it. The default is localhost, which is the decode engine's own pod. Dynamo sets it.

    Pass: VLLM_NIXL_SIDE_CHANNEL_HOST from status.podIP, in each of 2 pods.
    Fail: NixlConnector with kv_producer, and no VLLM_NIXL_SIDE_CHANNEL_HOST, or 127.0.0.1.
    Level: mandatory for kv_producer, and for kv_both with a kv_consumer in another role; advisory
    for other engines with kv_both, whose other half is not seen, and for 0.0.0.0.
    Source: vllm/envs.py (default localhost) and vllm/distributed/kv_transfer/kv_connector/v1/
    nixl_connector.py (side_channel_host), from 0.9.1 to 0.33.0; ai-dynamo/dynamo
    components/src/dynamo/vllm/args.py (ensure_side_channel_host).
    """
    halves = [half for half in halves_of(facts) if half.family == NIXL]
    directed = {id(pair.prefill) for pair in pairs_of(halves)}
    for half in halves:
        if not half.sends or half.command.by_dynamo or _is_beside(half, facts):
            continue
        sure = half.one_way or id(half) in directed
        yield from _check(half, Level.MANDATORY if sure else Level.ADVISORY)


def _check(half: Half, level: Level) -> Iterator[Finding]:
    pod = half.start.engine.entry
    stated = pod.variables.get(NIXL_HOST)
    value = "" if stated is None else stated.value
    if isinstance(value, Unknown):
        return
    if value and value != EVERY_ADDRESS and not LOOPBACK.fullmatch(value):
        return
    if stated is not None:
        # Some routers may replace the address of all interfaces.
        level = Level.ADVISORY if value == EVERY_ADDRESS else level
        set_to = f"sets {NIXL_HOST} to" if stated.by_script else "is"
        yield _finding(stated.path, f"{set_to} {display(value)}", level)
    else:
        seen = f"{half.name} {half.verb} ({half.connector}) without {NIXL_HOST}, whose default is "
        yield _finding(pod.command_path, f"{seen}localhost", level)


def _finding(path: str, seen: str, level: Level) -> Finding:
    return Finding(
        path=path,
        seen=f"{seen}: the other half then asks its own pod for the cache",
        remedy=f"set {NIXL_HOST} by a fieldRef to status.podIP",
        level=level,
    )


def _is_beside(half: Half, facts: ServingFacts) -> bool:
    """Return whether another engine is in the same pod, where localhost reaches this one."""
    engine = half.start.engine
    others = (one for one in facts.engines if one is not engine)
    return any(one.entry.template == engine.entry.template for one in others)
