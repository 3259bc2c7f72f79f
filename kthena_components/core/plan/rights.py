"""What whoever deploys must be allowed to do in a cluster, and nothing beyond it.

The verbs are those of pulumi-kubernetes: it writes by server-side apply, which is a patch and, for
an object that is new, a create; and it lists and watches what it waits for, deletions included. It
asks for events as well, to show them, and does without where it may not see them.
Each was taken away on a real cluster, and something failed: conformance/privilege.py.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

WRITE = ("create", "delete", "get", "list", "patch", "watch")
READ = ("list", "watch")
_VOLCANO = "scheduling.volcano.sh"


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """What may be done with one kind of object."""

    group: str
    """API group; empty for Kubernetes' core."""
    resource: str
    verbs: tuple[str, ...] = WRITE
    wide: bool = False
    """Whether its objects belong to no namespace."""

    def rule(self) -> dict[str, Any]:
        """Write it as a rule of a Role."""
        return {
            "apiGroups": [self.group],
            "resources": [self.resource],
            "verbs": list(self.verbs),
        }


SERVICES = Right(group="", resource="services")
NEEDED: Mapping[str, tuple[Right, ...]] = {
    "native": (
        Right(group="apps", resource="statefulsets"),
        Right(group=_VOLCANO, resource="podgroups"),
        SERVICES,
        Right(group="", resource="endpoints", verbs=READ),
        Right(group="", resource="pods", verbs=READ),
    ),
    "kthena": (
        Right(group="workload.serving.volcano.sh", resource="modelservings"),
        SERVICES,
    ),
}
"""By backend."""
EXTRAS: Mapping[str, tuple[Right, ...]] = {
    "hypernodes": (Right(group="topology.volcano.sh", resource="hypernodes", wide=True),),
    "queues": (Right(group=_VOLCANO, resource="queues", wide=True),),
    "secrets": (Right(group="", resource="secrets"),),
}
"""By what a stack describes beside its servings."""


def rights(backends: Iterable[str], extras: Iterable[str] = ()) -> tuple[Right, ...]:
    """List what is needed for some backends, and for what stands beside servings."""
    found = [right for name in backends for right in NEEDED[name]]
    found += [right for name in extras for right in EXTRAS[name]]
    return tuple(dict.fromkeys(found))


def roles(
    needed: Iterable[Right], namespace: str | None = None, name: str = "kthena-components"
) -> list[dict[str, Any]]:
    """Write the rights as a ClusterRole; with a namespace as a Role in it, as far as they go."""
    wide = [right for right in needed if right.wide or namespace is None]
    inside = [right for right in needed if not (right.wide or namespace is None)]
    written = []
    if wide:
        written.append(_role("ClusterRole", {"name": name}, wide))
    if inside:
        written.append(_role("Role", {"name": name, "namespace": namespace}, inside))
    return written


def _role(kind: str, metadata: dict[str, Any], granted: list[Right]) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": metadata,
        "rules": [right.rule() for right in granted],
    }
