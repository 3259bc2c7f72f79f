"""Refuses an update before Pulumi makes it, by rules that compare an object with what it was.

A program does not know what is deployed, but a hook of the engine gets both inputs, in a preview
too. Only manifests that name such a rule get a hook, since each one costs a call. What only the
cluster knows is read there, with the extra `cluster`.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import pulumi

from kthena_components.core import naming
from kthena_components.core.findings import Finding, Level, render_findings, today
from kthena_components.core.plan.manifest import Manifest
from kthena_components.core.values.read import mapping
from kthena_components.core.values.unknown import Unknown
from kthena_components.resources._access import Access, access_of, answer_of
from kthena_components.resources._waits import error_hook_of

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
    # The judge takes long to load, and few programs have such a manifest.
    from kthena_components.judge.update import judge_change  # noqa: PLC0415

    named = {key: manifest.body[key] for key in ("apiVersion", "kind")}
    _refuse(manifest, new, judge_change({**old, **named}, {**new, **named}))


def refuse_by_cluster(manifest: Manifest, access: Access, new: Mapping[str, Any]) -> None:
    """Check an update by what the controller stored in the cluster, if that can be read.

    Raises:
        RefusedUpdateError: A mandatory finding that no waiver covers.
    """
    from kthena_components.systems.kthena.partition import (  # noqa: PLC0415
        PARTITION_RESTORES,
        restored_roles,
    )

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
    from kthena_components.cluster.fetch_servings import listed, read  # noqa: PLC0415

    metadata = mapping(body.get("metadata"))
    name, namespace = str(metadata.get("name")), str(metadata.get("namespace"))
    live = read(cluster, body)
    kind = ("apps/v1", "ControllerRevision")
    stored = listed(cluster, kind, namespace, f"{naming.NAME}={name}")
    if live is None or isinstance(live, Unknown) or isinstance(stored, Unknown):
        return None
    return live, list(stored)


def _refuse(manifest: Manifest, new: Mapping[str, Any], findings: Iterable[Finding]) -> None:
    from kthena_components.judge.waivers import annotated, waive  # noqa: PLC0415

    found = [finding for finding in findings if finding.rule in manifest.update_rules]
    waived = waive(found, annotated(new), today())[: len(found)]
    refused = [finding for finding in waived if finding.level is Level.MANDATORY]
    if refused:
        subject = f"the update of {manifest.title} is refused"
        raise RefusedUpdateError(render_findings(refused, subject))
