"""Finds the engines of a serving that share a KV cache: those that send it, and that receive it."""

from collections.abc import Iterator
from typing import Any

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Level
from kthena_components.core.rules.support.engine_pods import Start
from kthena_components.core.rules.support.messages import title
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.images import Version

NIXL, MOONCAKE, P2P, LMCACHE = "NIXL", "Mooncake", "P2pNcclConnector", "LMCache"
NIXL_PUSH = "NixlPushConnector"
_FAMILIES = {
    "vllm": {
        "NixlConnector": NIXL,
        "NixlPullConnector": NIXL,
        NIXL_PUSH: NIXL_PUSH,
        "MooncakeConnector": MOONCAKE,
        "P2pNcclConnector": P2P,
        "MoRIIOConnector": "MoRIIOConnector",
        "LMCacheConnectorV1": LMCACHE,
    },
    "sglang": {
        "mooncake": "mooncake",
        "mooncake_tcp": "mooncake",
        "nixl": "nixl",
        "mori": "mori",
        "ascend": "ascend",
    },
}
"""Connectors that carry a cache from one engine to another, by what they can exchange it with.
vLLM's others store it, or combine connectors. NixlConnector is another name of NixlPullConnector.
"""
_ROLES = {
    "kv_producer": (True, False),
    "kv_consumer": (False, True),
    "kv_both": (True, True),
    "prefill": (True, False),
    "decode": (False, True),
}


@dataclass(frozen=True, slots=True)
class Half:
    """One engine that sends a KV cache, receives one, or both."""

    start: Start
    connector: str
    """As the engine writes it."""
    family: str
    """Engines of one family can exchange their caches."""
    sends: bool
    receives: bool
    config: dict[str, Any]
    """vLLM's `--kv-transfer-config`. Empty for SGLang."""

    @property
    def command(self) -> CommandFacts:
        """The command line."""
        return self.start.command

    @property
    def name(self) -> str:
        """The engine, for messages."""
        return title(self.start.engine)

    @property
    def one_way(self) -> bool:
        """Whether it only sends, or only receives."""
        return self.sends is not self.receives

    @property
    def verb(self) -> str:
        """What it does with the cache, for messages."""
        if self.one_way:
            return "sends its KV cache" if self.sends else "receives its KV cache"
        return "shares its KV cache"


@dataclass(frozen=True, slots=True)
class Pair:
    """A prefill and a decode engine of one family."""

    prefill: Half
    decode: Half

    @property
    def halves(self) -> tuple[Half, Half]:
        """Both engines."""
        return self.prefill, self.decode

    def since(self, first: Version, before: Version | None = None) -> Level | None:
        """Return the level of what some releases reject; None if one of the halves does not."""
        found = [half.start.since(first, before) for half in self.halves]
        if None in found:
            return None
        return Level.ADVISORY if Level.ADVISORY in found else Level.MANDATORY


def halves_of(facts: ServingFacts) -> list[Half]:
    """Return the engines whose command lines state a readable transfer."""
    found = (_half(engine) for engine in facts.engines)
    return [half for half in found if half is not None]


def others_readable(facts: ServingFacts, halves: list[Half]) -> bool:
    """Return whether no other engine of the serving may be a half that cannot be read."""
    known = {id(half.start.engine) for half in halves}
    return facts.unread is None and all(
        id(engine) in known or _is_none(engine) for engine in facts.engines
    )


def pairs_of(halves: list[Half]) -> Iterator[Pair]:
    """Return each prefill half with each decode half of its family and model.

    Two engines that both send and receive may each work alone, so they are no pair, unless one is
    named after prefill and the other one after decode.
    """
    for prefill in halves:
        for decode in halves:
            partners = prefill is not decode and prefill.sends and decode.receives
            directed = prefill.one_way or decode.one_way or _named_so(prefill, decode)
            fit = same_family(prefill, decode) and same_model(prefill, decode)
            if partners and directed and fit:
                yield Pair(prefill, decode)


def _named_so(prefill: Half, decode: Half) -> bool:
    """Return whether the names of two engines of a serving say which half each is."""
    first, second = (half.start.engine.name.casefold() for half in (prefill, decode))
    only = "prefill" in first and "decode" not in first
    return only and "decode" in second and "prefill" not in second


def same_family(one: Half, other: Half) -> bool:
    """Return whether two halves can exchange a cache at all."""
    return one.command.engine == other.command.engine and one.family == other.family


def same_model(one: Half, other: Half) -> bool:
    """Return whether two halves name one model, as far as is known."""
    names = one.command.model, other.command.model
    return not all(isinstance(name, str) for name in names) or names[0] == names[1]


def _half(engine: EngineFacts) -> Half | None:
    """Read which side of a KV transfer an engine is; None without one of a known connector."""
    command = engine.entry.command
    if command is None or command.engine not in _FAMILIES:
        return None
    start = Start(engine, command)
    config = start.option("--kv-transfer-config") if command.engine == "vllm" else {}
    if not isinstance(config, dict):
        return None
    if command.engine == "vllm":
        connector, role = config.get("kv_connector"), config.get("kv_role")
    else:
        role = start.option("--disaggregation-mode")
        connector = start.option("--disaggregation-transfer-backend") or "mooncake"
    family = _FAMILIES[command.engine].get(connector) if isinstance(connector, str) else None
    if family is None or not isinstance(role, str) or role not in _ROLES:
        return None
    sends, receives = _ROLES[role]
    return Half(start, str(connector), family, sends, receives, config)


def _is_none(engine: EngineFacts) -> bool:
    """Return whether an engine keeps its KV cache to itself, or is not an engine at all."""
    entry = engine.entry
    if entry.command is None or entry.command.engine is None:
        return not entry.asks_for_gpus and entry.gap is None
    if entry.command.release is None or entry.command.hidden is not None:
        return False
    options = entry.command.options
    stated = [options.get("--kv-transfer-config"), options.get("--disaggregation-mode")]
    return all(value is None or value == "null" for value in stated)
