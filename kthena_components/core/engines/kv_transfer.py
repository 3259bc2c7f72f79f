"""Writes and reads how an engine sends its KV cache to another engine, or receives one.

vLLM takes a JSON object (`--kv-transfer-config`) and reads addresses from variables; SGLang has
flags (`--disaggregation-mode`).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from kthena_components.core.engines.launch import Launch, Refusal, Transfer, release_name
from kthena_components.core.findings import count_of
from kthena_components.core.values.images import Version, write_version
from kthena_components.core.values.read import mapping

_RULE = "kv-transfer-supported"
FLAGS: Mapping[str, frozenset[str]] = {
    "vllm": frozenset({"--kv-transfer-config"}),
    "sglang": frozenset(
        {
            "--disaggregation-mode",
            "--disaggregation-transfer-backend",
            "--disaggregation-bootstrap-port",
        }
    ),
}
"""The options that are written here."""
ROLES = {"prefill": "kv_producer", "decode": "kv_consumer", "both": "kv_both"}
SGLANG_CONNECTORS = ("mooncake", "nixl")
"""Transfer backends of every known SGLang (sglang/srt/server_args.py)."""
BOOTSTRAP_PORT = 8998
"""Default of SGLang's `--disaggregation-bootstrap-port`."""
NIXL_OVER_PODS: Version = (0, 11, 1)
"""In this release the entry answers handshakes for all ranks. Before, each rank listens in its own
pod, and the other engine looks for all of them at the entry (nixl_connector.py,
_nixl_handshake_listener).
"""
_MOONCAKE_ONE_PORT: Version = (0, 16, 0)
"""In this release only the first rank listens; before, each rank has its own port."""


class Connector(NamedTuple):
    """How a connector is written for vLLM."""

    name: str
    since: Version
    """The first release with this connector of the V1 engine."""
    host: str = ""
    """Variable with the pod's own address. Empty: the connector finds it out."""
    port: str = ""
    """Variable with its port. Empty: it has none."""
    default: int = 0


VLLM_CONNECTORS = {
    "nixl": Connector(
        "NixlConnector",
        (0, 9, 0),
        "VLLM_NIXL_SIDE_CHANNEL_HOST",
        "VLLM_NIXL_SIDE_CHANNEL_PORT",
        5600,
    ),
    "mooncake": Connector(
        "MooncakeConnector", (0, 13, 0), port="VLLM_MOONCAKE_BOOTSTRAP_PORT", default=8998
    ),
    "lmcache": Connector("LMCacheConnectorV1", (0, 8, 5)),
}
"""vLLM's connectors by the words of `engine.kv_transfer`. Defaults: vllm/envs.py."""


def transfer_words(kind: str, transfer: Transfer | None) -> tuple[str, ...]:
    """Return the words of the command line."""
    if transfer is None:
        return ()
    if kind == "sglang":
        port = str(transfer.port or BOOTSTRAP_PORT)
        backend = ("--disaggregation-transfer-backend", transfer.connector)
        mode = ("--disaggregation-mode", transfer.role)
        return (*mode, *backend, "--disaggregation-bootstrap-port", port)
    config = {
        "kv_connector": VLLM_CONNECTORS[transfer.connector].name,
        "kv_role": ROLES[transfer.role],
    }
    return ("--kv-transfer-config", json.dumps(config, separators=(",", ":")))


def transfer_env(kind: str, transfer: Transfer | None) -> tuple[dict[str, Any], ...]:
    """Return the variables that every pod of the engine needs, as Kubernetes writes them."""
    connector = _vllm_connector(kind, transfer)
    if transfer is None or connector is None:
        return ()
    env: list[dict[str, Any]] = []
    if connector.host:
        own = {"fieldRef": {"fieldPath": "status.podIP"}}
        env.append({"name": connector.host, "valueFrom": own})
    if _listens(kind, transfer):
        env.append({"name": connector.port, "value": str(_port(kind, transfer))})
    return tuple(env)


def transfer_ports(launch: Launch) -> tuple[tuple[str, int], ...]:
    """Return the name and number of the first port on which the other engine asks for the cache."""
    kind, transfer = launch.kind, launch.transfer
    return (("kv-transfer", _port(kind, transfer)),) if _listens(kind, transfer) else ()


def refused_transfer(launch: Launch, used: Mapping[int, str]) -> Iterator[Refusal]:
    """Report a transfer that the engine does not have.

    Args:
        used: The engine's other ports, and what each is for.
    """
    transfer = launch.transfer
    if transfer is None:
        return
    by_engine = _refused_by_sglang if launch.kind == "sglang" else _refused_by_vllm
    refusals = list(by_engine(launch))
    yield from refusals
    if refusals:
        return
    if transfer.port is not None and not _port(launch.kind, transfer):
        seen = f"is {transfer.port}, and the connector {transfer.connector} has no port here"
        remedy = "remove it, and set the ports in the configuration of LMCache"
        yield Refusal("kv_transfer.port", seen, remedy, _RULE)
    yield from _clashes(launch, used)


def _refused_by_vllm(launch: Launch) -> Iterator[Refusal]:
    """Refuse a connector that the image's release of vLLM lacks."""
    transfer = launch.transfer
    connector = _vllm_connector(launch.kind, transfer)
    if transfer is None or connector is None or launch.release is None:
        return
    stated, word = release_name("vllm", launch.release), transfer.connector
    if launch.before(connector.since):
        first = write_version(connector.since)
        seen = (
            f"is '{word}', and the image states vLLM {stated}: {connector.name} of the V1 engine "
            f"is in vLLM since {first}"
        )
        others = [
            other
            for other, of in VLLM_CONNECTORS.items()
            if other != word and not launch.before(of.since)
        ]
        instead = f", or write {' or '.join(map(repr, others))}" if others else ""
        remedy = f"use vllm/vllm-openai:v{first} or later{instead}"
        yield Refusal("kv_transfer.connector", seen, remedy, _RULE)
    elif word == "nixl" and launch.before(NIXL_OVER_PODS) and launch.copy > launch.gpus_per_pod:
        first = write_version(NIXL_OVER_PODS)
        seen = (
            f"is 'nixl', and the image states vLLM {stated}, in which the other engine finds only "
            f"the ranks in the entry; a copy of {count_of(launch.copy, 'rank')} has pods of "
            f"{count_of(launch.gpus_per_pod, 'GPU')}"
        )
        yield Refusal(
            "kv_transfer.connector", seen, f"use vllm/vllm-openai:v{first} or later", _RULE
        )


def _refused_by_sglang(launch: Launch) -> Iterator[Refusal]:
    """Refuse connectors and roles of a KV transfer that SGLang does not have."""
    transfer = launch.transfer
    if transfer is None:
        return
    if transfer.connector not in SGLANG_CONNECTORS:
        seen = f"is '{transfer.connector}', and SGLang transfers with mooncake or nixl"
        yield Refusal("kv_transfer.connector", seen, "write 'mooncake' or 'nixl'", _RULE)
    if transfer.role == "both":
        seen = "is 'both', and an SGLang engine is one half: prefill or decode"
        yield Refusal("kv_transfer.role", seen, "write 'prefill' or 'decode'", _RULE)


def _clashes(launch: Launch, used: Mapping[int, str]) -> Iterator[Refusal]:
    """Reject a port of the engine among those that the transfer listens on."""
    kind, transfer = launch.kind, launch.transfer
    first, count = _port(kind, transfer), _span(launch)
    for number, purpose in used.items() if _listens(kind, transfer) else ():
        if first <= number < first + count:
            ports = str(first) if count == 1 else f"{first} to {first + count - 1}"
            seen = f"is {first}, so the transfer listens on {ports}, and {number} is {purpose}"
            yield Refusal("kv_transfer.port", seen, "choose another port", _RULE)


def _vllm_connector(kind: str, transfer: Transfer | None) -> Connector | None:
    return VLLM_CONNECTORS[transfer.connector] if transfer and kind == "vllm" else None


def _listens(kind: str, transfer: Transfer | None) -> bool:
    """Return whether the entry listens: NIXL does on both sides, the others where they send."""
    connector = _vllm_connector(kind, transfer)
    if transfer is None:
        return False
    if connector is None:
        return transfer.role == "prefill"
    return bool(connector.port) and (transfer.connector == "nixl" or transfer.role != "decode")


def _port(kind: str, transfer: Transfer | None) -> int:
    """Return the first port of the transfer; 0 if it has none."""
    connector = _vllm_connector(kind, transfer)
    default = BOOTSTRAP_PORT if connector is None else connector.default
    stated = transfer.port if transfer else None
    return stated if stated is not None and default else default


def _span(launch: Launch) -> int:
    """Count the ports from the first one on: NIXL has one per copy, and once had one per rank."""
    if launch.kind == "sglang" or launch.transfer is None:
        return 1
    if launch.transfer.connector == "nixl":
        return launch.data * (launch.tensor if launch.before(NIXL_OVER_PODS) else 1)
    return launch.data * launch.tensor if launch.before(_MOONCAKE_ONE_PORT) else 1


# vLLM's KV connectors: the releases that have each of them.
#
# Source: vllm/distributed/kv_transfer/kv_connector/factory.py of every published release, the
# names that it registers. No source of 0.15.0 and 0.15.1 is published: they count as their
# neighbours.


_Span = tuple[Version, Version | None]
CONNECTORS: Mapping[str, tuple[_Span, ...]] = {
    "PyNcclConnector": (((0, 6, 5), (0, 10, 1)),),
    "MooncakeConnector": (((0, 6, 5), (0, 10, 1)), ((0, 13, 0), None)),
    "LMCacheConnector": (((0, 8, 0), (0, 10, 1)),),
    "MooncakeStoreConnector": (((0, 8, 3), (0, 10, 1)), ((0, 21, 0), None)),
    "SharedStorageConnector": (((0, 8, 5), (0, 13, 0)),),
    "LMCacheConnectorV1": (((0, 8, 5), None),),
    "NixlConnector": (((0, 9, 0), None),),
    "MultiConnector": (((0, 9, 0), None),),
    "P2pNcclConnector": (((0, 9, 2), (0, 24, 0)),),
    "OffloadingConnector": (((0, 11, 0), None),),
    "LMCacheMPConnector": (((0, 11, 1), None),),
    "DecodeBenchConnector": (((0, 11, 1), None),),
    "ExampleConnector": (((0, 13, 0), None),),
    "MoRIIOConnector": (((0, 14, 0), None),),
    "ExampleHiddenStatesConnector": (((0, 17, 0), None),),
    "FlexKVConnectorV1": (((0, 18, 0), None),),
    "SimpleCPUOffloadConnector": (((0, 19, 0), None),),
    "HF3FSKVConnector": (((0, 20, 0), None),),
    "NixlPullConnector": (((0, 24, 0), None),),
    "NixlPushConnector": (((0, 24, 0), None),),
    "HiSparseConnector": (((0, 30, 0), None),),
}
"""For each connector the first release with it, and the first that no longer has it."""


def has_connector(name: str, release: Version) -> bool:
    """Return whether a release has a connector."""
    spans = CONNECTORS.get(name, ())
    return any(first <= release and (gone is None or release < gone) for first, gone in spans)


def releases_with(name: str) -> str:
    """Write which releases have a known connector: `0.6.5 to before 0.10.1, and since 0.13.0`."""
    return ", and ".join(
        f"since {write_version(first)}"
        if gone is None
        else f"from {write_version(first)} to before {write_version(gone)}"
        for first, gone in CONNECTORS[name]
    )


# Reads how an engine shares its KV cache: the inverse of what is written above.


_DIGITS = len("65535")
Env = tuple[Mapping[str, Any], ...]


def read_transfer(
    kind: str, options: Mapping[str, Any], env: Sequence[Any]
) -> tuple[Transfer, Env] | None:
    """Return the transfer that is written as these options and variables, and its variables.

    Args:
        kind: vllm, sglang or trtllm.
        options: `CommandFacts.options`.
        env: Variables of the container, as Kubernetes writes them.

    Returns:
        None if there is no transfer, or if it has settings that `kv_transfer` cannot state.
    """
    flags = {name: options[name] for name in FLAGS.get(kind, ()) if name in options}
    for transfer in _all_transfers(kind, flags, env) if flags else ():
        words = transfer_words(kind, transfer)
        written = dict(zip(words[::2], map(_value, words[1::2]), strict=True))
        variables = transfer_env(kind, transfer)
        if written == flags and all(each in env for each in variables):
            return transfer, variables
    return None


def _all_transfers(kind: str, flags: Mapping[str, Any], env: Sequence[Any]) -> Iterator[Transfer]:
    """Yield the transfers that may be meant, those with the engine's default port first."""
    stated = [*flags.values(), *(mapping(each).get("value") for each in env)]
    written = (text for text in map(str, stated) if text.isdecimal() and len(text) <= _DIGITS)
    ports = (None, *sorted(set(map(int, written))))
    connectors = SGLANG_CONNECTORS if kind == "sglang" else VLLM_CONNECTORS
    for port, role, connector in product(ports, ROLES, connectors):
        yield Transfer(role=role, connector=connector, port=port)


def _value(word: str) -> Any:
    """Return a written value as it is in `CommandFacts.options`."""
    return json.loads(word) if word.startswith("{") or word.isdecimal() else word
