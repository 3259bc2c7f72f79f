"""Use the parts of a ModelServing by themselves, where a program wires them on its own."""

import pulumi
from kthena_components import Role, ServingGroup

engine: EngineArgs = {
    "kind": "vllm",
    "image": "vllm/vllm-openai:v0.10.1",
    "model": "Qwen/Qwen2.5-72B-Instruct",
    "parallelism": {"tensor": 8, "pipeline": 2},
}
pods = {"worker_replicas": 1, "engine": engine, "resources": {"gpus_per_pod": 8}}

# A group brings its own gang: both pods start together, or neither.
group = ServingGroup("batch", {"roles": [{"name": "serve", **pods}]})

# A role alone joins the gang of a PodGroup that somebody else makes, or none.
role = Role("draft", {"serving": "batch", "group": 1, "pod_group": "batch-0", **pods})
pulumi.export("addresses", role.addresses)
