"""Registers manifests as Pulumi resources, each below its component.

Manifests decide content and order of objects; naming.py decides Pulumi's names.
"""

import asyncio
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

import pulumi
from pulumi.runtime.settings import SETTINGS

from kthena_components.core.naming import group_name, resource_name
from kthena_components.resources._outputs import Outputs

if TYPE_CHECKING:
    from kthena_components.core.plan.manifest import Manifest

SERVING_GROUP = "kthena:index:ServingGroup"
ROLE = "kthena:index:Role"
LONG_CHAIN = 32
"""How many manifests may wait for one another before it matters how the SDK waits for them."""


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

    def parent_of(self, manifest: "Manifest") -> pulumi.ComponentResource:
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
    scope: Scope, manifests: "Iterable[Manifest]", outputs: Outputs
) -> dict[str, pulumi.CustomResource]:
    """Register manifests, each after those in its `after`; return the resources by key."""
    resources: dict[str, pulumi.CustomResource] = {}
    before, waited_for = _Before(), dict[str, pulumi.Resource]()
    for manifest in manifests:
        resources[manifest.key] = pulumi.CustomResource(
            type_token(manifest),
            scope.name_of(manifest.name),
            outputs.restore(manifest.body),
            pulumi.ResourceOptions(
                parent=scope.parent_of(manifest),
                depends_on=[waited_for[key] for key in before.nearest(manifest)],
                delete_before_replace=manifest.delete_first or None,
                replace_on_changes=list(manifest.replace_on),
                ignore_changes=list(manifest.ignore),
                replace_with=[resources[key] for key in manifest.replace_with],
                custom_timeouts=_timeouts(scope.timeouts, manifest.timeout_seconds),
                version=provider_version(),
            ),
        )
        waited_for[manifest.key] = stand_in(resources[manifest.key])
    if before.longest > LONG_CHAIN:
        _await_registrations_first()
    return resources


class _StandIn(pulumi.CustomResource):
    """The URN of another resource, and nothing of what that one waits for.

    For each dependency Pulumi's SDK looks for a circle among all that comes before, by a function
    that calls itself. In a chain of groups that takes cubic time, and ends in a RecursionError. A
    manifest waits for earlier ones only, so there is no circle to look for.
    Source: pulumi sdk/python/lib/pulumi/runtime/resource_cycle_breaker.py.
    """

    def __init__(self, resource: pulumi.Resource) -> None:
        self._resource = resource
        # Nothing is registered for what is a dependency alone.
        super().__init__("", "", {}, None, dependency=True)

    @property
    def urn(self) -> pulumi.Output[str]:
        """The URN of the other one."""
        return self._resource.urn


def stand_in(resource: pulumi.Resource) -> pulumi.Resource:
    """Give what others state as a dependency, so that they wait for a resource."""
    return _StandIn(resource)


class _Before:
    """The manifests before each manifest, as bit sets.

    Only direct predecessors are stated, and what those depend on is implied. The engine stores and
    sends each stated dependency, so the number of all of them would grow quadratically.
    """

    def __init__(self) -> None:
        self._bits: dict[str, int] = {}
        self._all: dict[str, int] = {}
        self._lengths: dict[str, int] = {}
        self.longest = 0
        """How many manifests wait for one another in the longest chain."""

    def nearest(self, manifest: "Manifest") -> list[str]:
        """Return the manifests in `after` on which no other one of them depends."""
        implied = stated = length = 0
        for key in manifest.after:
            implied |= self._all[key]
            stated |= self._bits[key]
            length = max(length, self._lengths[key])
        self._bits[manifest.key] = 1 << len(self._bits)
        self._all[manifest.key] = implied | stated
        self._lengths[manifest.key] = length + 1
        self.longest = max(self.longest, length + 1)
        return [key for key in dict.fromkeys(manifest.after) if not self._bits[key] & implied]


def _await_registrations_first() -> None:
    """Let the SDK wait for the last registration before it waits for all Outputs.

    When a program has ended, the SDK waits for the registrations that have begun, and none has. So
    it waits for any of all Outputs, and again for any of the others each time that one is there:
    two minutes of processor time for 300 groups that come one after the other. Where one
    registration has begun, it lets all others begin, and waits for the last of them.
    Source: pulumi 3.259 sdk/python/lib/pulumi/runtime/stack.py wait_for_rpcs.
    """
    manager = getattr(SETTINGS, "rpc_manager", None)
    begun = getattr(manager, "rpcs", None)
    if isinstance(begun, list):  # in another version of the SDK it may take longer
        nothing = asyncio.get_running_loop().create_future()
        nothing.set_result(None)
        begun.append(nothing)


def awaited(
    manifests: "Iterable[Manifest]", resources: Mapping[str, pulumi.Resource]
) -> list[pulumi.Output[str]]:
    """Return Outputs that resolve only when the serving is ready."""
    return [
        resources[manifest.key].urn
        for manifest in manifests
        if manifest.timeout_seconds is not None or manifest.group is None
    ]


def type_token(manifest: "Manifest") -> str:
    """Name a kind as pulumi-kubernetes does: `kubernetes:core/v1:Service`."""
    group = manifest.body["apiVersion"]
    return f"kubernetes:{group if '/' in group else f'core/{group}'}:{manifest.kind}"


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


@cache
def provider_version() -> str:
    """Return the version of the Kubernetes provider: that of the installed package."""
    from importlib.metadata import version  # noqa: PLC0415 - takes a while to load

    return version("pulumi-kubernetes")
