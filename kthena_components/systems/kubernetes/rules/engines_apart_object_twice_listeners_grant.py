"""Rules of objects that meet: pods of several engines, equal names, Gateways."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.facts.listening import Listening
from kthena_components.core.findings import Finding, advise, count_of, each_of, part_of_rule, refuse
from kthena_components.core.naming import name_slip_of
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import GroupKind, Object, PodSet
from kthena_components.core.remedies import write
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    first_unknown,
    mapping,
    require_known,
    sequence,
    unknown_in,
    unknown_within,
)
from kthena_components.core.values.regex import regex
from kthena_components.systems.kubernetes.rules.inference_pools import made_grants, route_backends
from kthena_components.systems.kubernetes.rules.secret_keys_and_references import (
    SECRET,
    is_copied,
    names_by_space,
)
from kthena_components.systems.kubernetes.selectors_and_routers import owner_title

_PARTS = frozenset({"", "apps", "batch"})
"""API groups whose objects may be parts of one engine, which leader-selected compares."""
_NAME = regex(r"[A-Za-z0-9][-A-Za-z0-9]*(?:\.[A-Za-z0-9][-A-Za-z0-9]*)*")

_First = tuple[PodSet, Listening]
_Place = tuple[object, ...]


def engines_apart(cluster: ClusterObjects) -> Iterator[Finding]:
    """The engines of two objects that have all of their pods do not meet at one address and port.

    Each of them starts a first rank, which listens there, and the address leads to one pod: the
    pods of the other engine join the wrong one, or wait. A name with at most one dot, such as
    chat-0.chat, is looked up in the namespace of the pods first, so it is compared within that.
    Objects of Kubernetes' own kinds may be parts of one engine: leader-selected compares them.

    Pass: --dist-init-addr $(ENTRY_ADDRESS):5000 in both; meet-a:5000 and meet-b:5000.
    Fail: two ModelServings whose engines have --dist-init-addr meet:5000; two LeaderWorkerSets with
    --master-addr 10.0.0.7 and the same --master-port.
    Level: mandatory; advisory for objects in different files, which may be alternatives.
    Source: pytorch torch/csrc/distributed/c10d/TCPStore.cpp (the first rank listens, the others
    connect); sglang/srt/server_args.py (dist_init_addr); vllm/config/parallel.py (master_addr,
    master_port); kubernetes v1.34 pkg/kubelet/network/dns/dns.go
    (generateSearchesForDNSClusterFirst: the pod's namespace is searched first).
    """
    seen: dict[_Place, _First] = {}
    for pods in cluster.pods:
        ports = cluster.listening(pods)
        is_there = isinstance(pods.count, int) and pods.count > 0
        place = _place(pods, ports) if is_there and ports is not None else None
        if place is None or ports is None:
            continue
        other, _ = seen.setdefault(place, (pods, ports))
        if other.owner is pods.owner or {other.owner.group, pods.owner.group} <= _PARTS:
            continue
        together = cluster.source_of(other.owner) == cluster.source_of(pods.owner)
        yield _finding(pods, other, ports, together=together)


def _place(pods: PodSet, ports: Listening) -> _Place | None:
    """Return where the first pods of an engine meet the others; None if that is not known."""
    if ports.meets is None or ports.answers is None:
        return None
    host, port = ports.meets
    if not _NAME.fullmatch(host) or not isinstance(pods.owner.namespace, str):
        return None
    is_short = host.count(".") <= 1
    return host.lower(), pods.owner.namespace if is_short else "", port


def _finding(pods: PodSet, other: PodSet, ports: Listening, *, together: bool) -> Finding:
    host, port = ports.meets or ("", 0)
    seen = f"starts engines that meet at {display(host)}, port {port}, and so does "
    seen += f"{owner_title(other)}, but that address leads to one pod only"
    remedy = "write the address of its own first pod in each of the two"
    return (refuse if together else advise)(pods.at("spec"), seen, remedy)


def object_twice(cluster: ClusterObjects) -> Iterator[Finding]:
    """No two objects of a cluster have the same API group, kind, namespace and name.

    Pass: a StatefulSet and a Service that are both named chat.
    Fail: two Services named chat in one namespace: the second overwrites the first.
    Level: mandatory.
    Source: Kubernetes documentation, Object Names and IDs.
    """
    first: dict[tuple[str, str, str, str], Object] = {}
    for entry in cluster.objects:
        name, namespace = entry.name, entry.namespace
        if not (isinstance(name, str) and isinstance(namespace, str) and name and entry.kind):
            continue
        if not isinstance(entry.version, str) or first_unknown(entry.version, entry.kind):
            continue
        other = first.setdefault((*entry.group_kind, namespace, name), entry)
        if other is not entry:
            where = f" in namespace {display(namespace)}" if namespace else ""
            before = other.path or f"object {other.index + 1}"
            yield Finding(
                path=entry.at("metadata.name"),
                seen=f"is {display(name)}, which is also the {entry.kind}{where} of "
                f"{before}, and the "
                "second would overwrite the first",
                remedy="rename or remove one of the two",
            )


# The certificates of a Gateway's listeners.


GATEWAY: GroupKind = ("gateway.networking.k8s.io", "Gateway")
_TLS = "kubernetes.io/tls"
_KEYS = ("tls.crt", "tls.key")
_PLAIN, _ENDING, _TERMINATE = ("HTTP", "TCP", "UDP"), ("HTTPS", "TLS"), "Terminate"
_ELSEWHERE = frozenset({"networking.gke.io/certmap"})
"""Annotations of a Gateway by which its listeners have certificates."""
_Listener = tuple[str, Mapping[str, Any]]


def _listeners(found: Object) -> Iterator[_Listener]:
    """Yield the listeners of a Gateway, each with its path in the object."""
    for index, item in enumerate(sequence(found.spec.get("listeners"))):
        yield f"spec.listeners[{index}]", mapping(item)


def listener_tls(found: Object) -> Iterator[Finding]:
    """A Gateway listener that terminates TLS states its certificates; one of HTTP has no tls.

    The mode is Terminate if it is left out, and since v1.1.0 HTTPS allows no other mode. Since then
    options may take the place of certificateRefs, as for certificates that a cloud manages. GKE
    also takes certificates from the annotation networking.gke.io/certmap.

    Pass: port 443, protocol HTTPS and tls.certificateRefs; port 80 and HTTP without tls.
    Fail: port 443, HTTPS and tls: {mode: Terminate} alone, or mode Passthrough; port 80, HTTP and
    tls; the same with TCP or UDP.
    Level: mandatory, because the API server rejects it; advisory for HTTPS and TLS without tls.
    Source: kubernetes-sigs/gateway-api v0.8.0 to v1.6.1 apis/v1/gateway_types.go (XValidation).
    """
    for path, listener in _listeners(found):
        yield from _tls_of(f"{path}.tls", listener, found.metadata.get("annotations"))


@part_of_rule
def _tls_of(path: str, listener: Mapping[str, Any], annotations: object) -> Iterator[Finding]:
    """Check the fields of tls against the protocol of a listener."""
    protocol, stated = listener.get("protocol"), listener.get("tls")
    tls = mapping(stated)
    mode = tls.get("mode") or _TERMINATE
    listed, options = tls.get("certificateRefs"), tls.get("options")
    require_known(path, protocol, stated, mode, listed, options)
    if protocol in _PLAIN and stated is not None:
        seen = f"is stated, but the protocol is {protocol}, and the API server rejects tls with it"
        secure = protocol == "HTTP" and mode == _TERMINATE and (listed or options)
        yield refuse(path, seen, f"remove it{', or write protocol: HTTPS' if secure else ''}")
    elif protocol == "HTTPS" and mode != _TERMINATE:
        seen = f"is {display(mode)}, and the API server takes only Terminate for HTTPS"
        remedy = "write Terminate and certificateRefs, or protocol: TLS"
        if listed or options:
            remedy = write(_TERMINATE, "write Terminate").then(", or protocol: TLS")
        yield refuse(f"{path}.mode", seen, remedy)
    elif stated is not None and mode == _TERMINATE and not listed and not options:
        seen = "is missing, but the listener terminates TLS (mode Terminate), and the API server "
        remedy = "write the name of the Secret with the certificate"
        yield refuse(f"{path}.certificateRefs", f"{seen}then requires it, or options", remedy)
    elif protocol in _ENDING and stated is None and not _ELSEWHERE & mapping(annotations).keys():
        require_known(path, annotations)
        seen = f"is missing, so this listener of protocol {protocol} has no certificate"
        yield advise(path, seen, "write tls.certificateRefs with the name of a Secret that has it")


def _certificates(cluster: ClusterObjects) -> Iterator[tuple[ClusterObjects, Object, str, Any]]:
    """Yield what each listener names as its certificate, with its path in the Gateway."""
    for gateway in cluster.of(GATEWAY):
        for path, listener in _listeners(gateway):
            tls = mapping(listener.get("tls"))
            if tls.get("mode") in (None, "", _TERMINATE):
                for index, item in enumerate(sequence(tls.get("certificateRefs"))):
                    yield cluster, gateway, f"{path}.tls.certificateRefs[{index}]", item


@each_of(_certificates)
def listener_certificate(
    cluster: ClusterObjects, gateway: Object, at: str, stated: Any
) -> Iterator[Finding]:
    """The Secret that a Gateway's listener names has a certificate, and the Gateway may read it.

    The Secret is of type kubernetes.io/tls, with tls.crt and tls.key. If it is in another
    namespace, a ReferenceGrant there must allow the Gateways of this namespace to name it. The rule
    compares the Secrets among these objects, and names that differ from one of them in a letter. It
    does not compare other kinds, nor the keys of a Secret that a controller such as cert-manager
    writes.

    Pass: certificateRefs chat-tls, and a Secret chat-tls of type kubernetes.io/tls.
    Fail: a Secret of type Opaque; one without tls.key; one in another namespace without a
    ReferenceGrant; chat-tsl beside a Secret chat-tls.
    Level: mandatory for a Secret of type kubernetes.io/tls without a key, which the API server
    rejects; else advisory.
    Source: kubernetes-sigs/gateway-api v1.5.1 apis/v1/gateway_types.go (CertificateRefs) and
    referencegrant_types.go; kubernetes pkg/apis/core/validation/validation.go ValidateSecret.
    """
    ref, path = mapping(stated), gateway.at(f"{at}.name")
    group, kind, name = ref.get("group") or "", ref.get("kind") or "Secret", ref.get("name")
    space = gateway.namespace if ref.get("namespace") is None else ref.get("namespace")
    require_known(path, stated, group, kind, name, space)
    if (group, kind) != SECRET or not isinstance(name, str) or not isinstance(space, str):
        return
    names = cluster.once(names_by_space)[0].get((SECRET, space), {})
    secret = cluster.named(SECRET).get((space, name))
    if name not in names and secret is None:
        meant = name_slip_of(name, names)
        if meant is not None:
            seen = f"is {display(name)}, but no Secret here in namespace {display(space)} has this "
            seen += "name"
            yield advise(path, seen, write(meant))
        return
    yield from _granted(cluster, gateway, path, (space, name))
    if secret is not None and not is_copied(secret):
        yield from _has_certificate(secret, path, name)


def _granted(
    cluster: ClusterObjects, gateway: Object, path: str, target: tuple[str, str]
) -> Iterator[Finding]:
    """Report a Secret of another namespace that no ReferenceGrant there lets the Gateway name."""
    space, name = target
    require_known(path, gateway.namespace)
    if space == gateway.namespace:
        return
    to = {"group": SECRET[0], "kind": SECRET[1], "name": name}
    if lacking := _without_grant(cluster, gateway, path, space, to):
        seen = f"is a Secret of namespace {display(space)}, where {lacking} to name it, so the "
        remedy = f"add a ReferenceGrant to namespace {space}, from Gateways of namespace "
        remedy += f"{gateway.namespace} to Secrets"
        yield advise(path, f"{seen}listener gets no certificate", remedy)


def _has_certificate(secret: Object, path: str, name: str) -> Iterator[Finding]:
    """Check the type and the keys of a Secret with a certificate."""
    kind = secret.body.get("type")
    lists = [secret.body.get(field) for field in ("data", "stringData")]
    require_known(path, kind, *lists, secret.metadata.get("annotations"))
    keys = {key for held in lists for key in mapping(held)}
    lacking = [key for key in _KEYS if key not in keys]
    if kind != _TLS:
        seen = f"is {display(name)}, a Secret of type {display(kind or 'Opaque')}, but a listener "
        keys_too = f", with the keys {' and '.join(lacking)}" if lacking else ""
        remedy = f"write type: {_TLS} in the Secret{keys_too}"
        yield advise(path, f"{seen}takes a Secret of type {_TLS}", remedy)
    elif lacking:
        seen = f"is {display(name)}, a Secret of type {_TLS} without the key {lacking[0]}, and the "
        remedy = f"add {' and '.join(lacking)} to the Secret"
        yield refuse(path, f"{seen}API server rejects such a Secret", remedy)


# References to other namespaces.


GRANT: GroupKind = ("gateway.networking.k8s.io", "ReferenceGrant")


@each_of(route_backends)
def route_reference_grant(
    cluster: ClusterObjects, route: Object, at: str, stated: Any
) -> Iterator[Finding]:
    """A ReferenceGrant allows a route to name a backend of another namespace.

    It is in the namespace of the backend, and names the route's kind and namespace, and the
    backend's kind. Otherwise the gateway answers HTTP requests for it with status 500, and gRPC
    requests with UNAVAILABLE. AIBrix makes one for HTTPRoutes of aibrix-system in a namespace of
    its models. Backends that are elsewhere are not compared.

    Pass: a route in web, a Service in chat, and in chat a ReferenceGrant from HTTPRoutes of web to
    Services.
    Fail: the same without a ReferenceGrant, or with one in web, or one from Gateways.
    Level: advisory, because another one may be in the cluster.
    Source: kubernetes-sigs/gateway-api v1.5.1 apis/v1/httproute_types.go,
    grpcroute_types.go and referencegrant_types.go.
    """
    backend, path = mapping(stated), route.at(f"{at}.namespace")
    group, kind = backend.get("group") or "", backend.get("kind") or "Service"
    space, name = backend.get("namespace"), backend.get("name")
    require_known(path, group, kind, space, name, route.namespace)
    if space in (None, route.namespace):
        return
    if (str(space), str(name)) not in cluster.named((str(group), str(kind))):
        return
    if kind == "Service" and (route.namespace, space) in cluster.once(made_grants):
        return
    to = {"group": group, "kind": kind, "name": name}
    if lacking := _without_grant(cluster, route, path, space, to):
        seen = f"is {display(space)}, where {lacking} to name this {kind}"
        yield advise(
            path, f"{seen}, so the gateway refuses requests for it", f"add one to namespace {space}"
        )


def _without_grant(
    cluster: ClusterObjects, owner: Object, path: str, space: object, to: Mapping[str, object]
) -> str:
    """Say that no ReferenceGrant of a namespace lets an object name another one there, `to`."""
    needed = {"group": owner.group, "kind": owner.kind, "namespace": owner.namespace}
    grants = [
        one for one in cluster.of(GRANT) if unknown_in(one.namespace) or one.namespace == space
    ]
    for grant in grants:
        require_known(path, grant.namespace, unknown_within(grant.spec))
        if _allows(grant.spec, needed, to):
            return ""
    none = f"none of its {count_of(len(grants), 'ReferenceGrant')} here"
    what = none if grants else "no ReferenceGrant here"
    return f"{what} allows {owner.kind}s of namespace {display(owner.namespace)}"


def _allows(
    spec: Mapping[str, Any], needed: Mapping[str, object], to: Mapping[str, object]
) -> bool:
    """Return whether a ReferenceGrant allows a kind of objects to name one of another."""
    sources, targets = (map(mapping, sequence(spec.get(key))) for key in ("from", "to"))
    return any(needed.items() <= each.items() for each in sources) and any(
        each.get("group", "") == to["group"]
        and each.get("kind") == to["kind"]
        and each.get("name") in (None, "", to["name"])
        for each in targets
    )
