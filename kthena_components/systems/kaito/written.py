"""What each argument becomes in the kaito backend, for docs/backends.md."""

from kthena_components.systems.contract import FOR_ALL, METRICS, REJECTED, Written

WRITTEN = {
    "replicas": Written("the number of Workspaces, times `roles[].replicas`"),
    "roles[].replicas": Written("the same product"),
    "roles[].worker_replicas": Written("`resource.count`, minus 1", "what KAITO decides"),
    "gang_policy": Written("nothing", "at most 1 pod"),
    "network_topology.group_policy": REJECTED,
    "network_topology.role_policy": REJECTED,
    "queue": Written(
        "annotation `scheduling.volcano.sh/queue-name` of a pod template", "not for a preset"
    ),
    "priority_class": Written("`priorityClassName` of the pods", "no preset"),
    "spread_over": REJECTED,
    "scheduler_name": Written(
        "`schedulerName` of a pod template", "only `default-scheduler` for a preset"
    ),
    "rollout_strategy.type": Written("nothing", "no `RoleRollingUpdate`"),
    "rollout_strategy…max_unavailable": REJECTED,
    "rollout_strategy…partition": REJECTED,
    "rollout_strategy…max_surge": REJECTED,
    "roles[].max_unavailable": REJECTED,
    "recovery_policy": REJECTED,
    "autoscaled": Written("an InferenceSet, whose `spec.replicas` `up` leaves as it is"),
    "restart_grace_period_seconds": REJECTED,
    "expose": Written("a Service before the entry pods"),
    "monitoring": Written("a PodMonitor per role, a PrometheusRule and a dashboard", METRICS),
    "ready_timeout_seconds": Written("how long `up` waits for the set"),
    **FOR_ALL,
}
PROVEN = (
    "Verdicts of the webhook of KAITO 0.11 on random objects. Nodes, pods, GPUs and parallelism "
    "equal what the package calculates; pods are not started."
)
