"""Puts the diagnostics of `doctor` together. Pure."""

from kthena_components.cluster.access import (
    check_backends,
    check_monitoring,
    check_namespaces,
    check_queues,
    check_rights,
    check_secret_keys,
)
from kthena_components.cluster.capacity import check_gpus, check_nodes, check_room
from kthena_components.cluster.network import check_network, check_tiers
from kthena_components.cluster.requirements import Requirements
from kthena_components.cluster.snapshot import Diagnostic, Snapshot, Status
from kthena_components.cluster.stack_servings import ReadStack
from kthena_components.cluster.systems import (
    check_controllers,
    check_kthena,
    check_kubernetes,
    check_scheduler_config,
    check_volcano,
)

_SHOWN = 3


def check_stack_file(stack: ReadStack | None) -> list[Diagnostic]:
    """Report findings that make an update of a stack fail in any cluster."""
    if stack is None:
        return []
    found = [Diagnostic(Status.FAIL, "stack", str(refusal)) for refusal in stack.refusals[:_SHOWN]]
    more = len(stack.refusals) - _SHOWN
    if more > 0:
        text = f"{more} more: run `pulumi preview --stack {stack.need.stack}`"
        found.append(Diagnostic(Status.FAIL, "stack", text))
    if stack.is_empty:
        text = (
            f"{stack.file} lists no servings, so only the cluster is checked. If a program of your "
            "own makes them, `pulumi preview` checks them"
        )
        found.append(Diagnostic(Status.WARN, "stack", text))
    elif stack.renders:
        text = "its output is render, so an update writes files and does not touch this cluster"
        found.append(Diagnostic(Status.WARN, "stack", text))
    return found


def diagnose(seen: Snapshot, need: Requirements) -> list[Diagnostic]:
    """Run all checks of a cluster, in the order in which one fixes their findings."""
    return [
        *check_kubernetes(seen, need),
        *check_volcano(seen, need),
        *check_kthena(seen, need),
        *check_backends(seen, need),
        *check_monitoring(seen, need),
        *check_controllers(seen, need),
        *check_scheduler_config(seen, need),
        *check_queues(seen, need),
        *check_network(seen, need),
        *check_tiers(seen, need),
        *check_gpus(seen, need),
        *check_nodes(seen, need),
        *check_room(seen, need),
        *check_namespaces(seen, need),
        *check_secret_keys(seen, need),
        *check_rights(seen, need),
    ]
