"""What each argument becomes in the kthena backend, for docs/backends.md."""

from kthena_components.systems.contract import FOR_ALL, METRICS, REJECTED, Written

WRITTEN = {
    "replicas": Written("`spec.replicas`"),
    "roles[].replicas": Written("`roles[].replicas`"),
    "roles[].worker_replicas": Written("`roles[].workerReplicas`"),
    "gang_policy": Written("`gangPolicy.minRoleReplicas`"),
    "network_topology.group_policy": Written("`networkTopology.groupPolicy`"),
    "network_topology.role_policy": Written("`networkTopology.rolePolicy`"),
    "queue": Written("annotation `scheduling.volcano.sh/queue-name`"),
    "priority_class": Written("`priorityClassName` of the pods, and not of Kthena's PodGroups"),
    "spread_over": Written("a soft `podAntiAffinity` of the pods"),
    "scheduler_name": Written(
        "`schedulerName`", "another than Volcano has no gang, topology or queue"
    ),
    "rollout_strategy.type": Written("`rolloutStrategy.type`"),
    "rollout_strategy…max_unavailable": Written("`rolloutStrategy.rollingUpdateConfiguration`"),
    "rollout_strategy…partition": Written("`rolloutStrategy.rollingUpdateConfiguration`"),
    "rollout_strategy…max_surge": REJECTED,
    "roles[].max_unavailable": Written("`roles[].maxUnavailable`"),
    "recovery_policy": Written("`recoveryPolicy`"),
    "autoscaled": Written("nothing: `up` leaves `spec.replicas` as it is"),
    "restart_grace_period_seconds": Written("`restartGracePeriodSeconds`"),
    "expose": Written("a Service before the entry pods"),
    "monitoring": Written("a PodMonitor per role, a PrometheusRule and a dashboard", METRICS),
    "ready_timeout_seconds": Written("how long `up` waits for `Available`"),
    **FOR_ALL,
}
PROVEN = (
    "Verdicts of the webhook of Kthena 1.0 on random ModelServings. Pods, gangs, update, scaling, "
    "autoscaling, faults, and the rights that are needed."
)
