"""Writes an InferenceService or an LLMInferenceService of KServe.

Source: kserve v0.20.0; docs/backends/kserve.md lists every field.
"""

from kthena_components.core.plan.manifest import Manifest
from kthena_components.core.plan.rights import BUDGETS, SERVICES, Resource
from kthena_components.core.plan.scrape_targets import (
    ScrapeTargets,
    Unit,
    entry_labels,
    only_with_pods,
)
from kthena_components.core.plan.serving_plan import RolePlan, ServingPlan
from kthena_components.systems.emitter import FOR_ALL, IDLE_WORKERS, Emitter
from kthena_components.systems.kserve.convert import CONVERTER
from kthena_components.systems.kserve.emit_llm import (
    CONFIG,
    LLM,
    VERSION,
    emit_llm,
    leader_labels,
    split_roles,
)
from kthena_components.systems.kserve.emit_llm import entry_labels as llm_labels
from kthena_components.systems.kserve.emit_service import RUNTIME, emit_service, service_name
from kthena_components.systems.kserve.limits import LIMITS, names, refuse
from kthena_components.systems.kserve.options import KserveOptions, is_llm
from kthena_components.systems.kserve.read_back import SIZES, planned, read_back
from kthena_components.systems.kserve.view import GROUP, SERVICE
from kthena_components.systems.kubernetes.emit import emit_front


def emit(plan: ServingPlan) -> tuple[Manifest, ...]:
    """Write the objects and, if the serving is exposed, its front Service."""
    if is_llm(plan):
        made, front = emit_llm(plan), emit_front(plan, llm_labels(plan))
    else:
        made, front = emit_service(plan), emit_front(plan)
    return (*made, front) if front else made


# What each argument becomes in the kserve backend, for docs/backends.md.


WRITTEN = {
    "replicas": "`minReplicas` or `replicas`, times `roles[].replicas`",
    "roles[].replicas": "the same product",
    "roles[].worker_replicas": "sizes, from which KServe calculates the pods",
    "gang_policy": "nothing",
    "priority_class": "`priorityClassName` of the pods",
    "scheduler_name": "`schedulerName` of the pods",
    "rollout_strategy.type": "nothing: KServe updates pods or engines",
    "rollout_strategy…max_unavailable": "`deploymentStrategy`",
    "rollout_strategy…max_surge": "`maxSurge`",
    "roles[].max_unavailable": "`maxUnavailable`",
    "recovery_policy": "nothing: KServe has its own",
    "ready_timeout_seconds": "how long `up` waits for `PredictorReady`, or `Ready`",
    **FOR_ALL,
}
PROVEN = (
    "Verdicts of the webhooks of KServe 0.20 on random objects. Deployments, LeaderWorkerSets and "
    "pods of four servings equal the plan. Nodes and GPUs of a workerSpec equal those of KServe "
    "0.19; such engines are not run."
)


# How Prometheus finds the pods of a serving on KServe.
#
# The pods of an InferenceService are those of Deployments, whose names have random ends: together
# they are one unit. Those of an LLMInferenceService are in a LeaderWorkerSet per role. Source:
# kserve v0.20.0 pkg/constants/constants.go and
# pkg/controller/v1alpha2/llmisvc/workload_multi_node.go.


def targets(plan: ServingPlan) -> ScrapeTargets:
    """Return the pods of each role."""
    if is_llm(plan):
        entries = {role.name: leader_labels(plan, role) for role in plan.roles}
        units = tuple(_engines(plan, role) for role in plan.roles)
    else:
        entries, units = entry_labels(plan), tuple(_deployed(plan, role) for role in plan.roles)
    return ScrapeTargets(entries=entries, units=only_with_pods(units))


def _engines(plan: ServingPlan, role: RolePlan) -> Unit:
    prefill = "" if role is split_roles(plan)[0] else "-prefill"
    return Unit(
        roles=(role.name,),
        pods=f"({plan.name}-kserve-mn{prefill}-[0-9]+)(?:-[0-9]+)?",
        size=role.pods,
        number=plan.groups * role.replicas,
    )


def _deployed(plan: ServingPlan, role: RolePlan) -> Unit:
    return Unit(
        roles=(role.name,),
        # The API server cuts long names of ReplicaSets before it adds the random end.
        pods=f"({service_name(plan, role)})-predictor-(?:worker-)?[a-z0-9]+(?:-[a-z0-9]{{5}})?",
        size=plan.groups * role.replicas * role.pods,
        number=1,
    )


EMITTER = Emitter(
    emit=emit,
    limits=LIMITS,
    refuse=refuse,
    names=names,
    resources=(
        Resource(api_version=f"{GROUP}/v1beta1", kind=SERVICE, plural="inferenceservices"),
        Resource(api_version=f"{GROUP}/v1alpha1", kind=RUNTIME, plural="servingruntimes"),
        Resource(api_version=VERSION, kind=LLM, plural="llminferenceservices"),
        Resource(api_version=VERSION, kind=CONFIG, plural="llminferenceserviceconfigs"),
        SERVICES,
        BUDGETS,
    ),
    read_back=read_back,
    targets=targets,
    install="Install KServe 0.20 or later with its CRDs",
    sizes=SIZES,
    told=None,
    options=KserveOptions,
    stays_from=None,
    drops=(IDLE_WORKERS,),
    planned=planned,
    written=WRITTEN,
    proven=PROVEN,
    converter=CONVERTER,
)
