"""Reports what KServe does not support: an error, never dropped.

Source: kserve v0.20.0 pkg/apis/serving/v1beta1 and pkg/controller/v1beta1/inferenceservice.
"""

from collections.abc import Iterator

from kthena_components.core import naming
from kthena_components.core.facts.serving import NameFacts
from kthena_components.core.findings import Finding, join_path
from kthena_components.core.plan.model import ServingPlan
from kthena_components.core.remedies import either, elsewhere, remove
from kthena_components.core.spec.enums import RecoveryPolicy
from kthena_components.systems.kserve.emit_service import service_name
from kthena_components.systems.kserve.limits_engine import refuse_engine, refuse_pods
from kthena_components.systems.kserve.limits_llm import llm_names, refuse_llm
from kthena_components.systems.kserve.options import KserveKind, is_llm, options_of
from kthena_components.systems.kubernetes.limits import refuse_budgets, refuse_hosts, refuse_spread

_UPDATE = "rollout_strategy.rolling_update_configuration"


def refuse(plan: ServingPlan) -> Iterator[Finding]:
    """Report what KServe does not support."""
    yield from _refuse_places(plan)
    yield from _refuse_partition(plan)
    yield from _refuse_spread(plan)
    yield from refuse_hosts(plan, "KServe")
    yield from _refuse_options(plan)
    if is_llm(plan):
        yield from refuse_llm(plan)
        return
    yield from _refuse_roles(plan)
    yield from _refuse_gang(plan)
    yield from _refuse_recovery(plan)
    yield from _refuse_rollout(plan)
    for role in plan.roles:
        yield from refuse_pods(role)
        if role.worker_replicas and len(plan.roles) == 1:
            yield from refuse_engine(plan, role)


def _refuse_places(plan: ServingPlan) -> Iterator[Finding]:
    """Reject topology, queue, autoscaled and a restart delay: KServe has nothing for them."""
    policies = {"group_policy": plan.group_topology, "role_policy": plan.role_topology}
    for field, policy in policies.items():
        if policy is not None:
            yield refusal(
                f"network_topology.{field}",
                "is given, but pods of KServe have no PodGroup with a network topology",
                elsewhere(remove()),
            )
    if plan.queue is not None:
        yield refusal(
            "queue",
            f"is {plan.queue}, but pods of KServe have no PodGroup with a queue",
            elsewhere(remove()),
        )
    if plan.autoscaled:
        yield refusal(
            "autoscaled",
            "is true, but objects of KServe have no scale subresource",
            elsewhere(remove()),
        )
    if plan.restart_grace_seconds:
        yield refusal(
            "restart_grace_period_seconds",
            f"is {plan.restart_grace_seconds}, but KServe recreates a pod at once",
            elsewhere(remove()),
        )


def _refuse_spread(plan: ServingPlan) -> Iterator[Finding]:
    yield from refuse_spread(plan, "KServe's labels do not tell its engines apart")


def _refuse_partition(plan: ServingPlan) -> Iterator[Finding]:
    if plan.rollout.partition:
        yield refusal(
            f"{_UPDATE}.partition",
            f"is {plan.rollout.partition}, but KServe updates all pods of a role",
            elsewhere(remove()),
        )


def _refuse_roles(plan: ServingPlan) -> Iterator[Finding]:
    if len(plan.roles) > 1:
        yield refusal(
            "roles",
            f"has {len(plan.roles)} roles, but an InferenceService serves with one",
            elsewhere(
                "write one ModelServing for each role, backend_options.kind: "
                "LLMInferenceService for prefill and decode"
            ),
        )


def _refuse_gang(plan: ServingPlan) -> Iterator[Finding]:
    """Reject gangs: KServe's Deployments have no PodGroup."""
    if plan.min_role_replicas is not None and plan.min_member > 1:
        yield refusal(
            "gang_policy.min_role_replicas",
            f"requests {plan.min_member} pods together, but KServe schedules each pod by itself",
            elsewhere("remove gang_policy"),
        )


def _refuse_recovery(plan: ServingPlan) -> Iterator[Finding]:
    """Reject recovery of several pods: Deployments recreate the failed pod alone."""
    together = {
        RecoveryPolicy.ROLE_RECREATE: max(role.pods for role in plan.roles),
        RecoveryPolicy.SERVING_GROUP_RECREATE: plan.pods_per_group,
    }
    pods = together.get(plan.recovery, 1) if plan.recovery else 1
    if pods > 1:
        yield refusal(
            "recovery_policy",
            f"is {plan.recovery}, for {pods} pods, but KServe recreates only the pod that failed",
            elsewhere("write None"),
        )


def _refuse_rollout(plan: ServingPlan) -> Iterator[Finding]:
    yield from refuse_budgets(plan, "KServe")


def refusal(path: str, seen: str, remedy: str) -> Finding:
    """Return a finding about what KServe does not support."""
    return Finding(path=path, seen=seen, remedy=remedy, rule="backend-loss")


def names(plan: ServingPlan) -> Iterator[NameFacts]:
    """Return the longest names that KServe generates: for an InferenceService the label app.

    Source: kserve v0.20.0 pkg/constants/constants.go GetRawServiceLabel, GetRawWorkerServiceLabel.
    """
    if is_llm(plan):
        yield from llm_names(plan)
        return
    for role in plan.roles:
        made = (
            f"isvc.{service_name(plan, role)}-predictor{'-worker' if role.worker_replicas else ''}"
        )
        at = join_path(role.path, "name")
        yield NameFacts(path=at, name=made, limit=naming.DNS_LABEL, what="label app")


def _refuse_options(plan: ServingPlan) -> Iterator[Finding]:
    """Reject options about configs of an object that has none."""
    if is_llm(plan):
        return
    options = options_of(plan)
    given = {
        "write_configs": (not options.write_configs, "false"),
        "replaces_presets": (options.replaces_presets, "true"),
    }
    for option, (stated, value) in given.items():
        if stated:
            yield Finding(
                path=f"backend_options.{option}",
                seen=f"is {value}, but an {options.kind} has no LLMInferenceServiceConfigs",
                remedy=either(remove(), f"write kind: {KserveKind.LLM}"),
                rule="backend-options",
            )
