"""Warns in a preview that the cluster of a program's default provider does not answer.

Without a cluster Pulumi compares a program with its state only, so a preview succeeds and the
update fails. The stack program checks the clusters of its own providers before it registers
anything (stack.py).
"""

import asyncio
import os
from typing import Any
from weakref import WeakSet

import pulumi

from kthena_components.resources._access import access_of
from kthena_components.resources._duplicate_objects import running

_programs: WeakSet[object] = WeakSet()
"""The programs that have asked: once is enough."""


def warn_if_unreachable(provider: pulumi.ProviderResource | None) -> None:
    """Warn if a component uses the default provider, and that one's cluster does not answer.

    Nothing happens in an update, which fails by itself, and for a provider of the user, whose
    kubeconfig may be an Output.
    """
    access = access_of(provider) if provider is None else None
    program = running()
    if access is None or program in _programs or not pulumi.runtime.is_dry_run():
        return
    _programs.add(program)

    async def ask(_: object) -> Any:
        from kthena_components.resources.cluster import check_default_cluster  # noqa: PLC0415

        secret = "kubernetes:kubeconfig" in pulumi.runtime.get_config_secret_keys_env()
        found = await asyncio.to_thread(
            check_default_cluster, access.kubeconfig, access.context, os.environ, secret=secret
        )
        if found is not None:
            until = "This preview only uses the state; an update fails until then."
            pulumi.log.warn(f"{found}\n{until}")

    pulumi.Output.from_input(None).apply(ask)
