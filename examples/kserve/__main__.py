"""Serve one model with KServe: an engine on 2 nodes, with its weights on a volume."""

import pulumi
from kthena_components import EngineArgs, ModelServing, RoleArgs

engine: EngineArgs = {
    "kind": "vllm",
    "image": "vllm/vllm-openai:v0.33.0",
    # KServe mounts the volume of storage_uri here.
    "model": "/mnt/models",
    "extra_args": ["--served-model-name", "llama-405b"],
    "parallelism": {"tensor": 8, "pipeline": 2},
}
serve: RoleArgs = {"name": "serve", "worker_replicas": 1, "resources": {"gpus_per_pod": 8}}
chat = ModelServing(
    "chat",
    {
        "backend": "kserve",
        "scheduler_name": "default-scheduler",
        # KServe 0.20.0 deletes workers; this says that the cluster has pull request 5899.
        "backend_options": {"storage_uri": "pvc://llama/405b", "keeps_workers": True},
        "roles": [{**serve, "engine": engine}],
        "expose": {"port": 80},
    },
)
pulumi.export("endpoint", chat.endpoint)
