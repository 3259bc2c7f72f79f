"""Servings with monitoring, one for each way in which a backend writes pods."""

import json
from collections.abc import Mapping
from typing import Any, Final

from kthena_components.compiler.compile import Compiled, compile_serving
from tests.support.specs import (
    ENGINE_NATIVE,
    PREFILL_DECODE,
    REMOVED,
    SGLANG,
    Args,
    changed,
    example_for,
)

_SCALED = {"min_replicas": 1, "max_replicas": 8}
_POD = {"name": "vllm:num_requests_waiting"}
_ROLES = {
    "autoscaling": {
        "roles": {"decode": _SCALED},
        "metrics": [{"name": "waiting", "target_value": "5"}],
        "metric_sources": {"waiting": {"pod": _POD}},
    }
}
_LLM = {
    "backend": "kserve",
    "backend_options": {"kind": "LLMInferenceService"},
    "network_topology": REMOVED,
    "gang_policy": REMOVED,
}
_SERVINGS: Final[Mapping[str, Args]] = {
    "native": PREFILL_DECODE,
    "native sglang": SGLANG,
    "kthena": changed(ENGINE_NATIVE, {"backend": "kthena"}),
    "kthena autoscaled": changed(ENGINE_NATIVE, {"backend": "kthena", "autoscaled": True}),
    "kthena roles": changed(PREFILL_DECODE, {"backend": "kthena", "backend_options": _ROLES}),
    "matrixinfer": example_for("matrixinfer", "prefill-decode"),
    "lws": example_for("lws", "engine-native"),
    "lws roles": example_for("lws", "prefill-decode"),
    "kaito": example_for("kaito", "native-8b"),
    "kaito preset": changed(example_for("kaito", "engine-native"), {"replicas": 1}),
    "kaito set": example_for("kaito", "engine-native"),
    "kserve": example_for("kserve", "native-8b"),
    "kserve several": example_for("kserve", "engine-ray"),
    "kserve llm": changed(PREFILL_DECODE, _LLM),
}
MONITORED: Final = {name: changed(args, {"monitoring": True}) for name, args in _SERVINGS.items()}
"""By backend, and by what is special."""


def compiled(name: str, changes: Mapping[str, Any] | None = None) -> Compiled:
    return compile_serving(changed(MONITORED[name], changes))


def made(one: Compiled, kind: str) -> list[Any]:
    """Give the objects of a kind, as a cluster would get them."""
    bodies = [manifest.body for manifest in one.manifests if manifest.kind == kind]
    return list(json.loads(json.dumps(bodies)))


def alerts(one: Compiled) -> list[Any]:
    rules = made(one, "PrometheusRule")
    return [rule for body in rules for group in body["spec"]["groups"] for rule in group["rules"]]


def dashboard(one: Compiled) -> Any:
    texts = [
        text
        for body in made(one, "ConfigMap")
        if body["metadata"].get("labels", {}).get("grafana_dashboard")
        for text in body["data"].values()
    ]
    (text,) = texts
    return json.loads(text)


def expressions(one: Compiled) -> list[str]:
    """Give what the dashboard of a serving asks Prometheus for."""
    return [
        target["expr"] for panel in dashboard(one)["panels"] for target in panel.get("targets", [])
    ]
