"""Define the racks of the cluster, reserve GPUs in a queue, and keep a serving inside one rack."""

import pulumi
from kthena_components import EngineArgs, HyperNodeTopology, ModelServing, Queue, RoleArgs

# The tree follows from labels of the nodes. With hyper_nodes, you list the tree yourself.
racks = {"gpu-1": "r1", "gpu-2": "r1", "gpu-3": "r2", "gpu-4": "r2"}
network = HyperNodeTopology("network", {"inventory": {
    "nodes": [{"name": n, "labels": {"rack": r, "room": "a"}} for n, r in racks.items()],
    "tiers": [{"label": "rack"}, {"label": "room"}],
}})  # fmt: skip
queue = Queue("research", {"weight": 2, "capability": {"nvidia.com/gpu": 16}})
engine: EngineArgs = {
    "kind": "vllm",
    "image": "vllm/vllm-openai:v0.33.0",
    "model": "meta-llama/Llama-3.1-405B-Instruct-FP8",
    "parallelism": {"tensor": 8, "pipeline": 2},
}
pods: RoleArgs = {"name": "serve", "worker_replicas": 1, "resources": {"gpus_per_pod": 8}}
chat = ModelServing("chat", {
    "roles": [{**pods, "engine": engine}],
    "queue": queue.name,
    "network_topology": {"group_policy": {"mode": "hard", "highest_tier_allowed": 1}},
}, pulumi.ResourceOptions(depends_on=network))  # fmt: skip
pulumi.export("tiers", network.tiers)
