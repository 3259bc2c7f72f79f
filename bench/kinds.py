"""Growing lists in each kind of object: see `shapes`."""

from collections.abc import Callable, Mapping
from datetime import date
from typing import Final

from bench.shapes import GPUS, Body, Shape, Work, container, custom, judged, workload
from kthena_components.checker.manifest import check_manifest
from kthena_components.systems.volcano.emit_cluster import compile_topology


def _role(i: int) -> Body:
    template = {"spec": {"containers": [container("e")]}}
    return {"name": f"r{i}", "replicas": 1, "workerReplicas": 0, "entryTemplate": template}


def model_serving(n: int, name: str = "chat") -> Body:
    """Return a ModelServing with some roles."""
    template = {"roles": [_role(i) for i in range(n)]}
    version = "workload.serving.volcano.sh/v1alpha1"
    return custom(version, "ModelServing", {"replicas": 1, "template": template}, name)


def _misplaced(n: int) -> Body:
    pods = workload(*(container(f"e{i}", tolerations=[]) for i in range(n)))
    template = pods["spec"]["template"]
    template["volumes"] = [{"name": "a", "emptyDir": {}}]
    return pods


def _hyper_node(member: Callable[[int], Body]) -> Shape:
    def make(n: int) -> Body:
        members = [{"type": "Node", "selector": member(i)} for i in range(n)]
        return custom("topology.volcano.sh/v1alpha1", "HyperNode", {"tier": 1, "members": members})

    return judged(make)


def _ray_cluster(n: int) -> Body:
    template = {"spec": {"containers": [container("ray", "true")]}}
    groups = [{"groupName": f"g{i}", "replicas": 1, "rayStartParams": {}, "template": template}
              for i in range(n)]  # fmt: skip
    head = {"spec": {"containers": [container("ray")]}}
    spec = {"headGroupSpec": {"rayStartParams": {}, "template": head}, "workerGroupSpecs": groups}
    return custom("ray.io/v1", "RayCluster", spec)


def _role_based_group(n: int) -> Body:
    template = {"spec": {"containers": [container("e")]}}
    roles = [{"name": f"r{i}", "replicas": 1, "dependencies": [f"x{i}"],
              "standalonePattern": {"template": template}} for i in range(n)]  # fmt: skip
    return custom("workloads.x-k8s.io/v1alpha2", "RoleBasedGroup", {"roles": roles})


def _pod_clique_set(n: int) -> Body:
    pods = {"containers": [container("e")]}
    cliques = [{"name": f"c{i}", "spec": {"roleName": f"c{i}", "replicas": 1, "podSpec": pods,
                "startsAfter": [f"x{i}"]}} for i in range(n)]  # fmt: skip
    groups = [{"name": f"g{i}", "cliqueNames": [f"c{i}", f"y{i}"]} for i in range(n)]
    template = {"cliqueStartupType": "CliqueStartupTypeExplicit", "cliques": cliques,
                "podCliqueScalingGroups": groups}  # fmt: skip
    return custom("grove.io/v1alpha1", "PodCliqueSet", {"replicas": 1, "template": template})


def _dynamo(n: int) -> Body:
    worker = {"image": "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.0.1",
              "command": ["python3", "-m", "dynamo.vllm", "--model", "m"]}  # fmt: skip
    service = {"componentType": "worker", "replicas": 1, "resources": {"limits": {"gpu": "1"}},
               "extraPodSpec": {"mainContainer": worker}}  # fmt: skip
    spec = {"services": {f"s{i}": service for i in range(n)}}
    return custom("nvidia.com/v1alpha1", "DynamoGraphDeployment", spec)


def _release(n: int) -> Body:
    models = [{"name": f"m{i}", "repository": "vllm/vllm-openai", "tag": "v0.11.0", "modelURL": "m",
               "replicaCount": 1, "requestGPU": 1, "vllmConfig": {"tensorParallelSize": 2}}
              for i in range(n)]  # fmt: skip
    return {"apiVersion": "helm.sh/v3", "kind": "Release", "chart": "vllm-stack",
            "values": {"servingEngineSpec": {"modelSpec": models}}}  # fmt: skip


def _booster(n: int) -> Body:
    workers = [{"type": "server", "image": "vllm/vllm-openai:v0.11.0", "pods": 1,
                "resources": GPUS, "config": {"tensor-parallel-size": 4}}
               for _ in range(n)]  # fmt: skip
    backend = {"name": "b", "type": "vLLM", "modelURI": "hf://m", "workers": workers}
    return custom("workload.serving.volcano.sh/v1alpha1", "ModelBooster", {"backend": backend})


def _disaggregated(n: int) -> Body:
    group = {"size": 2, "workerTemplate": {"spec": {"containers": [container("e")]}}}
    roles = [{"name": f"r{i}", "spec": {"replicas": 1, "leaderWorkerTemplate": group}}
             for i in range(n)]  # fmt: skip
    return custom("disaggregatedset.x-k8s.io/v1", "DisaggregatedSet", {"roles": roles})


def _volcano_job(n: int) -> Body:
    template = {"spec": {"containers": [container("e")]}}
    tasks = [{"name": f"t{i}", "replicas": 1, "template": template} for i in range(n)]
    return custom("batch.volcano.sh/v1alpha1", "Job", {"minAvailable": n, "tasks": tasks})


def _job_set(n: int) -> Body:
    template = {"spec": {"template": {"spec": {"containers": [container("e")]}}}}
    jobs = [{"name": f"j{i}", "replicas": 1, "template": template} for i in range(n)]
    order = {"startupPolicyOrder": "InOrder"}
    return custom("jobset.x-k8s.io/v1alpha2", "JobSet", {"startupPolicy": order,
                  "replicatedJobs": jobs})  # fmt: skip


def _queue(n: int) -> Body:
    lists = {key: {f"example.com/r{i}": 2 for i in range(n)} for key in ("deserved", "capability")}
    return custom("scheduling.volcano.sh/v1beta1", "Queue", {"weight": 1, **lists})


def _pod_group(n: int) -> Body:
    policy = {"labelSelector": {"matchLabels": {"app": "chat"}}, "matchLabelKeys": ["k"]}
    spec = {"minMember": n, "minTaskMember": {f"t{i}": 1 for i in range(n)},
            "subGroupPolicy": [{"name": f"g{i}", **policy} for i in range(n)]}  # fmt: skip
    return custom("scheduling.volcano.sh/v1beta1", "PodGroup", spec)


def _labels(n: int) -> Body:
    body = model_serving(1)
    return {**body, "metadata": {"name": "chat", "labels": {f"-{i}": "-" for i in range(n)}}}


def _waived(n: int) -> Work:
    body = workload(container("e", "vllm", "serve", "m", "-tp", "2"))
    day = "2030-12-31 the new image is not there yet"
    stated = {f"waive.kthena-components/no-such-{i}": day for i in range(n)}
    body["metadata"]["annotations"] = {"waive.kthena-components/shm-present": day, **stated}
    return lambda: check_manifest(body, today=date(2026, 6, 30))


def _topology(n: int) -> Work:
    racks = [{"name": f"rack-{i}", "tier": 1, "nodes": [f"gpu-{i}"]} for i in range(n)]
    spine = {"name": "spine", "tier": 2, "children": [rack["name"] for rack in racks]}
    return lambda: compile_topology({"hyper_nodes": [*racks, spine]})


def _inventory(n: int) -> Work:
    nodes = [{"name": f"gpu-{i}", "labels": {"rack": f"{i // 4}", "spine": "a"}} for i in range(n)]
    tiers = [{"label": "rack"}, {"label": "spine"}]
    return lambda: compile_topology({"inventory": {"nodes": nodes, "tiers": tiers}})


KINDS: Final[Mapping[str, Shape]] = {
    "roles of a ModelServing": judged(model_serving),
    "misplaced fields": judged(_misplaced),
    "nodes of a HyperNode": _hyper_node(lambda i: {"exactMatch": {"name": f"gpu-{i}"}}),
    "patterns of a HyperNode": _hyper_node(lambda i: {"regexMatch": {"pattern": f"^gpu-{i}-.*$"}}),
    "worker groups of a RayCluster": judged(_ray_cluster),
    "roles of a RoleBasedGroup": judged(_role_based_group),
    "cliques of a PodCliqueSet": judged(_pod_clique_set),
    "services of a Dynamo graph": judged(_dynamo),
    "models of a vllm-stack": judged(_release),
    "workers of a ModelBooster": judged(_booster),
    "roles of a DisaggregatedSet": judged(_disaggregated),
    "tasks of a Volcano Job": judged(_volcano_job),
    "Jobs of a JobSet": judged(_job_set),
    "resources of a Queue": judged(_queue),
    "policies of a PodGroup": judged(_pod_group),
    "labels": judged(_labels),
    "waivers": _waived,
    "HyperNodes of a component": _topology,
    "nodes of an inventory": _inventory,
}
