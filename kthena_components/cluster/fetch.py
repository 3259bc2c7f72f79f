"""Reads what `doctor` checks: lists, schemas and the user's permissions. Changes nothing.

An access review is a POST request, which the API server answers without storing anything.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from kthena_components.cluster.access import MONITORING, allows, own_kinds
from kthena_components.cluster.client import Cluster, ClusterError
from kthena_components.cluster.fetch_servings_and_inventory import (
    NODE,
    POD,
    listed,
    listed_if_served,
    read,
    why,
)
from kthena_components.cluster.requirements import (
    HYPER_NODE,
    MODEL_SERVING,
    POD_GROUP,
    QUEUE,
    SECRET,
    Body,
    Kind,
    Requirements,
    Right,
)
from kthena_components.cluster.snapshot import Snapshot
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems import EMITTERS

_DEPLOYMENT = ("apps/v1", "Deployment")
_LEASE = ("coordination.k8s.io/v1", "Lease")
_SYSTEMS = ("volcano-system", "kthena-system")
_CONFIG = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "volcano-scheduler-configmap", "namespace": "volcano-system"},
}
_REVIEWS = "/apis/authorization.k8s.io/v1"
_AT_ONCE = 8
_SCHEMA = "#/components/schemas/"


def fetch(cluster: Cluster, version: str, need: Requirements) -> Snapshot:
    """Read everything that `doctor` checks."""
    own = (kind for name in EMITTERS for kind in own_kinds(name))
    kinds = (POD_GROUP, QUEUE, HYPER_NODE, *own, *MONITORING)
    return Snapshot(
        server=cluster.server,
        version=version,
        user=_user(cluster),
        now=datetime.now(UTC),
        served=_served(cluster, kinds),
        schemas={kind: _schema(cluster, kind) for kind in (POD_GROUP, MODEL_SERVING)},
        deployments=_of_systems(cluster, _DEPLOYMENT),
        leases=_of_systems(cluster, _LEASE),
        queues=listed_if_served(cluster, QUEUE),
        hyper_nodes=listed_if_served(cluster, HYPER_NODE),
        nodes=listed(cluster, NODE),
        pods=listed(cluster, POD),
        pod_groups=listed_if_served(cluster, POD_GROUP),
        model_servings=listed_if_served(cluster, MODEL_SERVING),
        scheduler_config=read(cluster, _CONFIG),
        rights=_rights(cluster, need.rights),
        namespaces={name: _namespace(cluster, name) for name in need.namespaces},
        secrets=_secrets(cluster, need),
    )


def _user(cluster: Cluster) -> str:
    """Return the user's name at the server, or "you" if it does not tell."""
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        answer = cluster.ask("POST", path, review)
    except ClusterError as error:  # Kubernetes before 1.28 has no such review
        why(error, "")
        return "you"
    return str(mapping(mapping(answer.get("status")).get("userInfo")).get("username") or "you")


def _served(cluster: Cluster, kinds: Iterable[Kind]) -> dict[str, list[str]]:
    """List the served kinds of our groups, in all versions."""
    found: dict[str, list[str]] = {}
    for group in sorted({kind[0].partition("/")[0] for kind in kinds}):
        versions = _get_if_exists(cluster, f"/apis/{group}")
        for item in sequence(versions.get("versions")):
            name = str(mapping(item).get("groupVersion"))
            answer = _get_if_exists(cluster, f"/apis/{name}")
            resources = map(mapping, sequence(answer.get("resources")))
            found[name] = [str(r["kind"]) for r in resources if "/" not in str(r.get("name"))]
    return found


def _get_if_exists(cluster: Cluster, path: str) -> Body:
    """Request something that may not exist."""
    try:
        return mapping(cluster.ask("GET", path))
    except ClusterError as error:
        if error.status == 0:
            raise
        return {}


def _schema(cluster: Cluster, kind: Kind) -> Body | Unknown:
    """Read the published OpenAPI schema of a kind, which every user may read."""
    try:
        answer = cluster.ask("GET", f"/openapi/v3/apis/{kind[0]}")
    except ClusterError as error:
        return why(error, f"schema of {kind[1]}")
    schemas = mapping(mapping(answer.get("components")).get("schemas"))
    found = next((s for name, s in schemas.items() if name.endswith(f".{kind[1]}")), None)
    return Unknown(f"no schema of {kind[1]} is published") if found is None else mapping(found)


def _of_systems(cluster: Cluster, kind: Kind) -> Any:
    """List objects of all namespaces; if forbidden, of the usual ones of Volcano and Kthena."""
    everywhere = listed(cluster, kind)
    if not isinstance(everywhere, Unknown):
        return everywhere
    parts = [listed(cluster, kind, namespace) for namespace in _SYSTEMS]
    known = [body for part in parts if not isinstance(part, Unknown) for body in part]
    return everywhere if all(isinstance(part, Unknown) for part in parts) else known


def _namespace(cluster: Cluster, name: str) -> bool | Unknown:
    found = read(cluster, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return found if isinstance(found, Unknown) else found is not None


def _secrets(
    cluster: Cluster, need: Requirements
) -> dict[tuple[str, str], frozenset[str] | Unknown | None]:
    """Read the keys of Secrets. Values are dropped at once."""
    found: dict[tuple[str, str], frozenset[str] | Unknown | None] = {}
    for taken in need.secrets:
        place = {"name": taken.name, "namespace": taken.namespace}
        body = read(cluster, {"apiVersion": SECRET[0], "kind": SECRET[1], "metadata": place})
        known = isinstance(body, Mapping)
        found[taken.namespace, taken.name] = (
            frozenset(mapping(body.get("data"))) if known else body  # type: ignore[union-attr,assignment]
        )
    return found


def _rights(cluster: Cluster, rights: Iterable[Right]) -> dict[Right, bool | Unknown]:
    """Read the user's rules, then review one by one the rights that they leave open."""
    asked = list(rights)
    found: dict[Right, bool | Unknown] = {}
    for namespace in sorted({right.namespace for right in asked}):
        mine = [right for right in asked if right.namespace == namespace]
        rules, complete = _rules(cluster, namespace or "default")
        found |= {right: allows(rules, right) for right in mine}
        if not complete:
            left = [right for right in mine if not found[right]]
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                found |= dict(zip(left, pool.map(lambda r: _right(cluster, r), left), strict=True))
    return found


def _rules(cluster: Cluster, namespace: str) -> tuple[list[Body], bool]:
    """Return the user's rules. Some authorizers, such as those of clouds, list only a part."""
    review = _review("SelfSubjectRulesReview", {"namespace": namespace})
    try:
        answer = cluster.ask("POST", f"{_REVIEWS}/selfsubjectrulesreviews", review)
    except ClusterError as error:
        why(error, "your rules")
        return [], False
    status = mapping(answer.get("status"))
    return list(sequence(status.get("resourceRules"))), not status.get("incomplete")


def _right(cluster: Cluster, right: Right) -> bool | Unknown:
    review = _review("SelfSubjectAccessReview", {"resourceAttributes": asdict(right)})
    try:
        answer = cluster.ask("POST", f"{_REVIEWS}/selfsubjectaccessreviews", review)
    except ClusterError as error:
        return why(error, "your rights")
    return bool(mapping(answer.get("status")).get("allowed"))


def _review(kind: str, spec: Body) -> Body:
    return {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}
