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
from kthena_components.cluster.client import Cluster, ClusterError
from kthena_components.core.findings import Finding, Level
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
_FORBIDDEN: tuple[Any, ...] = (None, 0, -1, 70_000, "", {}, [])
"""Values that a field may not have, though it can be decoded. None: it is missing."""
_SCALED = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}
_POLICY = {"type": "Pods", "value": 1, "periodSeconds": 60}
_USE = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
_BACKEND = {"service": {"name": "a", "port": {"number": 80}}}
_MORE: dict[str, dict[str, Any]] = {
    "v1 Service": {
        "ports": [{"port": 80}],
        "ipFamilyPolicy": "SingleStack",
        "ipFamilies": ["IPv4"],
        "sessionAffinity": "ClientIP",
        "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 60}},
    },
    "autoscaling/v2 HorizontalPodAutoscaler": {
        "minReplicas": 1,
        "maxReplicas": 2,
        "scaleTargetRef": _SCALED,
        "metrics": [{"type": "Resource", "resource": _USE}],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60, "policies": [_POLICY]}},
    },
    "networking.k8s.io/v1 Ingress": {
        "rules": [{"http": {"paths": [{"path": "/", "pathType": "Exact", "backend": _BACKEND}]}}]
    },
}
"""Valid objects with more fields whose limits are in our table."""
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
                if isinstance(of, Fields):
                    yield {**head, **_nested((*path, "unheardOf"), 1)}, _text((*path, "unheardOf"))


def _values(of: Schema, path: tuple[str, ...]) -> Iterator[Any]:
    """Yield values to try, without those that something else decodes than a schema."""
    for value in _VALUES:
        is_template = of == Table(Free()) and value == {"a": "b"}
        is_bytes = path[0] == "data" and isinstance(value, list)  # Go takes a list of bytes
        if not (is_template or is_bytes):
            yield value


def _leaves(schema: Schema, at: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Schema]]:
    """Yield each field below a shape; `[]` stands for the first member of a list."""
    match schema:
        case Fields():
            for name, of in schema.fields.items():
                yield (*at, name), of
                yield from _leaves(of, (*at, name))
        case Items():
            yield (*at, "[]"), schema.of
            yield from _leaves(schema.of, (*at, "[]"))
        case Table() if schema.of != Free():  # a pod template: pod-schema checks it
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
    differ, found = [], set[tuple[str, str]]()
    for whole in (*whole_objects(), *_more_objects()):
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
                ours = [str(f) for f in check_manifest(body) if _is_of_schema(f)]
                if ours:
                    found.add((body["kind"], str(place)))
                    if not _is_rejected(api, body):
                        differ.append(f"{body}\n  check: {ours}")
    part.count("fields whose limits were compared", len(found))
    some = len(found) >= _LEAST
    part.check("limits of fields were compared", holds=some, seen=sorted(found))
    part.check("limits are those of the API server", holds=not differ, seen="\n".join(differ[:5]))


_LEAST = 30


def _more_objects() -> Iterator[dict[str, Any]]:
    for of, spec in _MORE.items():
        version, kind = of.split()
        metadata = {"name": "a", "namespace": "default"}
        yield {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def _is_of_schema(finding: Finding) -> bool:
    return finding.rule == "crd-schema" and finding.level is Level.MANDATORY


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
