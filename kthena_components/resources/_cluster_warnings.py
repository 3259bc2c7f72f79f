"""Warns that a cluster lacks the objects of a stack's state, or does not answer.

Pulumi compares a program with the state, and reads the cluster only in a refresh: on a new cluster
an update under an old state changes nothing. An unchanged resource comes back from the engine with
the uid of its object, so one request shows whether that object is there.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import pulumi

from kthena_components.core.findings import Finding, Level
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping
from kthena_components.resources._access import Access, Place, Placed, access_of, live
from kthena_components.resources._duplicate_objects import running

RULE = "state-of-another-cluster"
STARTED = datetime.now(UTC)
"""An object that this run creates is younger, also in a preview's dry run."""
_Asked = set[pulumi.ProviderResource | None]
_programs: WeakKeyDictionary[object, _Asked] = WeakKeyDictionary()


def warn_if_elsewhere(
    resource: pulumi.CustomResource, placed: Placed, provider: pulumi.ProviderResource | None
) -> None:
    """Warn if a component's first resource is in the state and not in its provider's cluster.

    Once in a program for each provider. Nothing happens without the extra `cluster`, and for a
    provider that the user creates, because its kubeconfig may be an Output.
    """
    access = access_of(provider)
    metadata: object = getattr(resource, "metadata", None)
    if access is None or not isinstance(metadata, pulumi.Output):
        return
    asked = _programs.setdefault(running(), set())

    async def compare(resolved: Sequence[Any]) -> Any:
        found, place = resolved
        known = _Known.read(mapping(found))
        if known is None or provider in asked:
            return
        asked.add(provider)
        server = await asyncio.to_thread(_missing_on, access, place, known)
        if server is not None:
            title = await placed.title(place)
            pulumi.log.warn(str(_finding(title, known, server)), resource=resource)

    pulumi.Output.all(metadata, placed.place).apply(compare)


@dataclass(frozen=True, slots=True)
class _Known:
    """What the state says of an object."""

    uid: str
    created: str

    @classmethod
    def read(cls, metadata: Mapping[str, Any]) -> "_Known | None":
        """Read it; None for an object that this run creates, or that is only a file."""
        uid, created = metadata.get("uid"), metadata.get("creationTimestamp")
        if not isinstance(uid, str) or not isinstance(created, str):
            return None
        try:
            since = datetime.fromisoformat(created)
        except ValueError:
            return None
        return cls(uid, created) if since < STARTED else None


def _missing_on(access: Access, place: Place, known: _Known) -> str | None:
    """Return the address of the cluster that does not have an object; None if it may have it."""
    answer = live(access, place)
    if answer is None:
        return None
    server, metadata = answer
    return server if metadata is None or metadata.get("uid") != known.uid else None


def _finding(title: str, known: _Known, server: str) -> Finding:
    return Finding(
        path=title,
        seen=f"is in the state of this stack, created {known.created}, but not on {server}: the "
        "state is of another cluster, or somebody has deleted the object. Pulumi does not create "
        "what the state has",
        remedy="run 'pulumi up --refresh', which forgets what is gone and creates it again",
        rule=RULE,
        level=Level.ADVISORY,
    )


# Warns in a preview that the cluster of a program's default provider does not answer.
#
# Without a cluster Pulumi compares a program with its state only, so a preview succeeds and the
# update fails. The stack program checks the clusters of its own providers before it registers
# anything (stack.py).


_warned: WeakSet[object] = WeakSet()
"""The programs that have asked: once is enough."""


def warn_if_unreachable(provider: pulumi.ProviderResource | None) -> None:
    """Warn if a component uses the default provider, and that one's cluster does not answer.

    Nothing happens in an update, which fails by itself, and for a provider of the user, whose
    kubeconfig may be an Output.
    """
    access = access_of(provider) if provider is None else None
    program = running()
    if access is None or program in _warned or not pulumi.runtime.is_dry_run():
        return
    _warned.add(program)

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
