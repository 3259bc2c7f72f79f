"""The rule kv-connector-known."""

from collections.abc import Iterator

from kthena_components.core.engines.kv_transfer import CONNECTORS, has_connector, releases_with
from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.rules.support.engine_startup import Start, starts
from kthena_components.core.rules.support.messages import slip_of

_ROLES = ("kv_producer", "kv_consumer", "kv_both")


def kv_connector_known(facts: ServingFacts) -> Iterator[Finding]:
    """A vLLM engine's KV connector exists in its release, and has a role.

    Some connectors came back after a pause or were removed. A connector with a module path of its
    own is not checked.

    Pass: NixlConnector with kv_producer in v0.33.0.
    Fail: MooncakeConnector in v0.12.0; P2pNcclConnector in v0.24.0; NixlConnector without kv_role;
    kv_role producer.
    Level: mandatory, because vLLM rejects it at startup; advisory if the image states no release,
    or if no known release has the connector, because a plugin may. In an image that is not vLLM's
    own, such a name is only reported if it is one letter away from a known one.
    Source: vllm/config/kv_transfer.py __post_init__;
    vllm/distributed/kv_transfer/kv_connector/factory.py.
    """
    for start in starts(facts, "vllm"):
        config = start.option("--kv-transfer-config")
        if isinstance(config, dict) and isinstance(config.get("kv_connector"), str):
            yield from _role(start, config.get("kv_role"))
            if not config.get("kv_connector_module_path"):
                yield from _connector(start, config["kv_connector"])


def _role(start: Start, role: object) -> Iterator[Finding]:
    if role is None:
        seen = "has a kv_connector without a kv_role, and vLLM requires both"
        yield from start.refused(seen, f"write one of {', '.join(_ROLES)}")
    elif isinstance(role, str) and role not in _ROLES:
        yield from start.refused(
            f"has kv_role '{role}', which vLLM does not know", f"write one of {', '.join(_ROLES)}"
        )


def _connector(start: Start, name: str) -> Iterator[Finding]:
    release = start.command.release
    if release is None or has_connector(name, release.version):
        return
    seen = f"has kv_connector '{name}', which {start.product} does not have"
    if name in CONNECTORS:
        level = Level.MANDATORY if release.sure else Level.ADVISORY
        remedy = f"use a vLLM with it ({releases_with(name)}), or another connector"
        yield from start.refused(seen, remedy, level)
    elif release.sure or slip_of(name, CONNECTORS):
        meant = slip_of(name, CONNECTORS)  # Plugins add words: MooncakeConnectorV1.
        correct = f"write {meant}" if meant else "correct its name"
        remedy = f"{correct}, or give kv_connector_module_path if a module of yours has it"
        yield from start.refused(seen, remedy, Level.ADVISORY)
