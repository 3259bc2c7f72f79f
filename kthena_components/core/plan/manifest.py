"""A manifest, independent of the backend, and the rights that deploying manifests needs.

The least permissions in a cluster that a deployment needs.

The verbs are those of pulumi-kubernetes. It writes by server-side apply, which is a patch and, for
a new object, a create; it lists and watches what it waits for, including deletions. It also reads
events to show them, and works without. Each verb was removed on a real cluster, and something
failed: conformance/pulumi/privilege.py.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from kthena_components.core.values.dataclass import dataclass

WRITE = ("create", "delete", "get", "list", "patch", "watch")
READ = ("list", "watch")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One kind of object, and the verbs that a deployment uses on it."""

    api_version: str
    """Its group and version: `apps/v1`."""
    kind: str
    plural: str
    """Its name in the API: `statefulsets`."""
    verbs: tuple[str, ...] = WRITE
    wide: bool = False
    """Whether it is cluster-scoped."""

    @property
    def group(self) -> str:
        """Its API group, empty for Kubernetes' core."""
        return self.api_version.rpartition("/")[0]

    def rule(self) -> dict[str, Any]:
        """Write it as a rule of a Role."""
        return {"apiGroups": [self.group], "resources": [self.plural], "verbs": list(self.verbs)}


def roles(
    needed: Iterable[Resource], namespace: str | None = None, name: str = "kthena-components"
) -> list[dict[str, Any]]:
    """Write the rights as a ClusterRole; with a namespace, the namespaced ones as a Role in it."""
    wide = [right for right in needed if right.wide or namespace is None]
    inside = [right for right in needed if not (right.wide or namespace is None)]
    written = []
    if wide:
        written.append(_role("ClusterRole", {"name": name}, wide))
    if inside:
        written.append(_role("Role", {"name": name, "namespace": namespace}, inside))
    return written


def _role(kind: str, metadata: dict[str, Any], granted: list[Resource]) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": metadata,
        "rules": [right.rule() for right in granted],
    }


# Kubernetes' own resources that an update writes, or reads while it waits.


STATEFUL_SETS = Resource(api_version="apps/v1", kind="StatefulSet", plural="statefulsets")
SERVICES = Resource(api_version="v1", kind="Service", plural="services")
CONFIG_MAPS = Resource(api_version="v1", kind="ConfigMap", plural="configmaps")
BUDGETS = Resource(
    api_version="policy/v1", kind="PodDisruptionBudget", plural="poddisruptionbudgets"
)
SECRETS = Resource(api_version="v1", kind="Secret", plural="secrets")
CLAIM_TEMPLATES = Resource(
    api_version="resource.k8s.io/v1", kind="ResourceClaimTemplate", plural="resourceclaimtemplates"
)
ENDPOINTS = Resource(api_version="v1", kind="Endpoints", plural="endpoints", verbs=READ)
PODS = Resource(api_version="v1", kind="Pod", plural="pods", verbs=READ)
