"""What is compared between engines that share a KV cache, and what is left alone.

The rules: kv-connector-known, kv-halves-complete, kv-halves-alike.
"""

import pytest

from tests.support.halves import Role, checked, sglang, told, vllm

EXTRA = "--kv-transfer-config.kv_connector_extra_config"

NIXL = "NixlConnector"
FINE: dict[str, tuple[Role, ...]] = {
    "a pair": (vllm(NIXL, "kv_producer"), vllm(NIXL, "kv_consumer")),
    "one and its other name": (vllm(NIXL, "kv_producer"), vllm("NixlPullConnector", "kv_consumer")),
    "two that are both": (vllm(NIXL, "kv_both", "-tp 2"), vllm(NIXL, "kv_both", "-tp 3")),
    "connectors that store": (
        vllm("OffloadingConnector", "kv_both", f"{EXTRA}.cpu_bytes_to_use=1000000000"),
        vllm("FlexKVConnectorV1", "kv_both"),
    ),
    "several connectors": (
        vllm("MultiConnector", "kv_producer", f"{EXTRA}.connectors.0.kv_connector={NIXL}"),
        vllm(NIXL, "kv_consumer"),
    ),
    "two pairs of two models": (
        vllm(NIXL, "kv_both"),
        vllm(NIXL, "kv_both"),
        ("vllm 0.33.0", "--max-model-len 8192"),
    ),
    "a half alone": (vllm(NIXL, "kv_producer"),),
    "a half beside what cannot be read": (
        vllm(NIXL, "kv_producer"),
        ("other", "/opt/start-decode"),
    ),
    "a half beside one whose transfer is a variable": (
        vllm(NIXL, "kv_producer"),
        ("vllm 0.33.0", "--kv-transfer-config $KV"),
    ),
    "sizes that a variable gives": (
        vllm(NIXL, "kv_producer", "-tp 4"),
        vllm(NIXL, "kv_consumer", "-tp $TP"),
    ),
    "blocks that one leaves to the engine": (
        vllm(NIXL, "kv_producer", "--block-size 16"),
        vllm(NIXL, "kv_consumer"),
    ),
    "releases where nothing is compared": (
        vllm("LMCacheConnectorV1", "kv_producer", release="0.20.0"),
        vllm("LMCacheConnectorV1", "kv_consumer", "-tp 3", release="0.21.0"),
    ),
    "context parallelism": (
        vllm(NIXL, "kv_producer", "-tp 4"),
        vllm(NIXL, "kv_consumer", "-tp 6 -dcp 2"),
    ),
    "tcp for Mooncake": (
        sglang("prefill"),
        sglang("decode", "--disaggregation-transfer-backend mooncake_tcp"),
    ),
    "attention data": (sglang("prefill", "--tp 8"), sglang("decode", "--tp 16 --attn-dp-size 16")),
    "stages before they were compared": (
        sglang("prefill", "--pp-size 2", "0.5.6"),
        sglang("decode", "--pp-size 4", "0.5.6"),
    ),
    "no transfer": (("vllm 0.33.0", "-tp 2"), ("sglang 0.5.23", "--disaggregation-mode null")),
}


@pytest.mark.parametrize("described", FINE.values(), ids=FINE)
def test_nothing_is_said_of_what_may_be_right(described: tuple[Role, ...]) -> None:
    assert told(checked(*described)) == []


WRONG: dict[str, tuple[tuple[Role, ...], list[str]]] = {
    "two engines": (
        (vllm(NIXL, "kv_producer"), sglang("decode", "--disaggregation-transfer-backend nixl")),
        [
            (
                "mandatory kv-halves-alike: "
                "engine 'second' receives its KV cache with nixl of SGLang, "
                "but engine 'first' has NixlConnector of vLLM"
            )
        ],
    ),
    "push and pull": (
        (vllm("NixlPushConnector", "kv_producer"), vllm(NIXL, "kv_consumer")),
        [
            (
                "mandatory kv-halves-alike: "
                "engine 'second' receives its KV cache with NixlConnector "
                "of vLLM, but engine 'first' has NixlPushConnector of vLLM"
            )
        ],
    ),
    "a both that receives from none": (
        (vllm(NIXL, "kv_producer", "-tp 4"), vllm(NIXL, "kv_both", "-tp 6")),
        [
            (
                "mandatory kv-halves-parallel: "
                "engine 'second' has tensor 6, but engine 'first' has "
                "tensor 4, and NIXL requires that one divides the other"
            )
        ],
    ),
    "P2P": (
        (
            vllm("P2pNcclConnector", "kv_producer", "-tp 4", "0.20.0"),
            vllm("P2pNcclConnector", "kv_consumer", "-tp 2", "0.20.0"),
        ),
        [
            (
                "mandatory kv-halves-parallel: "
                "engine 'second' has tensor 2, but engine 'first' has "
                "tensor 4, and P2pNcclConnector requires equal sizes"
            )
        ],
    ),
    "LMCache converts": (
        (
            vllm("LMCacheConnectorV1", "kv_producer", "--kv-cache-dtype fp8"),
            vllm("LMCacheConnectorV1", "kv_consumer", "--kv-cache-dtype bfloat16"),
        ),
        [
            (
                "advisory kv-halves-alike: "
                "engine 'second' has --kv-cache-dtype bfloat16, but engine "
                "'first' has fp8"
            )
        ],
    ),
    "pages before they were compared": (
        (sglang("prefill", "--page-size 64", "0.5.7"), sglang("decode", "--page-size 1", "0.5.7")),
        [
            (
                "advisory kv-halves-alike: "
                "engine 'second' has --page-size 1, but engine 'first' has "
                "64"
            )
        ],
    ),
    "a decode half without prefill": (
        (sglang("decode"), ("sglang 0.5.23", "--tp 2")),
        [
            (
                "advisory kv-halves-complete: "
                "engine 'first' receives its KV cache (mooncake), and no "
                "role of the serving sends one"
            )
        ],
    ),
}


@pytest.mark.parametrize(("described", "says"), WRONG.values(), ids=WRONG)
def test_what_cannot_work_is_said(described: tuple[Role, ...], says: list[str]) -> None:
    assert told(checked(*described)) == says


@pytest.mark.parametrize(("release", "level"), [("", "advisory"), ("0.33.0", "mandatory")])
def test_an_image_without_a_release_makes_it_advisory(release: str, level: str) -> None:
    found = checked(
        vllm(NIXL, "kv_producer", "-tp 4", release), vllm(NIXL, "kv_consumer", "-tp 6", release)
    )
    assert [finding.level for finding in found] == [level]


def test_the_comparison_of_nixl_can_be_switched_off() -> None:
    off = "--kv-transfer-config.kv_connector_extra_config.enforce_handshake_compat=false"
    decode = vllm(NIXL, "kv_consumer", release="0.32.0")

    assert len(checked(vllm(NIXL, "kv_producer"), decode)) == 1
    assert checked(vllm(NIXL, "kv_producer", off), decode) == []
