"""Manifests of RoleBasedGroup, Grove and Dynamo as their guides write them, cut down to counts."""

from typing import Any

from kthena_components.core.facts.container import SHM_PATH
from tests.support.peers import GPU, Manifest, gpus
from tests.support.specs import image_of

SGLANG = [
    *("python3", "-m", "sglang.launch_server", "--model-path", "Qwen/Qwen3-0.6B"),
    *("--tp-size", "16", "--dist-init-addr", "$(RBG_LWP_LEADER_ADDRESS):6379"),
    *("--nnodes", "$(RBG_LWP_GROUP_SIZE)", "--node-rank", "$(RBG_LWP_WORKER_INDEX)"),
]


def pod(name: str, command: list[str] | None = None, count: object = None, **spec: Any) -> Manifest:
    """Give a pod template of one container with an image that is pinned, and memory to share."""
    container: Manifest = {"name": name, "image": image_of(" ".join(command or ["sglang"]))}
    if command is not None:
        container["command"] = command
    if count is not None:
        container["resources"] = gpus(count)
        container["volumeMounts"] = [{"name": "dshm", "mountPath": SHM_PATH}]
        spec.setdefault("volumes", [{"name": "dshm", "emptyDir": {"medium": "Memory"}}])
    return {"spec": {"containers": [container], **spec}}


def rbg(*roles: Manifest, gang: bool = True, **spec: Any) -> Manifest:
    """Give a RoleBasedGroup."""
    annotations = {"rbg.workloads.x-k8s.io/group-gang-scheduling": "true"} if gang else {}
    return {
        "apiVersion": "workloads.x-k8s.io/v1alpha2",
        "kind": "RoleBasedGroup",
        "metadata": {"name": "qwen", "annotations": annotations},
        "spec": {"roles": list(roles), **spec},
    }


ROUTER: Manifest = {
    "name": "router",
    "replicas": 1,
    "standalonePattern": {
        "template": pod("router", ["python3", "-m", "sglang_router.launch_router"])
    },
}
BACKEND: Manifest = {
    "name": "backend",
    "replicas": 1,
    "dependencies": ["router"],
    "rolloutStrategy": {"rollingUpdate": {"type": "InPlaceIfPossible", "maxUnavailable": 1}},
    "leaderWorkerPattern": {
        "size": 2,
        "template": pod("sglang", SGLANG, "8"),
        "leaderTemplatePatch": {"metadata": {"labels": {"role": "leader"}}},
        "workerTemplatePatch": {"metadata": {"labels": {"role": "worker"}}},
    },
}
RBG = rbg(ROUTER, BACKEND)
"""A router, and an engine of 2 pods of 8 GPUs."""

RBG_SHARED = rbg(
    {
        "name": "backend",
        "leaderWorkerPattern": {
            "size": 2,
            "templateRef": {
                "name": "base",
                "patch": {
                    "spec": {
                        "containers": [
                            {"name": "sglang", "command": SGLANG, "resources": gpus("8")}
                        ]
                    }
                },
            },
        },
    },
    roleTemplates=[{"name": "base", "template": pod("sglang")}],
)
"""The same engine from a shared template and a patch."""

RBG_OLD: Manifest = {
    **rbg(
        {
            "name": "backend",
            "workload": {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet"},
            "leaderWorkerSet": {"size": 2},
            "template": pod("sglang", SGLANG, "8"),
        },
        gang=False,
        podGroupPolicy={"volcanoScheduling": {"queue": "research"}},
    ),
    "apiVersion": "workloads.x-k8s.io/v1alpha1",
}
"""The same engine as v1alpha1 writes it."""

RAY_HEAD = "ray start --head --port=6379 && vllm serve m -tp 8 -pp 2"
RAY_HEAD += " --distributed-executor-backend ray"
RBG_COMPONENTS = rbg(
    {
        "name": "engine",
        "customComponentsPattern": {
            "components": [
                {"name": "router", "size": 1, "template": pod("router", ["nginx"])},
                {"name": "head", "size": 1, "template": pod("e", ["sh", "-c", RAY_HEAD], 8)},
                {
                    "name": "worker",
                    "size": 1,
                    "template": pod(
                        "e", ["sh", "-c", "ray start --block --address=qwen-head:6379"], 8
                    ),
                },
            ]
        },
    }
)
RBG_SET: Manifest = {
    "apiVersion": "workloads.x-k8s.io/v1alpha2",
    "kind": "RoleBasedGroupSet",
    "metadata": {"name": "qwens"},
    "spec": {
        "replicas": 2,
        "groupTemplate": {
            "annotations": {"rbg.workloads.x-k8s.io/group-gang-scheduling": "true"},
            "spec": {"roles": [ROUTER, BACKEND]},
        },
    },
}

FIRST = "$GROVE_PCSG_NAME-$GROVE_PCSG_INDEX-leader-0.$GROVE_HEADLESS_SERVICE"
NODES = f"--nnodes $GROVE_PCSG_TEMPLATE_NUM_PODS --master-addr {FIRST}"
LEADER = f"vllm serve m -tp 8 -pp 4 {NODES} --node-rank 0"
WORKER = f"vllm serve m -tp 8 -pp 4 {NODES} --node-rank $((GROVE_PCLQ_POD_INDEX + 1)) --headless"


def clique(name: str, command: str, replicas: int, count: object = None, **spec: Any) -> Manifest:
    """Give a clique of a PodCliqueSet whose pods run a shell script."""
    template = pod(name, ["sh", "-c", command], count)
    return {
        "name": name,
        "spec": {"roleName": name, "replicas": replicas, "podSpec": template["spec"], **spec},
    }


GROVE: Manifest = {
    "apiVersion": "grove.io/v1alpha1",
    "kind": "PodCliqueSet",
    "metadata": {"name": "llama"},
    "spec": {
        "replicas": 1,
        "template": {
            "cliqueStartupType": "CliqueStartupTypeExplicit",
            "cliques": [
                clique("frontend", "python3 -m http.server", 2, minAvailable=1),
                clique("leader", LEADER, 1, 8),
                clique("worker", WORKER, 3, 8, startsAfter=["leader"]),
            ],
            "podCliqueScalingGroups": [
                {"name": "engine", "cliqueNames": ["leader", "worker"], "replicas": 2}
            ],
        },
    },
}
"""Engines of 4 pods of 8 GPUs: a leader and 3 workers, scaled together."""


def service(count: object, *args: str, nodes: object = None, **fields: Any) -> Manifest:
    """Give a worker of a graph of v1alpha1."""
    main = {"image": "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.0.1", "workingDir": "/workspace"}
    run = {"command": ["python3", "-m", "dynamo.vllm"], "args": ["--model", "m", *args]}
    multinode = {} if nodes is None else {"multinode": {"nodeCount": nodes}}
    return {
        "componentType": "worker",
        "replicas": 1,
        "resources": {"limits": {"gpu": count}},
        "extraPodSpec": {"mainContainer": {**main, **run}},
        **multinode,
        **fields,
    }


TENSOR, PIPELINE, DATA = (f"--{word}-parallel-size" for word in ("tensor", "pipeline", "data"))
FRONTEND: Manifest = {
    "componentType": "frontend",
    "replicas": 1,
    "extraPodSpec": {
        "mainContainer": {
            "image": "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.0.1",
            "command": ["python3", "-m", "dynamo.frontend"],
        }
    },
}
DYNAMO: Manifest = {
    "apiVersion": "nvidia.com/v1alpha1",
    "kind": "DynamoGraphDeployment",
    "metadata": {"name": "vllm-disagg"},
    "spec": {
        "services": {
            "Frontend": FRONTEND,
            "decode": service("8", TENSOR, "8", PIPELINE, "2", nodes=2),
            "prefill": service("8", TENSOR, "4", DATA, "8", nodes=4),
        }
    },
}
"""Decode over 2 pods of 8 GPUs, prefill as 8 copies of 4 GPUs on 4 pods."""


def component(name: str, count: object, *command: str, **fields: Any) -> Manifest:
    """Give a worker of a graph of v1beta1."""
    container = {
        "name": "main",
        "image": "nvcr.io/nvidia/ai-dynamo/sglang-runtime:1.0.1",
        "command": ["python3", "-m"],
        "args": list(command),
        "resources": {"limits": {GPU: count}},
    }
    template = {"spec": {"containers": [container]}}
    return {"name": name, "type": "worker", "replicas": 1, "podTemplate": template, **fields}


SGLANG_ARGS = ("dynamo.sglang", "--model-path", "m", "--tp-size", "16")
DYNAMO_BETA: Manifest = {
    "apiVersion": "nvidia.com/v1beta1",
    "kind": "DynamoGraphDeployment",
    "metadata": {"name": "sglang-agg"},
    "spec": {
        "components": [
            {
                "name": "Frontend",
                "type": "frontend",
                "podTemplate": {"spec": {"containers": [{"name": "main", "image": "r:1.0"}]}},
            },
            component("decode", "8", *SGLANG_ARGS, multinode={"nodeCount": 2}),
        ]
    },
}
DYNAMO_ONE: Manifest = {
    "apiVersion": "nvidia.com/v1alpha1",
    "kind": "DynamoComponentDeployment",
    "metadata": {"name": "decode"},
    "spec": {"serviceName": "decode", "backendFramework": "vllm", **service("4", TENSOR, "4")},
}
GROVE_RICH: Manifest = {
    "apiVersion": "grove.io/v1alpha1",
    "kind": "PodCliqueSet",
    "metadata": {"name": "rich"},
    "spec": {
        "template": {
            "cliqueStartupType": "CliqueStartupTypeInOrder",
            "cliques": [
                clique(
                    "alone",
                    "vllm serve m -tp 8",
                    2,
                    8,
                    minAvailable=1,
                    autoScalingConfig={"minReplicas": 1, "maxReplicas": 4},
                ),
                clique(
                    "ranks", "vllm serve m -tp 8 -pp 2 --nnodes 2 --node-rank $RANK $MORE", 2, 8
                ),
            ],
            "podCliqueScalingGroups": [
                {
                    "name": "pair",
                    "cliqueNames": ["ranks"],
                    "minAvailable": 1,
                    "scaleConfig": {"minReplicas": 1, "maxReplicas": 3},
                }
            ],
        }
    },
}
DYNAMO_RICH: Manifest = {
    "apiVersion": "nvidia.com/v1alpha1",
    "kind": "DynamoGraphDeployment",
    "metadata": {
        "name": "rich",
        "annotations": {"nvidia.com/vllm-distributed-executor-backend": "ray"},
    },
    "spec": {
        "envs": [{"name": "A", "value": "b"}],
        "priorityClassName": "high",
        "topologyConstraint": {"packDomain": "zone"},
        "restart": {"id": "1", "strategy": {"type": "Sequential", "order": ["picker", "decode"]}},
        "services": {
            "picker": {"componentType": "epp", "replicas": 1},
            "decode": service(
                "8",
                *(TENSOR, "16"),
                nodes=2,
                minAvailable=1,
                topologyConstraint={"packDomain": "rack"},
                gpuMemoryService={"enabled": True},
                envs=[{"name": "B", "value": "c"}],
                annotations={},
                sharedMemory={"size": "16Gi"},
            ),
        },
    },
}
GOOD = (
    *(RBG, RBG_SHARED, RBG_OLD, RBG_COMPONENTS, RBG_SET),
    *(GROVE, GROVE_RICH, DYNAMO, DYNAMO_RICH, DYNAMO_BETA, DYNAMO_ONE),
)
"""Correct manifests of every kind."""
