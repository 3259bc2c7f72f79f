"""Finds objects that two components create, or that belong to another stack.

Pulumi compares its own names only. Two components of different names that write the same object
would overwrite each other's at every update.
"""

import asyncio
import os
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary

import pulumi
from pulumi.runtime import settings

from kthena_components.core import naming
from kthena_components.core.findings import Finding, Level
from kthena_components.core.plan.manifest import Manifest
from kthena_components.core.values.read import mapping
from kthena_components.core.values.unknown import is_unresolved
from kthena_components.resources._access import Access, Place, Placed, access_of, live

_KUBERNETES = "kubernetes:core/v1:Service"
_Claims = dict[tuple[pulumi.ProviderResource | None, str], str]
_programs: WeakKeyDictionary[object, _Claims] = WeakKeyDictionary()
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
        manifests: Its objects.
        opts: Its options, which choose the provider. Two providers may be two clusters.
    """
    owners = _programs.setdefault(running(), {})
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


RULE = "object-of-another-stack"
MOST = 10
"""Components of a program that a preview asks about: the first ones."""
_TAKES_OVER = "PULUMI_K8S_ENABLE_PATCH_FORCE"
_asked: WeakKeyDictionary[object, list[Placed]] = WeakKeyDictionary()


def warn_of_rival(
    resource: pulumi.CustomResource,
    placed: Placed,
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
            finding = _finding(await placed.title(place), own, *answer)
            pulumi.log.warn(str(finding), resource=resource)

    pulumi.Output.all(resource.urn, placed.place).apply(compare)


def _is_taken_over() -> bool:
    return os.environ.get(_TAKES_OVER, "").lower() in {"1", "t", "true"}


def _owner(access: Access, place: Place) -> tuple[str, str] | None:
    """Return the cluster's address, and the stack that an object belongs to; None for nobody's."""
    server, metadata = live(access, place) or ("", None)
    owner = mapping(mapping(metadata).get("annotations")).get(naming.STACK)
    return None if owner is None else (server, str(owner))


def _finding(title: str, own: str, server: str, owner: str) -> Finding:
    return Finding(
        path=title,
        seen=f"belongs to the stack {owner} on {server}, and this is the stack {own}, so an "
        "update fails",
        remedy="rename the serving or give it another namespace; docs/faults.md says how to move "
        "an object to another stack",
        rule=RULE,
        level=Level.ADVISORY,
    )
