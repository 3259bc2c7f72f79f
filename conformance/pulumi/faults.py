"""Faults during a real `pulumi up`, and the recovery from them: see docs/faults.md.

After each fault, the message must name the cause and the solution, the next update must succeed,
the state and the cluster must have the same objects, each once, and destroy must leave nothing.
"""

from collections.abc import Callable

from conformance.__main__ import Context
from conformance.pulumi.cluster_faults import (
    controllers_stopped,
    definition_missing,
    field_taken_over,
    quota_reached,
    rights_missing,
    stack_of_another,
    webhook_stopped,
)
from conformance.pulumi.fault_stack import World
from sandbox.cluster import Size

Fault = Callable[[World, float], None]
"""A fault: takes the world and the scale. Its docstring describes the fault."""
FAULTS: tuple[Fault, ...] = (
    webhook_stopped,
    quota_reached,
    field_taken_over,
    stack_of_another,
    controllers_stopped,
    definition_missing,
    rights_missing,
)


def run(context: Context) -> None:
    """Try every fault of the cluster."""
    try_all(context, FAULTS)


def try_all(context: Context, faults: tuple[Fault, ...]) -> None:
    """Try faults on one sandbox."""
    sandbox = context.sandbox(Size(racks=1, nodes=2))
    try:
        world = World(context.part, sandbox, sandbox.api, context.folder)
        for fault in faults:
            context.part.say((fault.__doc__ or "").splitlines()[0])
            fault(world, context.scale)
    finally:
        sandbox.processes.stop_all()
