"""Serve two models with KAITO, on nodes that it creates: a preset, and a pod template."""

import pulumi
from kthena_components import EngineArgs, ModelServing, RoleArgs

# KAITO decides the parallelism. Other numbers are an error that names KAITO's.
engine: EngineArgs = {
    "kind": "vllm",
    "image": "mcr.microsoft.com/aks/kaito/kaito-base:0.4.2",
    "model": "meta-llama/Llama-3.3-70B-Instruct",
    "parallelism": {"tensor": 2, "pipeline": 2},
    "port": 5000,
    "extra_args": ["--max-model-len=8192"],
}
serve: RoleArgs = {
    "name": "serve",
    "worker_replicas": 1,
    "resources": {"gpus_per_pod": 2},
    "hugging_face_token": {"name": "hf-token"},
}
# Two engines of 2 nodes with 2 GPUs each.
chat = ModelServing(
    "chat",
    {
        "backend": "kaito",
        "backend_options": {
            "preset": "llama-3.3-70b-instruct",
            "instance_type": "Standard_NC48ads_A100_v4",
        },
        "replicas": 2,
        "scheduler_name": "default-scheduler",
        "roles": [{**serve, "engine": engine}],
        "expose": {"port": 80},
    },
)
pulumi.export("endpoint", chat.endpoint)

# Without a preset the pods are your own, with any image: one pod per engine.
own: EngineArgs = {"kind": "vllm", "image": "vllm/vllm-openai:v0.33.0", "model": "Qwen/Qwen3-8B"}
ModelServing(
    "small",
    {
        "backend": "kaito",
        "backend_options": {"instance_type": "Standard_NC24ads_A100_v4"},
        "scheduler_name": "default-scheduler",
        "roles": [{"name": "serve", "engine": own}],
    },
)
