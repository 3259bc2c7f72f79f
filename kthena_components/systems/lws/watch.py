"""How Prometheus finds the pods of a LeaderWorkerSet: a unit is one of its groups, an engine.

Source: kubernetes-sigs/lws v0.9.0 pkg/controllers/pod_controller.go and
pkg/utils/disaggregatedset/utils.go GenerateName; 0.10 puts a slice before the revision.
"""

from kthena_components.core.plan.model import RolePlan, ServingPlan
from kthena_components.core.plan.watch import Unit, Watch, entry_labels, only_with_pods
from kthena_components.systems.lws.limits import set_name


def watch(plan: ServingPlan) -> Watch:
    """Return the pods of each role."""
    units = (engines_of(plan, role, _set_of(plan, role)) for role in plan.roles)
    return Watch(entries=entry_labels(plan), units=only_with_pods(units))


def engines_of(plan: ServingPlan, role: RolePlan, name: str) -> Unit:
    """Return the engines of a role, each a group of the LeaderWorkerSet of this name."""
    return Unit(
        roles=(role.name,),
        pods=f"({name}-[0-9]+)(?:-[0-9]+)?",
        size=role.pods,
        number=None if plan.autoscaled else plan.groups * role.replicas,
    )


def _set_of(plan: ServingPlan, role: RolePlan) -> str:
    if len(plan.roles) == 1:
        return set_name(plan, role)
    return f"{plan.name}-(?:[0-9]+-)?[0-9a-f]{{8}}-{role.name}"
