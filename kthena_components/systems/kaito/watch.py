"""How Prometheus finds the pods of a serving on KAITO: a unit is a Workspace, an engine.

Each Workspace has a StatefulSet of its name. Those of an InferenceSet have five random characters
at the end. Source: kaito-project/kaito v0.11.0 pkg/workspace/manifests/manifests.go and
pkg/inferenceset/inferenceset_controller.go.
"""

from kthena_components.core.plan.model import ServingPlan
from kthena_components.core.plan.watch import Unit, Watch, only_with_pods
from kthena_components.systems.kaito.objects import (
    engines_of,
    entry_selector,
    is_workspace,
    set_name,
)


def watch(plan: ServingPlan) -> Watch:
    """Return the pods of the only role."""
    (role,) = plan.roles
    name = set_name(plan, role) + ("" if is_workspace(plan) else "-[a-z0-9]{5}")
    unit = Unit(
        roles=(role.name,),
        pods=f"({name})-[0-9]+",
        size=role.pods,
        number=None if plan.autoscaled else engines_of(plan),
    )
    entries = {role.name: entry_selector(plan, role)}
    return Watch(entries=entries, units=only_with_pods([unit]))
