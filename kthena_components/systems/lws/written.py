"""What each argument becomes in the lws backend, for docs/backends.md."""

from kthena_components.systems.contract import FOR_ALL, METRICS, REJECTED, Written

WRITTEN = {
    "replicas": Written(
        "`spec.replicas`, times `roles[].replicas`", "at most 1 with several roles"
    ),
    "roles[].replicas": Written("the same product"),
    "roles[].worker_replicas": Written("`leaderWorkerTemplate.size`, minus 1"),
    "gang_policy": Written("nothing: each engine is a gang", "at most 1 engine"),
    "network_topology.group_policy": REJECTED,
    "network_topology.role_policy": REJECTED,
    "queue": Written("annotation `scheduling.volcano.sh/queue-name`"),
    "priority_class": Written("`priorityClassName` of the pods"),
    "spread_over": Written("a soft `podAntiAffinity` of the pods"),
    "scheduler_name": Written(
        "`schedulerName` of the pods", "another than Volcano has no gang and no queue"
    ),
    "rollout_strategy.type": Written("nothing: LWS updates engines"),
    "rollout_strategy…max_unavailable": Written("`rolloutStrategy`, in engines"),
    "rollout_strategy…partition": Written("`rolloutStrategy`, in engines", "one role"),
    "rollout_strategy…max_surge": Written("`maxSurge`"),
    "roles[].max_unavailable": Written("`maxUnavailable`", "one role, and at most one group"),
    "recovery_policy": Written(
        "`restartPolicy`", "`ServingGroupRecreate` only with one engine per group"
    ),
    "autoscaled": Written("nothing: `up` leaves `spec.replicas` as it is", "one role"),
    "restart_grace_period_seconds": REJECTED,
    "expose": Written("a Service before the entry pods"),
    "monitoring": Written("a PodMonitor per role, a PrometheusRule and a dashboard", METRICS),
    "ready_timeout_seconds": Written("how long `up` waits; with several roles, nothing"),
    **FOR_ALL,
}
PROVEN = (
    "Verdicts of the webhooks of LWS 0.9 on random objects. Pods, variables, gangs, update, "
    "scaling and deletion."
)
