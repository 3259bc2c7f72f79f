"""A manifest, independent of the backend."""

from collections.abc import Mapping
from typing import Any

from kthena_components.core.values.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """One Kubernetes object, and what the deployment must know besides its body.

    Every Pulumi resource option is decided here, as plain data.
    """

    body: Mapping[str, Any]
    """apiVersion, kind, metadata, spec. May contain late tokens in text (core/values/unknown.py).
    """
    group: int | None = None
    """ServingGroup that it belongs to; None for the whole serving."""
    role: str | None = None
    """Role that it belongs to; None for the whole group."""
    after: tuple[str, ...] = ()
    """Keys of the manifests that must exist (and be ready) first."""
    replace_on: tuple[str, ...] = ()
    """Property paths whose change replaces the object."""
    ignore: tuple[str, ...] = ()
    """Property paths whose change is ignored for an existing object."""
    replace_with: tuple[str, ...] = ()
    """Keys of the manifests whose replacement also replaces this one."""
    update_rules: tuple[str, ...] = ()
    """Rules over the object before and after an update, whose findings stop the update."""
    looked_up: tuple[str, ...] = ()
    """Keys of the manifests in `after` that a webhook looks up when it checks this one. A preview
    cannot ask it before they exist."""
    renewed: bool = False
    """Whether fewer engines delete it, so that it is never protected."""
    delete_first: bool = False
    """Delete the old object before creating its replacement: both have the same name."""
    timeout_seconds: int | None = None
    """Seconds to wait until it is ready; None if it is ready at once."""

    @property
    def name(self) -> str:
        """Name of the Kubernetes object."""
        return str(self.body["metadata"]["name"])

    @property
    def kind(self) -> str:
        """Kind of the Kubernetes object."""
        return str(self.body["kind"])

    @property
    def type_token(self) -> str:
        """Its kind as pulumi-kubernetes names it: `kubernetes:core/v1:Service`."""
        group = self.body["apiVersion"]
        return f"kubernetes:{group if '/' in group else f'core/{group}'}:{self.kind}"

    @property
    def title(self) -> str:
        """Its kind, namespace and name, for messages: `StatefulSet serving/chat-0-decode-0`."""
        namespace = self.body["metadata"].get("namespace", "")
        return f"{self.kind} {namespace}{'/' if namespace else ''}{self.name}"

    @property
    def key(self) -> str:
        """Its key in `after` and `replace_with`: `StatefulSet/chat-0-decode-0`."""
        return f"{self.kind}/{self.name}"


REPLICAS = "spec.replicas"
"""What an autoscaler changes, through the scale subresource."""
SKIP_AWAIT = {"pulumi.com/skipAwait": "true"}
"""Do not wait for this object. Source: pulumi-kubernetes provider/pkg/metadata/annotations.go."""
WAIT_FOR = "pulumi.com/waitFor"
PATCH_FORCE = {"pulumi.com/patchForce": "true"}
"""Overwrite fields that another field manager owns, instead of failing with a conflict."""
BACKGROUND = {"pulumi.com/deletionPropagationPolicy": "background"}
"""Delete an object before those that its controller has created, as kubectl does.

Pulumi deletes those first. A controller that creates them again meanwhile keeps the object alive.
"""
