"""Reads the facts of a plan, with paths in the user's input."""

from typing import Any

from kthena_components.core import naming
from kthena_components.core.facts.context import Context
from kthena_components.core.facts.members import Numbers, Template, with_members
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.serving import EngineFacts, GangFacts, ServingFacts
from kthena_components.core.hardware import NO_CHOICE, GpuChoice
from kthena_components.core.plan.pod_additions import stated_claims
from kthena_components.core.plan.serving_plan import RolePlan, ServingPlan


def facts_from_plan(
    plan: ServingPlan,
    sizes: tuple[str, ...] = (naming.GROUP_SIZE,),
    gpus: GpuChoice = NO_CHOICE,
) -> ServingFacts:
    """Read the facts of a plan, with paths in the user's input.

    Args:
        plan: The plan.
        sizes: Variables that contain the number of pods of an engine.
        gpus: The GPUs of pods whose templates name none.
    """
    numbers = Numbers(size=sizes, rank=(naming.WORKER_INDEX,))
    engines = tuple(
        with_members(_engine_of(role, sizes, gpus), *_templates(role, plan.groups), numbers)
        for role in plan.roles
    )
    gang = GangFacts(
        path="gang_policy",
        min_member=plan.min_member,
        minima={role.name: role.gang_replicas for role in plan.roles},
    )
    return ServingFacts(
        path="",
        name=plan.name,
        engines=engines,
        gang=gang if plan.gang and plan.pod_group is None else None,
        gang_expected=plan.gang,
    )


def _templates(role: RolePlan, groups: int) -> tuple[Template, Template | None]:
    engines = groups * role.replicas
    entry = Template(body=role.entry, count=engines)
    if role.worker is None or not role.worker_replicas:
        return entry, None
    return entry, Template(body=role.worker, count=engines * role.worker_replicas)


def _engine_of(role: RolePlan, sizes: tuple[str, ...], gpus: GpuChoice) -> EngineFacts:
    env = dict.fromkeys(sizes, str(role.pods))
    prefix = f"{role.path}." if role.path else ""
    claimed = stated_claims(role.stated, role.claim_templates)
    context = Context(gpus=gpus, referenced=claimed)
    overrides: dict[str, Any] = {"context": context} if gpus or claimed else {}
    if role.engine:
        overrides |= {
            "gpus_path": f"{prefix}resources.gpus_per_pod",
            "command_path": f"{prefix}engine.parallelism",
            "role_path": role.path,
        }
    worker = role.worker if role.worker_replicas else None
    return EngineFacts(
        path=role.path,
        name=role.name,
        pods=role.pods,
        replicas=role.replicas,
        entry=read_pod(role.entry, f"{prefix}entry_template", env, **overrides),
        worker=None
        if worker is None
        else read_pod(worker, f"{prefix}worker_template", env, **overrides),
    )
