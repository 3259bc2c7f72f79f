"""Turns pods' resource claims into amounts, and reads devices of ResourceSlices. Pure.

Only what is read in full counts: requests of a number of whole GPUs of one class, which selectors
restrict by the driver, the type and the product alone. Of all others it is said what is not known.

Source of the claims: kubernetes v1.34
staging/src/k8s.io/dynamic-resource-allocation/structured/internal; the scheduler allocates all
claims of a pod, whether its containers use them or not.

Source of the slices: kubernetes v1.34 staging/src/k8s.io/api/resource/v1/types.go; a pool counts by
the slices of its newest generation:
staging/src/k8s.io/dynamic-resource-allocation/structured/internal/pools.go.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from decimal import Decimal
from typing import Any

from kthena_components.cluster.objects import (
    CLAIMED,
    Body,
    name_of,
    namespace_of,
    status_of,
    title_of,
)
from kthena_components.cluster.pending import node_of
from kthena_components.core.facts.claims import CLAIM, FoundClaim, find_claim
from kthena_components.core.facts.context import Context
from kthena_components.core.facts.device_requests import (
    CLASS,
    DRIVER,
    DRIVERS,
    read_request,
    required_values,
    unread_part,
)
from kthena_components.core.hardware.gpu_table import CLASS_OF, NVIDIA
from kthena_components.core.topology.node_fit import REQUIRED
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.quantity import add_resources, render_quantity
from kthena_components.core.values.read import is_name, mapping, sequence, spec_of
from kthena_components.core.values.unknown import Unknown
from kthena_components.placement.model import Node

SLICE = ("resource.k8s.io", "ResourceSlice")
_ENDED = ("Succeeded", "Failed")
_KEEPS_AWAY = ("NoSchedule", "NoExecute")
_Device = tuple[str, str, str]
"""Its driver, its pool and its name."""


@dataclass(slots=True)
class Devices:
    """The devices of a cluster."""

    nodes: dict[_Device, tuple[str, str]] = field(default_factory=dict)
    """The node and the class of each."""
    free: dict[str, dict[str, Decimal]] = field(default_factory=dict)
    """How many pods may claim of each class, by node."""
    held: dict[str, dict[str, Decimal]] = field(default_factory=dict)
    """How many are claimed, by node."""
    by_pod: dict[tuple[str, str], dict[str, Decimal]] = field(default_factory=dict)
    """How many each pod has claimed, or asks for."""
    gap: str = ""
    """Why it is not known which devices are claimed. A clause."""

    def of(self, node: Node) -> Node:
        """Return a node with its devices."""
        free, held = self.free.get(node.name, {}), self.held.get(node.name, {})
        return replace(
            node, allocatable={**node.allocatable, **free}, used=add_resources(node.used, held)
        )

    def asking(self, pod: Body) -> Body:
        """Return a pod that requests what it claims, as if its overhead were larger."""
        amounts = self.by_pod.get((namespace_of(pod), name_of(pod)))
        if not amounts:
            return pod
        spec = mapping(pod.get("spec"))
        written = {key: render_quantity(amount) for key, amount in amounts.items()}
        return {**pod, "spec": {**spec, "overhead": {**mapping(spec.get("overhead")), **written}}}


def devices_of(
    slices: Sequence[Body], claims: Sequence[Body], pods: Iterable[Body]
) -> Devices:  # fmt: skip
    """Read the devices of all nodes, and who has claimed them."""
    found = Devices()
    for body in _newest(slices):
        _add(body, found)
    by_name = {(namespace_of(body), name_of(body)): body for body in claims}
    for claim in claims:
        _hold(claim, found)
    for pod in pods:
        if status_of(pod).get("phase") not in _ENDED:
            _ask(pod, by_name, found)
    return found


def _newest(slices: Sequence[Body]) -> Iterator[Body]:
    """Leave out the slices of older generations of a pool."""
    last: dict[tuple[object, object], int] = {}
    for body in slices:
        key, generation = _pool(body)
        last[key] = max(generation, last.get(key, 0))
    yield from (body for body in slices if _pool(body)[1] == last[_pool(body)[0]])


def _pool(body: Body) -> tuple[tuple[object, object], int]:
    """Return the pool of a ResourceSlice (driver and name), and its generation."""
    spec = mapping(body.get("spec"))
    pool = mapping(spec.get("pool"))
    generation = pool.get("generation")
    return (spec.get("driver"), pool.get("name")), generation if isinstance(generation, int) else 0


def _add(body: Body, found: Devices) -> None:
    """Add the devices of one slice."""
    spec = mapping(body.get("spec"))
    driver, pool = str(spec.get("driver")), str(mapping(spec.get("pool")).get("name"))
    types, node = DRIVERS.get(driver, {}), spec.get("nodeName")
    for device in map(mapping, sequence(spec.get("devices"))):
        fields = mapping(device.get("basic")) or device  # v1beta1 has them one level deeper
        attributes = mapping(fields.get("attributes"))
        kind = mapping(attributes.get("type") or attributes.get(f"{driver}/type")).get("string")
        counted = CLASS_OF.get(types.get(str(kind), types.get("", "")))
        if counted is None:
            continue
        if not isinstance(node, str):
            found.gap = found.gap or f"the ResourceSlice {name_of(body)} is not of one node"
            return
        key = f"{CLAIMED}{counted}"
        found.nodes[driver, pool, str(device.get("name"))] = node, key
        taints = map(mapping, sequence(fields.get("taints")))
        usable = not any(taint.get("effect") in _KEEPS_AWAY for taint in taints)
        more = {key: Decimal(usable)}
        found.free[node] = add_resources(found.free.get(node, {}), more)


def _allocated(claim: Body) -> Iterator[Body]:
    allocation = mapping(status_of(claim).get("allocation"))
    results = mapping(allocation.get("devices")).get("results")
    for result in map(mapping, sequence(results)):
        if result.get("adminAccess") is not True and result.get("driver") in DRIVERS:
            yield result


def _hold(claim: Body, found: Devices) -> None:
    """Count what is allocated to a claim, on the nodes of its devices."""
    for result in _allocated(claim):
        device = str(result["driver"]), str(result.get("pool")), str(result.get("device"))
        known = found.nodes.get(device)
        if known is None and DRIVERS[device[0]].get("") == "":
            continue  # the driver has no GPUs
        if known is None or result.get("shareID"):
            found.gap = found.gap or (
                f"the ResourceClaim {title_of(claim)} holds the device {device[2]} of {device[0]}, "
                "which no ResourceSlice lists as a whole GPU"
            )
            continue
        node, key = known
        found.held[node] = add_resources(found.held.get(node, {}), {key: Decimal(1)})


def _ask(pod: Body, claims: Mapping[tuple[str, str], Body], found: Devices) -> None:
    """Find what a pod has claimed, or will."""
    total: dict[str, Decimal] = {}
    entries = map(mapping, sequence(mapping(pod.get("spec")).get("resourceClaims")))
    made = {mapping(each).get("name"): mapping(each).get("resourceClaimName")
            for each in sequence(status_of(pod).get("resourceClaimStatuses"))}  # fmt: skip
    for entry in entries:
        name = entry.get("resourceClaimName") or made.get(entry.get("name"))
        claim = claims.get((namespace_of(pod), str(name)))
        amounts = None if claim is None else _amounts(claim, found)
        if amounts is None or isinstance(amounts, Unknown):
            why = "is not listed" if amounts is None else f"is not known: {amounts.because}"
            if claim is not None or node_of(pod) or name:
                found.gap = found.gap or f"a claim of the pod {title_of(pod)} {why}"
            continue
        alone = len(sequence(status_of(claim or {}).get("reservedFor"))) < 2  # noqa: PLR2004
        total = add_resources(total, amounts if alone else {})
    if total:
        found.by_pod[namespace_of(pod), name_of(pod)] = total


def _amounts(claim: Body, found: Devices) -> Mapping[str, Decimal] | Unknown:
    """Count the devices of a claim: those that are allocated, else those that it requests."""
    if status_of(claim).get("allocation"):
        total: dict[str, Decimal] = {}
        for result in _allocated(claim):
            device = str(result["driver"]), str(result.get("pool")), str(result.get("device"))
            if device in found.nodes:
                total = add_resources(total, {found.nodes[device][1]: Decimal(1)})
        return total
    version = str(claim.get("apiVersion")).rpartition("/")[2]
    one = FoundClaim(kind=CLAIM, name=name_of(claim), spec=mapping(claim.get("spec")),
                     inline=version == "v1beta1")  # fmt: skip
    read = of_claim(one, Context())
    return read if isinstance(read, Unknown) else read.amounts


PRODUCT = "nvidia.com/gpu.product"
"""The label of nodes that names the product of their GPUs."""
_NAME = f"{NVIDIA}/productName"
_READ = frozenset({DRIVER, f"{NVIDIA}/type", _NAME})


@dataclass(frozen=True, slots=True)
class Claimed:
    """What a pod takes by claims."""

    amounts: Mapping[str, Decimal]
    """Devices by `CLAIMED` and the name of their class."""
    products: tuple[frozenset[str], ...] = ()
    """Values of the label `PRODUCT`: the nodes of the pod have one of each."""


def claimed_by(spec: Mapping[str, Any], context: Context) -> Claimed | Unknown:
    """Read what the pods of a spec take by claims, or why it is not known.

    Args:
        context: The claims, templates and classes among the objects.
    """
    amounts: dict[str, Decimal] = {}
    products: list[frozenset[str]] = []
    for entry in map(mapping, sequence(spec.get("resourceClaims"))):
        found = find_claim(entry, context)
        if found is None:
            return Unknown(f"its claim {display(entry.get('name'))} takes a channel of a "
                           "ComputeDomain, and which nodes have one is not known")  # fmt: skip
        if isinstance(found, Unknown):
            return Unknown(f"its claim {display(entry.get('name'))} is not known: {found.because}")
        if found.kind == CLAIM:
            return Unknown(f"several pods may share {found.title}, and the node of its devices is "
                           "not known")  # fmt: skip
        each = of_claim(found, context)
        if isinstance(each, Unknown):
            return each
        amounts = add_resources(amounts, each.amounts)
        products += each.products
    return Claimed(amounts, tuple(dict.fromkeys(products)))


def of_claim(claim: FoundClaim, context: Context) -> Claimed | Unknown:
    """Read the requests of one claim."""
    if claim.gap:
        return Unknown(f"the requests of {claim.title} are not known: {claim.gap.because}")
    if mapping(claim.spec.get("devices")).get("constraints"):
        return Unknown(f"{claim.title} has constraints between its devices, which are not read")
    amounts: dict[str, Decimal] = {}
    products: list[frozenset[str]] = []
    for item in claim.requests:
        asked = item if claim.inline else mapping(item.get("exactly"))
        gap = _gap(item, asked, context)
        read = read_request(item, context, inline=claim.inline)
        gap = gap or (read.count.because if isinstance(read.count, Unknown) else "")
        if not gap and read.resource not in CLASS_OF:
            gap = f"is of the class {display(asked.get('deviceClassName'))}, which is not counted"
        if gap or isinstance(read.count, Unknown):
            return Unknown(f"request {display(item.get('name'))} of {claim.title} {gap}")
        key = f"{CLAIMED}{CLASS_OF[read.resource]}"
        amounts = add_resources(amounts, {key: Decimal(read.count)})
        products += _products(asked, context)
    return Claimed(amounts, tuple(products))


def _gap(item: Mapping[str, Any], asked: Mapping[str, Any], context: Context) -> str:
    """Say what of a request is not read, as a clause about it."""
    if item.get("firstAvailable"):
        return "lists alternatives, which are not compared"
    for selectors in _selectors(asked, context):
        if part := unread_part(selectors, _READ):
            return f"selects devices by {display(part)}, which is not read"
    return ""


def _selectors(asked: Mapping[str, Any], context: Context) -> Iterator[object]:
    """Return the selectors of a request, and those of its class if that is among the objects."""
    yield asked.get("selectors")
    named = asked.get("deviceClassName")
    body = context.referenced.find(CLASS, named, "") if is_name(named) else None
    yield spec_of(body or {}).get("selectors")


def _products(asked: Mapping[str, Any], context: Context) -> Iterator[frozenset[str]]:
    """Return the products that selectors allow, as the label of nodes writes them.

    Source: NVIDIA/k8s-device-plugin internal/lm/resource.go: dashes in place of spaces.
    """
    for selectors in _selectors(asked, context):
        if _NAME in (values := required_values(selectors)):
            yield frozenset(name.replace(" ", "-") for name in values[_NAME])


def on_products(spec: Mapping[str, Any], claimed: Claimed) -> Mapping[str, Any]:
    """Add the nodes with the claimed products to the required node affinity of a spec."""
    if not claimed.products:
        return spec
    affinity = mapping(spec.get("affinity"))
    node = mapping(affinity.get("nodeAffinity"))
    terms = sequence(mapping(node.get(REQUIRED)).get("nodeSelectorTerms")) or [{}]
    added = [{"key": PRODUCT, "operator": "In", "values": sorted(names)}
             for names in claimed.products]  # fmt: skip
    both = [
        {**term, "matchExpressions": [*sequence(term.get("matchExpressions")), *added]}
        for term in map(mapping, terms)
    ]
    chosen = {**node, REQUIRED: {"nodeSelectorTerms": both}}
    return {**spec, "affinity": {**affinity, "nodeAffinity": chosen}}
