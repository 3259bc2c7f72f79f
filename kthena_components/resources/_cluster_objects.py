"""Compares a stack's objects with a cluster's and with other components': others', or none.

Pulumi compares its own names only. Two components of different names that write the same object
would overwrite each other's at every update.

Pulumi compares a program with the state, and reads the cluster only in a refresh: on a new cluster
an update under an old state changes nothing. An unchanged resource comes back from the engine with
the uid of its object, so one request shows whether that object is there.
"""

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import pulumi
from pulumi.runtime import settings

from kthena_components.core import naming
from kthena_components.core.findings import Finding, Level
from kthena_components.core.plan.manifest import Manifest
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping
from kthena_components.core.values.unknown import is_unresolved
from kthena_components.resources._access import Access, Place, PlacedObject, access_of, live

_KUBERNETES = "kubernetes:core/v1:Service"
_Claims = dict[tuple[pulumi.ProviderResource | None, str], str]
_claimed: WeakKeyDictionary[object, _Claims] = WeakKeyDictionary()
"""The component of each object, by its provider and title, for each program."""
program: ContextVar[object] = ContextVar("program", default=None)
"""Stands for the program where every component has its own monitor. Default: the monitor."""


def running() -> object:
    """Return what stands for the running program: it lives as long as that."""
    return program.get() or settings.get_monitor()


def claim(
    component: str, manifests: Iterable[Manifest], opts: pulumi.ResourceOptions | None
) -> Finding | None:
    """Remember what a component creates; return a finding if another one creates it, too.

    Args:
        component: Title of the component.
        opts: Its options, which choose the provider. Two providers may be two clusters.
    """
    owners = _claimed.setdefault(running(), {})
    provider = _provider(opts)
    for manifest in manifests:
        if is_unresolved(manifest.title):
            continue  # in another namespace, for all that is known
        owner = owners.setdefault((provider, manifest.title), component)
        if owner != component:
            return Finding(
                path="name",
                seen=f"would create the {manifest.title}, which {owner} also creates",
                remedy="rename one of the two, or give it another namespace",
                rule="object-twice",
            )
    return None


def _provider(opts: pulumi.ResourceOptions | None) -> pulumi.ProviderResource | None:
    """Return the Kubernetes provider that a component with these options has; None: the default."""
    if opts is None:
        return None
    given = opts.providers or []
    listed = list(given.values()) if isinstance(given, dict) else list(given)
    for provider in (opts.provider, *listed):
        if isinstance(provider, pulumi.ProviderResource) and provider.package == "kubernetes":
            return provider
    return opts.parent.get_provider(_KUBERNETES) if opts.parent is not None else None


# Says in a preview that an object belongs to another stack.
#
# In an update the API server rejects the second stack (decision 29). The dry run of a preview
# does not show it, because the provider forces it for an object that is not in the state.


OF_ANOTHER_STACK = "object-of-another-stack"
MOST = 10
"""Components of a program that a preview asks about: the first ones."""
_TAKES_OVER = "PULUMI_K8S_ENABLE_PATCH_FORCE"
_asked: WeakKeyDictionary[object, list[PlacedObject]] = WeakKeyDictionary()


def warn_of_rival(
    resource: pulumi.CustomResource,
    placed: PlacedObject,
    own: str,
    provider: pulumi.ProviderResource | None,
) -> None:
    """Warn in a preview if an object of a component belongs to another stack."""
    access = access_of(provider)
    if access is None or not pulumi.runtime.is_dry_run():
        return
    asked = _asked.setdefault(running(), [])
    if len(asked) >= MOST or _is_taken_over():
        return
    asked.append(placed)

    async def compare(resolved: Sequence[Any]) -> Any:
        _urn, place = resolved
        answer = await asyncio.to_thread(_owner, access, place)
        if answer is not None and answer[1] != own:
            finding = _of_another_stack(await placed.title(place), own, *answer)
            pulumi.log.warn(str(finding), resource=resource)

    pulumi.Output.all(resource.urn, placed.place).apply(compare)


def _is_taken_over() -> bool:
    return os.environ.get(_TAKES_OVER, "").lower() in {"1", "t", "true"}


def _owner(access: Access, place: Place) -> tuple[str, str] | None:
    """Return the cluster's address, and the stack that owns an object; None if no stack does."""
    server, metadata = live(access, place) or ("", None)
    owner = mapping(mapping(metadata).get("annotations")).get(naming.STACK)
    return None if owner is None else (server, str(owner))


def _of_another_stack(title: str, own: str, server: str, owner: str) -> Finding:
    """Write the finding of an object that belongs to another stack."""
    return Finding(
        path=title,
        seen=f"belongs to the stack {owner} on {server}, and this is the stack {own}, so an "
        "update fails",
        remedy="rename the serving or give it another namespace; docs/faults.md says how to move "
        "an object to another stack",
        rule=OF_ANOTHER_STACK,
        level=Level.ADVISORY,
    )


OF_ANOTHER_CLUSTER = "state-of-another-cluster"
_WHOLE_SECONDS = timedelta(seconds=1)
"""The API server cuts creationTimestamp to a second."""
_begun: WeakKeyDictionary[object, datetime] = WeakKeyDictionary()
"""When each program began. An object that it creates is younger, also in a preview's dry run."""
_Asked = set[pulumi.ProviderResource | None]
_known_states: WeakKeyDictionary[object, _Asked] = WeakKeyDictionary()


def warn_if_elsewhere(
    resource: pulumi.CustomResource, placed: PlacedObject, provider: pulumi.ProviderResource | None
) -> None:
    """Warn if a component's first resource is in the state and not in its provider's cluster.

    Once in a program for each provider. Nothing happens without the extra `cluster`, and for a
    provider that the user creates, because its kubeconfig may be an Output.
    """
    access = access_of(provider)
    metadata: object = getattr(resource, "metadata", None)
    if access is None or not isinstance(metadata, pulumi.Output):
        return
    asked = _known_states.setdefault(running(), set())
    begun = _begun.setdefault(running(), datetime.now(UTC) - _WHOLE_SECONDS)

    async def compare(resolved: Sequence[Any]) -> Any:
        """Warn once if an object of the state is not on the server that is asked now."""
        found, place = resolved
        known = _RecordedObject.read(mapping(found), begun)
        if known is None or provider in asked:
            return
        asked.add(provider)
        server = await asyncio.to_thread(_missing_on, access, place, known)
        if server is not None:
            title = await placed.title(place)
            pulumi.log.warn(str(_of_another_cluster(title, known, server)), resource=resource)

    pulumi.Output.all(metadata, placed.place).apply(compare)


@dataclass(frozen=True, slots=True)
class _RecordedObject:
    """An object as the state of a stack records it."""

    uid: str
    created: str

    @classmethod
    def read(cls, metadata: Mapping[str, Any], begun: datetime) -> "_RecordedObject | None":
        """Read it; None for an object that this run creates, or that is only a file.

        Args:
            begun: When the program began.
        """
        uid, created = metadata.get("uid"), metadata.get("creationTimestamp")
        if not isinstance(uid, str) or not isinstance(created, str):
            return None
        try:
            since = datetime.fromisoformat(created)
        except ValueError:
            return None
        return cls(uid, created) if since < begun else None


def _missing_on(access: Access, place: Place, known: _RecordedObject) -> str | None:
    """Return the address of the cluster that does not have an object; None if it may have it."""
    answer = live(access, place)
    if answer is None:
        return None
    server, metadata = answer
    return server if metadata is None or metadata.get("uid") != known.uid else None


def _of_another_cluster(title: str, known: _RecordedObject, server: str) -> Finding:
    """Write the finding of an object that the state has and the cluster does not."""
    return Finding(
        path=title,
        seen=f"is in the state of this stack, created {known.created}, but not on {server}: the "
        "state is of another cluster, or somebody has deleted the object. Pulumi does not create "
        "what the state has",
        remedy="run 'pulumi up --refresh', which forgets what is gone and creates it again",
        rule=OF_ANOTHER_CLUSTER,
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
        """Warn if the cluster of the default provider cannot be reached."""
        from kthena_components.resources.cluster import check_default_cluster  # noqa: PLC0415

        secret = "kubernetes:kubeconfig" in pulumi.runtime.get_config_secret_keys_env()
        found = await asyncio.to_thread(
            check_default_cluster, access.kubeconfig, access.context, os.environ, secret=secret
        )
        if found is not None:
            until = "This preview only uses the state; an update fails until then."
            pulumi.log.warn(f"{found}\n{until}")

    pulumi.Output.from_input(None).apply(ask)
