"""The objects that the components of a program create: none is created twice.

Pulumi compares its own names only. Two components of different names that write the same object
would overwrite each other's at every update.
"""

from collections.abc import Iterable
from contextvars import ContextVar
from weakref import WeakKeyDictionary

import pulumi
from pulumi.runtime import settings

from kthena_components.core.findings import Finding
from kthena_components.core.plan.manifest import Manifest
from kthena_components.core.values.unknown import is_unresolved

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
