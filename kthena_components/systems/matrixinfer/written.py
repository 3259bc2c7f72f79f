"""What each argument becomes in the matrixinfer backend, for docs/backends.md."""

from kthena_components.systems.contract import FOR_ALL, METRICS, REJECTED, Written

WRITTEN = {
    "replicas": Written("`spec.replicas`"),
    "roles[].replicas": Written("`template.roles[].replicas`"),
    "roles[].worker_replicas": Written("`template.roles[].workerReplicas`"),
    "gang_policy": Written("`template.gangSchedule.minRoleReplicas`"),
    "network_topology.group_policy": Written(
        "`template.gangSchedule.networkTopology`", "no tier by name"
    ),
    "network_topology.role_policy": REJECTED,
    "queue": REJECTED,
    "priority_class": Written("`priorityClassName` of the pods, and not of the PodGroups"),
    "spread_over": Written("a soft `podAntiAffinity` of the pods"),
    "scheduler_name": Written("`schedulerName`, there and in every template", "only `volcano`"),
    "rollout_strategy.type": Written("`InferGroupRollingUpdate`", "no `RoleRollingUpdate`"),
    "rollout_strategy…max_unavailable": Written(
        "nothing: the controller updates one group at a time", "at most 1"
    ),
    "rollout_strategy…partition": Written(
        "`rolloutStrategy`; a share in percent becomes a count", "not all groups"
    ),
    "rollout_strategy…max_surge": REJECTED,
    "roles[].max_unavailable": REJECTED,
    "recovery_policy": Written("`recoveryPolicy`"),
    "autoscaled": REJECTED,
    "restart_grace_period_seconds": Written("`template.restartGracePeriodSeconds`"),
    "expose": Written("a Service before the entry pods"),
    "monitoring": Written("a PodMonitor per role, a PrometheusRule and a dashboard", METRICS),
    "ready_timeout_seconds": Written("how long `up` waits for `Available`"),
    **FOR_ALL,
}
PROVEN = (
    "Pods, variables, Services, gangs, update, scaling and deletion: with the controllers and "
    "webhooks of both API groups where their programs are given, and always with Kthena's "
    "1.0, which they became. The rules of their last source are compared in tests."
)
