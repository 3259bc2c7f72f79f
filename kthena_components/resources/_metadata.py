"""Adds to an object what only its deployment knows: the stack that it belongs to."""

from collections.abc import Mapping, Sequence
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
    body: Mapping[str, Any],
    provider: pulumi.ProviderResource | None,
    looked_up: Sequence[pulumi.CustomResource] = (),
) -> Mapping[str, Any]:
    """Return an object as it is registered: with its stack, or as a file for other programs.

    Server-side apply changes an object that exists. The API server rejects it if another manager
    has applied another value of the same field, so another stack does not take the object over. In
    a file, neither this annotation nor those that Pulumi's provider reads mean anything.

    Args:
        body: The object.
        provider: Its Kubernetes provider; None: the default one of the program. Whether one that
            the user creates writes files is not known.
        looked_up: Objects that must exist before a webhook accepts this one. The annotation is
            unknown until then: in a preview, Pulumi's provider sends an object to the webhooks
            only if all of it is known (pulumi-kubernetes provider/pkg/provider/provider.go).
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
