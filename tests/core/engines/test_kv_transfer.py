"""How an engine shares its KV cache is written as its release reads it, or refused."""

import json
from dataclasses import replace
from typing import Any

import pytest

from kthena_components.core.engines import (
    Launch,
    Transfer,
    counted_flags,
    unsupported,
    write_commands,
)
from kthena_components.core.values.images import Version
from tests.support.launches import launch

ADDRESS = {"fieldRef": {"fieldPath": "status.podIP"}}
HOST = {"name": "VLLM_NIXL_SIDE_CHANNEL_HOST", "valueFrom": ADDRESS}


def half(role: str = "prefill", connector: str = "nixl", port: int | None = None) -> Transfer:
    return Transfer(role=role, connector=connector, port=port)


@pytest.mark.parametrize(
    ("transfer", "config", "env", "ports"),
    [
        (
            half(),
            {"kv_connector": "NixlConnector", "kv_role": "kv_producer"},
            [HOST, {"name": "VLLM_NIXL_SIDE_CHANNEL_PORT", "value": "5600"}],
            [5600],
        ),
        (
            half("decode", port=7000),
            {"kv_connector": "NixlConnector", "kv_role": "kv_consumer"},
            [HOST, {"name": "VLLM_NIXL_SIDE_CHANNEL_PORT", "value": "7000"}],
            [7000],
        ),
        (
            half("prefill", "mooncake"),
            {"kv_connector": "MooncakeConnector", "kv_role": "kv_producer"},
            [{"name": "VLLM_MOONCAKE_BOOTSTRAP_PORT", "value": "8998"}],
            [8998],
        ),
        (
            half("decode", "mooncake"),
            {"kv_connector": "MooncakeConnector", "kv_role": "kv_consumer"},
            [],
            [],
        ),
        (
            half("both", "lmcache"),
            {"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both"},
            [],
            [],
        ),
    ],
)
def test_vllm_reads_the_connector_from_json_and_its_address_from_variables(
    transfer: Transfer, config: dict[str, str], env: list[Any], ports: list[int]
) -> None:
    written = write_commands(launch(transfer=transfer))

    assert json.loads(written.entry[written.entry.index("--kv-transfer-config") + 1]) == config
    assert list(written.env) == env
    assert written.ports[1:] == tuple(("kv-transfer", port) for port in ports)


def test_every_pod_of_an_engine_has_the_transfer() -> None:
    written = write_commands(launch(transfer=half(), pipeline=2, pods=2))
    assert "--kv-transfer-config" in written.entry
    assert "--kv-transfer-config" in (written.worker or ())


@pytest.mark.parametrize(("role", "ports"), [("prefill", (("kv-transfer", 8998),)), ("decode", ())])
def test_sglang_reads_it_from_flags(role: str, ports: tuple[tuple[str, int], ...]) -> None:
    written = write_commands(launch("sglang", transfer=half(role, "mooncake")))
    words = " ".join(written.entry)

    assert words.endswith(
        f"--disaggregation-mode {role} --disaggregation-transfer-backend mooncake "
        "--disaggregation-bootstrap-port 8998"
    )
    assert (written.ports[1:], written.env) == (ports, ())


REFUSED: list[tuple[Launch, str, str]] = [
    (
        launch(transfer=half(connector="mooncake"), release=(0, 12, 0)),
        (
            "kv_transfer.connector is 'mooncake', and the image states vLLM 0.12.0: "
            "MooncakeConnector of the V1 engine is in vLLM since 0.13.0"
        ),
        "use vllm/vllm-openai:v0.13.0 or later, or write 'nixl' or 'lmcache'",
    ),
    (
        launch(transfer=half(), release=(0, 8, 5)),
        (
            "kv_transfer.connector is 'nixl', and the image states vLLM 0.8.5: NixlConnector of "
            "the V1 engine is in vLLM since 0.9.0"
        ),
        "use vllm/vllm-openai:v0.9.0 or later, or write 'lmcache'",
    ),
    (
        launch(transfer=half(), release=(0, 11, 0), launcher="ray", pipeline=2, pods=2),
        (
            "kv_transfer.connector is 'nixl', and the image states vLLM 0.11.0, in which the other "
            "engine finds only the ranks in the entry; a copy of 16 ranks has pods of 8 GPUs"
        ),
        "use vllm/vllm-openai:v0.11.1 or later",
    ),
    (
        launch(transfer=half(port=8080)),
        "kv_transfer.port is 8080, so the transfer listens on 8080, and 8080 is HTTP",
        "choose another port",
    ),
    (
        launch(transfer=half(port=8079), tensor=4, data=2),
        "kv_transfer.port is 8079, so the transfer listens on 8079 to 8080, and 8080 is HTTP",
        "choose another port",
    ),
    (
        launch(transfer=half(port=29501), pipeline=2, pods=2),
        "kv_transfer.port is 29501, so the transfer listens on 29501, and 29501 is --master-port",
        "choose another port",
    ),
    (
        launch(transfer=half(connector="lmcache", port=5600)),
        "kv_transfer.port is 5600, and the connector lmcache has no port here",
        "remove it, and set the ports in the configuration of LMCache",
    ),
    (
        launch("sglang", transfer=half(connector="lmcache")),
        "kv_transfer.connector is 'lmcache', and SGLang transfers with mooncake or nixl",
        "write 'mooncake' or 'nixl'",
    ),
    (
        launch("sglang", transfer=half("both")),
        "kv_transfer.role is 'both', and an SGLang engine is one half: prefill or decode",
        "write 'prefill' or 'decode'",
    ),
    (
        launch("sglang", transfer=half(port=20000), pods=2, tensor=16),
        (
            "kv_transfer.port is 20000, so the transfer listens on 20000, and 20000 is "
            "--dist-init-addr"
        ),
        "choose another port",
    ),
]


@pytest.mark.parametrize(("refused", "seen", "remedy"), REFUSED)
def test_what_an_engine_does_not_have_is_refused(refused: Launch, seen: str, remedy: str) -> None:
    found = [(f"{field} {text}", fix, rule) for field, text, fix, rule in unsupported(refused)]
    assert found == [(seen, remedy, "kv-transfer-supported")]
    assert unsupported(replace(refused, transfer=None)) == []


@pytest.mark.parametrize(
    ("release", "changes"),
    [
        ((0, 13, 0), {"transfer": half(connector="mooncake")}),
        ((0, 9, 0), {"transfer": half()}),
        ((0, 11, 1), {"transfer": half(), "pipeline": 2, "pods": 2}),
        ((0, 11, 0), {"transfer": half(), "launcher": "ray", "data": 2, "pods": 2}),
        ((0, 11, 0), {"transfer": half(port=8072)}),
        ((0, 16, 0), {"transfer": half(connector="mooncake", port=8073)}),
        (None, {"transfer": half("decode", "mooncake", 8080)}),
    ],
)
def test_what_it_has_is_written(release: Version | None, changes: dict[str, Any]) -> None:
    assert unsupported(launch(release=release, **changes)) == []


@pytest.mark.parametrize(
    ("release", "connector", "clashes"),
    [
        ((0, 11, 0), "nixl", True),
        ((0, 11, 1), "nixl", False),
        ((0, 14, 1), "mooncake", True),
        ((0, 16, 0), "mooncake", False),
    ],
)
def test_each_rank_once_had_a_port_of_its_own(
    release: Version, connector: str, *, clashes: bool
) -> None:
    near = launch(release=release, transfer=half(connector=connector, port=8073))
    assert bool(unsupported(near)) is clashes


@pytest.mark.parametrize(
    ("kind", "flag"),
    [
        ("vllm", "--kv-transfer-config={}"),
        ("vllm", "--kv-transfer-config.kv_role=kv_both"),
        ("sglang", "--disaggregation-mode=prefill"),
        ("sglang", "--disaggregation-bootstrap-port=1"),
    ],
)
def test_the_users_flags_do_not_state_it_twice(kind: str, flag: str) -> None:
    transfer = Transfer(role="prefill", connector="nixl", port=None)
    assert counted_flags(launch(kind, extra_args=(flag,))) == []
    told = counted_flags(launch(kind, extra_args=(flag,), transfer=transfer))
    assert told == [flag.partition("=")[0].partition(".")[0]]
