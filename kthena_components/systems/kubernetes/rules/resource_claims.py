"""Checks the resource claims that pods name, and the requests that their containers use."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.facts.claims import NAMES, FoundClaim, entry_named, find_claim
from kthena_components.core.findings import Finding, advise, part_of_rule, refuse, suggest
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import PodSet
from kthena_components.core.values.display import display
from kthena_components.core.values.read import is_name, mapping, require_known, sequence
from kthena_components.core.values.unknown import Unknown


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
            yield from _named(cluster, pods, mapping(item), f"spec.resourceClaims[{index}]")


@part_of_rule
def _named(
    cluster: ClusterObjects, pods: PodSet, entry: Mapping[str, Any], path: str
) -> Iterator[Finding]:
    field = next((field for _, field in NAMES if entry.get(field) is not None), "")
    at, name = pods.at(f"{path}.{field}"), entry.get(field)
    require_known(at, name)
    claim = find_claim(entry, pods.owner.context)
    if not is_name(name) or not isinstance(claim, Unknown):
        return
    require_known(at, None if cluster.complete else claim)
    seen = f"is {display(name)}, but {claim.because}, and the pod waits for it"
    kind = next(kind for kind, named in NAMES if named == field)
    known = (one.name for one in cluster.of(kind) if one.namespace == pods.owner.namespace)
    yield advise(at, seen, suggest(name[:253], filter(is_name, known)))


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
        for field in ("containers", "initContainers"):
            for number, container in enumerate(sequence(pods.spec.get(field))):
                listed = mapping(mapping(container).get("resources")).get("claims")
                for index, item in enumerate(sequence(listed)):
                    at = f"spec.{field}[{number}].resources.claims[{index}].request"
                    yield from _used(pods, mapping(item), pods.at(at))


@part_of_rule
def _used(pods: PodSet, used: Mapping[str, Any], at: str) -> Iterator[Finding]:
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
