"""Serve one model with 16 GPUs on 2 nodes. The files of the stacks have what differs."""

import pulumi

from kthena_components import EngineArgs, ModelServing, RoleArgs

config = pulumi.Config()
engine: EngineArgs = {
    "kind": "vllm",
    "image": "vllm/vllm-openai:v0.33.0",
    "model": "meta-llama/Llama-3.1-405B-Instruct-FP8",
    "parallelism": {"tensor": 8, "pipeline": 2},
}
pods: RoleArgs = {"name": "serve", "worker_replicas": 1, "resources": {"gpus_per_pod": 8}}
chat = ModelServing(
    "chat",
    {
        "replicas": config.require_int("replicas"),
        "roles": [{**pods, "engine": engine}],
        "expose": {"port": 80},
    },
)
pulumi.export("endpoint", chat.endpoint)
