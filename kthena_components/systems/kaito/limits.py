"""What Workspaces and InferenceSets do not support: an error, never dropped.

Source: kaito-project/kaito v0.11.0 api/v1beta1, pkg/workspace and pkg/inferenceset.
"""

from collections.abc import Iterator

from kthena_components.core import naming
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.serving import NameFacts
from kthena_components.core.findings import Finding, count_of, join_path
from kthena_components.core.plan.limits import UPDATE, Limit, Stated, above_zero, loss
from kthena_components.core.plan.serving_plan import RolePlan, ServingPlan
from kthena_components.core.remedies import elsewhere
from kthena_components.core.spec.enums import RolloutType
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.kaito.limits_preset import LIMITS as OF_PRESETS
from kthena_components.systems.kaito.limits_preset import has_preset, refuse_preset
from kthena_components.systems.kaito.objects import is_workspace, set_name
from kthena_components.systems.kaito.options import node_of_plan, refuse_options
from kthena_components.systems.kubernetes.backends import (
    ENGINES_WITH_METRICS,
    no_spread,
    refuse_hosts,
)

_SUFFIX = "-00000"
"""A dash and the characters that an InferenceSet adds to the names of its Workspaces."""
_HEADLESS = "-headless"


def _preset_instead(one: Stated) -> str:
    preset = f": {one.role.engine.model}" if one.role.engine else " and an engine"
    return elsewhere(f"write backend_options.preset{preset}, for pods that KAITO writes")


_NO_UPDATE = "but KAITO 0.11 has no rolling update of Workspaces"
"""KAITO 0.11 does not apply a changed template to running Workspaces."""
LIMITS = (
    ENGINES_WITH_METRICS,
    Limit(
        "gang_policy.min_role_replicas",
        lambda one: (
            f"requests {count_of(one.plan.min_member, 'pod')} together, but KAITO's pods are "
            "scheduled one by one"
        ),
        takes="at most 1 pod",
        when=lambda one: one.plan.min_member > 1,
        remedy=elsewhere("remove gang_policy"),
    ),
    no_spread("KAITO"),
    *(
        Limit(
            f"network_topology.{policy}", "is given, but KAITO selects nodes only by their labels"
        )
        for policy in ("group_policy", "role_policy")
    ),
    Limit(
        "recovery_policy",
        "is {}, but the pods of a Workspace are a StatefulSet, which recreates only the pod that "
        "failed",
    ),
    Limit(
        "restart_grace_period_seconds",
        "is {}, but a StatefulSet recreates a pod at once",
        when=above_zero,
    ),
    Limit(
        "rollout_strategy.type",
        f"is {{}}, {_NO_UPDATE}",
        takes="no `RoleRollingUpdate`",
        when=lambda one: one.value is RolloutType.ROLE,
    ),
    Limit(UPDATE, f"is given, {_NO_UPDATE}"),
    Limit("roles[].max_unavailable", f"is {{}}, {_NO_UPDATE}"),
    Limit(
        "roles",
        lambda one: (
            f"has {count_of(len(one.value), 'role')}, but an InferenceSet has engines of one role"
        ),
        when=lambda one: one.several,
        remedy=elsewhere("write one serving for each role"),
    ),
    Limit(
        "roles[].worker_replicas",
        "is {}, but all pods of a Workspace have one template, and no address of the first",
        takes="what KAITO decides",
        when=lambda one: one.value and not one.several and not has_preset(one.plan),
        remedy=_preset_instead,
    ),
    Limit(
        "roles[].resources.claims",
        "is given, but KAITO's pods request nvidia.com/gpu",
        when=lambda one: one.value,
    ),
    *OF_PRESETS,
)


def refuse(plan: ServingPlan) -> Iterator[Finding]:
    """Report options, templates and presets that KAITO does not support."""
    yield from refuse_options(plan)
    if len(plan.roles) > 1:
        return
    if has_preset(plan):
        yield from refuse_preset(plan, plan.roles[0])
    else:
        yield from _refuse_template(plan, plan.roles[0])


def _refuse_template(plan: ServingPlan, role: RolePlan) -> Iterator[Finding]:
    """Reject pods that `inference.template` cannot start."""
    yield from refuse_hosts(plan, "KAITO", "write localhost")
    at = join_path(role.path, "overlay" if role.engine else "entry_template")
    if (role.entry.get("spec") or {}).get("affinity") is not None:
        yield loss(
            join_path(at, "spec.affinity"),
            "is given, but KAITO replaces it by the labels of the nodes",
            "write the labels into backend_options.label_selector",
        )
    node, gpus = node_of_plan(plan), read_pod(role.entry, at).all_gpus
    if not isinstance(node, Unknown) and isinstance(gpus, int) and gpus > node.gpus:
        yield loss(
            join_path(role.path, "resources.gpus_per_pod") if role.engine else at,
            f"is {count_of(gpus, 'GPU')} in a pod, but a node of {node.name} has {node.gpus}",
            "choose a larger instance type, or fewer GPUs",
        )


def names(plan: ServingPlan) -> Iterator[NameFacts]:
    """Return the longest name of each kind that KAITO generates."""
    for role in plan.roles:
        at = join_path(role.path, "name")
        workspace = set_name(plan, role) + ("" if is_workspace(plan) else _SUFFIX)
        made = [
            ("StatefulSet", workspace, naming.STATEFUL_SET_NAME),
            ("Service", f"{workspace}{_HEADLESS}", naming.DNS_LABEL),
        ]
        for what, name, limit in made:
            yield NameFacts(path=at, name=name, limit=limit, what=what)
