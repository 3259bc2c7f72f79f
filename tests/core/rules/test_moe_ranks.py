"""moe_ranks over sizes in a config file of TensorRT-LLM, and their releases."""

from typing import Any

import pytest

from kthena_components.checker.manifest import check_manifest
from kthena_components.core.facts.context import Context, gather
from kthena_components.core.findings import Level

IMAGE = "nvcr.io/nvidia/tensorrt-llm/release:"


def told(config: str, *words: str, release: str = "1.2.1") -> list[tuple[Level, str]]:
    """Return what the rule says of a Deployment whose engine reads a mounted config file."""
    data = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "engine"},
            "data": {"config.yaml": config}}  # fmt: skip
    container = {
        "name": "engine",
        "image": f"{IMAGE}{release}",
        "command": ["trtllm-serve", "m", *words, "--extra_llm_api_options", "/etc/e/config.yaml"],
        "resources": {"limits": {"nvidia.com/gpu": "8"}},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/e"}],
    }
    volume = {"name": "config", "configMap": {"name": "engine"}}
    labels = {"app": "engine"}
    body: dict[str, Any] = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "engine"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], "volumes": [volume]},
            },
        },
    }
    found = check_manifest(body, context=Context(config_maps=gather([data])))
    return [(one.level, one.seen) for one in found if one.rule == "moe-ranks"]


GRID = "moe_tensor_parallel_size: 2\nmoe_expert_parallel_size: "


@pytest.mark.parametrize(
    ("config", "words", "said"),
    [
        (f"{GRID}4", ["--tp_size", "8"], ""),
        (f"{GRID}8", ["--tp_size", "8"], "has MoE tensor 2 × expert 8 = 16, which is not tensor 8"),
        # Up to 1.2 the file overrides the command line.
        (f"{GRID}4\ntensor_parallel_size: 8", ["--tp_size", "4"], ""),
        ("moe_expert_parallel_size: 4", ["--tp_size", "8", "--ep_size", "3"], ""),
        ("moe_expert_parallel_size: 3", ["--tp_size", "8", "--ep_size", "4"], "has expert 3"),
        ("moe_expert_parallel_size: -1", ["--tp_size", "8"], ""),
        ("moe_cluster_parallel_size: 3", ["--tp_size", "8"], "has cluster 3"),
        # The expert size follows from the others.
        ("moe_tensor_parallel_size: 2", ["--tp_size", "4", "--cp_size", "2"], "has expert 2 with"),
        (f"{GRID}4\ndwdp_config: {{dwdp_size: 4}}", ["--tp_size", "2"], ""),
    ],
)
def test_sizes_in_a_config_file(config: str, words: list[str], said: str) -> None:
    found = told(config, *words)
    assert [level for level, _ in found] == [Level.MANDATORY] * bool(said)
    assert all(said in seen for _, seen in found)


@pytest.mark.parametrize(
    ("expert", "said"), [(8, ""), (16, "has expert 16, which does not divide tensor 4 × context 2")]
)
def test_another_kind_of_context_parallelism_shares_the_experts(expert: int, said: str) -> None:
    config = f"cp_config: {{cp_type: HELIX}}\nmoe_expert_parallel_size: {expert}"
    found = told(config, "--tp_size", "4", "--cp_size", "2")
    assert [level for level, _ in found] == [Level.ADVISORY] * bool(said)
    assert all(said in seen for _, seen in found)


@pytest.mark.parametrize(("size", "said"), [("-1", ""), ("0", "has expert 0"), ("1", "")])
def test_a_size_that_is_left_to_the_engine(size: str, said: str) -> None:
    found = told("{}", "--tp_size", "8", "--ep_size", size)
    assert [level for level, _ in found] == [Level.MANDATORY] * bool(said)
    assert all(said in seen for _, seen in found)
