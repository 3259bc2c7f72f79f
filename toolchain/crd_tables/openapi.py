"""The fields of Kubernetes' own kinds, from the OpenAPI document of each minor release.

The document is in the Go module k8s.io/kubernetes, whose checksums are public.
"""

import hashlib
import json
import subprocess
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.version import Version

from toolchain.crd_tables.releases import Release
from toolchain.crd_tables.tables import Table

SYSTEM = "kubernetes"
TITLE = "Kubernetes"
MODULE = "k8s.io/kubernetes"
DOCUMENT = "api/openapi-spec/swagger.json"
FIRST = Version("1.29")
KINDS: Mapping[str, tuple[str, ...]] = {
    "": ("LimitRange", "Node", "PersistentVolumeClaim", "ReplicationController", "Secret",
         "Service", "ServiceAccount"),
    "apps": ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"),
    "autoscaling": ("HorizontalPodAutoscaler",),
    "batch": ("CronJob", "Job"),
    "networking.k8s.io": ("Ingress",),
    "policy": ("PodDisruptionBudget",),
    "resource.k8s.io": ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate"),
}  # fmt: skip
"""Kinds that files are searched for: others are not parsed.

Pods, also those of templates, are in another table, pod_fields.json.
"""
_DEVICES: Mapping[str, tuple[str, ...]] = {"allocationMode": ("ExactCount", "All")}
WORDS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "apps.v1.DaemonSetUpdateStrategy": {"type": ("RollingUpdate", "OnDelete")},
    "apps.v1.DeploymentStrategy": {"type": ("Recreate", "RollingUpdate")},
    "apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy": {
        "whenDeleted": ("Retain", "Delete"),
        "whenScaled": ("Retain", "Delete"),
    },
    "apps.v1.StatefulSetSpec": {"podManagementPolicy": ("OrderedReady", "Parallel")},
    "apps.v1.StatefulSetUpdateStrategy": {"type": ("RollingUpdate", "OnDelete")},
    "autoscaling.v2.HPAScalingPolicy": {"type": ("Pods", "Percent")},
    "autoscaling.v2.HPAScalingRules": {"selectPolicy": ("Max", "Min", "Disabled")},
    "autoscaling.v2.MetricSpec": {
        "type": ("Object", "Pods", "Resource", "ContainerResource", "External")
    },
    "autoscaling.v2.MetricTarget": {"type": ("Utilization", "Value", "AverageValue")},
    "batch.v1.CronJobSpec": {"concurrencyPolicy": ("Allow", "Forbid", "Replace")},
    "batch.v1.JobSpec": {
        "completionMode": ("NonIndexed", "Indexed"),
        "podReplacementPolicy": ("TerminatingOrFailed", "Failed"),
    },
    "batch.v1.PodFailurePolicyOnExitCodesRequirement": {"operator": ("In", "NotIn")},
    "batch.v1.PodFailurePolicyRule": {"action": ("FailJob", "FailIndex", "Ignore", "Count")},
    "core.v1.PersistentVolumeClaimSpec": {
        "accessModes": ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"),
        "volumeMode": ("Block", "Filesystem"),
    },
    "core.v1.ServicePort": {"protocol": ("TCP", "UDP", "SCTP")},
    "core.v1.ServiceSpec": {
        "externalTrafficPolicy": ("Cluster", "Local"),
        "internalTrafficPolicy": ("Cluster", "Local"),
        "ipFamilies": ("IPv4", "IPv6"),
        "ipFamilyPolicy": ("SingleStack", "PreferDualStack", "RequireDualStack"),
        "sessionAffinity": ("None", "ClientIP"),
        "type": ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName"),
    },
    "policy.v1.PodDisruptionBudgetSpec": {
        "unhealthyPodEvictionPolicy": ("IfHealthyBudget", "AlwaysAllow")
    },
    "resource.v1.ExactDeviceRequest": _DEVICES,
    "resource.v1beta1.DeviceRequest": _DEVICES,
    "resource.v1beta2.ExactDeviceRequest": _DEVICES,
}
"""Words of fields, which the document states in its descriptions only, by definition. Those of a
list are of its members.

Source: kubernetes 1.37 staging/src/k8s.io/api/*/types.go and pkg/apis/*/validation. An empty
string is a missing value, but not in a list.
"""
_NAME = {"minLength": 1}
_PORT = {"minimum": 1, "maximum": 65535}
_COPIES: Mapping[str, Mapping[str, Any]] = {"template": {}}
_TARGET: Mapping[str, Mapping[str, Any]] = {"kind": _NAME, "name": _NAME}
_SCALED: Mapping[str, Mapping[str, Any]] = {"maxReplicas": {"minimum": 1}, "scaleTargetRef": {}}
REQUIRED: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "apps.v1.DaemonSetSpec": _COPIES,
    "apps.v1.DeploymentSpec": _COPIES,
    "apps.v1.ReplicaSetSpec": _COPIES,
    "apps.v1.StatefulSetSpec": _COPIES,
    "autoscaling.v1.CrossVersionObjectReference": _TARGET,
    "autoscaling.v1.HorizontalPodAutoscalerSpec": _SCALED,
    "autoscaling.v2.CrossVersionObjectReference": _TARGET,
    "autoscaling.v2.HPAScalingPolicy": {
        "periodSeconds": {"minimum": 1, "maximum": 1800},
        "type": _NAME,
        "value": {"minimum": 1},
    },
    "autoscaling.v2.HorizontalPodAutoscalerSpec": _SCALED,
    "autoscaling.v2.MetricIdentifier": {"name": _NAME},
    "autoscaling.v2.MetricSpec": {"type": _NAME},
    "autoscaling.v2.MetricTarget": {"type": _NAME},
    "autoscaling.v2.PodsMetricSource": {"metric": {}, "target": {}},
    "autoscaling.v2.ResourceMetricSource": {"name": _NAME, "target": {}},
    "batch.v1.CronJobSpec": {"jobTemplate": {}, "schedule": _NAME},
    "batch.v1.JobSpec": {"template": {}},
    "batch.v1.PodFailurePolicyOnExitCodesRequirement": {
        "operator": _NAME,
        "values": {"minItems": 1},
    },
    "batch.v1.PodFailurePolicyRule": {"action": _NAME},
    "core.v1.PersistentVolumeClaimSpec": {"accessModes": {"minItems": 1}, "resources": {}},
    "core.v1.ServicePort": {"port": _PORT},
    "networking.v1.HTTPIngressPath": {
        "backend": {},
        "pathType": {"enum": ["Exact", "Prefix", "ImplementationSpecific"]},
    },
    "networking.v1.HTTPIngressRuleValue": {"paths": {"minItems": 1}},
    "networking.v1.IngressServiceBackend": {"name": _NAME, "port": {}},
    "resource.v1.DeviceRequest": {"name": _NAME},
    "resource.v1.ExactDeviceRequest": {"deviceClassName": _NAME},
    "resource.v1beta1.DeviceRequest": {"name": _NAME},
    "resource.v1beta2.DeviceRequest": {"name": _NAME},
    "resource.v1beta2.ExactDeviceRequest": {"deviceClassName": _NAME},
}
"""Fields that the API server requires, by definition, and the limits of their values.

Source: kubernetes 1.37 pkg/apis/*/validation. Of an object of Go, a string or a number is never
missing, so that their limits decide. The selector of a workload is not among them: examples and
patches leave it out, and the API server says so at once.
"""
_PASSWORD: Mapping[str, Any] = {"type": "string", "format": "password"}
_SOME = {"minimum": 0}
_COPIED: Mapping[str, Mapping[str, Any]] = {"minReadySeconds": _SOME, "replicas": _SOME}
_ROLLED: Mapping[str, Mapping[str, Any]] = {"minReadySeconds": _SOME, "revisionHistoryLimit": _SOME}
LIMITS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "apps.v1.DaemonSetSpec": _ROLLED,
    "apps.v1.DeploymentSpec": {
        **_ROLLED,
        "progressDeadlineSeconds": {"minimum": 1},
        "replicas": _SOME,
    },
    "apps.v1.ReplicaSetSpec": _COPIED,
    "apps.v1.RollingUpdateStatefulSetStrategy": {"partition": _SOME},
    "apps.v1.StatefulSetOrdinals": {"start": _SOME},
    "apps.v1.StatefulSetSpec": _COPIED,
    "autoscaling.v2.HPAScalingPolicy": {
        "periodSeconds": {"minimum": 1, "maximum": 1800},
        "value": {"minimum": 1},
    },
    "autoscaling.v2.HPAScalingRules": {
        "stabilizationWindowSeconds": {"minimum": 0, "maximum": 3600}
    },
    "autoscaling.v2.HorizontalPodAutoscalerSpec": {"minReplicas": {"minimum": 0}},
    "autoscaling.v2.MetricTarget": {"averageUtilization": {"minimum": 1}},
    "batch.v1.CronJobSpec": {
        "failedJobsHistoryLimit": _SOME,
        "startingDeadlineSeconds": _SOME,
        "successfulJobsHistoryLimit": _SOME,
    },
    "batch.v1.JobSpec": {
        "activeDeadlineSeconds": _SOME,
        "backoffLimit": _SOME,
        "completions": _SOME,
        "parallelism": _SOME,
        "ttlSecondsAfterFinished": _SOME,
    },
    "core.v1.ClientIPConfig": {"timeoutSeconds": {"minimum": 1, "maximum": 86400}},
    "core.v1.ReplicationControllerSpec": _COPIED,
    "core.v1.Secret": {"stringData": {"additionalProperties": _PASSWORD}},
    "networking.v1.HTTPIngressPath": {"path": {"pattern": "^(/.*)?$"}},
    "networking.v1.ServiceBackendPort": {"number": {"minimum": 0, "maximum": 65535}},
    "resource.v1.ExactDeviceRequest": {"count": _SOME},
    "resource.v1beta1.DeviceRequest": {"count": _SOME},
    "resource.v1beta2.ExactDeviceRequest": {"count": _SOME},
}
"""Limits of fields that may be missing. A number of 0 is a missing one in a ServiceBackendPort."""
_PREFIX = "io.k8s.api."
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_ANY: Mapping[str, Any] = {"x-kubernetes-preserve-unknown-fields": True}
_MAP: Mapping[str, Any] = {"type": "object"}
_STATED: Mapping[str, Any] = {"type": "string", **_NAME}
_CONTAINERS: Mapping[str, Any] = {
    "type": "array",
    "items": {
        **_ANY,
        "type": "object",
        "properties": {"image": _STATED, "name": _STATED},
        "required": ["image", "name"],
    },
}
_POD: Mapping[str, Any] = {
    **_ANY,
    "type": "object",
    "properties": {"containers": _CONTAINERS, "initContainers": _CONTAINERS},
}
_KNOWN: Mapping[str, Mapping[str, Any]] = {
    f"{_PREFIX}core.v1.PodTemplateSpec": {**_ANY, "type": "object", "properties": {"spec": _POD}},
    f"{_META}ObjectMeta": {"type": "metadata"},
    f"{_META}MicroTime": {"type": "string"},
    f"{_META}Time": {"type": "string"},
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {
        "x-kubernetes-int-or-string": True,
        "pattern": "[KMGTPE]i",
    },
    "io.k8s.apimachinery.pkg.runtime.RawExtension": _ANY,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"x-kubernetes-int-or-string": True},
}
"""Definitions that are not read. Of a pod template, only what pod-schema does not require: it also
checks templates whose image a controller adds. metadata has a shape in metadata.py, and others are
no maps in JSON."""


def make(documents: Iterable[tuple[str, bytes]] | None = None) -> Table:
    """Read the documents of all minor releases.

    Args:
        documents: Versions with their documents, oldest first. None: those that are published.
    """
    filled = {kind: () for kinds in KINDS.values() for kind in kinds}
    table = Table(TITLE, "kubernetes/kubernetes", filled, nulls=True)
    for version, text in _documents() if documents is None else documents:
        digest, crds = hashlib.sha256(text).hexdigest(), as_crds(json.loads(text))
        table.add(Release(version=version, commit=""), {DOCUMENT: digest}, crds)
    return table


def _documents() -> Iterator[tuple[str, bytes]]:
    """Yield the newest patch of each minor release with its document, oldest first."""
    with tempfile.TemporaryDirectory() as folder:
        listed = _go(Path(folder), "list", "-m", "-versions", "-json", MODULE)
        newest: dict[tuple[int, ...], Version] = {}
        for version in sorted(map(Version, json.loads(listed)["Versions"])):
            if version >= FIRST and not version.is_prerelease:
                newest[version.release[:2]] = version
        for version in newest.values():
            named = f"{MODULE}@v{version}"
            made = json.loads(_go(Path(folder), "mod", "download", "-json", named))
            with zipfile.ZipFile(made["Zip"]) as archive:
                yield str(version), archive.read(f"{named}/{DOCUMENT}")


def _go(folder: Path, *words: str) -> str:
    done = subprocess.run(["go", *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


def as_crds(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Write the kinds of an OpenAPI document as CRDs, with the words and limits of this module.

    Keys of lists are left out: only server-side apply refuses two members with one key.
    """
    definitions, scaled = document["definitions"], frozenset(_scaled(document["paths"]))
    return [
        {
            "spec": {
                "group": kind["group"],
                "names": {"kind": kind["kind"]},
                "versions": [
                    {
                        "name": kind["version"],
                        "served": True,
                        "schema": {"openAPIV3Schema": _schema(name, definitions)},
                        "subresources": {"scale": {}} if name in scaled else {},
                    }
                ],
            }
        }
        for name, definition in sorted(definitions.items())
        for kind in definition.get("x-kubernetes-group-version-kind", ())
        if kind["kind"] in KINDS.get(kind["group"], ())
    ]


def _scaled(paths: Mapping[str, Any]) -> Iterator[str]:
    """Yield the definitions of the kinds that have the scale subresource."""
    for path, methods in paths.items():
        if f"{path}/scale" in paths:
            schema = methods.get("get", {}).get("responses", {}).get("200", {}).get("schema", {})
            yield schema.get("$ref", "").rpartition("/")[2]


def _schema(name: str, definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Give a definition with those that it refers to in it."""
    short = name.removeprefix(_PREFIX)
    words, required = WORDS.get(short, {}), REQUIRED.get(short, {})
    limits = {**LIMITS.get(short, {}), **required}
    properties = {
        field: {
            **_part(part, definitions),
            **(_worded(part, words[field]) if field in words else {}),
            **limits.get(field, {}),
        }
        for field, part in definitions[name].get("properties", {}).items()
    }
    return {"type": "object", "properties": properties, "required": [*required]}


def _worded(part: Mapping[str, Any], words: tuple[str, ...]) -> dict[str, Any]:
    """Return what a schema adds for a string that is one of a few, or a list of them."""
    if part["type"] == "array":
        return {"items": {"type": "string", "enum": [*words]}}
    return {"enum": ["", *words]}


def _part(part: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    if reference := str(part.get("$ref", "")).rpartition("/")[2]:
        return dict(_KNOWN.get(reference) or _schema(reference, definitions))
    made = {key: part[key] for key in ("type", "format") if key in part}
    if made.get("format") == "byte":
        made["format"] = "password"  # examples of Secrets have words in place of base64
    if "items" in part:
        made["items"] = _part(part["items"], definitions)
    if "additionalProperties" in part:
        made["additionalProperties"] = _part(part["additionalProperties"], definitions)
    return made or dict(_ANY)
