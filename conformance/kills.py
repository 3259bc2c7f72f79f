"""Programs that are killed in the middle of a real `pulumi up`, and the way on: docs/faults.md."""

from conformance.__main__ import Context
from conformance.faults import try_all
from conformance.faults_processes import api_server_killed, engine_killed, provider_killed


def run(context: Context) -> None:
    """Try every kill, one after the other, on one sandbox."""
    try_all(context, (api_server_killed, engine_killed, provider_killed))
