"""The rules headless-service and service-selects-pods: a Service and its pods."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from kthena_components.core.findings import Finding, Level, advise, not_checked
from kthena_components.core.objects.cluster_objects import ClusterObjects, PodIndex, names_serving
from kthena_components.core.objects.object import Object, PodSet
from kthena_components.core.values.display import display
from kthena_components.core.values.images import read_image
from kthena_components.core.values.quantity import is_accelerator
from kthena_components.core.values.read import (
    first_unknown,
    mapping,
    pairs,
    sequence,
    text,
    unknown_in,
    unknown_inside,
)
from kthena_components.core.values.unknown import Unknown

_SERVICE, _STATEFUL_SET = ("", "Service"), ("apps", "StatefulSet")


def headless_service(cluster: ClusterObjects) -> Iterator[Finding]:
    """The Service that an engine's StatefulSet names exists, and is headless.

    It gives each pod a DNS name, which the pods of an engine use to connect. CoreDNS also answers
    for the pods of a Service with a cluster IP, other DNS servers need not. Checked are pods with
    accelerators or an engine's own image.

    Pass: serviceName chat and a Service chat with clusterIP None; a database.
    Fail: serviceName chat and no Service chat, or one with a cluster IP.
    Level: advisory. A missing one is reported only if these are all objects of the cluster. A
    cluster IP is advice in every environment.
    Source: Kubernetes documentation, StatefulSet Basics and Headless Services; Kubernetes DNS-Based
    Service Discovery 1.1.0, 2.4; coredns plugin/kubernetes findServices.
    """
    services, gap = cluster.named(_SERVICE), cluster.name_unknown(_SERVICE)
    owners = {id(pods.owner) for pods in cluster.pods if has_engine(pods)}
    for entry in cluster.of(_STATEFUL_SET):
        if id(entry) not in owners:
            continue
        name, namespace = text(entry.spec.get("serviceName")), entry.namespace
        path = entry.at("spec.serviceName")
        if name in {None, ""} or namespace is None:
            continue
        service = services.get((str(namespace), str(name)))
        address = service.spec.get("clusterIP") if service else None
        if late := first_unknown(name, namespace, address) or (gap if service is None else None):
            yield not_checked(path, late)
        elif service is None and not cluster.complete:
            continue  # it may be in the cluster
        elif service is None:
            seen = f"is {display(name)}, but there is no Service of that name in namespace "
            seen += f"{display(namespace)}, and only that gives the pods their names in DNS"
            yield advise(path, seen, "add the headless Service")
        elif address is None or address == "":
            seen = f"is {display(name)}, a Service with a cluster IP, with which not every DNS "
            found = advise(path, f"{seen}server names the pods", "write clusterIP: None there")
            yield replace(found, most=Level.ADVISORY)


def has_engine(pods: PodSet) -> bool:
    """Return whether pods ask for accelerators, or have an engine's own image."""
    for container in map(mapping, sequence(pods.spec.get("containers"))):
        image, resources = container.get("image"), mapping(container.get("resources"))
        asked = (*mapping(resources.get("limits")), *mapping(resources.get("requests")))
        if any(is_accelerator(str(name)) for name in asked):
            return True
        if isinstance(image, str) and read_image(image).engine is not None:
            return True
    return False


def service_selects_pods(cluster: ClusterObjects) -> Iterator[Finding]:
    """The selector of a Service matches pods.

    Labels that a controller adds to its pods count as matching. Nothing is reported if an object of
    an unknown kind may create pods.

    Pass: selector app chat, and a Deployment whose pods have the label app chat.
    Fail: selector app chat, and only pods with the label app llama.
    Level: advisory. It applies only if these are all objects of the cluster.
    Source: Kubernetes documentation, Service, Services without selectors.
    """
    makers = (may_make_pods(entry, cluster) for entry in cluster.objects)
    if not cluster.complete or cluster.demands or any(makers):
        return
    carried: dict[object, PodIndex] = {}
    for pods in cluster.pods:
        carried.setdefault(pods.owner.namespace, PodIndex()).add(pods)
    matched: dict[object, bool | Unknown] = {}
    hidden = cluster.hidden_pods
    for entry in cluster.of(_SERVICE):
        selector, path = entry.spec.get("selector"), entry.at("spec.selector")
        if gap := unknown_in(entry.namespace) or unknown_in(selector) or unknown_inside(selector):
            yield not_checked(path, gap)
            continue
        wanted = {str(k): v for k, v in pairs(selector) if isinstance(v, str)}
        if not wanted or entry.spec.get("type") == "ExternalName":
            continue
        if names_serving(cluster, entry, wanted):
            continue  # selector-of-serving checks it
        key = (entry.namespace, *sorted(wanted.items()))
        if key not in matched:
            matched[key] = carried.get(entry.namespace, PodIndex()).matches(wanted)
        found = matched[key] or hidden or False
        if isinstance(found, Unknown):
            yield not_checked(path, found)
        elif not found:
            yield _selects_nothing(entry, wanted)


def _selects_nothing(service: Object, wanted: Mapping[str, str]) -> Finding:
    shown = ", ".join(f"{name}={display(value)}" for name, value in list(wanted.items())[:5])
    return advise(
        service.at("spec.selector"),
        f"is {shown}, but no pod in namespace {display(service.namespace)} has these labels",
        "write the labels of the pods",
    )


def may_make_pods(entry: Object, cluster: ClusterObjects) -> bool:
    """Return whether an object belongs to an unknown system."""
    own = "." not in entry.group or entry.group.endswith((".k8s.io", ".volcano.sh"))
    return not own and (entry.group, entry.kind) not in cluster.templated
