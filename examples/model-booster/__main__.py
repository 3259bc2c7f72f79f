"""Serve one model with Kthena's ModelBooster: prefill and decode, which share the KV cache."""

import pulumi
from kthena_components import EngineArgs, ModelServing, RoleArgs

engine: EngineArgs = {
    "kind": "vllm",
    # It must contain NIXL: the backend prevents that Kthena installs it at each start.
    "image": "vllm/vllm-openai:v0.33.0",
    "model": "Qwen/Qwen3-32B",
    "port": 8000,
    "parallelism": {"tensor": 8},
}
engines: RoleArgs = {
    "name": "prefill",
    "resources": {"gpus_per_pod": 8},
    "cache": {"claim": "models", "download": True},
}
chat = ModelServing(
    "chat",
    {
        "backend": "booster",
        "roles": [
            {
                **engines,
                "engine": {**engine, "kv_transfer": {"role": "prefill", "connector": "nixl"}},
            },
            {
                **engines,
                "name": "decode",
                "replicas": 2,
                "engine": {**engine, "kv_transfer": {"role": "decode", "connector": "nixl"}},
            },
        ],
    },
)
pulumi.export("gpus", chat.gpu_count)
# Without a cluster: pulumi config set kubernetes:renderYamlToDirectory rendered
