"""Checks the devices that pods claim, and the nodes of a ComputeDomain."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.facts.claims import (
    COMPUTE_DOMAIN,
    NAMES,
    FoundClaim,
    entry_named,
    find_claim,
)
from kthena_components.core.facts.context import Context
from kthena_components.core.facts.device_requests import read_request
from kthena_components.core.findings import Finding, advise, count_of, part_of_rule, refuse, suggest
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import Object, PodSet
from kthena_components.core.remedies import either, write
from kthena_components.core.values.display import display
from kthena_components.core.values.read import count, is_name, mapping, require_known, sequence
from kthena_components.core.values.unknown import Unknown, known, total

# Checks the resource claims of pods, and the nodes of NVIDIA's ComputeDomains.


def resource_claim_exists(cluster: ClusterObjects) -> Iterator[Finding]:
    """The ResourceClaims and ResourceClaimTemplates that pods name exist.

    A pod waits until its claims exist. A controller may create them, as NVIDIA's driver creates
    the template of each ComputeDomain.

    Pass: resourceClaimTemplateName gpus; a ResourceClaimTemplate gpus in the same namespace.
    Fail: resourceClaimTemplateName gpu; only a ResourceClaimTemplate gpus.
    Level: advisory; not checked if there may be other objects.
    Source: kubernetes pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go
    PreEnqueue.
    """
    for pods in cluster.pods:
        for index, item in enumerate(sequence(pods.spec.get("resourceClaims"))):
            yield from _check_claim(cluster, pods, mapping(item), f"spec.resourceClaims[{index}]")


@part_of_rule
def _check_claim(
    cluster: ClusterObjects, pods: PodSet, entry: Mapping[str, Any], path: str
) -> Iterator[Finding]:
    """Check that a claim exists which a pod names: the pod waits for it."""
    source = next((named for _, named in NAMES if entry.get(named) is not None), "")
    at, name = pods.at(f"{path}.{source}"), entry.get(source)
    require_known(at, name)
    claim = find_claim(entry, pods.owner.context)
    if not is_name(name) or not isinstance(claim, Unknown):
        return
    require_known(at, None if cluster.complete else claim)
    seen = f"is {display(name)}, but {claim.because}, and the pod waits for it"
    kind = next(kind for kind, named in NAMES if named == source)
    known = (one.name for one in cluster.of(kind) if one.namespace == pods.owner.namespace)
    yield advise(at, seen, suggest(name[:253], filter(is_name, known)))


def resource_claim_used(cluster: ClusterObjects) -> Iterator[Finding]:
    """A container uses each claim of its pod for accelerators, or for the channel of a domain.

    A pod reserves the devices of its claims, and a container gets the devices of the claims that
    its resources name. Claims for other devices, such as network interfaces, may be for the whole
    pod.

    Pass: resourceClaims name channel, and a container with resources.claims name channel.
    Fail: resourceClaims name channel for a ComputeDomain, and no container with it.
    Level: advisory, because a driver may give devices to whole pods.
    Source: kubernetes pkg/kubelet/cm/dra/manager.go GetResources;
    kubernetes-sigs/dra-driver-nvidia-gpu cmd/compute-domain-kubelet-plugin/device_state.go.
    """
    for pods in cluster.pods:
        for index, item in enumerate(sequence(pods.spec.get("resourceClaims"))):
            yield from _unused(pods, mapping(item), pods.at(f"spec.resourceClaims[{index}]"))


@part_of_rule
def _unused(pods: PodSet, entry: Mapping[str, Any], at: str) -> Iterator[Finding]:
    """Report a claim of devices that no container of the pod uses."""
    name, what = entry.get("name"), _devices(entry, pods.owner.context)
    if not is_name(name) or not what:
        return
    names: set[object] = set()
    for _, container in _containers(pods.spec):
        resources = mapping(container.get("resources"))
        listed = resources.get("claims")
        stated = [mapping(claim).get("name") for claim in sequence(listed)]
        require_known(at, container.get("resources"), listed, *sequence(listed), *stated)
        names.update(filter(is_name, stated))
    if name not in names:
        seen = (
            f"is {display(name)}, which no container has in resources.claims, so none gets {what}"
        )
        yield advise(at, seen, f"add name: {name} to resources.claims of the engine's container")


def _devices(entry: Mapping[str, Any], context: Context) -> str:
    """Say what a claim is for; empty if these are not accelerators, or it is not known."""
    claim = find_claim(entry, context)
    if claim is None:
        return "the channel of the ComputeDomain"
    if isinstance(claim, Unknown):
        return ""
    read = (read_request(item, context, inline=claim.inline) for item in claim.requests)
    return f"the accelerators of {claim.title}" if any(each.resource for each in read) else ""


def _containers(spec: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Return the containers and the init containers of a pod, each with its path."""
    for listed in ("containers", "initContainers"):
        for number, container in enumerate(sequence(spec.get(listed))):
            yield f"spec.{listed}[{number}]", mapping(container)


def resource_claim_request(cluster: ClusterObjects) -> Iterator[Finding]:
    """A claim has the request that a container uses of it.

    Otherwise the container starts without the devices. A request with firstAvailable is named by
    its own name, whichever of its alternatives is chosen.

    Pass: claims name gpus, request gpu; the claim has the requests gpu and nic.
    Fail: claims name gpus, request gpus; the claim has the requests gpu and nic.
    Level: mandatory.
    Source: kubernetes pkg/kubelet/cm/dra/claiminfo.go cdiDevicesAsList;
    staging/src/k8s.io/api/core/v1/types.go ResourceClaim.
    """
    for pods in cluster.pods:
        for path, container in _containers(pods.spec):
            listed = mapping(container.get("resources")).get("claims")
            for index, item in enumerate(sequence(listed)):
                at = f"{path}.resources.claims[{index}].request"
                yield from _used(pods, mapping(item), pods.at(at))


@part_of_rule
def _used(pods: PodSet, used: Mapping[str, Any], at: str) -> Iterator[Finding]:
    """Check that a claim has the request which a container names."""
    request, name = used.get("request"), used.get("name")
    if request in (None, ""):
        return
    require_known(at, request, name)
    entry = entry_named(pods.spec.get("resourceClaims"), name)
    claim = None if entry is None else find_claim(entry, pods.owner.context)
    if not isinstance(claim, FoundClaim) or not isinstance(request, str):
        return
    names = [item.get("name") for item in claim.requests]
    if request in names:
        return
    require_known(at, claim.gap, *names)
    seen = (
        f"is {display(request)}, but {claim.title} has no such request, so the container gets "
        "none of its devices"
    )
    yield refuse(at, seen, suggest(request[:253], filter(is_name, names)))


def compute_domain_nodes(cluster: ClusterObjects) -> Iterator[Finding]:
    """The numNodes of a ComputeDomain is 0, or the number of pods that use its channel.

    Each node has the channel of a domain once, so two of these pods are never on one node. By
    default the driver only compares the number for the domain's status, and recommends 0. With
    IMEXDaemonsWithDNSNames=false it holds all pods back until as many nodes have joined. A domain
    that no pod uses is not checked.

    Pass: numNodes 0; numNodes 4 for an engine of 4 pods.
    Fail: numNodes 4 for an engine of 2 pods.
    Level: advisory.
    Source: kubernetes-sigs/dra-driver-nvidia-gpu api/nvidia.com/resource/v1beta1/computedomain.go;
    cmd/compute-domain-kubelet-plugin/device_state.go assertImexChannelNotAllocated.
    """
    domains = cluster.of(COMPUTE_DOMAIN)
    users = _users(cluster) if domains else {}
    for domain in domains:
        yield from _check(domain, users)


_Template = tuple[object, object]
"""Namespace and name of a ResourceClaimTemplate."""


def _users(cluster: ClusterObjects) -> dict[_Template, list[PodSet]]:
    """Find the pods of each template with a container that uses the claim."""
    found: dict[_Template, list[PodSet]] = {}
    for pods in cluster.pods:
        for name in _templates_used(pods):
            found.setdefault(_key(pods.owner, name), []).append(pods)
    return found


def _key(found: Object, template: str) -> _Template:
    # A namespace may be any value of YAML, and then is none.
    return found.namespace if is_name(found.namespace) else None, template


def _templates_used(pods: PodSet) -> set[str]:
    listed = (*sequence(pods.spec.get("containers")), *sequence(pods.spec.get("initContainers")))
    resources = (mapping(mapping(container).get("resources")) for container in listed)
    claims = (mapping(claim) for each in resources for claim in sequence(each.get("claims")))
    used = {claim["name"] for claim in claims if is_name(claim.get("name"))}
    entries = map(mapping, sequence(pods.spec.get("resourceClaims")))
    own = (item for item in entries if is_name(item.get("name")) and item["name"] in used)
    return set(filter(is_name, (item.get("resourceClaimTemplateName") for item in own)))


@part_of_rule
def _check(domain: Object, users: dict[_Template, list[PodSet]]) -> Iterator[Finding]:
    """Compare numNodes of a ComputeDomain with the pods that use its channel."""
    path = domain.at("spec.numNodes")
    channel = mapping(mapping(domain.spec.get("channel")).get("resourceClaimTemplate"))
    stated, template = count(domain.spec.get("numNodes"), 0), channel.get("name")
    require_known(path, domain.namespace, template)
    mine = users.get(_key(domain, template), []) if is_name(template) else []
    if not mine or stated == 0 or stated is None:
        return
    nodes, pods = known(stated, path), known(total(each.count for each in mine), path)
    if pods in (0, nodes):
        return
    yield advise(
        path,
        f"is {nodes}, but {count_of(pods, 'pod')} {'use' if pods != 1 else 'uses'} its channel by "
        f"the template {display(template)}, each on its own node",
        either(write(0), write(pods)),
    )
