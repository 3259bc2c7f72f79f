"""Says why a serving did not get ready in time, in the words of `kthena-components status`.

Of a custom resource the Kubernetes provider only reports that a condition was not met.
"""

import asyncio
from typing import Any

import pulumi
from pulumi.runtime import settings
from pulumi.runtime.mocks import MockMonitor
from pulumi.runtime.proto import resource_pb2

from kthena_components.core.plan.manifest import WAIT_FOR, Manifest
from kthena_components.core.values.read import mapping
from kthena_components.resources._access import Access, access_of, answer_of

_MOST = 20
"""Sentences that are shown."""


def error_hook_of(
    manifest: Manifest, name: str, provider: pulumi.ProviderResource | None
) -> pulumi.ErrorHook | None:
    """Return the hook that explains a failure to get ready.

    None for objects that the provider explains itself, without the extra `cluster`, for a provider
    of the user, and for a CLI of Pulumi without such hooks.
    """
    access = access_of(provider)
    waits = WAIT_FOR in mapping(manifest.body["metadata"].get("annotations"))
    if access is None or not waits or not _supported():
        return None

    async def explain(args: pulumi.ErrorHookArgs) -> bool:
        metadata = mapping(mapping(args.new_inputs).get("metadata"))
        namespace, serving = str(metadata.get("namespace")), str(metadata.get("name"))
        for reason in await asyncio.to_thread(reasons, access, namespace, serving):
            pulumi.log.warn(reason)
        return False  # and do not try again

    return pulumi.ErrorHook(f"why {name} is not ready", explain)


def _supported() -> bool:
    if isinstance(settings.get_monitor(), MockMonitor):
        return False
    feature = getattr(resource_pb2, "RESOURCE_MONITOR_FEATURE_ERROR_HOOKS", None)
    supports: Any = getattr(settings, "monitor_supports_feature", None)
    return feature is not None and supports is not None and bool(supports(feature))


def reasons(access: Access, namespace: str, serving: str) -> list[str]:
    """Return what `status` says of a serving that waits; empty if the cluster does not answer."""
    answer = answer_of(access, lambda cluster: _waits(cluster, namespace, serving))
    return [] if answer is None else answer[1][:_MOST]


def _waits(cluster: Any, namespace: str, serving: str) -> list[str]:
    # They need the extra.
    from kthena_components.cluster.fetch_servings import look_at_servings  # noqa: PLC0415
    from kthena_components.cluster.status import waits  # noqa: PLC0415

    seen = look_at_servings(cluster, namespace).only(serving)
    return [f"{title}: {why}" for title, why in waits(seen)]
