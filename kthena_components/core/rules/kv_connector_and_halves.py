"""The rules kv-connector-known, kv-halves-alike and kv-halves-complete."""

import json
from collections.abc import Iterator
from typing import Any

from kthena_components.core.engines.kv_transfer import CONNECTORS, has_connector, releases_with
from kthena_components.core.facts.files import HUB_NAME
from kthena_components.core.facts.listening import DEFAULT_PORTS
from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.remedies import set_option, without
from kthena_components.core.rules.support.engine_pods import Start, starts
from kthena_components.core.rules.support.kv_halves import (
    LMCACHE,
    NIXL,
    P2P,
    Half,
    Pair,
    halves_of,
    others_readable,
    pairs_of,
    same_family,
    same_model,
)
from kthena_components.core.rules.support.messages import slip_of
from kthena_components.core.values.images import write_version

_NIXL_HASH = (0, 13, 0)
"""The first vLLM whose NIXL compares the release, the model's name and the cache's type."""
_NIXL_BLOCKS_DIFFER = (0, 11, 1)
"""The first vLLM whose NIXL splits blocks, so that the sizes of the halves may differ."""
_NIXL_CHECKS = (0, 9, 1)
"""The first vLLM whose NIXL compares the blocks of both sides."""
_SGLANG_PAGES = (0, 5, 8)
"""The first SGLang that compares the pages of both sides."""
_SAME_TYPE = {"fp8_e4m3": "fp8", "bf16": "bfloat16"}


def kv_halves_alike(facts: ServingFacts) -> Iterator[Finding]:
    """The prefill and the decode engine of a serving have one connector, model and cache format.

    The format: the type of the KV cache (--kv-cache-dtype) and the size of its blocks (vLLM
    --block-size, SGLang --page-size), as far as both state it. NIXL in vLLM also compares the
    release and the name of the model since 0.13.0. It requires equal blocks up to 0.11.0; since
    then decode blocks may be a multiple of prefill blocks. Two objects are halves as for
    kv-halves-parallel.

    Pass: NixlConnector, Qwen/Qwen3-32B and --block-size 16 in both; two engines with kv_both.
    Fail: NixlConnector and MooncakeConnector; two models; --kv-cache-dtype fp8_e5m2 and fp8_e4m3;
    SGLang: --page-size 64 and 1.
    Level: mandatory where an engine rejects it or cannot read the cache; advisory for another model
    or an automatic type elsewhere, and if an image states no release.
    Source: vllm v1/nixl compute_nixl_compatibility_hash and _validate_remote_agent_handshake;
    sglang/srt/disaggregation/common/conn.py, the sanity checks of the prefill server's info.
    """
    halves = halves_of(facts)
    if others_readable(facts, halves):
        yield from _unmatched(halves)
    for pair in pairs_of(halves):
        yield from _release(pair)
        yield from _type(pair)
        yield from _blocks(pair)


def _unmatched(halves: list[Half]) -> Iterator[Finding]:
    """Report halves whose possible partners all have another connector, or another model."""
    one_way = [half for half in halves if half.one_way]
    # One finding for two halves that do not match: at the one that receives.
    for half in [h for h in one_way if h.receives] or one_way:
        partners = [
            other
            for other in halves
            if other is not half and (other.sends if half.receives else other.receives)
        ]
        related = [other for other in partners if same_family(half, other)]
        if partners and not related:
            other = partners[0]
            seen = f"{half.verb} with {_carrier(half)}, but {other.name} has {_carrier(other)}"
            yield from half.start.refused(seen, "write the same connector in both halves")
        elif related and not any(same_model(half, other) for other in related):
            yield from _models(half, related[0])


def _carrier(half: Half) -> str:
    product = "vLLM" if half.command.engine == "vllm" else "SGLang"
    return f"{half.connector} of {product}"


def _models(half: Half, other: Half) -> Iterator[Finding]:
    """Report halves with different models; NIXL of some releases compares even their names."""
    names = half.command.model, other.command.model
    pair = Pair(half, other)
    compared = half.family == NIXL and half.command.engine == "vllm" and _is_compared(pair)
    level = pair.since(_NIXL_HASH) if compared else None
    plain = all(isinstance(name, str) and HUB_NAME.fullmatch(name) for name in names)
    if level is None and not plain:
        return  # Different paths may contain one model.
    because = ", and NIXL compares the names" if level else ""
    seen = f"has model {names[0]}, but {other.name} has {names[1]}{because}"
    level = level if plain and level else Level.ADVISORY
    yield from half.start.refused(seen, "write the same model in both halves", level)


def _is_compared(pair: Pair) -> bool:
    """Return whether neither engine mentions the switch of NIXL's comparison."""
    return not any("enforce_handshake_compat" in str(half.config) for half in pair.halves)


def _release(pair: Pair) -> Iterator[Finding]:
    """Refuse NIXL between halves whose releases differ, where it compares a hash of the release."""
    releases = [half.command.release for half in pair.halves]
    stated = [release for release in releases if release is not None and release.sure]
    if pair.decode.family != NIXL or len(stated) != len(releases) or not _is_compared(pair):
        return
    prefill, decode = stated
    if prefill.version != decode.version and pair.since(_NIXL_HASH):
        seen = (
            f"runs {decode.title}, but {pair.prefill.name} runs {prefill.title}, and NIXL connects "
            "engines of one release"
        )
        yield from pair.decode.start.refused(seen, "use the same image in both halves")


def _type(pair: Pair) -> Iterator[Finding]:
    """Report halves with different data types of the KV cache; aliases of one type are equal."""
    stated = [half.start.option("--kv-cache-dtype") for half in pair.halves]
    words = ["auto" if value is None else value for value in stated]
    hidden = any(
        value is None and half.start.hidden for half, value in zip(pair.halves, stated, strict=True)
    )
    if hidden or not all(isinstance(word, str) for word in words):
        return
    prefill, decode = words
    if _SAME_TYPE.get(prefill, prefill) == _SAME_TYPE.get(decode, decode):
        return
    # The checkpoint decides what auto is; LMCache may store what it converts.
    unsure = "auto" in words or pair.decode.family == LMCACHE
    level = Level.ADVISORY if unsure else Level.MANDATORY
    seen = f"has --kv-cache-dtype {decode}, but {pair.prefill.name} has {prefill}"
    remedy = "write the same --kv-cache-dtype in both halves"
    yield from pair.decode.start.refused(seen, remedy, level)


def _blocks(pair: Pair) -> Iterator[Finding]:
    """Refuse sizes of cache blocks (vLLM) or pages (SGLang) between which no cache passes.

    NIXL took equal sizes only, and later a decode block that is a multiple of the prefill block.
    """
    option = "--block-size" if pair.decode.command.engine == "vllm" else "--page-size"
    sizes = [half.start.number(option) for half in pair.halves]
    prefill, decode = sizes
    if prefill is None or decode is None or prefill == decode or min(prefill, decode) < 1:
        return
    seen = f"has {option} {decode}, but {pair.prefill.name} has {prefill}"
    remedy = set_option(option, prefill)
    if option == "--page-size":
        sure = pair.since(_SGLANG_PAGES) or Level.ADVISORY
        yield from pair.decode.start.refused(seen, remedy, sure)
        return
    equal = pair.since(_NIXL_CHECKS, _NIXL_BLOCKS_DIFFER)
    multiple = pair.since(_NIXL_BLOCKS_DIFFER) if decode % prefill else None
    level = equal or multiple
    if pair.decode.family == NIXL and level is not None:
        rule = "equal blocks" if equal else "a multiple of the prefill block"
        yield from pair.decode.start.refused(f"{seen}, and NIXL requires {rule}", remedy, level)


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


_MULTI_FIRST, _OFFLOADS_FIRST, _OFFLOADS_BYTES = (0, 9), (0, 11), (0, 14)
"""The first vLLM with MultiConnector, with OffloadingConnector, and that counts it in bytes."""
_ROLES = ("kv_producer", "kv_consumer", "kv_both")
(_P2P_FIRST, _P2P_GONE), *_ = CONNECTORS[P2P]
_CONFIG, _CONNECTOR, _MODE = "--kv-transfer-config", "--connector", "--disaggregation-mode"
_DYNAMO_STATES = (1, 0)
"""The first Dynamo without a connector of its own for prefill."""
_P2P_HTTP_BY_PROXY = (0, 11, 1)
"""The first vLLM whose P2pNcclConnector may do without http_port."""


def kv_connector_known(facts: ServingFacts) -> Iterator[Finding]:
    """A vLLM engine's KV connector exists in its release, and has a role and the keys it requires.

    Some connectors came back after a pause or were removed. A connector with a module path of its
    own is not checked. P2pNcclConnector requires http_port in kv_connector_extra_config: up to
    0.11.0 always, later with proxy_ip and proxy_port. MultiConnector requires connectors there, and
    OffloadingConnector num_cpu_blocks, since 0.14.0 cpu_bytes_to_use. A prefill worker of Dynamo
    states a connector since 1.0, and none of Dynamo's workers with vLLM has --connector.

    Pass: NixlConnector with kv_producer in v0.33.0.
    Fail: MooncakeConnector in v0.12.0; P2pNcclConnector in v0.24.0; NixlConnector without kv_role;
    kv_role producer; P2pNcclConnector with proxy_ip and proxy_port, and without http_port;
    OffloadingConnector without kv_connector_extra_config;
    python3 -m dynamo.vllm --disaggregation-mode prefill alone, in vllm-runtime:1.0.1.
    Level: mandatory, because vLLM rejects it at startup; advisory if the image states no release,
    or if no known release has the connector, because a plugin may. In an image that is not vLLM's
    own, such a name is only reported if it is one letter away from a known one.
    Source: vllm/config/kv_transfer.py __post_init__;
    vllm/distributed/kv_transfer/kv_connector/factory.py; v1/p2p/p2p_nccl_engine.py there, of
    0.9.2 to 0.23.0; v1/multi_connector.py there, and vllm/v1/kv_offload/cpu (CPUOffloadingSpec) of
    0.11.0 to 0.33.0; ai-dynamo/dynamo components/src/dynamo/vllm/args.py
    update_dynamo_config_with_engine, of 0.9.1 and of 1.0.0 to 1.6.1.
    """
    for start in starts(facts, "vllm"):
        config = start.option(_CONFIG)
        if start.command.by_dynamo:
            yield from _by_dynamo(start, config)
        if isinstance(config, dict) and isinstance(config.get("kv_connector"), str):
            yield from _role(start, config.get("kv_role"))
            if not config.get("kv_connector_module_path"):
                yield from _connector(start, config["kv_connector"])
                yield from _http_port(start, config)
                yield from _size(start, config)


def _role(start: Start, role: object) -> Iterator[Finding]:
    if role is None:
        seen = "has a kv_connector without a kv_role, and vLLM requires both"
        yield from start.refused(seen, f"write one of {', '.join(_ROLES)}")
    elif isinstance(role, str) and role not in _ROLES:
        yield from start.refused(
            f"has kv_role '{role}', which vLLM does not know", f"write one of {', '.join(_ROLES)}"
        )


def _connector(start: Start, name: str) -> Iterator[Finding]:
    """Report a KV connector that the release lacks, unless a plug-in of unknown name may add it."""
    release = start.command.release
    if name in CONNECTORS if release is None else has_connector(name, release.version):
        return
    product = "no release of vLLM has" if release is None else f"{start.product} does not have"
    seen = f"has kv_connector '{name}', which {product}"
    if name in CONNECTORS and release is not None:
        level = Level.MANDATORY if release.sure else Level.ADVISORY
        remedy = f"use a vLLM with it ({releases_with(name)}), or another connector"
        yield from start.refused(seen, remedy, level)
    elif (release is not None and release.sure) or slip_of(name, CONNECTORS):
        meant = slip_of(name, CONNECTORS)  # Plugins add words: MooncakeConnectorV1.
        correct = f"write {meant}" if meant else "correct its name"
        remedy = f"{correct}, or give kv_connector_module_path if a module of yours has it"
        yield from start.refused(seen, remedy, Level.ADVISORY)


def _extra(config: dict[str, Any]) -> dict[str, Any] | None:
    """Return the connector's own settings; None if they are unknown.

    vLLM also takes them as `--kv-transfer-config.kv_connector_extra_config.http_port=8000`.
    """
    field = "kv_connector_extra_config"
    stated = config.get(field) or {}
    if not isinstance(stated, dict):
        return None
    dotted = (key.split(".")[1:] for key in config if key.startswith(f"{field}."))
    return {**stated, **{keys[0].rstrip("+"): True for keys in dotted}}


def _size(start: Start, config: dict[str, Any]) -> Iterator[Finding]:
    """Report a connector without the connectors that it joins, or the memory that it fills."""
    extra, name = _extra(config), config["kv_connector"]
    if extra is None:
        return
    key, example, level = "", "", None
    if name == "MultiConnector":
        key, example = "connectors", "a list of objects like this one"
        level = start.since(_MULTI_FIRST)
    elif name == "OffloadingConnector" and "spec_name" not in extra:
        if start.option("--kv-offloading-size") is not None or start.hidden:
            return
        level = start.since(_OFFLOADS_FIRST)
        by_bytes = start.since(_OFFLOADS_BYTES) is not None
        key = "cpu_bytes_to_use" if by_bytes else "num_cpu_blocks"
        example = "the bytes of the host's memory" if by_bytes else "a number of blocks"
    if level is not None and not extra.get(key):
        seen = f"has {name} without {key} in kv_connector_extra_config, so vLLM does not start"
        yield from start.refused(seen, f"write {key} there, {example}", level)


def _http_port(start: Start, config: dict[str, Any]) -> Iterator[Finding]:
    """Refuse P2pNcclConnector without http_port in the releases that read it at the start."""
    extra = _extra(config)
    if config["kv_connector"] != P2P or extra is None or "http_port" in extra:
        return
    proxy = (extra.get("proxy_ip"), extra.get("proxy_port"))
    by_proxy = all(isinstance(each, str) and each for each in proxy)
    always = start.since(_P2P_FIRST, _P2P_HTTP_BY_PROXY)
    level = always or (start.since(_P2P_FIRST, _P2P_GONE) if by_proxy else None)
    if level is not None:
        because = "" if always else ", which it requires with proxy_ip and proxy_port"
        seen = f"has {P2P} without http_port in kv_connector_extra_config{because}"
        port = start.option("--port") or DEFAULT_PORTS["vllm"]
        own = f": '{port}'" if isinstance(port, int) else ""
        remedy = f"write http_port{own} there, the port on which this engine answers"
        yield from start.refused(f"{seen}, so vLLM does not start", remedy, level)


def _by_dynamo(start: Start, config: object) -> Iterator[Finding]:
    """Report what `dynamo.vllm` rejects before it starts vLLM."""
    image = start.pod.image
    release = None if image is None else image.dynamo_release
    if release is None or release < _DYNAMO_STATES or start.hidden:
        return
    stated = start.command.options
    since = f"which Dynamo rejects since {write_version(_DYNAMO_STATES)}"
    if _CONNECTOR in stated:
        other = without(_CONNECTOR, text=f"state the connector with {_CONFIG} instead")
        yield from start.refused(f"has {_CONNECTOR}, {since}", other)
    prefill = stated.get(_MODE) == "prefill" or stated.get("--is-prefill-worker") is True
    if prefill and config is None and "--engine-config-json" not in stated:
        nixl = {"kv_connector": "NixlConnector", "kv_role": "kv_both"}
        remedy = f"write {_CONFIG} '{json.dumps(nixl)}', in the decode worker, too"
        yield from start.refused(f"is a prefill worker without {_CONFIG}, {since}", remedy)
