"""Goldens: what a serving is written as, in files that `kubectl apply -f` takes.

`python -m tests.support.goldens --update` writes them anew.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from kthena_components.compiler.compile import compile_serving
from tests.support.specs import (
    ENGINE_NATIVE,
    ENGINE_RAY,
    GUIDE,
    NATIVE_8B,
    PAIR,
    PREFILL_DECODE,
    REMOVED,
    SGLANG,
    Args,
    changed,
    example_for,
)

FOLDER: Final = Path(__file__).parent.parent / "goldens"
_KTHENA = {"backend": "kthena", "restart_grace_period_seconds": 60}
_UPDATE = "rollout_strategy.rolling_update_configuration"
_SURGE = {"max_unavailable": 0, "max_surge": 1, "partition": 1}
_PROTECTED = {"recovery_policy": "ServingGroupRecreate", f"{_UPDATE}.partition": 1}
_EXPOSED = {"expose": {"port": 80}}
_TOPOLOGY = {"network_topology.group_policy.highest_tier_allowed": 1}

_FLAGS = {"roles[0].engine.extra_args": ["--max-model-len", "8192", "--seed=1"]}
_PRODUCT = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
_EXISTING = {
    "backend_options": {"preset": "meta-llama/Llama-3.1-405B-Instruct", "label_selector": _PRODUCT}
}
_PRODUCTION = {
    "autoscaling": {
        "roles": {
            "prefill": {"min_replicas": 1, "max_replicas": 8},
            "decode": {"min_replicas": 1, "max_replicas": 4},
        },
        "metrics": [{"name": "waiting", "target_value": "5"}],
        "metric_sources": {"waiting": {"pod": {"name": "vllm:num_requests_waiting"}}},
    },
    "model_server": {"kv_connector": {"type": "nixl"}, "traffic_policy": {"timeout": "10m"}},
    "model_route": {"model_name": "qwen", "rate_limit": {"output_tokens_per_unit": 100_000}},
}
_BOUND = {
    "min_replicas": 1,
    "max_replicas": 4,
    "metrics": [{"name": "vllm:num_requests_waiting", "target_value": "5"}],
    "metric_sources": {"vllm:num_requests_waiting": {"pod": {}}},
}

CASES: Final[Mapping[str, Args]] = {
    "native/guide": GUIDE,
    "native/engine-ray": ENGINE_RAY,
    "native/engine-native": ENGINE_NATIVE,
    "native/native-8b": NATIVE_8B,
    "native/sglang": SGLANG,
    "native/prefill-decode": PREFILL_DECODE,
    "native/pair": PAIR,
    "kthena/guide": changed(GUIDE, _KTHENA),
    "kthena/guide-0.1": changed(GUIDE, {**_KTHENA, **_TOPOLOGY, "kthena_version": "0.1"}),
    "kthena/guide-0.3": changed(GUIDE, {**_KTHENA, **_TOPOLOGY, "kthena_version": "0.3"}),
    "kthena/guide-1.0": changed(GUIDE, {**_KTHENA, **_TOPOLOGY, "queue": "research"}),
    "kthena/engine-ray": changed(ENGINE_RAY, {"backend": "kthena"}),
    "kthena/engine-native": changed(ENGINE_NATIVE, {"backend": "kthena"}),
    "kthena/prefill-decode": changed(PREFILL_DECODE, {"backend": "kthena"}),
    "kthena/production": changed(
        PREFILL_DECODE, {"backend": "kthena", "backend_options": _PRODUCTION}
    ),
    "kthena/autoscaling-0.4": changed(
        ENGINE_NATIVE,
        {"backend": "kthena", "kthena_version": "0.4", "backend_options": {"autoscaling": _BOUND}},
    ),
    "kthena/pair": changed(PAIR, {"backend": "kthena"}),
    "booster/native-8b": example_for("booster", "native-8b"),
    "booster/engine-ray": example_for("booster", "engine-ray"),
    "booster/prefill-decode": example_for("booster", "prefill-decode"),
    "lws/guide": example_for("lws", "guide"),
    "lws/native-8b": example_for("lws", "native-8b"),
    "lws/engine-surge": changed(example_for("lws", "engine-native"), {_UPDATE: _SURGE}),
    "lws/prefill-decode": changed(example_for("lws", "prefill-decode"), {"queue": "research"}),
    "matrixinfer/guide": changed(
        example_for("matrixinfer", "guide"), {"restart_grace_period_seconds": 60, **_TOPOLOGY}
    ),
    "matrixinfer/engine-native": changed(example_for("matrixinfer", "engine-native"), _PROTECTED),
    "matrixinfer/prefill-decode": example_for("matrixinfer", "prefill-decode"),
    "kaito/template": example_for("kaito", "native-8b"),
    "kaito/preset": changed(example_for("kaito", "engine-native"), {"replicas": 1, **_FLAGS}),
    "kaito/preset-set": changed(example_for("kaito", "engine-native"), _EXISTING),
    "prometheus/native-pair": changed(PAIR, {"monitoring": True}),
    "prometheus/lws-sglang": changed(example_for("lws", "sglang"), {"monitoring": True}),
    "kserve/native-8b": changed(example_for("kserve", "native-8b"), _EXPOSED),
    "kserve/engine-ray": changed(example_for("kserve", "engine-ray"), _EXPOSED),
    "kserve/prefill-decode": changed(
        PREFILL_DECODE,
        {
            "backend": "kserve",
            "backend_options": {"kind": "LLMInferenceService"},
            "network_topology": REMOVED,
            "gang_policy": REMOVED,
        },
    ),
    "kserve/sglang": changed(example_for("kserve", "sglang"), {_UPDATE: {"max_surge": 1}}),
}
"""File below FOLDER, without its ending, and the serving that is written there."""


def render(args: Args) -> str:
    """Write what is emitted for a serving as YAML documents."""
    bodies = [manifest.body for manifest in compile_serving(args).manifests]
    # Through JSON, or YAML would write a value that occurs twice as an anchor.
    plain = json.loads(json.dumps(bodies))
    return yaml.dump_all(plain, Dumper=_Dumper, sort_keys=False, width=100, explicit_start=True)


class _Dumper(yaml.SafeDumper):
    """Writes a string of several lines as such."""


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def path_of(case: str) -> Path:
    """Give the file of a case."""
    return FOLDER / f"{case}.yaml"


def read(case: str) -> list[dict[str, Any]]:
    """Read the objects of a golden file."""
    return list(yaml.safe_load_all(path_of(case).read_text()))


def stray_files() -> list[str]:
    """Name the files that belong to no case."""
    known = {path_of(case) for case in CASES}
    return sorted(
        str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.*") if path not in known
    )


def update() -> None:
    """Write every golden anew, and take away the ones that belong to no case."""
    for name in stray_files():
        (FOLDER / name).unlink()
    for case, args in CASES.items():
        path_of(case).parent.mkdir(parents=True, exist_ok=True)
        path_of(case).write_text(render(args))


if __name__ == "__main__":
    if sys.argv[1:] != ["--update"]:
        sys.exit("usage: python -m tests.support.goldens --update")
    update()
