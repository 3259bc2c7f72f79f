"""Names the object that stands behind pods and PodGroups, the same in manifests and clusters. Pure.

A controller names what it creates after a hash that no manifest shows, so labels tell the owner.
"""

import re
from collections.abc import Mapping
from typing import Any

from kthena_components.core import naming
from kthena_components.core.values.read import mapping, sequence

_LABELS: Mapping[str, str] = {
    naming.NAME: "ModelServing",
    "leaderworkerset.sigs.k8s.io/name": "LeaderWorkerSet",
    "serving.kserve.io/inferenceservice": "InferenceService",
    "kaito.sh/workspace": "Workspace",
    "ray.io/cluster": "RayCluster",
    "volcano.sh/job-name": "Job",
    "grove.io/podcliqueset": "PodCliqueSet",
}
"""Labels that controllers give to pods, and the kind of the object that each names."""
_HASH = "pod-template-hash"


def owner_of(body: Mapping[str, Any]) -> str:
    """Return the kind, namespace and name of the object behind a pod, PodGroup or StatefulSet."""
    if named := labelled_owner(body):
        return named
    metadata, owner = mapping(body.get("metadata")), controller_of(body)
    labels, space = mapping(metadata.get("labels")), metadata.get("namespace") or "default"
    name = str(owner.get("name") or metadata.get("name") or "")
    if owner.get("kind") == "ReplicaSet" and _HASH in labels:
        return f"Deployment {space}/{re.sub(f'-{re.escape(str(labels[_HASH]))}$', '', name)}"
    return f"{owner.get('kind') or body.get('kind')} {space}/{name}"


def labelled_owner(body: Mapping[str, Any]) -> str:
    """Return the object that labels name; empty if none does."""
    metadata = mapping(body.get("metadata"))
    labels, space = mapping(metadata.get("labels")), metadata.get("namespace") or "default"
    found = ((kind, labels.get(label)) for label, kind in _LABELS.items())
    return next((f"{kind} {space}/{name}" for kind, name in found if isinstance(name, str)), "")


def controller_of(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the owner reference of an object's controller; empty without one."""
    owners = map(mapping, sequence(mapping(body.get("metadata")).get("ownerReferences")))
    return next((owner for owner in owners if owner.get("controller")), {})
