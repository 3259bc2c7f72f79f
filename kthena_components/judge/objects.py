"""The objects of one cluster, read once for the rules that compare them.

They are read in one pass. Nothing in a manifest makes the reading raise.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from kthena_components.core.facts.totals import GpuDemand
from kthena_components.core.objects.kinds import JOB, MODEL_SERVING
from kthena_components.core.objects.object import GroupKind, Object, PodSet
from kthena_components.core.objects.stack import Stack, read_stack
from kthena_components.systems.kthena.pods import pods_of_roles
from kthena_components.systems.kubernetes.pods import (
    pods_of_copies,
    pods_of_cron_job,
    pods_of_daemons,
    pods_of_job,
    pods_of_pod,
)
from kthena_components.systems.lws.pods import DISAGGREGATED, LWS, pods_of_groups
from kthena_components.systems.matrixinfer.facts import MODEL_INFERS
from kthena_components.systems.ray.pods import CLUSTERS, pods_of_cluster
from kthena_components.systems.volcano.pods import pods_of_tasks

MAKERS: Mapping[GroupKind, Callable[[Object], Iterator[PodSet]]] = {
    ("", "Pod"): pods_of_pod,
    ("apps", "Deployment"): pods_of_copies,
    ("apps", "StatefulSet"): pods_of_copies,
    ("apps", "ReplicaSet"): pods_of_copies,
    ("apps", "DaemonSet"): pods_of_daemons,
    ("batch", "Job"): pods_of_job,
    ("batch", "CronJob"): pods_of_cron_job,
    **{("ray.io", kind): pods_of_cluster for kind in CLUSTERS},
    JOB: pods_of_tasks,
    MODEL_SERVING: pods_of_roles,
    **dict.fromkeys(MODEL_INFERS, pods_of_roles),
    LWS: pods_of_groups,
    DISAGGREGATED: pods_of_groups,
}
"""The kinds that hold pod templates of their own."""

CLUSTER_WIDE = frozenset(
    {
        ("scheduling.volcano.sh", "Queue"),
        ("topology.volcano.sh", "HyperNode"),
        ("", "Namespace"),
        ("", "Node"),
        ("", "PersistentVolume"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("rbac.authorization.k8s.io", "ClusterRole"),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
        ("scheduling.k8s.io", "PriorityClass"),
        ("storage.k8s.io", "StorageClass"),
    }
)


def read_objects(
    manifests: Sequence[object],
    paths: Sequence[str],
    held: Mapping[int, GpuDemand] | None = None,
    *,
    complete: bool = True,
) -> Stack:
    """Read the objects of one cluster; `held` is by their index."""
    return read_stack(
        manifests,
        paths,
        makers=MAKERS,
        cluster_wide=CLUSTER_WIDE,
        held=held,
        complete=complete,
    )
