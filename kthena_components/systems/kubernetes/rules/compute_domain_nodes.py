"""Checks the number of nodes of NVIDIA's ComputeDomains."""

from collections.abc import Iterator

from kthena_components.core.facts.claims import COMPUTE_DOMAIN
from kthena_components.core.findings import Finding, advise, count_of, part_of_rule
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import Object, PodSet
from kthena_components.core.remedies import either, write
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    count,
    is_name,
    mapping,
    require_known,
    sequence,
)
from kthena_components.core.values.unknown import known, total


def compute_domain_nodes(cluster: ClusterObjects) -> Iterator[Finding]:
    """The numNodes of a ComputeDomain is 0, or the number of pods that use its channel.

    Each node has the channel of a domain once, so each of these pods is on a node of its own. By
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
    """Find the pods of each template of which a container uses the claim."""
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
        f"the template {display(template)}, each on a node of its own",
        either(write(0), write(pods)),
    )
