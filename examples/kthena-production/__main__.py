"""Serve with Kthena: prefill and decode on a shared volume, its router and its autoscaler."""

import json
from typing import Any

import pulumi
from kthena_components import EngineArgs, ModelServing, RoleArgs

transfer = json.dumps({"kv_connector": "NixlConnector", "kv_role": "kv_both"})
engine: EngineArgs = {
    "kind": "vllm",
    "image": "vllm/vllm-openai:v0.33.0",
    "model": "/models/qwen3-32b",
    "extra_args": ["--served-model-name", "qwen3-32b", "--kv-transfer-config", transfer],
    "parallelism": {"tensor": 4},
}
# A claim that many pods read. It must exist, with the model in it.
claim = {"claimName": "models", "readOnly": True}
mount = {"name": "models", "mountPath": "/models", "readOnly": True}
# Decode engines ask the prefill engine for its cache at this address.
address = {
    "name": "VLLM_NIXL_SIDE_CHANNEL_HOST",
    "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}},
}
overlay = {
    "spec": {
        "containers": [{"name": "engine", "env": [address], "volumeMounts": [mount]}],
        "volumes": [{"name": "models", "persistentVolumeClaim": claim}],
    }
}
pods: RoleArgs = {"name": "", "engine": engine, "overlay": overlay}
pods["resources"] = {"gpus_per_pod": 4}
roles: list[RoleArgs] = [{**pods, "name": "prefill"}, {**pods, "name": "decode", "replicas": 2}]

options: dict[str, Any] = {
    # The router pairs a prefill and a decode engine of the same group.
    "model_server": {"kv_connector": {"type": "nixl"}, "traffic_policy": {"timeout": "10m"}},
    "model_route": {
        "model_name": "qwen3-32b",
        "rate_limit": {"output_tokens_per_unit": 1_000_000, "unit": "minute"},
    },
    # One prefill engine for one to four decode engines, by the requests that wait.
    "autoscaling": {
        "roles": {
            "prefill": {"min_replicas": 1, "max_replicas": 4},
            "decode": {"min_replicas": 1, "max_replicas": 8},
        },
        "ratio_constraint": {
            "numerator_role": "prefill",
            "denominator_role": "decode",
            "min_ratio": "0.25",
            "max_ratio": "1",
        },
        "metrics": [{"name": "waiting", "target_value": "5"}],
        "metric_sources": {"waiting": {"pod": {"name": "vllm:num_requests_waiting"}}},
    },
}
chat = ModelServing("chat", {"backend": "kthena", "roles": roles, "backend_options": options})
pulumi.export("serving", chat.urn)
