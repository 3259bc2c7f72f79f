"""The rules about Services: whether they select pods, and whether their names stop an engine."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

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


_NAME, _VARIABLE = "vllm", "VLLM_PORT"
_SERVERS = frozenset({"DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"})
"""Kinds whose pods serve. A Job in the same image may only send requests."""


def service_named_vllm(cluster: ClusterObjects) -> Iterator[Finding]:
    """No Service is named vllm in the namespace of pods that run vLLM and get its variables.

    Kubernetes sets variables for each Service that exists when a container starts. One that is
    named vllm sets VLLM_PORT=tcp://10.0.0.1:80, where vLLM reads the number of a port, and stops.
    Pods that start before the Service do not get it, so it is the next restart that fails. A
    Service without a cluster IP sets no variables, and a variable of the container replaces this
    one. Checked are servers with GPUs in vLLM's own image.

    Pass: a Service chat; a Service vllm, and enableServiceLinks: false in the pods.
    Fail: a Service vllm with port 80, and a Deployment of vllm/vllm-openai:v0.33.0 with 1 GPU.
    Level: mandatory.
    Source: vllm/envs.py VLLM_PORT (get_vllm_port), 0.6.0 to 0.33.0, which get_open_port reads;
        Kubernetes v1.34 pkg/kubelet/kubelet_pods.go getServiceEnvVarMap.
    """
    services = [entry for entry in cluster.of(_SERVICE) if entry.name == _NAME]
    for service in services:
        kind, address = service.spec.get("type"), service.spec.get("clusterIP")
        if kind == "ExternalName" or address == "None":
            continue
        late = first_unknown(kind, address, service.namespace)
        found = [] if late else list(_broken(cluster, service))
        gaps = [gap for _, gap in found if gap is not None]
        owners = dict.fromkeys(_title(pods) for pods, gap in found if gap is None)
        if late or (gaps and not owners):
            yield not_checked(service.at("metadata.name"), late or gaps[0])
        elif owners:
            yield _finding(service, list(owners))


def _broken(cluster: ClusterObjects, service: Object) -> Iterator[tuple[PodSet, Unknown | None]]:
    """Find pods of vLLM that get the variable, or may get it and why that is not known."""
    for pods in cluster.pods:
        if pods.owner.namespace != service.namespace or pods.owner.kind not in _SERVERS:
            continue
        links = pods.spec.get("enableServiceLinks")
        if links is False:
            continue
        for container in map(mapping, sequence(pods.spec.get("containers"))):
            if _runs_vllm(container) and not _states_port(container):
                env, sources = container.get("env"), container.get("envFrom")
                late = first_unknown(links, env, *sequence(env), *_names(env))
                elsewhere = Unknown(f"{_title(pods)} takes variables from other objects")
                yield pods, late or (elsewhere if sources else None)
                break


def _runs_vllm(container: Mapping[str, Any]) -> bool:
    image = container.get("image")
    limits = mapping(mapping(container.get("resources")).get("limits"))
    has_gpus = any(is_accelerator(str(name)) for name in limits)
    return has_gpus and isinstance(image, str) and read_image(image).is_own("vllm")


def _states_port(container: Mapping[str, Any]) -> bool:
    return _VARIABLE in _names(container.get("env"))


def _names(env: object) -> list[object]:
    return [mapping(item).get("name") for item in sequence(env)]


def _title(pods: PodSet) -> str:
    return f"{pods.owner.kind} {display(pods.owner.name)}"


def _finding(service: Object, owners: list[str]) -> Finding:
    more = f" and {len(owners) - 1} more" if len(owners) > 1 else ""
    return Finding(
        path=service.at("metadata.name"),
        seen=f"is 'vllm', so Kubernetes sets {_VARIABLE}=tcp://… in the pods of {owners[0]}{more}, "
        "and vLLM stops, because it reads the number of a port there",
        remedy="rename the Service, or write enableServiceLinks: false in the pods",
    )
