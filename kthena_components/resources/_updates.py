"""Refuses an update before Pulumi makes it, by rules that compare an object with what it was.

A program does not know what is deployed, but a hook of the engine gets both inputs, in a preview
too. Only manifests that name such a rule get a hook, since each one costs a call.
"""

from collections.abc import Mapping
from typing import Any

import pulumi

from kthena_components.core.findings import Level, render_findings
from kthena_components.core.plan.manifest import Manifest
from kthena_components.resources._log import today

_DRY_RUN_TOO = pulumi.ResourceHookOptions(on_dry_run=True)


class RefusedUpdateError(Exception):
    """An update that the object's controller would not do as stated. The text is for the user."""


def hooks_of(manifest: Manifest, name: str) -> pulumi.ResourceHookBinding | None:
    """Return the hook that checks updates of a manifest; None if it names no rule."""
    if not manifest.update_rules:
        return None

    def check(args: pulumi.ResourceHookArgs) -> None:
        refuse_update(manifest, args.old_inputs or {}, args.new_inputs or {})

    hook = pulumi.ResourceHook(f"rules over updates of {name}", check, _DRY_RUN_TOO)
    return pulumi.ResourceHookBinding(before_update=[hook])


def refuse_update(manifest: Manifest, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Check the inputs of an object before and after an update, by the rules of its manifest.

    Raises:
        RefusedUpdateError: A mandatory finding that no waiver covers.
    """
    # The judge takes long to load, and few programs have such a manifest.
    from kthena_components.judge.update import judge_change  # noqa: PLC0415
    from kthena_components.judge.waivers import annotated, waive  # noqa: PLC0415

    named = {key: manifest.body[key] for key in ("apiVersion", "kind")}
    found = [f for f in judge_change({**old, **named}, {**new, **named})
             if f.rule in manifest.update_rules]  # fmt: skip
    waived = waive(found, annotated(new), today())[: len(found)]
    refused = [finding for finding in waived if finding.level is Level.MANDATORY]
    if refused:
        subject = f"the update of {manifest.title} is refused"
        raise RefusedUpdateError(render_findings(refused, subject))
