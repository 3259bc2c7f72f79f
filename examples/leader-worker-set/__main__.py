"""Serve one model with LeaderWorkerSet: two engines of 2 nodes, and a third one during updates."""

import pulumi
from kthena_components import EngineArgs, ModelServing, RoleArgs, RolloutStrategyArgs

engine: EngineArgs = {
    "kind": "vllm",
    "image": "vllm/vllm-openai:v0.33.0",
    "model": "meta-llama/Llama-3.1-405B-Instruct-FP8",
    "parallelism": {"tensor": 8, "pipeline": 2},
}
serve: RoleArgs = {"name": "serve", "worker_replicas": 1, "resources": {"gpus_per_pod": 8}}
# An update starts a new engine first, and stops an old one when the new one serves.
rollout: RolloutStrategyArgs = {
    "rolling_update_configuration": {"max_unavailable": 0, "max_surge": 1}
}
chat = ModelServing(
    "chat",
    {
        "backend": "lws",
        "replicas": 2,
        "roles": [{**serve, "engine": engine}],
        "rollout_strategy": rollout,
        "expose": {"port": 80},
    },
)
pulumi.export("endpoint", chat.endpoint)
# Without a cluster: pulumi config set kubernetes:renderYamlToDirectory rendered
