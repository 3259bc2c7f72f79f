"""The rules about what refers to an InferencePool, and to what it refers.

They are route-to-inference-pool, picker-of-inference-pool and inference-pool-picker-port.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.findings import Finding, advise, each_of, part_of_rule, refuse
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import GroupKind, Object
from kthena_components.core.remedies import either, set_option, write
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    first_unknown,
    mapping,
    require_known,
    sequence,
    text,
    whole,
)
from kthena_components.core.values.unknown import known
from kthena_components.systems.kubernetes.routers import PICKER, Router, routers
from kthena_components.systems.kubernetes.rules.inference_pool_fields import OLD_POOL, POOL, pools

ROUTES: tuple[GroupKind, ...] = (
    ("gateway.networking.k8s.io", "HTTPRoute"),
    ("gateway.networking.k8s.io", "GRPCRoute"),
)
_SERVICE: GroupKind = ("", "Service")
_GROUPS: Mapping[str, GroupKind] = {kind[0]: kind for kind in (POOL, OLD_POOL)}


def _others(group: object) -> GroupKind | None:
    """Return the pools of the other group; None if it is neither of the two."""
    return {POOL[0]: OLD_POOL, OLD_POOL[0]: POOL}.get(str(group))


def _only_elsewhere(cluster: ClusterObjects, group: object, key: tuple[object, object]) -> str:
    """Return the other group if only it has the pool; empty if this one has it, or none has."""
    other = _others(group)
    names = (str(key[0]), str(key[1]))
    if other is None or names in cluster.named(_GROUPS[str(group)]):
        return ""
    return other[0] if names in cluster.named(other) else ""


def _references(cluster: ClusterObjects) -> Iterator[tuple[ClusterObjects, Object, str, Any]]:
    """Return the backends of all routes, each with its path in the route."""
    for kind in ROUTES:
        for route in cluster.of(kind):
            for i, rule in enumerate(map(mapping, sequence(route.spec.get("rules")))):
                for j, backend in enumerate(sequence(rule.get("backendRefs"))):
                    yield cluster, route, f"spec.rules[{i}].backendRefs[{j}]", backend
                for j, one in enumerate(map(mapping, sequence(rule.get("filters")))):
                    mirror, at = mapping(one.get("requestMirror")), f"spec.rules[{i}].filters[{j}]"
                    yield cluster, route, f"{at}.requestMirror.backendRef", mirror.get("backendRef")


@each_of(_references)
def route_to_inference_pool(
    cluster: ClusterObjects, route: Object, at: str, stated: Any
) -> Iterator[Finding]:
    """A route names an InferencePool with its API group.

    Without a group, a gateway looks for a kind of Kubernetes' core, which has no InferencePool.

    Pass: group inference.networking.k8s.io, and an InferencePool of that group.
    Fail: no group; group inference.networking.x-k8s.io, and only a pool of the other group.
    Level: mandatory. A pool of another group is advice if these are not all objects of the cluster.
    Source: kubernetes-sigs/gateway-api v1.5.1 apis/v1/object_reference_types.go
    BackendObjectReference; kubernetes-sigs/gateway-api-inference-extension v1.5.0 api/v1.
    """
    backend, path = mapping(stated), route.at(f"{at}.group")
    if backend.get("kind") != POOL[1]:
        return
    group = known(text(backend.get("group"), ""), path)
    name, namespace = backend.get("name"), backend.get("namespace", route.namespace)
    key = (str(namespace), str(name))
    if group == "":
        has_old = key in cluster.named(OLD_POOL) and key not in cluster.named(POOL)
        right = (OLD_POOL if has_old else POOL)[0]
        seen = "is missing, so the gateway looks for an InferencePool in Kubernetes' core, which "
        yield refuse(path, f"{seen}has none", write(right, f"write group: {right}"))
        return
    require_known(path, name, namespace)
    if other := _only_elsewhere(cluster, group, (namespace, name)):
        report = refuse if cluster.complete else advise
        seen = f"is {display(group)}, but the InferencePool {display(name)} is in {other}"
        yield report(path, seen, write(other, f"write group: {other}"))


def _pools(cluster: ClusterObjects) -> Iterator[tuple[ClusterObjects, Object]]:
    yield from ((cluster, pool) for (pool,) in pools(cluster))


@each_of(_pools)
def inference_pool_picker_port(cluster: ClusterObjects, pool: Object) -> Iterator[Finding]:
    """The port that an InferencePool states for its picker is one of that Service.

    It is the port of the Service, and neither its targetPort nor a port of the engine.

    Pass: endpointPickerRef.port.number 9002, and a Service with port 9002.
    Fail: endpointPickerRef.port.number 8000, and a Service that only has port 9002.
    Level: mandatory.
    Source: kubernetes-sigs/gateway-api-inference-extension v1.5.0 api/v1/inferencepool_types.go
    EndpointPickerRef; v1.3.1 apix/v1alpha2/inferencepool_types.go Extension.
    """
    is_new = pool.group_kind == POOL
    field = "endpointPickerRef" if is_new else "extensionRef"
    picker = mapping(pool.spec.get(field))
    inner = f"spec.{field}.port.number" if is_new else f"spec.{field}.portNumber"
    stated = mapping(picker.get("port")).get("number") if is_new else picker.get("portNumber")
    if picker.get("kind", "Service") != "Service" or stated is None:
        return
    path = pool.at(inner)
    require_known(path, stated, picker.get("name"), pool.namespace)
    key = (str(pool.namespace), str(picker.get("name")))
    service = cluster.named(_SERVICE).get(key)
    ports = sequence(service.spec.get("ports")) if service is not None else ()
    numbers = [known(whole(mapping(port).get("port")), path) for port in ports]
    if ports and whole(stated) not in numbers:
        listed = ", ".join(map(str, numbers))
        seen = f"is {display(stated)}, but Service {display(key[1])} has port {listed}"
        yield refuse(path, seen, either(*(write(number) for number in numbers if number)))


def picker_of_inference_pool(cluster: ClusterObjects) -> Iterator[Finding]:
    """The endpoint picker watches the API group in which its InferencePool is.

    It watches the pool with its --pool-name, --pool-namespace and --pool-group.

    Pass: --pool-group=inference.networking.k8s.io, and a pool of that group.
    Fail: --pool-group=inference.networking.x-k8s.io, and only a pool of the other group.
    Level: mandatory; advice if these are not all objects of the cluster.
    Source: kubernetes-sigs/gateway-api-inference-extension v1.5.0 pkg/epp/server/options.go,
    cmd/epp/runner/runner.go extractGKNN.
    """
    for router in routers(cluster):
        if router.program == PICKER:
            yield from _watched(cluster, router.owner.namespace, router)


@part_of_rule
def _watched(cluster: ClusterObjects, namespace: object, router: Router) -> Iterator[Finding]:
    group, name = router.value("--pool-group"), router.value("--pool-name")
    where = router.value("--pool-namespace")
    if group is None or name is None or first_unknown(group, name, where, namespace):
        return
    # Without the option, a variable of the container decides.
    other = _only_elsewhere(cluster, group, (where or namespace, name))
    if other and where is not None:
        report = refuse if cluster.complete else advise
        seen = f"has --pool-group {group}, but the InferencePool {display(name)} is in {other}"
        yield report(router.path, seen, set_option("--pool-group", other))
