"""Says in a preview that an object belongs to another stack.

In an update the API server rejects the second stack (decision 29). The dry run of a preview does
not show it, because the provider forces it for an object that is not in the state.
"""

import asyncio
import os
from typing import Any
from weakref import WeakKeyDictionary

import pulumi

from kthena_components.core import naming
from kthena_components.core.findings import Finding, Level
from kthena_components.core.plan.manifest import Manifest
from kthena_components.core.values.read import mapping
from kthena_components.core.values.unknown import is_unresolved
from kthena_components.resources._access import Access, access_of, live
from kthena_components.resources._claims import running

RULE = "object-of-another-stack"
MOST = 10
"""Components of a program that a preview asks about: the first ones."""
_TAKES_OVER = "PULUMI_K8S_ENABLE_PATCH_FORCE"
_asked: WeakKeyDictionary[object, list[str]] = WeakKeyDictionary()


def warn_of_rival(
    resource: pulumi.CustomResource,
    manifest: Manifest,
    own: str,
    provider: pulumi.ProviderResource | None,
) -> None:
    """Warn in a preview if an object of a component belongs to another stack."""
    access = access_of(provider)
    if access is None or not pulumi.runtime.is_dry_run() or is_unresolved(manifest.title):
        return
    asked = _asked.setdefault(running(), [])
    if len(asked) >= MOST or _is_taken_over():
        return
    asked.append(manifest.title)

    async def compare(_urn: object) -> Any:
        found = await asyncio.to_thread(_rival, access, manifest, own)
        if found is not None:
            pulumi.log.warn(str(found), resource=resource)

    resource.urn.apply(compare)


def _is_taken_over() -> bool:
    return os.environ.get(_TAKES_OVER, "").lower() in {"1", "t", "true"}


def _rival(access: Access, manifest: Manifest, own: str) -> Finding | None:
    answer = live(access, manifest)
    server, metadata = answer or ("", None)
    owner = str(mapping(mapping(metadata).get("annotations")).get(naming.STACK) or own)
    if owner == own:
        return None
    return Finding(
        path=manifest.title,
        seen=f"belongs to the stack {owner} on {server}, and this is the stack {own}, so an "
        "update fails",
        remedy="rename the serving or give it another namespace; docs/faults.md says how to move "
        "an object to another stack",
        rule=RULE,
        level=Level.ADVISORY,
    )
