"""Faults in the middle of a real `pulumi up`, and the way on: see docs/faults.md.

After each of them the message must name the thing and what to do, a further update must converge,
state and cluster must hold the same objects, each once, and destroy must leave nothing.
"""

from collections.abc import Callable

from conformance.__main__ import Context
from conformance.faults_cluster import (
    controllers_stopped,
    definition_missing,
    field_taken_over,
    quota_reached,
    rights_missing,
    webhook_stopped,
)
from conformance.faults_processes import api_server_killed, engine_killed, provider_killed
from conformance.faults_world import World
from sandbox.cluster import Size

FAULTS: tuple[Callable[[World, float], None], ...] = (
    api_server_killed,
    engine_killed,
    provider_killed,
    webhook_stopped,
    quota_reached,
    field_taken_over,
    controllers_stopped,
    definition_missing,
    rights_missing,
)
"""Each takes the world and the scale; its docstring says what happens."""


def run(context: Context) -> None:
    """Try every fault, one after the other, on one sandbox."""
    sandbox = context.sandbox(Size(racks=1, nodes=2))
    try:
        world = World(context.part, sandbox, sandbox.api, context.folder)
        for fault in FAULTS:
            context.part.say((fault.__doc__ or "").splitlines()[0])
            fault(world, context.scale)
    finally:
        sandbox.processes.stop_all()
