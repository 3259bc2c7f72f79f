"""Compares our table of the fields of Kubernetes' own kinds with the API server.

Each field of each kind gets a right value, wrong ones, and a field beside it that does not exist.
The API server decodes an object before it validates it, so that fields that are missing beside the
one in question do not matter: only what it says of the decoding counts.
"""

import copy
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from conformance.kubernetes.object_names import whole_objects
from conformance.report import Part
from conformance.validation.random_damage import holder_of, places
from kthena_components.checker.manifest import check_manifest
from kthena_components.checker.read_cluster_objects import read_objects
from kthena_components.cluster.client import Cluster, ClusterError
from kthena_components.core.findings import Level, run_rule
from kthena_components.core.schema.crds import CrdTable, check_crd, load
from kthena_components.core.schema.language import (
    Amount,
    Budget,
    Fields,
    Free,
    Items,
    Schema,
    Switch,
    Table,
    Text,
    Whole,
)
from kthena_components.systems.kubernetes.rules.object_values import object_values

_RELEASE = (1, 34)
_VALUES: tuple[Any, ...] = ("a", 3, 1.5, True, [], ["a"], {}, {"a": "b"}, None)
_RIGHT: dict[type[Schema], Any] = {
    Amount: "1Gi", Budget: 3, Fields: {}, Free: {}, Items: [], Switch: False, Table: {}, Text: "",
    Whole: 3,
}  # fmt: skip
_DECODING = ("cannot unmarshal", "json: ", "unknown field", "strict decoding", "unmarshalerDecoder",
             "cannot be handled as a", "quantities must match", "time: ", "parsing time",
             "illegal base64")  # fmt: skip
"""What the API server says of an object that it cannot decode, and not of others."""
_FORMS = ("time: ", "parsing time", "illegal base64")
"""The same of dates and of bytes, whose form we do not check."""
_TYPES = ("but must be a ", "but must be true", "but must be from ", "is not a ")
"""In what we report of a value that cannot be decoded, and not of a limit or a word."""
_FORBIDDEN: tuple[Any, ...] = (None, 0, -1, 70_000, "", "a_B", {}, [])
"""Values that a field may not have, though it can be decoded. None: it is missing."""
_RULES = frozenset({"crd-schema", "object-values", "rollout-strategy", "selector-matches-template"})
_METRIC = {"type": "AverageValue", "averageValue": "5"}
_MORE: dict[str, dict[str, Any]] = {
    "Deployment": {
        "replicas": 2, "minReadySeconds": 5, "revisionHistoryLimit": 3,
        "progressDeadlineSeconds": 70, "strategy": {
            "type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
        },
    },
    "DaemonSet": {
        "minReadySeconds": 5, "revisionHistoryLimit": 3, "updateStrategy": {
            "type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
        },
    },
    "ReplicaSet": {"replicas": 2, "minReadySeconds": 5},
    "StatefulSet": {
        "replicas": 2, "minReadySeconds": 5, "ordinals": {"start": 1},
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}},
        "volumeClaimTemplates": [{"metadata": {"name": "a"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        }}],
    },
    "Job": {
        "completionMode": "Indexed", "completions": 2, "backoffLimitPerIndex": 1,
        "maxFailedIndexes": 1, "backoffLimit": 3, "activeDeadlineSeconds": 9,
        "ttlSecondsAfterFinished": 9,
        "podFailurePolicy": {"rules": [
            {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}},
        ]},
    },
    "CronJob": {
        "concurrencyPolicy": "Forbid", "startingDeadlineSeconds": 9,
        "successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 1,
    },
    "Service": {
        "ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"],
        "sessionAffinity": "ClientIP",
        "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 9}},
    },
    "HorizontalPodAutoscaler": {
        "minReplicas": 1, "metrics": [
            {"type": "Pods", "pods": {"metric": {"name": "a"}, "target": _METRIC}},
            {"type": "Resource", "resource": {
                "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80},
            }},
            {"type": "Object", "object": {
                "metric": {"name": "a"}, "target": _METRIC,
                "describedObject": {"kind": "Service", "name": "a", "apiVersion": "v1"},
            }},
            {"type": "External", "external": {"metric": {"name": "a"}, "target": _METRIC}},
        ],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 9, "policies": [
            {"type": "Pods", "value": 1, "periodSeconds": 60},
        ]}},
    },
    "Ingress": {"rules": [{"http": {"paths": [{
        "path": "/a", "pathType": "Prefix",
        "backend": {"service": {"name": "a", "port": {"number": 80}}},
    }]}}]},
    "PersistentVolumeClaim": {
        "accessModes": ["ReadWriteOncePod"], "resources": {"requests": {"storage": "1Gi"}},
    },
    "ResourceClaim": {"devices": {"requests": [{"name": "a", "exactly": {
        "deviceClassName": "a", "allocationMode": "ExactCount", "count": 2,
    }}]}},
}  # fmt: skip
"""Fields that a valid object of a kind may also have."""
_CPU = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}
_BOTH = {"type": "Value", "value": "5", "averageValue": "5"}
_QUEUE = {"metric": {"name": "a"}, "target": _BOTH}
_SERVICE = {"name": "a", "port": {"name": "http", "number": 80}}
_FAILS = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}
_TOGETHER: tuple[tuple[str, dict[str, Any], bool], ...] = (
    ("PodDisruptionBudget", {"maxUnavailable": 1}, False),
    ("PodDisruptionBudget", {"minAvailable": "100%"}, True),
    ("PodDisruptionBudget", {"minAvailable": "101%"}, False),
    ("PodDisruptionBudget", {"minAvailable": "5"}, False),
    ("PersistentVolumeClaim", {"accessModes": ["ReadWriteOncePod", "ReadWriteMany"]}, False),
    ("PersistentVolumeClaim", {"resources": {"limits": {"storage": "1Gi"}}}, False),
    ("PersistentVolumeClaim", {"resources": {"requests": {"storage": 0}}}, False),
    ("HorizontalPodAutoscaler", {"metrics": [{"type": "Pods", "resource": _CPU}]}, False),
    ("HorizontalPodAutoscaler", {"metrics": [{"type": "External", "external": _QUEUE}]}, False),
    (
        "HorizontalPodAutoscaler",
        {"metrics": [{"type": "Pods", "pods": _QUEUE}, {"type": "Object", "object": {
            **_QUEUE, "describedObject": {"kind": "Service", "name": "a"},
        }}]},
        True,
    ),
    ("HorizontalPodAutoscaler", {"metrics": [
        {"type": "Resource", "resource": _CPU, "pods": _QUEUE},
    ]}, False),
    ("Job", {"completionMode": "Indexed", "completions": None}, True),
    ("Job", {"completionMode": "Indexed", "completions": None, "parallelism": 2}, False),
    ("Job", {"completionMode": "Indexed", "completions": 2, "backoffLimitPerIndex": 1}, True),
    ("Job", {"completionMode": "NonIndexed", "backoffLimitPerIndex": 1}, False),
    ("Job", {"completionMode": "NonIndexed", "successPolicy": {"rules": []}}, False),
    ("Job", {"podFailurePolicy": _FAILS}, True),
    ("Ingress", {"defaultBackend": {"service": _SERVICE}}, False),
    ("Ingress", {"defaultBackend": {"service": {"name": "a", "port": {}}}}, False),
    ("Ingress", {"rules": [{"host": "https://a.b"}]}, False),
    ("Ingress", {"rules": [{"host": "a.b:80"}]}, False),
    ("Ingress", {"rules": [{"host": "10.0.0.1"}]}, False),
    ("Ingress", {"rules": [{"host": "*.*.a"}]}, False),
    ("Ingress", {"rules": [{"host": "*.a.b"}, {"host": ""}, {"host": "1.2"}]}, True),
    ("Service", {"type": "ExternalName"}, False),
    ("Service", {"type": "ExternalName", "externalName": "a.b"}, True),
    ("Service", {"clusterIP": "None", "type": "LoadBalancer"}, False),
    ("Service", {"clusterIP": "None", "type": "ClusterIP"}, True),
    ("ConfigMap", {"data": {"a": 5}}, False),
    ("ConfigMap", {"data": {"a": True}}, False),
    ("ConfigMap", {"data": {"a": {"b": "c"}}}, False),
    ("ConfigMap", {"binaryData": {"a": ["c"]}}, False),
    ("ConfigMap", {"data": {"a": None, "b": ""}}, True),
    ("Secret", {"type": "kubernetes.io/tls", "data": {"tls.crt": ""}}, False),
    ("Secret", {"type": "kubernetes.io/tls", "stringData": {"tls.crt": "", "tls.key": ""}}, True),
    ("Secret", {"stringData": {"a/b": ""}}, False),
    ("Secret", {"stringData": {"..a": ""}}, False),
    ("Secret", {"stringData": {".a": "", "_": "", "a" * 253: ""}}, True),
)  # fmt: skip
"""Kinds, fields in place of those of a valid object, and whether the result is valid."""
_DRY_RUN = {"dryRun": "All", "fieldValidation": "Strict"}
_AT_ROOT = frozenset({"apiVersion", "kind", "metadata", "status"})


def objects(table: CrdTable) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield objects of each kind, and the path in question."""
    place = table.place(_RELEASE)
    for kind, versions in table.kinds.items():
        for served in versions:
            number = table.number(kind, served, place)
            if number is None:
                continue
            shape, _ = table.root(number, kind)
            head = {"apiVersion": served, "kind": kind, "metadata": {"name": "a"}}
            fields = {k: v for k, v in shape.fields.items() if k not in _AT_ROOT}
            for path, of in _leaves(Fields(fields=fields), ()):
                if isinstance(of, Free):  # of any type for us
                    continue
                for value in (*_values(of, path), _RIGHT.get(type(of), {})):
                    yield {**head, **_nested(path, value)}, _text(path)
                if isinstance(of, Fields) and not of.partial:
                    yield {**head, **_nested((*path, "unheardOf"), 1)}, _text((*path, "unheardOf"))


def _values(of: Schema, path: tuple[str, ...]) -> Iterator[Any]:
    """Yield values to try, without those that something else decodes than a schema."""
    for value in _VALUES:
        is_template = isinstance(of, Fields) and of.partial and value == {"a": "b"}
        is_bytes = path[0] == "data" and isinstance(value, list)  # Go takes a list of bytes
        if not (is_template or is_bytes):
            yield value


def _leaves(schema: Schema, at: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Schema]]:
    """Yield each field below a shape; `[]` stands for the first member of a list.

    Of a pod template, pod-schema checks the types.
    """
    match schema:
        case Fields(partial=False):
            for name, of in schema.fields.items():
                yield (*at, name), of
                yield from _leaves(of, (*at, name))
        case Items():
            yield (*at, "[]"), schema.of
            yield from _leaves(schema.of, (*at, "[]"))
        case Table() if schema.of != Free():
            yield (*at, "key"), schema.of
            yield from _leaves(schema.of, (*at, "key"))
        case _:
            return


def _nested(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    made: Any = value
    for name in reversed(path):
        made = [made] if name == "[]" else {name: made}
    return dict(made)


def _text(path: tuple[str, ...]) -> str:
    return ".".join(path).replace(".[]", "[0]")


def compare_fields(part: Part, api: Cluster) -> None:
    """Send all objects, and compare what the API server cannot decode with what we report."""
    table = load("kthena_components.systems.kubernetes")
    if table is None:
        raise FileNotFoundError("the table of Kubernetes' fields")
    differ, number = [], 0
    for body, path in objects(table):
        said = _undecoded(api, body)
        if said is None:
            continue
        number += 1
        ours = [
            str(finding)
            for finding, _ in check_crd(body, body["kind"], table, _RELEASE)
            if finding.level is Level.MANDATORY and any(word in finding.seen for word in _TYPES)
        ]
        if bool(said) != bool(ours) and not any(form in said for form in _FORMS):
            differ.append(f"{body}\n  {path}\n  API: {said}\n  check: {ours}")
    part.count("fields of Kubernetes' kinds compared", number)
    seen = f"{len(differ)} of {number}\n" + "\n".join(differ[:5])
    part.check("fields are decoded as by the API server", holds=not differ, seen=seen)


def compare_limits(part: Part, api: Cluster) -> None:
    """Take fields out of valid objects, or forbid their values: what we report is rejected."""
    differ, found, silent = [], set[tuple[str, str]](), set[tuple[str, str]]()
    for whole in map(_with_more, whole_objects()):
        part.check(
            f"a whole {whole['kind']} is valid", holds=not _is_rejected(api, whole), seen=whole
        )
        for place in places(whole.get("spec", {})):
            for value in _FORBIDDEN:
                body = copy.deepcopy(whole)
                holder, key = holder_of(body["spec"], place), place[-1]
                if value is None:
                    del holder[key]
                elif type(value) is type(holder[key]):
                    holder[key] = value
                else:
                    continue
                alone = read_objects([body], [""])
                reported = [*check_manifest(body), *run_rule(object_values, alone)]
                reported = [f for f in reported if f.level is Level.MANDATORY]
                ours = [str(f) for f in reported if f.rule in _RULES]
                where, refused = (body["kind"], str(place)), _is_rejected(api, body)
                if ours:
                    found.add(where)
                    if not refused:
                        differ.append(f"{body}\n  check: {ours}")
                elif refused and not reported:
                    silent.add(where)
    part.count("fields whose limits were compared", len(found))
    part.count("fields whose limits are left to the API server", len(silent - found))
    some = len(found) >= _LEAST
    part.check("limits of fields were compared", holds=some, seen=sorted(found))
    part.check("limits are those of the API server", holds=not differ, seen="\n".join(differ[:5]))


def compare_together(part: Part, api: Cluster) -> None:
    """Check fields that must agree with one another: what is rejected is reported."""
    wholes = {whole["kind"]: whole for whole in whole_objects()}
    for kind, fields, valid in _TOGETHER:
        body = copy.deepcopy(wholes[kind])
        body.get("spec", body).update(fields)
        alone = read_objects([body], [""])
        ours = [*check_manifest(body), *run_rule(object_values, alone)]
        ours = [finding for finding in ours if finding.level is Level.MANDATORY]
        seen = f"rejected: {_is_rejected(api, body)}, check: {[*map(str, ours)]}"
        agree = (not _is_rejected(api, body), not ours) == (valid, valid)
        part.check(f"{kind} with {fields}"[:90], holds=agree, seen=seen)


_LEAST = 60


def _with_more(whole: dict[str, Any]) -> dict[str, Any]:
    more = _MORE.get(whole["kind"])
    return {**whole, "spec": {**whole["spec"], **copy.deepcopy(more)}} if more else whole


def _is_rejected(api: Cluster, body: dict[str, Any]) -> bool:
    try:
        api.ask("POST", api.path(body, named=False), body, _DRY_RUN)
    except ClusterError as error:
        return error.status in {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY}
    return False


def _undecoded(api: Cluster, body: dict[str, Any]) -> str | None:
    """Return why the API server cannot decode an object.

    Returns:
        An empty string if it can; None if it does not serve the version, which is a beta one.
    """
    try:
        api.ask("POST", api.path(body, named=False), body, _DRY_RUN)
    except ClusterError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return None
        if error.status == HTTPStatus.BAD_REQUEST and any(w in str(error) for w in _DECODING):
            return str(error)
    return ""
