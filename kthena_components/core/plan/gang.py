"""Checks the gangs of a plan, with paths in the user's input: for every backend with PodGroups."""

from collections.abc import Iterator

from kthena_components.core.findings import Finding, join_path
from kthena_components.core.objects.requests import requests_in
from kthena_components.core.plan.model import RolePlan, ServingPlan
from kthena_components.core.spec.words import TopologyMode
from kthena_components.core.values.read import mapping


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
