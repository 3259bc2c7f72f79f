"""The facts of a plan, and its checks, with paths in the user's input."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from kthena_components.core import naming
from kthena_components.core.facts.context import Context
from kthena_components.core.facts.listening import Listening, listening
from kthena_components.core.facts.members import Numbers, Template, with_members
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.serving import EngineFacts, GangFacts, ServingFacts
from kthena_components.core.findings import Finding, join_path
from kthena_components.core.hardware import NO_CHOICE, GpuChoice
from kthena_components.core.objects.object import requests_in
from kthena_components.core.plan.pod_additions import stated_claims
from kthena_components.core.plan.serving_plan import RolePlan, ServingPlan
from kthena_components.core.schema.pod_values import check_values
from kthena_components.core.spec.enums import TopologyMode
from kthena_components.core.templates import MERGE_KEYS
from kthena_components.core.templates import Template as PodTemplate
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.regex import regex


def facts_from_plan(
    plan: ServingPlan, sizes: tuple[str, ...] = (naming.GROUP_SIZE,), gpus: GpuChoice = NO_CHOICE
) -> ServingFacts:
    """Read the facts of a plan, with paths in the user's input.

    Args:
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


def facts_without_groups(plan: ServingPlan, sizes: tuple[str, ...]) -> ServingFacts:
    """Read the facts for a backend without ServingGroups: each engine is a gang."""
    found = facts_from_plan(plan, sizes)
    engines = tuple(
        replace(engine, replicas=plan.groups * role.replicas)
        for engine, role in zip(found.engines, plan.roles, strict=True)
    )
    return replace(found, engines=engines, gang=None)


def _templates(role: RolePlan, groups: int) -> tuple[Template, Template | None]:
    """Return the templates of the entry and of the workers, with their numbers of pods."""
    engines = groups * role.replicas
    entry = Template(body=role.entry, count=engines)
    if role.worker is None or not role.worker_replicas:
        return entry, None
    return entry, Template(body=role.worker, count=engines * role.worker_replicas)


def _engine_of(role: RolePlan, sizes: tuple[str, ...], gpus: GpuChoice) -> EngineFacts:
    """Return the facts of a role's engine, as `check` reads them from a manifest."""
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


# Checks that the pods which get a plan's requests listen at its ports.


def listening_entry(role: RolePlan) -> Listening | None:
    """Return where the entry pods of a role listen; None if their command line does not show it."""
    return listening(read_pod(role.entry, ""), first=True)


def plan_exposed(plan: ServingPlan) -> Iterator[Finding]:
    """Report a front Service that targets a port on which its entry pods do not listen.

    The rule `expose_port` compares the port of an engine that the package starts.
    """
    if plan.expose is None:
        return
    exposed = [role for role in plan.roles if plan.expose.role in {None, role.name}]
    for role in exposed if len(exposed) == 1 else ():
        found, port = listening_entry(role), plan.expose.target_port
        if role.engine is not None or found is None or found.may_listen(port):
            continue
        if isinstance(found.answers, int):
            yield Finding(
                path="expose.target_port",
                seen=f"is {port}, but {found.title} in the entry pods of role '{role.name}'",
                remedy=f"write {found.answers}",
                rule="expose-port",
            )
        elif found.answers is None:
            yield Finding(
                path="expose",
                seen=f"sends requests to the entry pods of role '{role.name}', but {found.title}",
                remedy="remove it, or name a role whose entry pods answer",
                rule="expose-port",
            )


def plan_requests(plan: ServingPlan) -> Iterator[Finding]:
    """Report pods without requests in a hard topology, as `gang_requests` does for objects.

    It does not matter whether the package or a controller creates the PodGroup: Volcano applies the
    topology to the pods that request something, and places the others wherever they fit.
    """
    stated = (plan.group_topology, plan.role_topology)
    hard = any(topology and topology.mode is TopologyMode.HARD for topology in stated)
    if hard and plan.gang and plan.pod_group is None and plan.groups:
        for role in plan.roles:
            yield from _without_requests(role)


def _without_requests(role: RolePlan) -> Iterator[Finding]:
    """Advise requests for templates without any: a hard network topology ignores such pods."""
    workers = {"worker_template": role.worker} if role.worker_replicas else {}
    for field, template in ({"entry_template": role.entry} | workers).items():
        if role.replicas and requests_in(mapping((template or {}).get("spec"))) == {}:
            written = field if role.engine is None else "overlay"
            yield Finding(
                path=join_path(role.path, f"{written}.spec.containers"),
                seen="request no resources, so the hard network topology does not apply to these "
                "pods",
                remedy="add requests, for example of CPU, or write mode: soft",
                rule="gang-requests",
            )


_STEP = regex(r"([A-Za-z]+)\[([0-9]+)\]")


def plan_values(plan: ServingPlan) -> Iterator[Finding]:
    """Report values that Kubernetes rejects in any pod, after overlays are merged."""
    for role in plan.roles:
        fields = {"entry_template": role.entry}
        if role.worker is not None and role.worker_replicas:
            fields["worker_template"] = role.worker
        for field, template in fields.items():
            for finding in check_values(template, ""):
                yield replace(
                    finding, path=join_path(role.path, _place(role, field, template, finding))
                )


def _place(role: RolePlan, field: str, template: PodTemplate, finding: Finding) -> str:
    """Write a path as the user can find it: an engine's list items by their names."""
    if role.engine is None:
        return f"{field}.{finding.path}"
    named: list[str] = []
    value: object = template
    for step in finding.path.split("."):
        match = _STEP.fullmatch(step)
        value = mapping(value).get(match[1] if match else step)
        if match:
            items, index = sequence(value), int(match[2])
            value = items[index] if index < len(items) else None
            name = mapping(value).get(MERGE_KEYS.get(match[1], ""), index)
            named.append(f"{match[1]}[{name}]")
        else:
            named.append(step)
    return f"{'' if role.stated.overlay is None else 'overlay.'}{'.'.join(named)}"
