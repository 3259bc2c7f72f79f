"""Serve one model with MatrixInfer: two engines of 2 nodes; a failed pod recreates its group."""

import pulumi
from kthena_components import EngineArgs, ModelServing, RoleArgs

engine: EngineArgs = {
    "kind": "vllm",
    "image": "vllm/vllm-openai:v0.33.0",
    "model": "meta-llama/Llama-3.1-405B-Instruct-FP8",
    "parallelism": {"tensor": 8, "pipeline": 2},
}
serve: RoleArgs = {"name": "serve", "worker_replicas": 1, "resources": {"gpus_per_pod": 8}}
chat = ModelServing(
    "chat",
    {
        "backend": "matrixinfer",
        # The group of `kubectl api-resources`; without this: workload.matrixinfer.ai.
        "backend_options": {"api_group": "workload.volcano.sh"},
        "replicas": 2,
        "roles": [{**serve, "engine": engine}],
        "gang_policy": {"min_role_replicas": {"serve": 1}},
        "recovery_policy": "ServingGroupRecreate",
        "restart_grace_period_seconds": 60,
        "expose": {"port": 80},
    },
)
pulumi.export("endpoint", chat.endpoint)
