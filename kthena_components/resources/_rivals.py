"""Says in a preview that an object belongs to another stack.

In an update the API server rejects the second stack (decision 29). The dry run of a preview does
not show it, because the provider forces it for an object that is not in the state.
"""

import asyncio
import os
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import pulumi

from kthena_components.core import naming
from kthena_components.core.findings import Finding, Level
from kthena_components.core.values.read import mapping
from kthena_components.resources._access import Access, Place, Placed, access_of, live
from kthena_components.resources._claims import running

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
