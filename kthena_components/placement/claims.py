"""Turns the resource claims of pods into amounts of a resource: the GPUs that they will take. Pure.

Only what is read in full counts: requests of a number of whole GPUs of one class, which selectors
restrict by the driver, the type and the product alone. Of all others it is said what is not known.

Source: kubernetes v1.34 staging/src/k8s.io/dynamic-resource-allocation/structured/internal; the
scheduler allocates all claims of a pod, whether its containers use them or not.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from kthena_components.cluster.objects import CLAIMED
from kthena_components.core.facts.claims import CLAIM, FoundClaim, find_claim
from kthena_components.core.facts.context import Context
from kthena_components.core.facts.device_requests import (
    CLASS,
    DRIVER,
    read_request,
    required_values,
    unread_part,
)
from kthena_components.core.hardware.names import CLASS_OF, NVIDIA
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.quantity import add_resources
from kthena_components.core.values.read import is_name, mapping, sequence, spec_of
from kthena_components.core.values.unknown import Unknown

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
        spec: The spec of the pods.
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
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    affinity = mapping(spec.get("affinity"))
    node = mapping(affinity.get("nodeAffinity"))
    terms = sequence(mapping(node.get(required)).get("nodeSelectorTerms")) or [{}]
    added = [{"key": PRODUCT, "operator": "In", "values": sorted(names)}
             for names in claimed.products]  # fmt: skip
    both = [
        {**term, "matchExpressions": [*sequence(term.get("matchExpressions")), *added]}
        for term in map(mapping, terms)
    ]
    chosen = {**node, required: {"nodeSelectorTerms": both}}
    return {**spec, "affinity": {**affinity, "nodeAffinity": chosen}}
