"""Registers manifests as Pulumi resources, each below its component.

Manifests decide content and order of objects; naming.py decides Pulumi's names.
"""

import asyncio
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import field

import pulumi
from pulumi.runtime import settings

from kthena_components.core.naming import group_name, resource_name
from kthena_components.core.plan.manifest import Manifest
from kthena_components.core.values.dataclass import dataclass
from kthena_components.resources._access import Placed, provider_version, warn_of_untested
from kthena_components.resources._cluster_warnings import warn_if_elsewhere, warn_if_unreachable
from kthena_components.resources._duplicate_objects import warn_of_rival
from kthena_components.resources._metadata import completed, own_stack
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
            placed = Placed(manifest, outputs)
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
        """Return the manifests in `after` on which no other one of them depends."""
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
    if seconds is None:
        return stated
    ours = f"{seconds}s"
    if stated is None:
        return pulumi.CustomTimeouts(create=ours, update=ours)
    merged = copy(stated)
    merged.create, merged.update = stated.create or ours, stated.update or ours
    return merged
