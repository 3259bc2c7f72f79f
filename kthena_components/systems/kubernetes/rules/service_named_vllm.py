"""Checks that no Service stops an engine by the variables that it adds to the pods."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.findings import Finding, not_checked
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import Object, PodSet
from kthena_components.core.values.display import display
from kthena_components.core.values.images import read_image
from kthena_components.core.values.quantity import is_accelerator
from kthena_components.core.values.read import first_unknown, mapping, sequence
from kthena_components.core.values.unknown import Unknown

_SERVICE, _NAME, _VARIABLE = ("", "Service"), "vllm", "VLLM_PORT"
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
