"""Reads servings of controllers from a cluster, without the fields that controllers added.

A live object also has what the API server, webhooks and controllers have set. Its managedFields and
the annotation of `kubectl apply` tell them apart.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kthena_components.cluster.client import Cluster, ClusterError
from kthena_components.cluster.fetch_servings_and_inventory import read, why
from kthena_components.cluster.objects import Body
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.unknown import Unknown

Kinds = Iterable[tuple[str, str]]
"""API group and kind."""
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_OF_SERVER = frozenset(
    {
        *("creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation"),
        *("managedFields", "resourceVersion", "selfLink", "uid", "finalizers"),
    }
)
"""Fields of metadata that the API server or a controller sets."""
_HEADLESS = "None"
_OF_SERVICES = {
    **dict.fromkeys(("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"), ""),
    "internalTrafficPolicy": "Cluster",
    "sessionAffinity": "None",
}
"""Fields that the API server sets in each Service, with the default; empty for any value."""


def fetch_live(cluster: Cluster, kinds: Kinds, namespace: str | None) -> list[Body]:
    """Read all objects of some kinds, except those that a controller has created for another one.

    Args:
        cluster: The cluster to read; it is not changed.
        kinds: API groups and kinds. One that the cluster does not serve has no objects.
        namespace: A namespace; None for all.

    Raises:
        ClusterError: A kind cannot be read.
    """
    return [
        as_applied(body)
        for group, kind in kinds
        for body in _listed(cluster, group, kind, namespace)
        if not any(mapping(o).get("controller") for o in sequence(_owners(body)))
    ]


def exists(cluster: Cluster, body: Body) -> bool:
    """Return whether a cluster has an object of this kind, namespace and name."""
    found = read(cluster, body)
    if isinstance(found, Unknown):
        raise ClusterError(0, "Unreadable", found.because)
    return found is not None


def _owners(body: Body) -> object:
    return mapping(body.get("metadata")).get("ownerReferences")


def _listed(cluster: Cluster, group: str, kind: str, namespace: str | None) -> Iterator[Body]:
    try:
        version = cluster.preferred(group)
        if version is not None and cluster.serves(version, kind):
            yield from cluster.list(version, kind, namespace)
    except ClusterError as error:
        raise ClusterError(0, error.reason, why(error, f"{kind}s").because) from error


def as_applied(body: Body) -> dict[str, Any]:
    """Return an object with the fields that its user has set, and their present values.

    These are the fields of `kubectl apply` in its annotation, else those of each manager that
    applies on the server's side. An object that was created in another way keeps every field of its
    spec: who has set one of them is not recorded.
    Source: Kubernetes, Server-Side Apply, "Field management"; managedFields in FieldsV1.
    """
    metadata = {k: v for k, v in mapping(body["metadata"]).items() if k not in _OF_SERVER}
    annotations = dict(mapping(metadata.pop("annotations", None)))
    last = annotations.pop(_LAST_APPLIED, None)
    if annotations:
        metadata["annotations"] = annotations
    live = {k: v for k, v in body.items() if k not in {"metadata", "status"}}
    live["metadata"] = metadata
    applied = [mapping(entry) for entry in sequence(mapping(body["metadata"]).get("managedFields"))]
    fields = [mapping(e.get("fieldsV1")) for e in applied if _applies(e)]
    said = _parsed(last)
    if said:
        found = _like(live, said)
    elif fields:
        found = _chosen(live, _united(fields))
    else:
        return _without_addresses(live) if body["kind"] == "Service" else live
    kept = {key: metadata[key] for key in ("name", "namespace") if key in metadata}
    head = {"apiVersion": body["apiVersion"], "kind": body["kind"]}
    return {**head, **found, "metadata": {**kept, **mapping(found.get("metadata"))}}


def _without_addresses(service: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what the API server gives to each Service."""
    spec = {
        key: value
        for key, value in mapping(service.get("spec")).items()
        if key not in _OF_SERVICES or _OF_SERVICES[key] not in ("", value)
    }
    if mapping(service.get("spec")).get("clusterIP") == _HEADLESS:
        spec["clusterIP"] = _HEADLESS
    return {**service, "spec": spec}


def _parsed(annotation: object) -> Mapping[str, Any]:
    try:
        return mapping(json.loads(str(annotation or "")))
    except (ValueError, RecursionError):
        return {}


def _applies(entry: Mapping[str, Any]) -> bool:
    return entry.get("operation") == "Apply" and not entry.get("subresource")


def _like(live: Any, applied: Any) -> Any:
    """Return the live values of the fields that were applied."""
    if isinstance(live, Mapping) and isinstance(applied, Mapping):
        return {k: _like(live[k], value) for k, value in applied.items() if k in live}
    if isinstance(live, list) and isinstance(applied, list) and len(live) == len(applied):
        return [_like(one, other) for one, other in zip(live, applied, strict=True)]
    return live


def _united(fields: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the fields of several managers; nothing for a value that one of them has whole."""
    if not all(fields):
        return {}
    names = dict.fromkeys(name for one in fields for name in one)
    return {name: _united([mapping(one[name]) for one in fields if name in one]) for name in names}


def _chosen(live: Any, fields: Mapping[str, Any]) -> Any:
    """Return the live values of some fields in the form of FieldsV1."""
    if not fields:
        return live
    inside = {name: below for name, below in fields.items() if name != "."}
    if isinstance(live, Mapping):
        names = {name.removeprefix("f:"): below for name, below in inside.items()}
        return {k: _chosen(value, names[k]) for k, value in live.items() if k in names}
    if isinstance(live, list):
        places = [(_Place(name), below) for name, below in inside.items()]
        return [
            _chosen(item, below)
            for index, item in enumerate(live)
            for place, below in places
            if place.names(index, item)
        ]
    return live


class _Place:
    """One item of a list: by its keys (`k:{"name":"a"}`), value (`v:"a"`) or index (`i:0`)."""

    def __init__(self, written: str) -> None:
        self._sort, _, text = written.partition(":")
        self._value = json.loads(text)

    def names(self, index: int, item: Any) -> bool:
        """Return whether an item stands there."""
        if self._sort == "k":
            return bool({**mapping(item), **self._value} == item)
        return bool(self._value == (index if self._sort == "i" else item))
