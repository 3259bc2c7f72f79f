"""Checks the name by which the pods of a StatefulSet find the first one, and who answers for it."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kthena_components.core import naming
from kthena_components.core.facts.listening import Listening, waits_for_engine
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.split_engines import forwarded
from kthena_components.core.findings import Finding, advise, not_checked, part_of_rule, refuse
from kthena_components.core.objects.cluster_objects import ClusterObjects, selects
from kthena_components.core.objects.object import Object, PodSet
from kthena_components.core.remedies import write
from kthena_components.core.rules.support.engine_pods import Meeting, meetings
from kthena_components.core.values.display import display, listing
from kthena_components.core.values.read import (
    first_unknown,
    inside,
    is_name,
    mapping,
    require_known,
    sequence,
    unknown_in,
    unknown_inside,
    whole,
)
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.kubernetes.facts import facts_of_copies
from kthena_components.systems.kubernetes.rules.selected_pods_answer import makes_service

_SERVICE, _STATEFUL_SET = ("", "Service"), ("apps", "StatefulSet")
_ASKED = "(asked)"
"""Key of a reduced spec, with what its pods ask. A manifest may have it, but no such value."""
_HOST = regex(r"(?P<pod>[a-z0-9-]+)\.(?P<domain>[a-z0-9-]+)(?P<rest>\.[a-z0-9.-]+)?(?::\d+)?")
_ALONE = regex(
    r"(?P<domain>[a-z0-9-]+)(?:\.(?P<space>[a-z0-9-]+)(?:\.svc(?:\.[a-z0-9.-]+)?)?)?(?::\d+)?"
)
_POD_NAME = "statefulset.kubernetes.io/pod-name"


def first_pod_named(found: Object) -> Iterator[Finding]:
    """The pods of a StatefulSet look for its first pod by a name that Kubernetes gives it.

    That is the name of the pod and of the Service in serviceName: chat-0.chat, in the namespace of
    both. The DNS server has no name below another Service, and none of a pod whose number is not
    below replicas. The name of another StatefulSet or namespace is a mistake if all pods of the
    engine are in this StatefulSet.

    Pass: serviceName chat, 2 replicas and --dist-init-addr chat-0.chat:5000.
    Fail: chat-0.chats:5000; chat-0.chat:5000 without a serviceName; chat-2.chat:5000 with 2
    replicas, or chat-1.chat:5000 with --node-rank 1 in that pod; model-0.chat:5000 with --nnodes 2;
    chat-0.chat.default.svc:5000 in the namespace models.
    Level: mandatory.
    Source: Kubernetes documentation, StatefulSets, Stable Network ID; Kubernetes DNS-Based Service
    Discovery 1.1.0, 2.4.1.
    """
    if not isinstance(found.name, str) or not isinstance(found.spec.get("serviceName", ""), str):
        return
    for engine, pod, meeting in _looked_up_addresses(facts_of_copies(found)):
        host = _HOST.fullmatch(str(meeting.address))
        path = pod.command_path.removeprefix(f"{found.path}.")
        wrong = host and next(_wrong_name(found, engine, meeting, host, path), None)
        if wrong:
            yield wrong
            return


@part_of_rule
def _wrong_name(
    found: Object, engine: EngineFacts, meeting: Meeting, host: re.Match[str], path: str
) -> Iterator[Finding]:
    """Compare the address of the first pod with the names that the pods have."""
    name, service, numbers = found.name, found.spec.get("serviceName"), _numbers(found.spec)
    seen = f"looks for the first pod at {display(meeting.shown)}"
    remedy = f"write {name}-{numbers.start}.{service} in {meeting.option}"
    if elsewhere := _elsewhere(found, engine, host):
        seen += f", {elsewhere}, but all pods of its engine are those of this StatefulSet"
        yield refuse(path, f"{seen} ({display(name)})", remedy)
    pod_number = re.fullmatch(rf"{re.escape(str(name))}-(\d+)", host["pod"])
    if pod_number is None:
        return
    require_known(path, service, found.spec.get("replicas"))
    if not service:
        seen = f"is not stated, so the pods have no names in DNS, but one {seen}"
        remedy = f"write serviceName: {host['domain']}, and add that headless Service"
        yield refuse("spec.serviceName", seen, remedy)
        return
    if is_name(service) and host["domain"] != service:
        seen += f", but serviceName is {display(service)}, and the pods have no names below "
        remedy = f"write {host['pod']}.{service} in {meeting.option}"
        yield refuse(path, f"{seen}another Service", remedy)
        return
    require_known(path, found.spec.get("ordinals"), inside(found.spec.get("ordinals"), "start"))
    number = int(pod_number[1][:9])
    commands = engine.siblings.commands if engine.siblings is not None else ()
    ranks = dict(zip(numbers, (command.node_rank for command in commands), strict=False))
    rank = ranks.get(number)
    if isinstance(rank, int) and rank > 0 and number != numbers.start:
        yield refuse(path, f"{seen}, which has --node-rank {rank}", remedy)
    elif number not in numbers:
        seen += f", and its pods are {name}-{numbers.start} to {name}-{numbers.stop - 1}"
        yield refuse(path, seen, remedy)


def _elsewhere(found: Object, engine: EngineFacts, host: re.Match[str]) -> str:
    """Explain that an address names a pod elsewhere, if no other pod belongs to an engine."""
    space, number = found.metadata.get("namespace"), whole(found.spec.get("replicas"))
    ranks = [each.node_rank for each in engine.siblings.commands] if engine.siblings else []
    is_its = host["domain"] == found.spec.get("serviceName") or 0 in ranks
    if not (is_its and engine.entry.command and engine.pods == number and is_name(space)):
        return ""
    other = re.match(r"\.([a-z0-9-]+)(?:\.svc\b|$)", host["rest"] or "")
    if other is not None and other[1] != space:
        return f"in the namespace {display(other[1])}, and not in {display(space)}"
    named = re.fullmatch(r"(.+)-\d+", host["pod"]) if host["domain"] != space else None
    return "a pod of another name" if named and named[1] != found.name else ""


def _numbers(spec: Mapping[str, Any]) -> range:
    start, replicas = whole(mapping(spec.get("ordinals")).get("start")), whole(spec.get("replicas"))
    first = start if isinstance(start, int) else 0
    return range(first, first + max(replicas if isinstance(replicas, int) else 1, 1))


def _looked_up_addresses(facts: ServingFacts) -> Iterator[tuple[EngineFacts, PodFacts, Meeting]]:
    """Return the addresses at which pods look for another one, if they are strings."""
    for engine in facts.engines:
        for pod, meeting in meetings(engine):
            if isinstance(meeting.address, str):
                yield engine, pod, meeting


class _ServiceUse(NamedTuple):
    """The Service by which the pods of a StatefulSet find each other."""

    service: str
    waits: bool
    """Whether they are ready only after that."""
    by_pod: bool
    """Whether they ask for a pod of it, and not for the Service itself."""
    at: str
    """Path of the command line."""
    alone: bool = False
    """Whether the name of the Service is the name of a pod, so that there may be no Service."""


def service_asked(found: Object) -> Mapping[str, Any]:
    """Keep which Service the pods of a StatefulSet ask."""
    asked = _find_service(found)
    return {} if asked is None else {_ASKED: asked}


def _asks(cluster: ClusterObjects) -> Iterator[tuple[Object, Object, _ServiceUse]]:
    """Return each StatefulSet with the Service that its pods ask, and how they ask."""
    services = cluster.named(_SERVICE)
    for entry in cluster.of(_STATEFUL_SET):
        asked = _asked_by(entry)
        service = services.get((str(entry.namespace), asked.service)) if asked else None
        if asked and service is not None:
            yield entry, service, asked


def _find_service(found: Object) -> _ServiceUse | None:
    """Return the Service that pods ask: the one for which they wait, if there is one."""
    replicas = whole(found.spec.get("replicas"))
    if not isinstance(replicas, int) or replicas <= 1:
        return None
    template = mapping(mapping(found.spec.get("template")).get("spec"))
    containers = [mapping(each) for each in sequence(template.get("containers"))]
    probed = any(c.get("readinessProbe") or c.get("startupProbe") for c in containers)
    first, ordinal = None, rf"{re.escape(str(found.name))}-\d+"
    for engine, pod, meeting in _looked_up_addresses(facts_of_copies(found)):
        host = _HOST.fullmatch(str(meeting.address))
        named = host and re.fullmatch(ordinal, host["pod"])
        match = host if named else _ALONE.fullmatch(str(meeting.address))
        if match and (named or match["space"] in {None, found.namespace}):
            own = host is None and re.fullmatch(ordinal, match["domain"])
            path = pod.command_path.removeprefix(f"{found.path}.")
            commands = () if engine.siblings is None else engine.siblings.commands
            waits = probed and waits_for_engine(pod, commands)
            asked = _ServiceUse(match["domain"], waits, bool(named), path, bool(own))
            if asked.waits:
                return asked
            first = first or asked
    return first


def first_pod_selected(cluster: ClusterObjects) -> Iterator[Finding]:
    """The Service by which the pods of a StatefulSet find the first one selects these pods.

    A name such as chat-0.chat is in DNS only if the Service chat selects the pod chat-0. With the
    labels of other pods in its selector, the name does not exist, and no rank finds the first one.
    The name of a pod alone, chat-0, is in no DNS, and only that pod itself knows it, unless a
    Service has the same name, or dnsConfig or hostAliases add it. In any kind, a Service that is
    itself the address is there, selects the first pod, and has the port if it has a cluster IP.

    Pass: selector app chat, pods with the label app chat, and --dist-init-addr chat-0.chat:5000.
    Fail: selector app llama, and the same pods; --dist-init-addr chat-0:5000, and no Service
    chat-0; chat-0.chat without a Service and a StatefulSet chat; --master-addr first, and no
    Service first, or one that selects pod-index "1".
    Level: mandatory; advisory for the name of a pod alone, if a Service may be elsewhere.
    Source: kubernetes pkg/controller/endpointslice/endpointslice_controller.go (syncService) and
    staging/src/k8s.io/endpointslice/utils.go (shouldSetHostname); Kubernetes DNS-Based Service
    Discovery 1.1.0, 2.4.
    """
    yield from cluster.once(other_pods_selected)
    yield from _of_no_service(cluster)
    for listed in cluster.pods_of.values():
        yield from next(filter(None, ([*_of_service(cluster, pods)] for pods in listed)), ())


def _of_no_service(cluster: ClusterObjects) -> Iterator[Finding]:
    """Report the name of a pod that lacks its Service."""
    services = cluster.named(_SERVICE)
    for entry in cluster.of(_STATEFUL_SET):
        asked = _asked_by(entry)
        key = (str(entry.namespace), asked.service if asked is not None else "")
        if asked is None or asked.by_pod or key in services:
            continue
        if _knows_hosts(cluster, entry) or (not asked.alone and _may_make(cluster, key)):
            continue
        if gap := cluster.name_unknown(_SERVICE) or unknown_in(entry.namespace):
            yield not_checked(entry.at(asked.at), gap)
            continue
        if not asked.alone:
            if cluster.complete:
                yield _no_service(entry.at(asked.at), asked.service, key)
            continue
        seen = f"looks for the first pod at {display(asked.service)}, a pod's name without its "
        seen += "Service, which only that pod itself can resolve"
        tell = refuse if cluster.complete else advise
        domain = entry.spec.get("serviceName")
        named = domain if isinstance(domain, str) and is_name(domain) else "SERVICE"
        yield tell(entry.at(asked.at), seen, f"write {asked.service}.{named}")


_SERVICE_NAME = regex(
    r"(?:(?P<pod>[a-z0-9-]+)-\d+\.)?([a-z][a-z0-9-]*)(?:\.([a-z0-9-]+)(?:\.svc(?:\.cluster\.local)?)?)?"
)
_BUILT_IN = frozenset({"", "apps", "batch", "policy", "autoscaling", "rbac.authorization.k8s.io"})
"""API groups of objects whose controllers create no Services."""


def _of_service(cluster: ClusterObjects, pods: PodSet) -> Iterator[Finding]:
    """Report the name of a Service as an address, if it leads to no first pod of the engine."""
    ports = cluster.listening(pods) if isinstance(pods.owner.namespace, str) else None
    match = _SERVICE_NAME.fullmatch(ports.asks[0]) if ports and ports.asks else None
    if match is None or ports is None or ports.asks is None or _knows_hosts(cluster, pods.owner):
        return
    key = (match[3] or str(pods.owner.namespace), match[2])
    service = cluster.named(_SERVICE).get(key)
    if service is None:
        named = match["pod"] is not None or pods.owner.group_kind != _STATEFUL_SET
        named = named and cluster.complete and not cluster.name_unknown(_SERVICE)
        of_other = match["pod"] and _is_of_other(cluster, pods.owner, key, match["pod"])
        if named and not of_other and not _may_make(cluster, key):
            yield _no_service(pods.at("spec"), ports.asks[0], key)
    elif match["pod"] is None and (wrong := _leads_elsewhere(cluster, service, pods, ports)):
        seen = f"look for their first rank at {display(ports.asks[0])}, but that Service {wrong[0]}"
        yield refuse(pods.at("spec"), seen, wrong[1])


def _is_of_other(cluster: ClusterObjects, owner: Object, key: tuple[str, str], pod: str) -> bool:
    """Return whether a controller may make the Service, or a StatefulSet the pod below it."""
    sets = (each for each in cluster.of(_STATEFUL_SET) if each.namespace == key[0])
    named = ((each.name, each.spec.get("serviceName", key[1])) for each in sets)
    return owner.group_kind[0] not in _BUILT_IN or any(pod == n or key[1] == at for n, at in named)


def _no_service(path: str, shown: str, key: tuple[str, str]) -> Finding:
    seen = f"looks for the first rank at {display(shown)}, and there is no Service "
    seen += f"{display(key[1])} in namespace {display(key[0])}"
    return refuse(path, seen, "write the name of the first pod, or add that Service")


_OF_HOSTS = ("hostAliases", "dnsConfig", "hostNetwork", "hostname")


def _knows_hosts(cluster: ClusterObjects, owner: Object) -> bool:
    """Return whether pods may know names that are in no DNS of the cluster."""
    return any(pods.spec.get(key) for pods in cluster.pods_of[owner.index] for key in _OF_HOSTS)


def _may_make(cluster: ClusterObjects, key: tuple[str, str]) -> bool:
    """Return whether a Service may be elsewhere, or of a controller, by its object's name."""
    near = [each for each in cluster.objects if each.namespace == key[0]]
    own = (each for each in near if each.group_kind[0] not in _BUILT_IN)
    return not near or any(makes_service(each, key[1]) for each in own)


def _leads_elsewhere(
    cluster: ClusterObjects, service: Object, pods: PodSet, ports: Listening
) -> tuple[str, str] | None:
    """Explain that a Service leads to no first pod of an engine, and what to do."""
    selector, port = service.spec.get("selector"), ports.asks[1] if ports.asks else 0
    if first_unknown(selector, service.spec) or unknown_inside(selector) or not mapping(selector):
        return None
    if service.spec.get("type") == "ExternalName" or service.namespace != pods.owner.namespace:
        return None
    wanted = {str(key): value for key, value in mapping(selector).items()}
    first = [each for each in cluster.pods_of.get(pods.owner.index, ()) if _starts(cluster, each)]
    if first and all(selects(wanted, each) is False for each in first):
        return "selects no first pod of this engine", "write labels of its first pods only"
    only = next((found.only for each in first if (found := cluster.listening(each))), None)
    number = str(wanted.get(naming.POD_INDEX, str(wanted.get(_POD_NAME, "")).rpartition("-")[2]))
    if only is not None and number.isdecimal() and int(number[:9]) != only:
        return f"selects pod {number}, and pod {only} has that rank", f"write {only} for {number}"
    if forwarded(service.body, port) is None:
        return f"has a cluster IP and no port {port}", f"add port {port} to it, and name each port"
    return None


def _starts(cluster: ClusterObjects, pods: PodSet) -> bool:
    """Return whether pods surely start an engine."""
    return (ports := cluster.listening(pods)) is not None and ports.answers is not None


def _asked_by(entry: Object) -> _ServiceUse | None:
    kept = entry.spec.get(_ASKED)
    return kept if isinstance(kept, _ServiceUse) else _find_service(entry)


def other_pods_selected(cluster: ClusterObjects) -> Iterator[Finding]:
    """Report Services by which pods find the first one, and which do not select these pods."""
    for entry, service, asked in _asks(cluster):
        selector = service.spec.get("selector")
        wanted, path = mapping(selector), service.at("spec.selector")
        outside = service.spec.get("type") not in (None, "", "ClusterIP")
        pods = cluster.pods_of.get(entry.index, [])
        of_set = asked.by_pod and entry.spec.get("serviceName") == service.name
        if outside or not of_set or len(pods) != 1:
            continue
        if gap := first_unknown(selector, service.spec) or unknown_inside(selector):
            yield not_checked(path, gap)
            continue
        own = wanted and selects({str(key): value for key, value in wanted.items()}, pods[0])
        if isinstance(own, Unknown):
            yield not_checked(path, own)
        elif own is False:
            shown = listing([f"{key}: {display(value)}" for key, value in [*wanted.items()][:3]])
            seen = f"is {shown}, which the pods of StatefulSet {display(entry.name)} do not have, "
            seen += (
                f"but they look for the first one at a name below Service {display(service.name)}"
            )
            yield refuse(path, seen, "write labels of these pods")


def first_pod_published(cluster: ClusterObjects) -> Iterator[Finding]:
    """A Service by which pods find each other before they are ready names them before that.

    The pods of an engine become ready when all of them have met. A Service has names of ready pods
    only, unless publishNotReadyAddresses is true: with a readinessProbe or a startupProbe on the
    port of the engine, the others never find the first pod. A Service with a cluster IP sends to
    ready pods only. This is also checked where the first pod and its workers are objects of their
    own. The address of the Service itself counts if it selects no other pods.

    Pass: publishNotReadyAddresses true for 2 pods; 2 pods without probes.
    Fail: clusterIP None, a readinessProbe, and --dist-init-addr chat-0.chat:5000 in 2 pods; a
    Service first with pod-index "0" in its selector, and --dist-init-addr first:5000; a Service
    head of a Deployment with a readinessProbe, and `ray start --address=head:6379`.
    Level: mandatory.
    Source: Kubernetes API reference, ServiceSpec publishNotReadyAddresses; kubernetes
    staging/src/k8s.io/endpointslice/utils.go (ready); coredns plugin/kubernetes;
    sgl-project/sglang issue 10216.
    """
    for entry, service, asked in _asks(cluster):
        if not asked.waits or not (asked.by_pod or _selects_only(cluster, service, entry)):
            continue
        published = service.spec.get("publishNotReadyAddresses")
        path = service.at("spec.publishNotReadyAddresses")
        if gap := first_unknown(published, service.spec):
            yield not_checked(path, gap)
        elif published is not True:
            seen = f"is not true, but the pods of StatefulSet {display(entry.name)} look for each "
            seen += "other by this Service before they are ready"
            alone = asked.by_pod or {naming.POD_INDEX, _POD_NAME} & {
                *mapping(service.spec.get("selector"))
            }
            one = "" if alone else f' and add {naming.POD_INDEX}: "0" to the selector'
            yield refuse(path, seen, write(True, f"write true{one}"))


def _selects_only(cluster: ClusterObjects, service: Object, entry: Object) -> bool:
    """Return whether a Service surely selects pods of a StatefulSet, and no others."""
    selector, space = mapping(service.spec.get("selector")), service.namespace
    wanted = {str(key): value for key, value in selector.items()}
    numbers = {str(number) for number in _numbers(entry.spec)}
    name = str(wanted.get(_POD_NAME, f"{entry.name}-{min(numbers)}"))
    own = name.removeprefix(f"{entry.name}-") in numbers
    if not wanted or not own or str(wanted.get(naming.POD_INDEX, min(numbers))) not in numbers:
        return False
    if not all(isinstance(value, str) for value in wanted.values()):
        return False
    others = (pods for pods in cluster.pods if pods.owner.namespace in {space, entry.namespace})
    found = [(pods.owner.index == entry.index, selects(wanted, pods)) for pods in others]
    return (True, True) in found and not any(held for own_pods, held in found if not own_pods)
