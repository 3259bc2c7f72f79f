"""What KServe does not support: an error, never dropped.

Source: kserve v0.20.0 pkg/apis/serving/v1beta1 and pkg/controller/v1beta1/inferenceservice.
"""

from collections.abc import Iterator

from kthena_components.core import naming
from kthena_components.core.facts.serving import NameFacts
from kthena_components.core.findings import Finding, count_of, join_path
from kthena_components.core.plan.limits import UPDATE, Limit, SetField, above_zero, only_if
from kthena_components.core.plan.serving_plan import ServingPlan
from kthena_components.core.remedies import either, elsewhere, remove
from kthena_components.core.spec.enums import RecoveryPolicy
from kthena_components.systems.kserve.emit_objects import (
    KserveKind,
    is_llm,
    options_of,
    service_name,
)
from kthena_components.systems.kserve.limits_engine import refuse_engine, refuse_pods
from kthena_components.systems.kserve.limits_llm import LIMITS as OF_LLM
from kthena_components.systems.kserve.limits_llm import llm_names, refuse_llm
from kthena_components.systems.kubernetes.backends import (
    ENGINES_WITH_METRICS,
    no_spread,
    one_budget,
    refuse_hosts,
    refuse_surge,
)

_IN_WORKERS = "1 engine in a `workerSpec`"


def _recreated_together(one: SetField) -> int:
    """Return how many pods are recreated together. Deployments recreate the failed pod alone."""
    together = {
        RecoveryPolicy.ROLE_RECREATE: max(role.pods for role in one.plan.roles),
        RecoveryPolicy.SERVING_GROUP_RECREATE: one.plan.pods_per_group,
    }
    return together.get(one.value, 1)


def _has_workers(one: SetField) -> bool:
    """Return whether an InferenceService has a workerSpec."""
    return not one.several and one.plan.roles[0].worker_replicas > 0


def _too_many(one: SetField) -> str:
    """Describe several engines: KServe counts the workers of one head, whatever minReplicas is."""
    role = one.plan.roles[0]
    return (
        f"gives {count_of(one.plan.groups * role.replicas, 'engine')} of "
        f"{count_of(role.pods, 'pod')}, but an "
        "InferenceService with workers is one engine"
    )


LIMITS = (
    ENGINES_WITH_METRICS,
    *(
        Limit(
            f"network_topology.{policy}",
            "is given, but pods of KServe have no PodGroup with a network topology",
        )
        for policy in ("group_policy", "role_policy")
    ),
    Limit("queue", "is {}, but pods of KServe have no PodGroup with a queue"),
    Limit("autoscaled", "is true, but objects of KServe have no scale subresource"),
    Limit(
        "restart_grace_period_seconds", "is {}, but KServe recreates a pod at once", when=above_zero
    ),
    Limit(
        f"{UPDATE}.partition",
        "is {plan.rollout.partition}, but KServe updates all pods of a role",
        when=lambda one: one.plan.rollout.partition,
    ),
    no_spread("KServe"),
    *only_if(
        lambda one: not is_llm(one.plan),
        Limit(
            "roles",
            lambda one: (
                f"has {count_of(len(one.value), 'role')}, but an InferenceService serves with one"
            ),
            when=lambda one: one.several,
            remedy=elsewhere(
                "write one ModelServing for each role, backend_options.kind: "
                "LLMInferenceService for prefill and decode"
            ),
        ),
        Limit(
            "gang_policy.min_role_replicas",
            "requests {plan.min_member} pods together, but KServe schedules each pod by itself",
            takes="at most 1 pod",
            when=lambda one: one.plan.min_member > 1,
            remedy=elsewhere("remove gang_policy"),
        ),
        Limit(
            "recovery_policy",
            lambda one: (
                f"is {one.value}, for {count_of(_recreated_together(one), 'pod')}, but "
                "KServe recreates only "
                "the pod that failed"
            ),
            takes="several pods: only `None`",
            when=lambda one: _recreated_together(one) > 1,
            remedy=elsewhere("write None"),
        ),
        one_budget("KServe", "at most one group"),
        Limit(
            "replicas",
            _too_many,
            takes=_IN_WORKERS,
            when=lambda one: _has_workers(one) and one.value != 1,
            remedy=elsewhere("write 1, and one ModelServing for each engine"),
        ),
        Limit(
            "roles[].replicas",
            _too_many,
            takes=_IN_WORKERS,
            when=lambda one: _has_workers(one) and one.plan.groups == 1 and one.value != 1,
            remedy=elsewhere("write 1, and one ModelServing for each engine"),
        ),
    ),
    Limit("roles[].worker_replicas", takes="what the sizes give"),
    Limit("fill_requests", takes="always in a `workerSpec`"),
    *OF_LLM,
)


def refuse(plan: ServingPlan) -> Iterator[Finding]:
    """Report options and pods that KServe does not support."""
    yield from refuse_hosts(plan, "KServe")
    if is_llm(plan):
        yield from refuse_llm(plan)
        return
    yield from _refuse_options(plan)
    yield from refuse_surge(plan)
    for role in plan.roles:
        yield from refuse_pods(role)
        if role.worker_replicas and len(plan.roles) == 1:
            yield from refuse_engine(plan, role)


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
