"""Reports what Workspaces and InferenceSets do not support: an error, never dropped.

Source: kaito-project/kaito v0.11.0 api/v1beta1, pkg/workspace and pkg/inferenceset.
"""

from collections.abc import Iterator

from kthena_components.core import naming
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.serving import NameFacts
from kthena_components.core.findings import Finding, count_of, join_path
from kthena_components.core.plan.model import RolePlan, ServingPlan
from kthena_components.core.remedies import elsewhere, remove
from kthena_components.core.spec.enums import RolloutType
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.kaito.limits_preset import refusal, refuse_preset
from kthena_components.systems.kaito.objects import is_workspace, set_name
from kthena_components.systems.kaito.options import (
    node_of_plan,
    options_of,
    refuse_options,
)
from kthena_components.systems.kubernetes.limits import refuse_hosts, refuse_spread

_SUFFIX = "-00000"
"""A dash and the characters that an InferenceSet adds to the names of its Workspaces."""
_HEADLESS = "-headless"


def refuse(plan: ServingPlan) -> Iterator[Finding]:
    """Report what KAITO does not support."""
    yield from _refuse_fields(plan)
    yield from _refuse_rollout(plan)
    yield from refuse_options(plan)
    if len(plan.roles) > 1:
        yield refusal(
            "roles",
            f"has {len(plan.roles)} roles, but an InferenceSet has engines of one role",
            elsewhere("write one serving for each role"),
        )
    elif options_of(plan).preset is not None:
        yield from refuse_preset(plan, plan.roles[0])
    else:
        yield from _refuse_template(plan, plan.roles[0])


def _refuse_fields(plan: ServingPlan) -> Iterator[Finding]:
    if plan.min_role_replicas is not None and plan.min_member > 1:
        yield refusal(
            "gang_policy.min_role_replicas",
            f"requests {count_of(plan.min_member, 'pod')} together, but KAITO's pods are scheduled "
            "one by one",
            elsewhere("remove gang_policy"),
        )
    yield from refuse_spread(plan, "KAITO's labels do not tell its engines apart")
    policies = {"group_policy": plan.group_topology, "role_policy": plan.role_topology}
    for field in (name for name, policy in policies.items() if policy is not None):
        yield refusal(
            f"network_topology.{field}",
            "is given, but KAITO selects nodes only by their labels",
            elsewhere(remove()),
        )
    if plan.recovery is not None:
        yield refusal(
            "recovery_policy",
            f"is {plan.recovery}, but the pods of a Workspace are a StatefulSet, which recreates "
            "only the pod that failed",
            elsewhere(remove()),
        )
    if plan.restart_grace_seconds:
        yield refusal(
            "restart_grace_period_seconds",
            f"is {plan.restart_grace_seconds}, but a StatefulSet recreates a pod at once",
            elsewhere(remove()),
        )


def _refuse_rollout(plan: ServingPlan) -> Iterator[Finding]:
    """Reject budgets: KAITO 0.11 does not apply a changed template to running Workspaces."""
    why, at = "but KAITO 0.11 has no rolling update of Workspaces", "rollout_strategy"
    if plan.rollout.type is RolloutType.ROLE:
        yield refusal(f"{at}.type", f"is {plan.rollout.type}, {why}", elsewhere(remove()))
    if plan.rollout.stated is not None:
        yield refusal(f"{at}.rolling_update_configuration", f"is given, {why}", elsewhere(remove()))
    for role in plan.roles:
        if role.max_unavailable is not None:
            at = join_path(role.path, "max_unavailable")
            yield refusal(at, f"is {role.max_unavailable}, {why}", elsewhere(remove()))


def _refuse_template(plan: ServingPlan, role: RolePlan) -> Iterator[Finding]:
    """Reject pods that `inference.template` cannot start."""
    if role.worker_replicas:
        preset = f": {role.engine.model}" if role.engine else " and an engine"
        yield refusal(
            join_path(role.path, "worker_replicas"),
            f"is {role.worker_replicas}, but all pods of a Workspace have one template, and no "
            "address of the first",
            elsewhere(f"write backend_options.preset{preset}, for pods that KAITO writes"),
        )
    yield from refuse_hosts(plan, "KAITO", "write localhost")
    at = join_path(role.path, "overlay" if role.engine else "entry_template")
    if (role.entry.get("spec") or {}).get("affinity") is not None:
        yield refusal(
            join_path(at, "spec.affinity"),
            "is given, but KAITO replaces it by the labels of the nodes",
            "write the labels into backend_options.label_selector",
        )
    node, gpus = node_of_plan(plan), read_pod(role.entry, at).all_gpus
    if not isinstance(node, Unknown) and isinstance(gpus, int) and gpus > node.gpus:
        yield refusal(
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
