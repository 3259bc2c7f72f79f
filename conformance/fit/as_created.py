"""Writes what the API server returns as it was created."""

from collections.abc import Mapping
from typing import Any

_OF_PODS = {"schedulerName", "nodeSelector", "affinity", "tolerations", "containers",
            "topologySpreadConstraints", "automountServiceAccountToken"}  # fmt: skip
_OF_CONTAINERS = ("name", "image", "resources", "ports")
_CLAIMED = "persistentVolumeClaim"
Body = dict[str, Any]


def as_created(body: Mapping[str, Any]) -> Body:
    """Return an object as it was created, without what the server has added."""
    metadata = {key: value for key, value in body["metadata"].items()
                if key in {"name", "namespace", "labels", "annotations"}}  # fmt: skip
    taken = {key: body[key] for key in ("apiVersion", "kind")}
    if body["kind"] == "Node":
        amounts = body["status"]["allocatable"]
        status = {"allocatable": amounts, "capacity": amounts}
        annotations = {"kwok.x-k8s.io/node": "fake"}
        taints = body["spec"].get("taints", [])
        return {**taken, "metadata": {**metadata, "annotations": annotations}, "status": status,
                "spec": {"taints": taints} if taints else {}}  # fmt: skip
    spec = {key: value for key, value in body["spec"].items() if key in _OF_PODS}
    spec["containers"] = [  # without the mount of the volume with the token
        {key: each[key] for key in _OF_CONTAINERS if key in each} for each in spec["containers"]
    ]
    if claimed := [one for one in body["spec"].get("volumes", ()) if _CLAIMED in one]:
        spec["volumes"] = claimed
    return {**taken, "metadata": metadata, "spec": spec}
