"""Reads the accelerators that containers get by resource claims (dynamic resource allocation).

A pod names ResourceClaims, which several pods share, and ResourceClaimTemplates, of which each pod
gets a claim of its own. A container uses all requests of a claim, or one of them.

Source: kubernetes staging/src/k8s.io/api/core/v1/types.go PodResourceClaim and ResourceClaim;
staging/src/k8s.io/api/resource/v1/types.go, v1beta1 and v1beta2; pkg/kubelet/cm/dra/claiminfo.go.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.facts.context import Context
from kthena_components.core.facts.device_requests import AskedDevices, read_request
from kthena_components.core.hardware import GpuFacts
from kthena_components.core.hardware.pod_gpu import least_of
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.read import first_unknown, is_name, mapping, sequence, unknown_in
from kthena_components.core.values.unknown import Unknown

CLAIM = ("resource.k8s.io", "ResourceClaim")
TEMPLATE = ("resource.k8s.io", "ResourceClaimTemplate")
COMPUTE_DOMAIN = ("resource.nvidia.com", "ComputeDomain")
"""NVIDIA's driver creates a ResourceClaimTemplate for each: of a channel between nodes."""
NAMES = ((CLAIM, "resourceClaimName"), (TEMPLATE, "resourceClaimTemplateName"))
"""The fields of a pod's resourceClaims that name each kind."""
_INLINE = frozenset({"v1alpha3", "v1beta1"})
"""Versions in which a request has the fields that later ones have in `exactly`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedDevices:
    """The devices of one request of a claim."""

    key: str
    """Tells them from other devices of the pod; if shared, from those of the namespace."""
    title: str
    """The object that requests them, for messages: `ResourceClaimTemplate 'gpus'`."""
    asked: AskedDevices
    shared: bool
    """Whether all pods that name the claim get the same devices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerClaims:
    """What a container gets by claims."""

    devices: tuple[ClaimedDevices, ...] = ()
    """Devices whose number is known."""
    gap: Unknown | None = None
    """Why it may get other accelerators."""

    @property
    def gpu(self) -> GpuFacts | Unknown | None:
        """The GPU with the least memory that selectors state. None: none is stated."""
        return least_of(each.asked.gpu for each in self.devices)


NO_CLAIMS = ContainerClaims()


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundClaim:
    """A ResourceClaim or ResourceClaimTemplate that a pod names."""

    kind: tuple[str, str]
    name: str
    spec: Mapping[str, Any]
    inline: bool
    """Whether the fields of `exactly` stand in the requests."""

    @property
    def title(self) -> str:
        """Its kind and name, for messages."""
        return f"{self.kind[1]} {display(self.name)}"

    @property
    def gap(self) -> Unknown | None:
        """Why it may have other requests."""
        devices = self.spec.get("devices")
        listed = mapping(devices).get("requests")
        return first_unknown(self.spec, devices, listed, *sequence(listed))

    @property
    def requests(self) -> list[Mapping[str, Any]]:
        """Its requests."""
        return [
            mapping(item) for item in sequence(mapping(self.spec.get("devices")).get("requests"))
        ]


def find_claim(entry: Mapping[str, Any], context: Context) -> FoundClaim | Unknown | None:
    """Find what an entry of a pod's resourceClaims names.

    Returns:
        None for the template that a ComputeDomain creates, which has no accelerators.
    """
    for kind, field in NAMES:
        name = entry.get(field)
        if gap := unknown_in(name):
            return gap
        if is_name(name):
            return _find(kind, name, context)
    return Unknown("it names no claim")


def _find(kind: tuple[str, str], name: str, context: Context) -> FoundClaim | Unknown | None:
    """Find a claim or its template among the checked objects; unknown if it may be elsewhere.

    None is the template of a ComputeDomain, which has no accelerators.
    """
    beside, title = context.referenced, f"{kind[1]} {display(name)}"
    body = beside.find(kind, name, context.namespace)
    if body is not None:
        spec, version = body.get("spec"), str(body.get("apiVersion")).rpartition("/")[2]
        inner = mapping(spec if kind == CLAIM else mapping(spec).get("spec"))
        return FoundClaim(kind=kind, name=name, spec=inner, inline=version in _INLINE)
    if kind == TEMPLATE and beside.names(COMPUTE_DOMAIN, name):
        return None
    if beside.has(kind, name):
        return Unknown(f"{title} is in another namespace, or several of them differ")
    return Unknown(f"{title} is not among the objects that are checked")


def read_claims(
    container: Mapping[str, Any], spec: Mapping[str, Any], context: Context
) -> ContainerClaims:
    """Read what a container of a pod's spec gets by claims. Each request counts once."""
    listed = mapping(container.get("resources")).get("claims")
    found: dict[str, ClaimedDevices] = {}
    gap = unknown_in(listed)
    for part in _parts(listed, spec, context):
        if isinstance(part, Unknown):
            gap = gap or part
        elif part.asked.resource:
            found.setdefault(part.key, part)
    return ContainerClaims(devices=tuple(found.values()), gap=gap)


def _parts(
    listed: object, spec: Mapping[str, Any], context: Context
) -> Iterator[ClaimedDevices | Unknown]:
    """Yield the devices of each entry of a container's claims, or why they are unknown."""
    entries = spec.get("resourceClaims")
    for used in sequence(listed):
        name, request = mapping(used).get("name"), mapping(used).get("request")
        entry = entry_named(entries, name)
        gap = first_unknown(used, name, request)
        if gap is None and entry is None:
            gap = unknown_in(entries) or Unknown(f"the pod has no resourceClaim {display(name)}")
        claim = gap or find_claim(mapping(entry), context)
        if isinstance(claim, Unknown):
            yield claim
        elif claim is not None:
            yield from _of_claim(claim, str(name), request, context)


def entry_named(entries: object, name: object) -> Mapping[str, Any] | None:
    """Find an entry of a pod's resourceClaims by its name."""
    listed = (mapping(item) for item in sequence(entries))
    return next((item for item in listed if item.get("name") == name), None)


def _of_claim(
    claim: FoundClaim, entry: str, request: object, context: Context
) -> Iterator[ClaimedDevices | Unknown]:
    """List the devices of a claim's requests, or of the one request that the container names.

    A ResourceClaim is shared by all its containers; a template gives each pod its own.
    """
    if gap := claim.gap:
        yield Unknown(f"the requests of {claim.title} are not known yet: {gap.because}")
    elif request not in (None, "", *(item.get("name") for item in claim.requests)):
        yield Unknown(f"{claim.title} has no request {display(request)}")
    shared = claim.kind == CLAIM
    owner = f"{claim.name} shared" if shared else entry
    for index, item in enumerate(claim.requests):
        if request not in (None, "", item.get("name")):
            continue
        asked = read_request(item, context, inline=claim.inline)
        if isinstance(asked.count, Unknown):
            name = display(item.get("name"))
            yield Unknown(f"request {name} of {claim.title} {asked.count.because}")
        else:
            yield ClaimedDevices(
                key=f"{owner}/{index}", title=claim.title, asked=asked, shared=shared
            )
