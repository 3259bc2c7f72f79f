"""KubeRay: RayCluster, RayService and RayJob."""

from collections.abc import Mapping
from typing import Any

from kthena_components.core.objects.retained_fields import kept_pods
from kthena_components.core.plan.read_back import stated
from kthena_components.core.values.read import mapping
from kthena_components.core.values.regex import regex
from kthena_components.systems.ray.facts import facts, gangs_of_cluster, pods_of_cluster, sketch
from kthena_components.systems.ray.rules.auth_tls_network_history import (
    ray_auth,
    ray_history_server,
    ray_network_policy,
    ray_tls,
)
from kthena_components.systems.ray.rules.autoscaler_and_fault_tolerance import (
    ray_autoscaler,
    ray_fault_tolerance,
)
from kthena_components.systems.ray.rules.cluster_name_replicas_once_service import (
    ray_cluster_upgrade,
    ray_name,
    ray_replicas,
    ray_service,
    ray_service_upgrade,
    ray_stated_once,
)
from kthena_components.systems.ray.rules.job_gpus_runtime_env_deletion import (
    ray_deletion,
    ray_job,
    ray_job_gpus,
    ray_runtime_env,
)
from kthena_components.systems.ray.rules.serve_and_engine_kwargs import (
    gpu_requests_of_groups,
    ray_engine_kwargs,
    ray_serve_gpus,
    ray_serve_placement,
)
from kthena_components.systems.ray.rules.worker_groups_gpus_params_head import (
    head_asked,
    ray_cluster_gpus,
    ray_head_address,
    ray_start_params,
    ray_worker_groups,
)
from kthena_components.systems.ray.view import CLUSTERS, RayView, read_ray
from kthena_components.systems.system import PRODUCTION, Kind, System

_TEMPLATES = ("headGroupSpec.template", "workerGroupSpecs[].template")
_NO_RESTARTS = {
    "RayCluster": "KubeRay leaves running pods as they are, unless upgradeStrategy is Recreate",
    "RayService": "KubeRay creates a new cluster next to the old one, and no pod restarts",
    "RayJob": "a job keeps the cluster that it started with",
}
_OF_KIND = {
    "RayJob": (ray_job, ray_job_gpus, ray_runtime_env, ray_deletion),
    "RayService": (ray_service, ray_service_upgrade),
}

ADDED_VOLUMES = ("shared-mem", "ray-logs", "ray-tls", "ray-token", "gcs-storage")
"""Source: ray-operator/controllers/ray/common/pod.go and utils/constant.go."""
_NO_REVIEW = "KubeRay gives its pods probes and labels, and Ray Serve drains them"
"""Why the rules about production do not read the pods of a RayCluster."""

_TOPOLOGY_LABEL = "volcano.sh/network-topology-"
_TIER = regex(r"[0-9]{1,3}")


def states(view: RayView) -> Mapping[str, Any]:
    """Return the queue, the priority and the topology in the labels of a cluster.

    Source: ray-project/kuberay ray-operator/controllers/ray/batchscheduler/volcano/
    volcano_scheduler.go and controllers/ray/utils/constant.go.
    """
    labels = mapping(view.object.metadata.get("labels"))
    tier = labels.get(f"{_TOPOLOGY_LABEL}highest-tier-allowed")
    if not isinstance(tier, str) or not _TIER.fullmatch(tier):
        tier = None
    policy = stated(
        mode=labels.get(f"{_TOPOLOGY_LABEL}mode"),
        highest_tier_allowed=None if tier is None else int(tier),
    )
    return stated(
        queue=labels.get("volcano.sh/queue-name"),
        priority_class=labels.get("ray.io/priority-class-name"),
        network_topology={"group_policy": policy} if policy else None,
    )


SYSTEM = System(
    name="ray",
    title="KubeRay",
    kinds=tuple(
        Kind(
            group="ray.io",
            name=name,
            view=read_ray,
            facts=facts,
            pods=pods_of_cluster,
            gangs=gangs_of_cluster,
            states=states,
            sketch=sketch,
            rules=(
                ray_start_params,
                ray_worker_groups,
                ray_cluster_gpus,
                ray_serve_gpus,
                ray_serve_placement,
                ray_engine_kwargs,
                gpu_requests_of_groups,
                ray_name,
                ray_replicas,
                ray_stated_once,
                ray_cluster_upgrade,
                ray_autoscaler,
                ray_fault_tolerance,
                ray_auth,
                ray_network_policy,
                ray_tls,
                ray_history_server,
                *_OF_KIND.get(name, ()),
            ),
            templates=tuple(".".join(filter(None, ("spec", inner, at))) for at in _TEMPLATES),
            adds_volumes=ADDED_VOLUMES,
            kept=kept_pods,
            kept_beside=head_asked,
            without={"restarts": _NO_RESTARTS[name], PRODUCTION: _NO_REVIEW},
        )
        for name, inner in CLUSTERS.items()
    ),
    cluster_rules=(ray_head_address,),
)
