"""Reads from command lines how Kthena's router must hand the KV cache from prefill to decode.

Source: Kthena v1.0.0 pkg/model-booster-controller/convert/model_server.go VLLMKvConnectorType;
examples/models/deepseek-v4-flash for MooncakeConnectorV1 of vllm-ascend;
pkg/kthena-router/connectors for what the router sends.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from kthena_components.core.facts.serving import EngineFacts
from kthena_components.core.values.read import mapping, sequence
from kthena_components.systems.kthena.options_router import Connector

_CONNECTORS = {
    "NixlConnector": Connector.NIXL,
    # NixlConnector is another name of it since vLLM 0.24.
    "NixlPullConnector": Connector.NIXL,
    "MooncakeConnector": Connector.MOONCAKE,
    "MooncakeConnectorV1": Connector.MOONCAKE,
    "LMCacheConnectorV1": Connector.LMCACHE,
}
WITH_PARAMETERS = frozenset({Connector.NIXL, Connector.MOONCAKE})
"""With these, the router sends `kv_transfer_params` to both engines; with the others, to none."""


def connector_of(engines: Iterable[EngineFacts]) -> Connector | None:
    """Return the connector of vLLM engines; None if none is known, or if they differ."""
    found = {
        _CONNECTORS[name]
        for engine in engines
        for name in _names(_config(engine))
        if name in _CONNECTORS
    }
    if Connector.LMCACHE in found and len(found) > 1:
        # A MultiConnector that also stores the cache: LMCache needs nothing from the router.
        found.remove(Connector.LMCACHE)
    return found.pop() if len(found) == 1 else None


def _config(engine: EngineFacts) -> object:
    command = engine.entry.command
    return command.options.get("--kv-transfer-config") if command else None


def _names(config: object) -> Iterator[Any]:
    """List the connector of a transfer, and those that a MultiConnector combines."""
    fields = mapping(config)
    if isinstance(name := fields.get("kv_connector"), str):
        yield name
    for part in sequence(mapping(fields.get("kv_connector_extra_config")).get("connectors")):
        yield from _names(part)
