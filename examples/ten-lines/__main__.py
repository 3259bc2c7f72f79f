"""Serve one model with 16 GPUs on 2 nodes. No controller is needed but Volcano's scheduler."""

import pulumi

from kthena_components import ModelServing

engine = {
    "kind": "vllm",
    "image": "vllm/vllm-openai:v0.10.1",
    "model": "meta-llama/Llama-3.1-405B-Instruct-FP8",
    "parallelism": {"tensor": 8, "pipeline": 2},
}
role = {"name": "serve", "worker_replicas": 1, "engine": engine, "resources": {"gpus_per_pod": 8}}
chat = ModelServing("chat", {"roles": [role], "expose": {"port": 80}})
pulumi.export("endpoint", chat.endpoint)
