"""What each argument becomes in the native backend, for docs/backends.md."""

from kthena_components.systems.contract import FOR_ALL, METRICS, REJECTED, Written

WRITTEN = {
    "replicas": Written("a PodGroup and StatefulSets per group"),
    "roles[].replicas": Written("StatefulSets per engine"),
    "roles[].worker_replicas": Written("`replicas` of the worker StatefulSet"),
    "gang_policy": Written("`minMember`, `minResources` and `minSubGroups` of the PodGroup"),
    "network_topology.group_policy": Written("`PodGroup.spec.networkTopology`"),
    "network_topology.role_policy": Written("`subGroupPolicy[].networkTopology`"),
    "queue": Written("`PodGroup.spec.queue`"),
    "priority_class": Written("`priorityClassName` of the pods and the PodGroup"),
    "spread_over": Written("a soft `podAntiAffinity` of the pods"),
    "scheduler_name": Written(
        "`schedulerName`", "another than Volcano has no gang, topology or queue"
    ),
    "rollout_strategy.type": Written("which StatefulSets a change replaces"),
    "rollout_strategy…max_unavailable": Written("dependencies between groups"),
    "rollout_strategy…partition": Written("ignored changes of the first groups"),
    "rollout_strategy…max_surge": REJECTED,
    "roles[].max_unavailable": REJECTED,
    "recovery_policy": Written(
        "nothing: a StatefulSet recreates only the failed pod", "only `None`"
    ),
    "autoscaled": REJECTED,
    "restart_grace_period_seconds": REJECTED,
    "expose": Written("a Service before the entry pods"),
    "monitoring": Written("a PodMonitor per role, a PrometheusRule and a dashboard", METRICS),
    "ready_timeout_seconds": Written("how long `up` waits for the entries"),
    **FOR_ALL,
}
PROVEN = (
    "Pods, Services and gangs equal the plan and those of Kthena. Update, scaling, faults, and the "
    "rights that are needed."
)
