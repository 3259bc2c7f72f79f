"""How Prometheus finds the pods of a serving on KServe.

The pods of an InferenceService are those of Deployments, whose names have random ends: together
they are one unit. Those of an LLMInferenceService are in a LeaderWorkerSet per role. Source: kserve
v0.20.0 pkg/constants/constants.go and pkg/controller/v1alpha2/llmisvc/workload_multi_node.go.
"""

from kthena_components.core.plan.model import RolePlan, ServingPlan
from kthena_components.core.plan.watch import Unit, Watch, entry_labels, only_with_pods
from kthena_components.systems.kserve.emit_llm import leader_labels, split_roles
from kthena_components.systems.kserve.emit_service import service_name
from kthena_components.systems.kserve.options import is_llm


def watch(plan: ServingPlan) -> Watch:
    """Return the pods of each role."""
    if is_llm(plan):
        entries = {role.name: leader_labels(plan, role) for role in plan.roles}
        units = tuple(_engines(plan, role) for role in plan.roles)
    else:
        entries, units = entry_labels(plan), tuple(_deployed(plan, role) for role in plan.roles)
    return Watch(entries=entries, units=only_with_pods(units))


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
