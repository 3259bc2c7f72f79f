"""The rules about the port that something states for a Service.

They are route-service-port, inference-pool-picker-port and router-backend-port.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import Any

from kthena_components.core.findings import Finding, Level, advise, each_of, part_of_rule, refuse
from kthena_components.core.naming import name_slip_of
from kthena_components.core.objects.cluster_objects import ClusterObjects, Key
from kthena_components.core.objects.object import GroupKind, Object
from kthena_components.core.remedies import either, set_option, write
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    first_unknown,
    mapping,
    require_known,
    sequence,
    whole,
)
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.kubernetes.rules.inference_pools import POOL, pools, route_backends
from kthena_components.systems.kubernetes.selectors_and_routers import (
    PICKER,
    STACK,
    TRTLLM,
    Backend,
    Router,
    routers,
)

INGRESS: GroupKind = ("networking.k8s.io", "Ingress")
_SERVICE: GroupKind = ("", "Service")
_BY_ANNOTATION = "use-annotation"
"""AWS's controller reads the backend from an annotation where the port has this name."""
_LONGEST = 120


@dataclass(slots=True)
class _Services:
    """The Services of one name: several files may each have one."""

    ports: list[Mapping[str, Any]] = field(default_factory=list)
    gap: Unknown | None = None
    """Why not all of their ports are known."""
    any_port: bool = False
    """Whether one is for any port: it is the name of another host, or lists none."""
    headless: bool = False
    address_gap: Unknown | None = None
    """Why it is not known whether they are headless."""

    def add(self, spec: Mapping[str, Any]) -> None:
        """Add a Service."""
        listed, kind, address = (spec.get(key) for key in ("ports", "type", "clusterIP"))
        ports = [*map(mapping, sequence(listed))]
        stated = (each.get(key) for each in ports for key in ("port", "name"))
        self.ports += ports
        self.gap = self.gap or first_unknown(kind, listed, *sequence(listed), *stated)
        self.any_port |= kind == "ExternalName" or listed in (None, [])
        self.headless |= address == "None"
        self.address_gap = self.address_gap or first_unknown(address)

    @property
    def numbers(self) -> list[int]:
        """Their ports."""
        stated = (whole(port.get("port")) for port in self.ports)
        return [*dict.fromkeys(number for number in stated if isinstance(number, int))]

    @property
    def shown(self) -> str:
        """Their ports, for a message."""
        return ", ".join(map(str, self.numbers))

    def lacks(self, number: object, path: str) -> bool:
        """Return whether none has a port."""
        if self.any_port or whole(number) in self.numbers:
            return False
        require_known(path, self.gap)
        return bool(self.numbers)


def _services(cluster: ClusterObjects) -> Mapping[Key, _Services]:
    """Return the Services among the objects by namespace and name."""
    found: dict[Key, _Services] = {}
    for one in cluster.of(_SERVICE):
        if isinstance(one.name, str) and isinstance(one.namespace, str):
            found.setdefault((one.namespace, one.name), _Services()).add(one.spec)
    return found


_Place = tuple[ClusterObjects, Mapping[Key, _Services]]


def _routed(cluster: ClusterObjects) -> Iterator[tuple[_Place, Object, str, Any]]:
    """Return the backends of routes and Ingresses, each with its path, if there are Services."""
    if not (services := _services(cluster)):
        return
    place = (cluster, services)
    for _, route, at, stated in route_backends(cluster):
        yield place, route, at, stated
    for ingress in cluster.of(INGRESS):
        yield place, ingress, "spec.defaultBackend", ingress.spec.get("defaultBackend")
        for i, rule in enumerate(map(mapping, sequence(ingress.spec.get("rules")))):
            for j, path in enumerate(sequence(mapping(rule.get("http")).get("paths"))):
                at = f"spec.rules[{i}].http.paths[{j}].backend"
                yield place, ingress, at, mapping(path).get("backend")


@each_of(_routed)
def route_service_port(place: _Place, route: Object, at: str, stated: Any) -> Iterator[Finding]:
    """The port that a route or an Ingress states for a Service is one of that Service.

    It is the port of the Service, and neither its targetPort nor a port of the engine. A route
    states its number, an Ingress its number or its name. Among all objects of a cluster, a name is
    reported that no Service has, and that differs from a Service's in a letter, not in a digit.

    Pass: backendRefs with name chat and port 80, and a Service chat with port 80.
    Fail: port 8000, and a Service chat with port 80 and targetPort 8000; no port; name chats.
    Level: mandatory; advisory for the targetPort in an Ingress, because ingress-nginx takes it, and
    for a name, because a controller may create the Service.
    Source: kubernetes-sigs/gateway-api v1.5.1 apis/v1/object_reference_types.go
    BackendObjectReference; kubernetes pkg/apis/networking/types.go ServiceBackendPort and
    validation/validation.go validateIngressBackend; kubernetes/ingress-nginx
    internal/ingress/controller/controller.go serviceEndpoints.
    """
    backend, is_ingress = mapping(stated), route.group_kind == INGRESS
    if is_ingress:
        backend, at = mapping(backend.get("service")), f"{at}.service"
    elif backend.get("group") or backend.get("kind") not in (None, "Service"):
        return
    path, name, port = route.at(f"{at}.port"), backend.get("name"), backend.get("port")
    namespace = route.namespace if is_ingress else backend.get("namespace", route.namespace)
    require_known(path, name, namespace, port)
    cluster, services = place
    service = services.get((str(namespace), str(name)))
    if service is None:
        beside = [own for space, own in services if space == str(namespace)]
        meant = name_slip_of(str(name), beside) if cluster.complete and name else None
        if meant is not None:
            seen = f"is {display(name)}, but namespace {display(namespace)} has no such Service"
            yield advise(route.at(f"{at}.name"), seen, write(meant))
    elif is_ingress:
        yield from _ingress_port(service, path, str(name), mapping(port))
    elif service.lacks(port, path):
        yield refuse(path, f"{_describe_value(port)}, {_has(name, service)}", _either(service))


def _describe_value(stated: object) -> str:
    return "is missing" if stated is None else f"is {display(stated)}"


def _has(name: object, service: _Services) -> str:
    return f"but Service {display(name)} has port {service.shown}"


def _either(service: _Services) -> str:
    return either(*map(write, service.numbers))


def _ingress_port(
    service: _Services, path: str, name: str, port: Mapping[str, Any]
) -> Iterator[Finding]:
    """Check the port of an Ingress's backend; only ingress-nginx takes a targetPort there."""
    number, named = port.get("number"), port.get("name")
    require_known(path, number, named)
    names = [each.get("name") for each in service.ports]
    if named == _BY_ANNOTATION or (named and named in names) or not service.lacks(number, path):
        return
    stated = named if number is None else number
    seen = f"has {'name' if number is None else 'number'} {display(stated)}"
    seen = f"{seen if port else 'is missing'}, {_has(name, service)}"
    remedy = either(*(write({"number": n}, f"write {{number: {n}}}") for n in service.numbers))
    targets = [each.get("targetPort") for each in service.ports]
    require_known(path, *targets)
    if stated is not None and str(stated) in map(str, targets):
        found = advise(path, f"{seen}; only ingress-nginx takes a targetPort", remedy)
        yield replace(found, most=Level.ADVISORY)
    else:
        yield refuse(path, seen, remedy)


def _pickers(cluster: ClusterObjects) -> Iterator[tuple[_Place, Object]]:
    """Yield each InferencePool with the cluster and its Services."""
    place = (cluster, _services(cluster))
    yield from ((place, pool) for (pool,) in pools(cluster))


@each_of(_pickers)
def inference_pool_picker_port(place: _Place, pool: Object) -> Iterator[Finding]:
    """The port that an InferencePool states for its picker is one of that Service.

    It is the port of the Service, and neither its targetPort nor a port of the engine. The Service
    is the one of the picker that watches the pool (--pool-name).

    Pass: endpointPickerRef.port.number 9002, and a Service with port 9002.
    Fail: endpointPickerRef.port.number 8000, and a Service that only has port 9002;
    endpointPickerRef.name chat, and the picker of the pool has the Service chat-epp.
    Level: mandatory; a missing Service is advice if these are not all objects of the cluster.
    Source: kubernetes-sigs/gateway-api-inference-extension v1.5.0 api/v1/inferencepool_types.go
    EndpointPickerRef; v1.3.1 apix/v1alpha2/inferencepool_types.go Extension.
    """
    is_new = pool.group_kind == POOL
    field_of = "endpointPickerRef" if is_new else "extensionRef"
    picker = mapping(pool.spec.get(field_of))
    inner = f"spec.{field_of}.port.number" if is_new else f"spec.{field_of}.portNumber"
    stated = mapping(picker.get("port")).get("number") if is_new else picker.get("portNumber")
    if picker.get("kind", "Service") != "Service" or stated is None:
        return
    path, name = pool.at(inner), picker.get("name")
    require_known(path, stated, name, pool.namespace)
    (cluster, services), space = place, str(pool.namespace)
    service = services.get((space, str(name)))
    if service is None:
        if names := _of_picker(cluster, pool.name, space):
            seen = f"is {display(name)}, but the picker that watches this pool has the Service"
            report = refuse if cluster.complete else advise
            at = pool.at(f"spec.{field_of}.name")
            yield report(at, f"{seen} {display(names[0])}", write(names[0]))
    elif service.lacks(stated, path):
        yield refuse(path, f"{_describe_value(stated)}, {_has(name, service)}", _either(service))


def _of_picker(cluster: ClusterObjects, pool: object, space: str) -> list[str]:
    """Return the names of the Services of the picker that watches a pool."""
    mine = [r for r in routers(cluster) if r.program == PICKER and r.value("--pool-name") == pool]
    labels = [router.pods.labels for router in mine if router.owner.namespace == space]
    beside = [one for one in cluster.of(_SERVICE) if one.namespace == space]
    wanted = ((str(one.name), mapping(one.spec.get("selector")).items()) for one in beside)
    return [name for name, keys in wanted if keys and any(keys <= own.items() for own in labels)]


def router_backend_port(cluster: ClusterObjects) -> Iterator[Finding]:
    """The address of a router's backend names a port that its Service has.

    A Service with a cluster IP forwards its own ports only, whatever the engine listens on. Behind
    --prefill URL is the bootstrap port of SGLang's prefill engines.

    Pass: --static-backends http://chat:80, and a Service chat with port 80.
    Fail: --static-backends http://chat:8000, and a Service chat with port 80 and targetPort 8000.
    Level: mandatory.
    Source: Kubernetes documentation, Service, and Virtual IPs and Service Proxies;
    vllm-project/production-stack src/vllm_router/parsers/parser.py; sgl-project/sglang
    sgl-router/py_src/sglang_router/router_args.py.
    """
    services = _services(cluster)
    for router in routers(cluster):
        for backend in router.backends():
            service = services.get(_service_of(router, backend.host))
            if service is not None:
                yield from _backend(router, backend, service)


def _service_of(router: Router, host: str) -> tuple[str, str]:
    """Return namespace and name of the Service that a host name may mean."""
    name, *rest = host.split(".")
    namespace = rest[0] if rest and rest[1:2] in ([], ["svc"]) else ""
    return namespace or ("" if rest else str(router.owner.namespace)), name


@part_of_rule
def _backend(router: Router, backend: Backend, service: _Services) -> Iterator[Finding]:
    """Check that a router's address has a port which the Service has; headless ones have all."""
    if service.headless:
        return
    require_known(router.path, service.address_gap)
    if service.lacks(backend.port, router.path):
        name = backend.host.partition(".")[0]
        seen = f"has {backend.option} {display(backend.url, _LONGEST)}, {_has(name, service)}"
        address = f"http://{backend.host}:{service.numbers[0]}"
        yield refuse(router.path, seen, _instead(router, backend, address))


def _instead(router: Router, backend: Backend, address: str) -> str:
    """Return what to write in place of an address, in an option of one word as a change."""
    if router.program != STACK:
        shown = address.removeprefix("http://") if router.program == TRTLLM else address
        return f"write {shown} there"
    stated = (router.value(backend.option) or "").split(",")
    kept = [address if url.strip() == backend.url else url for url in stated]
    return set_option(backend.option, ",".join(kept), f"write {address} there")
