"""What each argument becomes in the booster backend, for docs/backends.md."""

from kthena_components.systems.contract import FOR_ALL, REJECTED, Written

WRITTEN = {
    "replicas": Written("`backend.replicas`"),
    "roles[].replicas": Written("`workers[].replicas`"),
    "roles[].worker_replicas": Written("`workers[].pods`", "with Ray, and not prefill and decode"),
    "gang_policy": Written("nothing: Kthena's templates ask for all engines", "all engines"),
    "network_topology.group_policy": REJECTED,
    "network_topology.role_policy": REJECTED,
    "queue": REJECTED,
    "priority_class": REJECTED,
    "spread_over": REJECTED,
    "scheduler_name": Written("`backend.schedulerName`"),
    "rollout_strategy.type": Written("nothing: the default", "no `RoleRollingUpdate`"),
    "rollout_strategy…max_unavailable": Written("nothing: the default", "only 1"),
    "rollout_strategy…partition": REJECTED,
    "rollout_strategy…max_surge": REJECTED,
    "roles[].max_unavailable": REJECTED,
    "recovery_policy": Written("nothing: the default", "only `RoleRecreate`"),
    "autoscaled": REJECTED,
    "restart_grace_period_seconds": Written("nothing: Kthena's templates have it", "only 60"),
    "expose": Written("a Service before the entry pods"),
    "monitoring": REJECTED,
    "ready_timeout_seconds": Written("how long `up` waits for `Active`"),
    **FOR_ALL,
}
PROVEN = (
    "Facts, pods, GPUs and gangs of what the controller of Kthena 1.0 makes of random servings, "
    "and that it reports `Active`."
)
