"""Checks that the pods which get a plan's requests listen at its ports."""

from collections.abc import Iterator

from kthena_components.core.facts.listening import Listening, listening
from kthena_components.core.facts.pod import read_pod
from kthena_components.core.findings import Finding
from kthena_components.core.plan.model import RolePlan, ServingPlan


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
