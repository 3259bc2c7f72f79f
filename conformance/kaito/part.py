"""Compares our rules and calculations for KAITO with its real webhook and controller.

Everything runs in a network that has only loopback, because KAITO listens on every address.
"""

from conformance.__main__ import Context
from conformance.kaito import created_objects, inference_configs, random_workspaces, stack
from conformance.kaito.cluster import CREATED, EXISTING, serve, start
from conformance.validation.cases import Kind
from conformance.validation.part import Tally, check_reach, compare
from sandbox.cluster import create

NUMBER = 2_000
"""Number of objects of each kind, half of them for nodes that exist."""


def run(context: Context) -> None:
    """Try nodes that exist, and then nodes that KAITO creates."""
    sandbox = start(context)
    try:
        create(sandbox.api, random_workspaces.written()[1])
        found = Tally()
        kinds: list[Kind] = []
        for provisioner in (EXISTING, CREATED):
            serve(context, sandbox, provisioner)
            tried = random_workspaces.kinds(provisioner, NUMBER // 2)
            found.add(compare(context, tried, sandbox.layout.programs))
            kinds += tried
            if provisioner == EXISTING:
                created_objects.compare_existing(context.part, sandbox.api)
                inference_configs.compare(context, sandbox.api)
                stack.compare(context, sandbox)
            else:
                created_objects.compare_created(context.part, sandbox.api)
        check_reach(context, kinds, found)
        sandbox.processes.check()
    finally:
        sandbox.processes.stop_all()
