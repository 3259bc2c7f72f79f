"""Use a ServingGroup and a Role without a ModelServing, for programs that combine them."""

import pulumi
from kthena_components import EngineArgs, Role, RoleArgs, ServingGroup

engine: EngineArgs = {
    "kind": "vllm",
    "image": "vllm/vllm-openai:v0.33.0",
    "model": "Qwen/Qwen2.5-72B-Instruct",
    "parallelism": {"tensor": 8, "pipeline": 2},
}
# A group has its own gang: both pods start together, or neither.
serve: RoleArgs = {"name": "serve", "worker_replicas": 1, "resources": {"gpus_per_pod": 8}}
group = ServingGroup("batch", {"roles": [{**serve, "engine": engine}]})

# A role alone has no gang. This role has one pod and needs none; others join one with pod_group.
small: EngineArgs = {**engine, "parallelism": {"tensor": 8}}
role = Role("draft", {"serving": "batch-draft", "engine": small, "resources": {"gpus_per_pod": 8}})
pulumi.export("addresses", role.addresses)
