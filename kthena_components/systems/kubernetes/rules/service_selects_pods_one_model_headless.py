"""Checks Services and routers: their pods, the models of these, and names that stop an engine."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from kthena_components.core.facts.listening import Listening
from kthena_components.core.facts.network import OWN_PORT, OWN_PORT_SINCE
from kthena_components.core.facts.ports import resolved
from kthena_components.core.findings import Finding, Level, advise, not_checked, refuse
from kthena_components.core.objects.cluster_objects import (
    ClusterObjects,
    PodIndex,
    names_serving,
    running_pods,
)
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
from kthena_components.systems.kubernetes.rules.first_pod import other_pods_selected
from kthena_components.systems.kubernetes.selectors_and_routers import (
    POOLS,
    Selector,
    has_engine,
    owner_title,
    selectors,
)

# The rules about Services: their pods, the models of these, and names that stop an engine.


_SERVICE, _STATEFUL_SET = ("", "Service"), ("apps", "StatefulSet")
_MONITOR = ("monitoring.coreos.com", "ServiceMonitor")


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
            seen += "server has names for the pods"
            found = advise(path, seen, "write clusterIP: None there")
            yield replace(found, most=Level.ADVISORY)


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
    reported = {finding.path for finding in cluster.once(other_pods_selected)}
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
        elif not found and path not in reported:
            yield _selects_nothing(entry, wanted)


def _selects_nothing(service: Object, wanted: Mapping[str, str]) -> Finding:
    shown = ", ".join(f"{name}={display(value)}" for name, value in list(wanted.items())[:5])
    return advise(
        service.at("spec.selector"),
        f"is {shown}, but no pod in namespace {display(service.namespace)} has these labels",
        "write the labels of the pods",
    )


def service_one_model(cluster: ClusterObjects) -> Iterator[Finding]:
    """A Service that sends requests to engines does so to engines of one model.

    It sends each request to any of its pods, whatever model the request names. vLLM answers 404 for
    a name that is not its own; SGLang answers with the model that it has. The names of
    --served-model-name are compared, or else the names of the models. Engines with a common name
    are for the same requests, as an old and a new model of a gradual change are. Some are not
    compared: headless Services, Services of a ServiceMonitor or with ports for metrics, engines
    with LoRA adapters, pods in which something else may listen, and objects of several files that
    may be alternatives.

    Pass: selector app chat, and two Deployments of it with --served-model-name chat.
    Fail: selector app chat, and two Deployments of it, with vllm serve Qwen/Qwen3-8B and
        vllm serve Qwen/Qwen3-14B.
    Level: advisory in every environment.
    Source: Kubernetes documentation, Service; vLLM vllm/entrypoints/openai/serving_engine.py
        (_check_model) and api_server.py; SGLang sglang/srt/entrypoints/openai/serving_base.py.
    """
    asking = [one for one in selectors(cluster) if one.owner.group_kind == _SERVICE]
    indexes = running_pods(cluster) if asking else {}
    for each in asking:
        index = indexes.get(each.place)
        wanted = {str(k): v for k, v in each.labels.items() if isinstance(v, str)}
        is_whole = bool(wanted) and len(wanted) == len(each.labels)
        if index is None or each.gap or not is_whole or _only_for_metrics(cluster, each.owner):
            continue
        found = [
            (pods, ports)
            for pods in index.matching(wanted)
            if (ports := cluster.listening(pods)) and _gets_requests(each, ports)
        ]
        if len({cluster.source_of(one) for one in (each.owner, *(p.owner for p, _ in found))}) == 1:
            yield from _several_models(each, found)


def _only_for_metrics(cluster: ClusterObjects, service: Object) -> bool:
    """Return whether a Service may exist for Prometheus alone."""
    ports = map(mapping, sequence(service.spec.get("ports")))
    return bool(cluster.of(_MONITOR)) or any("metric" in str(port.get("name")) for port in ports)


def _gets_requests(each: Selector, ports: Listening) -> bool:
    stated = (resolved(target.stated, dict(ports.named)) for target in each.targets)
    return isinstance(ports.answers, int) and ports.answers in stated


def _several_models(each: Selector, found: list[tuple[PodSet, Listening]]) -> Iterator[Finding]:
    """Report the first two engines without a common name, unless some name is not known."""
    named = [(pods, ports.models) for pods, ports in found if ports.models]
    if len(named) < len(found):
        return
    for (one, first), (other, second) in pairwise(named):
        if first.isdisjoint(second):
            shown = [
                f"{display(min(names))} of {owner_title(pods)}"
                for pods, names in ((one, first), (other, second))
            ]
            seen = f"matches pods with the models {' and '.join(shown)}, and sends each request to "
            remedy = "give the pods a label for their model, select by it here, and create one "
            remedy += "Service for each model"
            found_one = advise(each.owner.at(each.path), f"{seen}any of them", remedy)
            yield replace(found_one, most=Level.ADVISORY)
            return


def may_make_pods(entry: Object, cluster: ClusterObjects) -> bool:
    """Return whether an object belongs to an unknown system."""
    own = "." not in entry.group or entry.group.endswith((".k8s.io", ".volcano.sh"))
    return not own and (entry.group, entry.kind) not in cluster.templated


_NAME = "vllm"
_SERVERS = frozenset({"DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"})
"""Kinds whose pods serve. A Job in the same image may only send requests."""


def service_named_vllm(cluster: ClusterObjects) -> Iterator[Finding]:
    """No Service is named vllm in the namespace of pods that run vLLM and get its variables.

    Kubernetes sets variables for each Service that exists when a container starts. One that is
    named vllm sets VLLM_PORT=tcp://10.0.0.1:80, where vLLM reads the number of a port, and stops.
    Pods that start before the Service do not get it, so it is the next restart that fails. A
    Service without a cluster IP sets no variables, and a variable of the container replaces this
    one. Checked are servers with GPUs in vLLM's own image, but for releases before 0.4.3.

    Pass: a Service chat; a Service vllm, and enableServiceLinks: false in the pods.
    Fail: a Service vllm with port 80, and a Deployment of vllm/vllm-openai:v0.33.0 with 1 GPU.
    Level: mandatory.
    Source: vllm/envs.py VLLM_PORT (get_vllm_port), 0.4.3 to 0.33.0, which get_open_port reads;
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
        owners = dict.fromkeys(owner_title(pods) for pods, gap in found if gap is None)
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
            if _runs_vllm(container) and OWN_PORT not in _names(container.get("env")):
                env, sources = container.get("env"), container.get("envFrom")
                late = first_unknown(links, env, *sequence(env), *_names(env))
                elsewhere = Unknown(f"{owner_title(pods)} takes variables from other objects")
                yield pods, late or (elsewhere if sources else None)
                break


def _runs_vllm(container: Mapping[str, Any]) -> bool:
    """Return whether a container with GPUs runs a release of vLLM that reads VLLM_PORT."""
    image = container.get("image")
    limits = mapping(mapping(container.get("resources")).get("limits"))
    has_gpus = any(is_accelerator(str(name)) for name in limits)
    if not (has_gpus and isinstance(image, str)):
        return False
    read = read_image(image)
    return read.is_own("vllm") and (read.vllm_version or OWN_PORT_SINCE) >= OWN_PORT_SINCE


def _names(env: object) -> list[object]:
    return [mapping(item).get("name") for item in sequence(env)]


def _finding(service: Object, owners: list[str]) -> Finding:
    more = f" and {len(owners) - 1} more" if len(owners) > 1 else ""
    return Finding(
        path=service.at("metadata.name"),
        seen=f"is 'vllm', so Kubernetes sets {OWN_PORT}=tcp://… in the pods of {owners[0]}{more}, "
        "and vLLM stops, because it reads the number of a port there",
        remedy="rename the Service, or write enableServiceLinks: false in the pods",
    )


# The rule router-selects-pods.


def router_selects_pods(cluster: ClusterObjects) -> Iterator[Finding]:
    """The labels by which a router or an InferencePool looks for pods are those of some pods.

    Routers are SGLang's (--selector, --prefill-selector, --decode-selector), the one of vLLM's
    production stack (--k8s-label-selector), and an endpoint picker with --endpoint-selector.
    Nothing is reported if an object of an unknown kind may create pods.

    Pass: --selector app=chat, and a Deployment whose pods have the label app chat.
    Fail: --k8s-label-selector release=test, and pods with the label release prod.
    Level: mandatory; advice if these are not all objects of the cluster.
    Source: sgl-project/sglang sgl-router/src/service_discovery.rs; vllm-project/production-stack
    src/vllm_router/service_discovery.py; kubernetes-sigs/gateway-api-inference-extension v1.5.0
    api/v1/inferencepool_types.go and pkg/epp/server/options.go.
    """
    asking = [one for one in selectors(cluster) if one.option or one.owner.group_kind in POOLS]
    makers = (may_make_pods(entry, cluster) for entry in cluster.objects)
    if not asking or cluster.demands or any(makers):
        return
    carried: dict[object, PodIndex] = {}
    engines = {pods.owner.namespace for pods in cluster.pods if has_engine(pods)}
    for pods in cluster.pods:
        carried.setdefault(pods.owner.namespace, PodIndex()).add(pods)
    places: dict[tuple[int, str, str], list[Selector]] = {}
    for each in asking:  # a router that looks everywhere has one for each namespace
        places.setdefault((each.owner.index, each.path, each.option), []).append(each)
    for each, *others in places.values():
        where = {one.place for one in (each, *others)}
        if cluster.complete or not engines.isdisjoint(where):
            yield from _selects(cluster, each, [carried.get(one, PodIndex()) for one in where])


def _selects(cluster: ClusterObjects, each: Selector, pods: list[PodIndex]) -> Iterator[Finding]:
    """Report labels of a router that no pod has."""
    path = each.owner.at(each.path)
    if gap := each.gap or unknown_in(each.place):
        yield not_checked(path, gap)
        return
    wanted = {str(key): value for key, value in each.labels.items() if isinstance(value, str)}
    if not wanted or len(wanted) < len(each.labels):
        return
    results = [index.matches(wanted) for index in pods]
    if any(result is True for result in results):
        return
    late = next((result for result in results if isinstance(result, Unknown)), None)
    if gap := late or cluster.hidden_pods:
        yield not_checked(path, gap)
    else:
        shown = _shown(wanted)
        seen = f"has {each.option} {shown}" if each.option else f"is {shown}"
        where = f"in namespace {display(each.place)} " if len(pods) == 1 else ""
        report = refuse if cluster.complete else advise
        seen = f"{seen}, but no pod {where}has these labels"
        yield report(path, seen, "write the labels of the engine's pods")


def _shown(wanted: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={display(value)}" for name, value in [*wanted.items()][:5])
