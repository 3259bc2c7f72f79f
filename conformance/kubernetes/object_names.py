"""Compares our rule for the names of Kubernetes' own objects with the API server.

Each kind gets each name, and is valid apart from it.
"""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from conformance.report import Part
from kthena_components.checker.manifest import check_manifest
from kthena_components.cluster.client import Cluster, ClusterError

_POD = {"containers": [{"name": "a", "image": "busybox:1.37"}]}
_TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": _POD}
_COPIES = {"selector": {"matchLabels": {"app": "a"}}, "template": _TEMPLATE}
_ONCE = {"template": {"spec": {**_POD, "restartPolicy": "Never"}}}
_INDEXED = {**_ONCE, "completionMode": "Indexed", "completions": 11}
_DAILY = {"schedule": "@daily", "jobTemplate": {"spec": _ONCE}}
_RBAC = "rbac.authorization.k8s.io"
_CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_VOLUME = {
    "capacity": {"storage": "1Gi"},
    "accessModes": ["ReadWriteOnce"],
    "hostPath": {"path": "/a"},
}
_SCALED = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}
_SPECS: dict[str, dict[str, Any]] = {
    "v1 Pod": _POD,
    "v1 Service": {"ports": [{"port": 80}]},
    "v1 PersistentVolumeClaim": _CLAIM,
    "v1 PersistentVolume": _VOLUME,
    "v1 ReplicationController": {"selector": {"app": "a"}, "template": _TEMPLATE},
    "v1 ResourceQuota": {"hard": {"pods": "1"}},
    "v1 LimitRange": {"limits": []},
    **{f"apps/v1 {kind}": _COPIES for kind in ("Deployment", "ReplicaSet", "DaemonSet")},
    "apps/v1 StatefulSet": {**_COPIES, "serviceName": "a"},
    "batch/v1 Job": _ONCE,
    "batch/v1 Job indexed": _INDEXED,
    "batch/v1 CronJob": _DAILY,
    "autoscaling/v2 HorizontalPodAutoscaler": {"maxReplicas": 2, "scaleTargetRef": _SCALED},
    "policy/v1 PodDisruptionBudget": {"selector": _COPIES["selector"], "minAvailable": 1},
    "networking.k8s.io/v1 Ingress": {
        "defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}
    },
    "networking.k8s.io/v1 IngressClass": {"controller": "example.com/a"},
    "networking.k8s.io/v1 NetworkPolicy": {"podSelector": {}},
    "coordination.k8s.io/v1 Lease": {},
    "resource.k8s.io/v1 ResourceClaim": {},
    "resource.k8s.io/v1 ResourceClaimTemplate": {"spec": {}},
    "resource.k8s.io/v1 DeviceClass": {},
}
_PARTS: dict[str, dict[str, Any]] = {
    **{f"v1 {kind}": {} for kind in ("ConfigMap", "Secret", "ServiceAccount", "Endpoints")},
    **{f"v1 {kind}": {} for kind in ("Namespace", "Node")},
    "v1 PodTemplate": {"template": _TEMPLATE},
    **{f"{_RBAC}/v1 {kind}": {"rules": []} for kind in ("Role", "ClusterRole")},
    **{
        f"{_RBAC}/v1 {kind}Binding": {"roleRef": {"apiGroup": _RBAC, "kind": kind, "name": "a"}}
        for kind in ("Role", "ClusterRole")
    },
    "scheduling.k8s.io/v1 PriorityClass": {"value": 5},
    "storage.k8s.io/v1 StorageClass": {"provisioner": "example.com/a"},
    "node.k8s.io/v1 RuntimeClass": {"handler": "a"},
}
_CLUSTER_WIDE = {
    *("Namespace", "Node", "PersistentVolume", "IngressClass", "ClusterRole", "ClusterRoleBinding"),
    *("PriorityClass", "StorageClass", "RuntimeClass", "DeviceClass"),
}
_FORMS = ("a", "a.b", "0a", "Ab", "a_b", "a:b", "a-", "-a", "a/b", "a%b", "a..b", ".a", "a b")
_LENGTHS = (52, 53, 60, 61, 63, 64, 253, 254)
_STEMS = ("a-", "a.b-", "0a-", "A-", "a_-", "a.", "a..", "a" * 47, "a" * 48, "a" * 58,
          "a" * 63, "a" * 64, "a" * 253, "a" * 254)  # fmt: skip
_RULES = frozenset({"object-name", "name-fits", "pod-schema", "pod-values"})


def whole_objects() -> Iterator[dict[str, Any]]:
    """Yield a valid object of each kind."""
    for of, part in (_PARTS | {of: {"spec": spec} for of, spec in _SPECS.items()}).items():
        version, kind, *_ = of.split()
        inside = {} if kind in _CLUSTER_WIDE else {"namespace": "default"}
        yield {"apiVersion": version, "kind": kind, "metadata": {"name": "a", **inside}, **part}


def objects() -> Iterator[dict[str, Any]]:
    """Yield each kind with each name and each beginning of one."""
    parts = _PARTS | {of: {"spec": spec} for of, spec in _SPECS.items()}
    names = [("name", name) for name in (*_FORMS, *("a" * length for length in _LENGTHS))]
    for of, part in parts.items():
        version, kind, *_ = of.split()
        inside = {} if kind in _CLUSTER_WIDE else {"namespace": "default"}
        for field, text in (*names, *(("generateName", stem) for stem in _STEMS)):
            yield {"apiVersion": version, "kind": kind, "metadata": {**inside, field: text}, **part}


def compare_names(part: Part, api: Cluster) -> None:
    """Send all objects, and compare the verdicts with those of `check`."""
    differ, number = [], 0
    for body in objects():
        number += 1
        theirs = _refusal(api, body)
        found = [str(f) for f in check_manifest(body) if f.rule in _RULES]
        # A StatefulSet of 53 characters is accepted, and none of its pods.
        late = body["kind"] == "StatefulSet" and "name-fits" in "".join(found)
        if bool(theirs) != bool(found) and not late:
            differ.append(f"{body['kind']} {body['metadata']}\n  API: {theirs}\n  check: {found}")
    part.count("names of objects compared", number)
    seen = "\n".join(differ[:5])
    part.check("names are checked as by the API server", holds=not differ, seen=seen)


def _refusal(api: Cluster, body: dict[str, Any]) -> str:
    try:
        api.create(body, dry_run=True)
    except ClusterError as error:
        if error.status in {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY}:
            return str(error)
        if error.status != HTTPStatus.CONFLICT:
            raise
    return ""
