"""Kills programs during a real `pulumi up`, and recovers as docs/faults.md describes."""

from conformance.__main__ import Context
from conformance.pulumi.faults import try_all
from conformance.pulumi.process_faults import api_server_killed, engine_killed, provider_killed


def run(context: Context) -> None:
    """Try every kill on one sandbox."""
    kills = (api_server_killed, engine_killed, provider_killed)
    try_all(context, kills)
