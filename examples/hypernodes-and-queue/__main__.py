"""Tell Volcano the racks of the cluster, reserve a share, and keep a serving inside one rack."""

import pulumi
from kthena_components import (
    EngineArgs,
    HyperNodeTopology,
    ModelServing,
    Queue,
    RoleArgs,
)

# In place of hyper_nodes: a platform team usually has its nodes with their labels in a list.
nodes = [
    {
        "name": f"gpu-{rack}-{slot}",
        "labels": {"example.com/rack": f"r{rack}", "example.com/room": "a"},
    }
    for rack in (1, 2)
    for slot in (1, 2)
]
tiers = [{"label": "example.com/rack"}, {"label": "example.com/room"}]
network = HyperNodeTopology("network", {"inventory": {"nodes": nodes, "tiers": tiers}})
queue = Queue("research", {"weight": 2, "capability": {"nvidia.com/gpu": 16}})
engine: EngineArgs = {
    "kind": "vllm",
    "image": "vllm/vllm-openai:v0.10.1",
    "model": "meta-llama/Llama-3.1-405B-Instruct-FP8",
    "parallelism": {"tensor": 8, "pipeline": 2},
}
role: RoleArgs = {
    "name": "serve",
    "worker_replicas": 1,
    "engine": engine,
    "resources": {"gpus_per_pod": 8},
}
one_rack = {"group_policy": {"mode": "hard", "highest_tier_allowed": 1}}
args = {"roles": [role], "queue": "research", "network_topology": one_rack}
after = pulumi.ResourceOptions(depends_on=[network, queue])
chat = ModelServing("chat", args, after)
pulumi.export("tiers", network.tiers)
