"""Adds to an object what only its deployment knows: the stack that it belongs to."""

from collections.abc import Mapping
from typing import Any
from weakref import WeakSet

import pulumi

from kthena_components.core import naming

_OF_PROVIDER = "pulumi.com/"
_rendering: WeakSet[pulumi.ProviderResource] = WeakSet()


def mark_rendering(provider: pulumi.ProviderResource) -> None:
    """Remember that a provider writes files, and reaches no cluster."""
    _rendering.add(provider)


def completed(
    body: Mapping[str, Any], provider: pulumi.ProviderResource | None
) -> Mapping[str, Any]:
    """Return an object as it is registered: with its stack, or as a file for other programs.

    Server-side apply changes an object that exists. The API server rejects it if another manager
    has applied another value of the same field, so another stack does not take the object over. In
    a file, neither this annotation nor those that Pulumi's provider reads mean anything.

    Args:
        body: The object.
        provider: Its Kubernetes provider; None: the default one of the program. Whether one that
            the user creates writes files is not known.
    """
    metadata = dict(body["metadata"])
    annotations: dict[str, str] = metadata.pop("annotations", None) or {}
    if _renders(provider):
        kept = {k: text for k, text in annotations.items() if not k.startswith(_OF_PROVIDER)}
    else:
        kept = {**annotations, naming.STACK: own_stack()}
    return {**body, "metadata": {**metadata, **({"annotations": kept} if kept else {})}}


def own_stack() -> str:
    """Return organization, project and stack."""
    # Tests of a program have no organization.
    parts = (pulumi.get_organization(), pulumi.get_project(), pulumi.get_stack())
    return "/".join(filter(None, parts))


def _renders(provider: pulumi.ProviderResource | None) -> bool:
    if provider is not None:
        return provider in _rendering
    return pulumi.Config("kubernetes").get("renderYamlToDirectory") is not None
