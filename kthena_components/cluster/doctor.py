"""Puts the diagnostics of `doctor` together. Pure."""

from kthena_components.cluster.access import (
    judge_backends,
    judge_monitoring,
    judge_namespaces,
    judge_queues,
    judge_rights,
    judge_secrets,
)
from kthena_components.cluster.capacity import judge_gpus, judge_nodes, judge_room
from kthena_components.cluster.network import judge_network, judge_tiers
from kthena_components.cluster.requirements import Requirements
from kthena_components.cluster.snapshot import Diagnostic, Snapshot, Status
from kthena_components.cluster.stack_file import ReadStack
from kthena_components.cluster.systems import (
    judge_controllers,
    judge_kthena,
    judge_kubernetes,
    judge_scheduler_config,
    judge_volcano,
)

_SHOWN = 3


def judge_stack_file(stack: ReadStack | None) -> list[Diagnostic]:
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


def judge_cluster(seen: Snapshot, need: Requirements) -> list[Diagnostic]:
    """Run all checks of a cluster, in the order in which one fixes their findings."""
    return [
        *judge_kubernetes(seen, need),
        *judge_volcano(seen, need),
        *judge_kthena(seen, need),
        *judge_backends(seen, need),
        *judge_monitoring(seen, need),
        *judge_controllers(seen, need),
        *judge_scheduler_config(seen, need),
        *judge_queues(seen, need),
        *judge_network(seen, need),
        *judge_tiers(seen, need),
        *judge_gpus(seen, need),
        *judge_nodes(seen, need),
        *judge_room(seen, need),
        *judge_namespaces(seen, need),
        *judge_secrets(seen, need),
        *judge_rights(seen, need),
    ]
