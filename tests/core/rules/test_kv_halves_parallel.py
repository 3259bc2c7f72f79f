"""kv-halves-parallel: which sizes of prefill and decode the connectors of a release join."""

from dataclasses import replace

import pytest

from kthena_components.core.findings import run_rule as run
from kthena_components.core.rules.kv_halves_parallel import kv_halves_parallel
from tests.support.halves import checked, roles, sglang, vllm

NIXL, MOONCAKE, P2P = "NixlConnector", "MooncakeConnector", "P2pNcclConnector"
SIZES = [
    ("0.9.0", NIXL, 4, 2, True),
    ("0.9.1", NIXL, 4, 2, False),
    ("0.13.0", NIXL, 4, 2, False),
    ("0.13.0", NIXL, 2, 4, True),
    ("0.13.0", NIXL, 2, 3, False),
    ("0.14.0", NIXL, 4, 2, True),
    ("0.14.0", NIXL, 4, 6, False),
    ("0.14.0", NIXL, 6, 4, False),
    ("0.19.1", NIXL, 8, 4, False),
    ("0.20.0", NIXL, 8, 4, True),
    ("0.33.0", NIXL, 16, 8, False),
    ("0.33.0", NIXL, 8, 16, True),
    ("0.13.0", MOONCAKE, 4, 2, False),
    ("0.19.1", MOONCAKE, 2, 4, False),
    ("0.20.0", MOONCAKE, 4, 2, True),
    ("0.20.0", MOONCAKE, 4, 6, False),
    ("0.20.0", P2P, 4, 2, False),
    ("0.20.0", P2P, 4, 4, True),
    ("0.33.0", "LMCacheConnectorV1", 4, 6, True),
]
"""Release, connector, prefill TP, decode TP, and whether they are joined, with 8 KV heads."""


@pytest.mark.parametrize(("release", "connector", "prefill", "decode", "joined"), SIZES)
def test_vllm_joins_tensor_sizes_by_connector_and_release(
    release: str, connector: str, prefill: int, decode: int, *, joined: bool
) -> None:
    found = checked(
        vllm(connector, "kv_producer", f"-tp {prefill}", release),
        vllm(connector, "kv_consumer", f"-tp {decode}", release),
    )
    assert [finding.rule for finding in found] == ([] if joined else ["kv-halves-parallel"])


STAGES = [
    ("0.5.6", 2, 4, True),
    ("0.5.6.post1", 2, 4, False),
    ("0.5.23", 2, 4, False),
    ("0.5.23", 4, 2, False),
    ("0.5.23", 4, 4, True),
    ("0.5.23", 4, 1, True),
    ("0.5.23", 1, 2, False),
]
"""Release, prefill PP, decode PP, and whether they are joined."""


@pytest.mark.parametrize(("release", "prefill", "decode", "joined"), STAGES)
def test_sglang_joins_pipelines_of_as_many_stages_or_one(
    release: str, prefill: int, decode: int, *, joined: bool
) -> None:
    found = checked(
        sglang("prefill", f"--pp-size {prefill}", release),
        sglang("decode", f"--pp-size {decode}", release),
    )
    assert [finding.rule for finding in found] == ([] if joined else ["kv-halves-parallel"])


@pytest.mark.parametrize(
    ("prefill", "decode", "joined"),
    [
        ("--tp 8", "--tp 4", True),
        ("--tp 8", "--tp 6", False),
        ("--tp 8 --attn-dp-size 2", "--tp 6", False),
        ("--tp 12 --attn-dp-size 2", "--tp 6", True),
    ],
)
def test_sglang_joins_attention_that_divides(prefill: str, decode: str, *, joined: bool) -> None:
    found = checked(sglang("prefill", prefill), sglang("decode", decode))
    assert [finding.rule for finding in found] == ([] if joined else ["kv-halves-parallel"])


PUSH = "NixlPushConnector"
NIXL_STAGES = [
    ("0.9.1", NIXL, "kv_producer", "mandatory"),
    ("0.22.0", NIXL, "kv_producer", "mandatory"),
    ("0.22.0", NIXL, "kv_both", "advisory"),
    ("0.23.0", NIXL, "kv_both", "mandatory"),
    ("0.25.0", NIXL, "kv_both", "mandatory"),
    ("0.26.0", NIXL, "kv_both", "advisory"),
    ("0.33.0", "NixlPullConnector", "kv_producer", "mandatory"),
    ("0.33.0", NIXL, "kv_consumer", "mandatory"),
    ("0.25.0", PUSH, "kv_producer", "mandatory"),
    ("0.26.0", PUSH, "kv_producer", None),
    ("0.26.0", PUSH, "kv_both", None),
    ("0.26.0", PUSH, "kv_consumer", "mandatory"),
    ("", NIXL, "kv_producer", "mandatory"),
    ("", PUSH, "kv_consumer", "mandatory"),
    ("0.33.0", MOONCAKE, "kv_producer", None),
    ("0.33.0", "LMCacheConnectorV1", "kv_both", None),
]
"""Release, connector and role of an engine with two stages, and the level of the finding."""


@pytest.mark.parametrize(("release", "connector", "role", "level"), NIXL_STAGES)
def test_nixl_has_one_stage_except_where_prefill_pushes(
    release: str, connector: str, role: str, level: str | None
) -> None:
    facts = roles(vllm(connector, role, "-tp 4 -pp 2", release))
    found = run(kv_halves_parallel, facts)
    assert [finding.level for finding in found] == ([level] if level else [])


def test_a_connector_of_its_own_module_may_have_several_stages() -> None:
    own = "-pp 2 --kv-transfer-config.kv_connector_module_path=acme.nixl"
    facts = roles(vllm(NIXL, "kv_producer", own))
    assert not run(kv_halves_parallel, facts)


def test_engines_named_after_their_halves_are_a_pair_though_each_does_both() -> None:
    facts = roles(
        vllm(NIXL, "kv_both", "-tp 8", "0.11.0"), vllm(NIXL, "kv_both", "-tp 4", "0.11.0")
    )
    assert not run(kv_halves_parallel, facts)
    names = ("prefill", "decode")
    engines = (replace(one, name=name) for one, name in zip(facts.engines, names, strict=True))
    found = run(kv_halves_parallel, replace(facts, engines=tuple(engines)))
    assert [finding.level for finding in found] == ["mandatory"]
