"""The least permissions in a cluster that a deployment needs.

The verbs are those of pulumi-kubernetes. It writes by server-side apply, which is a patch and, for
a new object, a create; it lists and watches what it waits for, including deletions. It also reads
events to show them, and works without. Each verb was removed on a real cluster, and something
failed: conformance/pulumi/privilege.py.
"""

from collections.abc import Iterable
from typing import Any

from kthena_components.core.values.dataclass import dataclass

WRITE = ("create", "delete", "get", "list", "patch", "watch")
READ = ("list", "watch")


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
        return {
            "apiGroups": [self.group],
            "resources": [self.plural],
            "verbs": list(self.verbs),
        }


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
    api_version="resource.k8s.io/v1",
    kind="ResourceClaimTemplate",
    plural="resourceclaimtemplates",
)
ENDPOINTS = Resource(api_version="v1", kind="Endpoints", plural="endpoints", verbs=READ)
PODS = Resource(api_version="v1", kind="Pod", plural="pods", verbs=READ)
