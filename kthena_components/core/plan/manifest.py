"""What every backend gives and takes. No backend is named here."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """One Kubernetes object, with what the deployment must know beside its body.

    Everything that a Pulumi resource option will say is decided here, in plain data.
    """

    body: Mapping[str, Any]
    """apiVersion, kind, metadata, spec. May hold late tokens in text (core/values/unknown.py)."""
    group: int | None = None
    """ServingGroup that it belongs to; None for the whole serving."""
    role: str | None = None
    """Role that it belongs to; None for the whole group."""
    after: tuple[str, ...] = ()
    """Keys of the manifests that must be there (and ready) first."""
    replace_on: tuple[str, ...] = ()
    """Property paths whose change makes the object anew instead of changing it in place."""
    ignore: tuple[str, ...] = ()
    """Property paths whose change is not applied to an object that exists."""
    replace_with: tuple[str, ...] = ()
    """Keys of the manifests whose replacement also replaces this one."""
    delete_first: bool = False
    """Delete the old object before its replacement is made: both have the same name."""
    timeout_seconds: int | None = None
    """How long to wait until it is ready; None for what is ready at once."""

    @property
    def name(self) -> str:
        """Name of the Kubernetes object."""
        return str(self.body["metadata"]["name"])

    @property
    def kind(self) -> str:
        """Kind of the Kubernetes object."""
        return str(self.body["kind"])

    @property
    def key(self) -> str:
        """What `after` and `replace_with` refer to: `StatefulSet/chat-0-decode-0`."""
        return f"{self.kind}/{self.name}"


SKIP_AWAIT = {"pulumi.com/skipAwait": "true"}
"""Do not wait for this object. Source: pulumi-kubernetes provider/pkg/metadata/annotations.go."""
WAIT_FOR = "pulumi.com/waitFor"
PATCH_FORCE = {"pulumi.com/patchForce": "true"}
"""Write fields that another program has written meanwhile, instead of refusing the update."""
