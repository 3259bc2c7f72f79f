"""Starts, updates and drains that never finish: the real controllers, our rules and remedies."""

from conformance.__main__ import Context
from conformance.hangs.engines import leave_probes_to_us
from conformance.hangs.gangs import BELOW, ORDERED, PLACED, QUEUED, RACKS, SIZE
from conformance.hangs.names import ENTRIES, LEADERS, WAITS
from conformance.hangs.pairs import hold, make
from conformance.hangs.pods import DRAINS, SCALED, STARTS
from conformance.support.cluster import Scene
from sandbox import commands
from sandbox.cluster import Sandbox

_SCHEDULER = "vc-scheduler"
_FLAT, _NESTED = "{name: proportion}", "{name: capacity, enableHierarchy: true}"
"""The plugins for queues; only the second one compares a gang with the parents of its queue."""


def run(context: Context) -> None:
    """Try each pair."""
    sandbox = context.sandbox(SIZE)
    try:
        leave_probes_to_us(sandbox)
        scene = Scene(sandbox.api, context.part)
        for rack in RACKS:
            scene.api.patch(rack, {"spec": rack["spec"]})
        every = (*STARTS, *ENTRIES, *LEADERS, *WAITS)
        every += (*ORDERED, *QUEUED, *PLACED, *SCALED, *DRAINS)
        for pair in every[:: max(1, round(1 / context.scale))]:
            hold(scene, pair)
        for pair in BELOW:
            with scene.of(f"{pair.title}, of which the plugin knows nothing"):
                make(scene, pair.objects)
                pair.ends(scene)
        schedule_with(sandbox, _NESTED)
        for pair in BELOW:
            hold(scene, pair)
        sandbox.processes.check()
    finally:
        sandbox.processes.stop_all()


def schedule_with(sandbox: Sandbox, queues: str) -> None:
    """Restart the scheduler with another plugin for queues."""
    text = commands.SCHEDULER.replace(_FLAT, queues)
    (sandbox.layout.folder / "scheduler.yaml").write_text(text)
    sandbox.processes.stop(_SCHEDULER)
    sandbox.start_controller(_SCHEDULER)
