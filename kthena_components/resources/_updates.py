"""Refuses an update by rules that compare an object with its past, and explains long waits.

A program does not know what is deployed, but a hook of the engine gets both inputs, in a preview
too. Only manifests that name such a rule get a hook, since each one costs a call. What only the
cluster knows is read there, with the extra `cluster`.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import pulumi
from pulumi.runtime import settings
from pulumi.runtime.mocks import MockMonitor
from pulumi.runtime.proto import resource_pb2

from kthena_components.core import naming
from kthena_components.core.findings import Finding, Level, render_findings, today
from kthena_components.core.plan.manifest import WAIT_FOR, Manifest
from kthena_components.core.values.read import mapping
from kthena_components.core.values.unknown import Unknown
from kthena_components.resources._access import Access, access_of, answer_of

_DRY_RUN_TOO = pulumi.ResourceHookOptions(on_dry_run=True)


class RefusedUpdateError(Exception):
    """An update that the object's controller would not do as stated. The text is for the user."""


def hooks_of(
    manifest: Manifest, name: str, provider: pulumi.ProviderResource | None = None
) -> pulumi.ResourceHookBinding | None:
    """Return the hooks that check updates of a manifest, and explain failures; None for none."""
    failed = error_hook_of(manifest, name, provider)
    updated = _update_hook(manifest, name, provider) if manifest.update_rules else None
    if failed is None and updated is None:
        return None
    return pulumi.ResourceHookBinding(
        before_update=[updated] if updated else None, on_error=[failed] if failed else None
    )


def _update_hook(
    manifest: Manifest, name: str, provider: pulumi.ProviderResource | None
) -> pulumi.ResourceHook:
    """Make the hook that checks an update before Pulumi sends it, in previews as well."""
    access = access_of(provider)

    async def check(args: pulumi.ResourceHookArgs) -> None:
        old, new = args.old_inputs or {}, args.new_inputs or {}
        refuse_update(manifest, old, new)
        if access is not None:
            await asyncio.to_thread(refuse_by_cluster, manifest, access, new)

    return pulumi.ResourceHook(f"rules over updates of {name}", check, _DRY_RUN_TOO)


def refuse_update(manifest: Manifest, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Check the inputs of an object before and after an update, by the rules of its manifest.

    Raises:
        RefusedUpdateError: A mandatory finding that no waiver covers.
    """
    # The checker takes long to load, and few programs have such a manifest.
    from kthena_components.checker.update_rules import check_change  # noqa: PLC0415

    named = {key: manifest.body[key] for key in ("apiVersion", "kind")}
    _refuse(manifest, new, check_change({**old, **named}, {**new, **named}))


def refuse_by_cluster(manifest: Manifest, access: Access, new: Mapping[str, Any]) -> None:
    """Check an update by what the controller stored in the cluster, if that can be read.

    Raises:
        RefusedUpdateError: A mandatory finding that no waiver covers.
    """
    from kthena_components.systems.kthena.view import PARTITION_RESTORES, restored_roles  # noqa: PLC0415

    if PARTITION_RESTORES not in manifest.update_rules:
        return
    body = {**new, **{key: manifest.body[key] for key in ("apiVersion", "kind")}}
    found = answer_of(access, lambda cluster: _live_and_stored(cluster, body))
    if found is not None and found[1] is not None:
        _refuse(manifest, new, restored_roles(body, *found[1]))


def _live_and_stored(
    cluster: Any, body: Mapping[str, Any]
) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]] | None:
    """Read a ModelServing and its ControllerRevisions; None if one of them cannot be read."""
    from kthena_components.cluster.fetch_servings_and_inventory import listed, read  # noqa: PLC0415

    metadata = mapping(body.get("metadata"))
    name, namespace = str(metadata.get("name")), str(metadata.get("namespace"))
    live = read(cluster, body)
    kind = ("apps/v1", "ControllerRevision")
    stored = listed(cluster, kind, namespace, f"{naming.NAME}={name}")
    if live is None or isinstance(live, Unknown) or isinstance(stored, Unknown):
        return None
    return live, list(stored)


def _refuse(manifest: Manifest, new: Mapping[str, Any], findings: Iterable[Finding]) -> None:
    """Raise the mandatory findings about an update that no waiver covers."""
    from kthena_components.checker.waivers import annotated, waive  # noqa: PLC0415

    found = [finding for finding in findings if finding.rule in manifest.update_rules]
    waived = waive(found, annotated(new), today())[: len(found)]
    refused = [finding for finding in waived if finding.level is Level.MANDATORY]
    if refused:
        subject = f"the update of {manifest.title} is refused"
        raise RefusedUpdateError(render_findings(refused, subject))


# Says why a serving did not get ready in time, in the words of `kthena-components status`.
#
# Of a custom resource the Kubernetes provider only reports that a condition was not met.


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
    """Return what `status` shows for a serving that waits; empty without an answer."""
    answer = answer_of(access, lambda cluster: _waits(cluster, namespace, serving))
    return [] if answer is None else answer[1][:_MOST]


def _waits(cluster: Any, namespace: str, serving: str) -> list[str]:
    # They need the extra.
    from kthena_components.cluster.fetch_servings_and_inventory import look_at_servings  # noqa: PLC0415
    from kthena_components.cluster.status import waits  # noqa: PLC0415

    seen = look_at_servings(cluster, namespace).only(serving)
    return [f"{title}: {why}" for title, why in waits(seen)]
