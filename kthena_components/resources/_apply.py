"""Registers manifests as Pulumi resources, with the stack that they belong to.

Manifests decide content and order of objects; naming.py decides Pulumi's names.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import field
from typing import Any
from weakref import WeakSet

import pulumi
from pulumi.runtime import settings

from kthena_components.core import naming
from kthena_components.core.naming import group_name, resource_name
from kthena_components.core.plan.manifest import Manifest
from kthena_components.core.values.dataclass import dataclass
from kthena_components.resources._access import PlacedObject, provider_version, warn_of_untested
from kthena_components.resources._cluster_objects import (
    warn_if_elsewhere,
    warn_if_unreachable,
    warn_of_rival,
)
from kthena_components.resources._outputs import Outputs
from kthena_components.resources._updates import hooks_of

SERVING_GROUP = "kthena:index:ServingGroup"
ROLE = "kthena:index:Role"
_KUBERNETES = "kubernetes:core/v1:Service"
MANY_OUTPUTS = 500
"""Pending Outputs above which the order matters in which Pulumi's SDK awaits them."""


@dataclass(slots=True, kw_only=True)
class Scope:
    """The component for which manifests are applied, and the components below it."""

    root: pulumi.ComponentResource
    name: str
    """Name of the component: prefix of every Pulumi name."""
    serving: str = ""
    """Name of the serving: prefix of every object's name. Empty: no prefix."""
    timeouts: pulumi.CustomTimeouts | None = None
    """The component's options, set by the user. They override those of a manifest."""
    made: dict[tuple[int | None, str | None], pulumi.ComponentResource] = field(
        default_factory=dict
    )

    def name_of(self, object_name: str) -> str:
        """Return the Pulumi name of an object."""
        own = object_name if self.serving else f"-{object_name}"
        return resource_name(self.name, self.serving, own)

    def parent_of(self, manifest: Manifest) -> pulumi.ComponentResource:
        """Find or create the component of a manifest's group and role."""
        return self._component(manifest.group, manifest.role)

    def _component(self, group: int | None, role: str | None) -> pulumi.ComponentResource:
        """Return the component of a group or a role, which is registered once."""
        known = self.made.get((group, role))
        if known is not None or group is None:
            return known or self.root
        parent = self.root if role is None else self._component(group, None)
        name = group_name(self.serving, group) + (f"-{role}" if role else "")
        known = pulumi.ComponentResource(
            ROLE if role else SERVING_GROUP,
            self.name_of(name),
            None,
            pulumi.ResourceOptions(parent=parent),
        )
        known.register_outputs({})
        self.made[group, role] = known
        return known


def apply(
    scope: Scope, manifests: Iterable[Manifest], outputs: Outputs
) -> dict[str, pulumi.CustomResource]:
    """Register manifests, each after those in its `after`; return the resources by key."""
    warn_of_untested()
    warn_if_unreachable(scope.root.get_provider(_KUBERNETES))
    resources: dict[str, pulumi.CustomResource] = {}
    before, provider = _Before(), scope.root.get_provider(_KUBERNETES)
    for manifest in manifests:
        looked_up = [resources[key] for key in manifest.looked_up]
        resources[manifest.key] = pulumi.CustomResource(
            manifest.type_token,
            scope.name_of(manifest.name),
            outputs.restore(completed(manifest.body, provider, looked_up)),
            pulumi.ResourceOptions(
                parent=scope.parent_of(manifest),
                depends_on=[_StandIn(resources[key]) for key in before.nearest(manifest)],
                protect=False if manifest.renewed else None,
                delete_before_replace=manifest.delete_first or None,
                replace_on_changes=list(manifest.replace_on),
                ignore_changes=list(manifest.ignore),
                replace_with=[resources[key] for key in manifest.replace_with],
                custom_timeouts=_timeouts(scope.timeouts, manifest.timeout_seconds),
                version=provider_version(),
                hooks=hooks_of(manifest, scope.name_of(manifest.name), provider),
            ),
        )
        if len(resources) == 1:
            placed = PlacedObject(manifest, outputs)
            warn_of_rival(resources[manifest.key], placed, own_stack(), provider)
            warn_if_elsewhere(resources[manifest.key], placed, provider)
    _await_registrations_first()
    return resources


class _StandIn(pulumi.CustomResource):
    """A dependency on a resource that hides the resource's own dependencies.

    Pulumi's SDK searches all transitive dependencies of each dependency for cycles, with a
    recursive function: a chain of groups takes cubic time and ends in a RecursionError. Manifests
    depend only on earlier ones, so they form no cycle.
    Source: pulumi 3.259 sdk/python/lib/pulumi/runtime/resource_cycle_breaker.py.
    """

    def __init__(self, resource: pulumi.Resource) -> None:
        self._resource = resource
        super().__init__("", "", {}, None, dependency=True)  # registers nothing

    @property
    def urn(self) -> pulumi.Output[str]:
        """The URN of the resource."""
        return self._resource.urn


class _Before:
    """The manifests before each manifest, as bit sets.

    Only direct predecessors are stated, and what those depend on is implied. The engine stores and
    sends each stated dependency, so the number of all of them would grow quadratically.
    """

    def __init__(self) -> None:
        self._bits: dict[str, int] = {}
        self._all: dict[str, int] = {}

    def nearest(self, manifest: Manifest) -> list[str]:
        """Return the manifests in `after` on which no other manifest in it depends."""
        implied = stated = 0
        for key in manifest.after:
            implied |= self._all[key]
            stated |= self._bits[key]
        self._bits[manifest.key] = 1 << len(self._bits)
        self._all[manifest.key] = implied | stated
        return [key for key in dict.fromkeys(manifest.after) if not self._bits[key] & implied]


def _await_registrations_first() -> None:
    """Make Pulumi's SDK await the registrations of a large program before its Outputs.

    At the end of a program the SDK awaits the RPCs that have started, and then all Outputs: it
    hands all pending ones to asyncio.wait each time one of them completes. Without an RPC in its
    list it does so at once, because no registration has started yet, and takes quadratic time.
    After the first RPC, even a finished one, all have started, and it awaits those.
    Source: pulumi 3.259 sdk/python/lib/pulumi/runtime/stack.py wait_for_rpcs.
    """
    sdk = getattr(settings, "SETTINGS", None)
    pending = getattr(sdk, "outputs", None)
    started = getattr(getattr(sdk, "rpc_manager", None), "rpcs", None)
    # Another release of the SDK may keep them elsewhere, and is left alone.
    if isinstance(pending, set) and isinstance(started, list) and len(pending) > MANY_OUTPUTS:
        finished: asyncio.Future[None] = asyncio.Future()
        finished.set_result(None)
        started.append(finished)


def awaited(
    manifests: Iterable[Manifest], resources: Mapping[str, pulumi.Resource]
) -> list[pulumi.Output[str]]:
    """Return Outputs that resolve only when the serving is ready."""
    return [
        resources[manifest.key].urn
        for manifest in manifests
        if manifest.timeout_seconds is not None or manifest.group is None
    ]


def _timeouts(
    stated: pulumi.CustomTimeouts | None, seconds: int | None
) -> pulumi.CustomTimeouts | None:
    """Add the serving's time limit; what the user states for an operation wins."""
    if seconds is None:
        return stated
    ours = f"{seconds}s"
    if stated is None:
        return pulumi.CustomTimeouts(create=ours, update=ours)
    merged = copy(stated)
    merged.create, merged.update = stated.create or ours, stated.update or ours
    return merged


_OF_PROVIDER = "pulumi.com/"
_rendering: WeakSet[pulumi.ProviderResource] = WeakSet()


def mark_rendering(provider: pulumi.ProviderResource) -> None:
    """Remember that a provider writes files, and reaches no cluster."""
    _rendering.add(provider)


def completed(
    body: Mapping[str, Any],
    provider: pulumi.ProviderResource | None,
    looked_up: Sequence[pulumi.CustomResource] = (),
) -> Mapping[str, Any]:
    """Return an object as it is registered: with its stack, or as a file for other programs.

    Server-side apply changes an object that exists. The API server rejects it if another manager
    has applied another value of the same field, so another stack does not take the object over. In
    a file, neither this annotation nor those that Pulumi's provider reads mean anything.

    Args:
        provider: Its Kubernetes provider; None: the default one of the program. Whether one that
            the user creates writes files is not known.
        looked_up: Objects that must exist before a webhook accepts this one. The annotation is
            unknown until then: in a preview, Pulumi's provider sends an object to the webhooks only
            if all of it is known (pulumi-kubernetes provider/pkg/provider/provider.go).
    """
    metadata = dict(body["metadata"])
    annotations: dict[str, Any] = metadata.pop("annotations", None) or {}
    if _renders(provider):
        kept = {k: text for k, text in annotations.items() if not k.startswith(_OF_PROVIDER)}
    else:
        kept = {**annotations, naming.STACK: _known_after(looked_up, own_stack())}
    return {**body, "metadata": {**metadata, **({"annotations": kept} if kept else {})}}


def _known_after(resources: Sequence[pulumi.CustomResource], text: str) -> str | pulumi.Output[str]:
    if not resources:
        return text
    return pulumi.Output.all(*(resource.id for resource in resources)).apply(lambda _: text)


def own_stack() -> str:
    """Return organization, project and stack."""
    # Tests of a program have no organization.
    parts = (pulumi.get_organization(), pulumi.get_project(), pulumi.get_stack())
    return "/".join(filter(None, parts))


def _renders(provider: pulumi.ProviderResource | None) -> bool:
    if provider is not None:
        return provider in _rendering
    return pulumi.Config("kubernetes").get("renderYamlToDirectory") is not None
