"""What each argument becomes in the kserve backend, for docs/backends.md."""

from kthena_components.systems.contract import FOR_ALL, METRICS, REJECTED, Written

WRITTEN = {
    "replicas": Written(
        "`minReplicas` or `replicas`, times `roles[].replicas`", "1 engine in a `workerSpec`"
    ),
    "roles[].replicas": Written("the same product", "1 engine in a `workerSpec`"),
    "roles[].worker_replicas": Written(
        "sizes, from which KServe calculates the pods", "what the sizes give"
    ),
    "gang_policy": Written("nothing", "at most 1 pod, or 1 engine of an LLMInferenceService"),
    "network_topology.group_policy": REJECTED,
    "network_topology.role_policy": REJECTED,
    "queue": REJECTED,
    "priority_class": Written("`priorityClassName` of the pods"),
    "spread_over": REJECTED,
    "scheduler_name": Written("`schedulerName` of the pods"),
    "rollout_strategy.type": Written("nothing: KServe updates pods or engines"),
    "rollout_strategy…max_unavailable": Written(
        "`deploymentStrategy`", "one engine at a time in an LLMInferenceService"
    ),
    "rollout_strategy…partition": REJECTED,
    "rollout_strategy…max_surge": Written("`maxSurge`", "not in an LLMInferenceService"),
    "roles[].max_unavailable": Written(
        "`maxUnavailable`", "at most one group; 1 in an LLMInferenceService"
    ),
    "recovery_policy": Written(
        "nothing: KServe has its own",
        "several pods: only `None`; LLMInferenceService: `RoleRecreate`",
    ),
    "autoscaled": REJECTED,
    "restart_grace_period_seconds": REJECTED,
    "expose": Written("a Service before the entry pods"),
    "monitoring": Written("a PodMonitor per role, a PrometheusRule and a dashboard", METRICS),
    "ready_timeout_seconds": Written("how long `up` waits for `PredictorReady`, or `Ready`"),
    **FOR_ALL,
    "fill_requests": FOR_ALL["fill_requests"]._replace(limits="always in a `workerSpec`"),
}
PROVEN = (
    "Verdicts of the webhooks of KServe 0.20 on random objects. Deployments, LeaderWorkerSets and "
    "pods of four servings equal the plan. Nodes and GPUs of a workerSpec equal those of KServe "
    "0.19; such engines are not run."
)
