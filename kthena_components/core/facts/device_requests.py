"""Reads one request of a claim: which accelerators, how many, and the GPU that it selects.

Source: kubernetes staging/src/k8s.io/api/resource/v1/types.go DeviceRequest, and
pkg/apis/resource/validation/validation.go.
"""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from kthena_components.core.facts.context import Context
from kthena_components.core.hardware import GpuFacts, find_gpu
from kthena_components.core.hardware.gpu_table import CLASSES, MIG, NVIDIA
from kthena_components.core.hardware.pod_gpu import largest_of
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    MAX_COUNT,
    is_name,
    mapping,
    sequence,
    spec_of,
    unknown_in,
    whole,
)
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import MaybeInt, Unknown, is_unresolved

CLASS = ("resource.k8s.io", "DeviceClass")
AMD, _PARTITION = "gpu.amd.com", "amdgpu-partition"
"""AMD's driver, and the `type` of its partitions."""
DRIVERS: Mapping[str, Mapping[str, str]] = {
    NVIDIA: {"gpu": "nvidia.com/gpu", "mig": MIG},
    "compute-domain.nvidia.com": {"": ""},
    AMD: {"": "amd.com/gpu"},
    "gpu.intel.com": {"": "gpu.intel.com/xe"},
    "tpu.google.com": {"": "google.com/tpu"},
}
"""The same by driver and by the attribute `type`; empty: any type."""
_EXACT = "ExactCount"


@dataclass(frozen=True, slots=True)
class AskedDevices:
    """What a request asks for."""

    resource: str
    """The resource by which a device plugin offers the same devices. Empty: no accelerators."""
    count: MaybeInt
    """Its reason is a clause about the request: `takes all devices of a node that match`."""
    gpu: GpuFacts | Unknown | None = None
    """The GPU that a selector states. None: none does."""


def read_request(request: Mapping[str, Any], context: Context, *, inline: bool) -> AskedDevices:
    """Read a request. Alternatives count if all of them ask for the same.

    Args:
        request: An item of `devices.requests`.
        context: The context, with the classes of devices.
        inline: Whether the fields of `exactly` stand in the request, as in v1beta1.
    """
    ways = [_read_way(way, context) for way in _ways(request, inline)]
    counts = {(way.resource, way.count) for way in ways}
    if len(counts) == 1:
        return AskedDevices(*counts.pop(), largest_of([way.gpu for way in ways]))
    why = "lists alternatives" if ways else "has neither exactly nor firstAvailable"
    return AskedDevices("", Unknown(why))


def _ways(request: Mapping[str, Any], inline: bool) -> list[Mapping[str, Any]]:
    several = [mapping(item) for item in sequence(request.get("firstAvailable"))]
    if several or inline:
        return several or [request]
    exactly = request.get("exactly")
    return [mapping(exactly)] if isinstance(exactly, Mapping) or unknown_in(exactly) else []


def _read_way(asked: Mapping[str, Any], context: Context) -> AskedDevices:
    """Read one alternative of a request: its resource, count, and the GPU of its selectors."""
    needed = dict(required_values(asked.get("selectors")))
    resource = _resource(asked.get("deviceClassName"), needed, context)
    if isinstance(resource, Unknown):
        return AskedDevices("", resource)
    if not resource:
        return AskedDevices("", 0)
    if resource == MIG:
        only = _only(needed, f"{NVIDIA}/profile") or "device"
        return AskedDevices(f"{MIG}{only}", _count(asked))
    if are_late(asked.get("selectors")):
        late = Unknown("a selector of its claim is not known yet")
        return AskedDevices(resource, _count(asked), late)
    return AskedDevices(resource, _count(asked), _gpu(needed))


def _resource(named: object, needed: dict[str, frozenset[str]], context: Context) -> str | Unknown:
    """Return the resource of a class. What the class requires is added to what is needed."""
    if unknown_in(named):
        return Unknown("has a class that is not known yet")
    body = context.referenced.find(CLASS, named, "") if is_name(named) else None
    for name, values in required_values(spec_of(body or {}).get("selectors")).items():
        needed[name] = needed.get(name, values) & values
    if isinstance(named, str) and named in CLASSES:
        return CLASSES[named]
    driver = _only(needed, DRIVER)
    types = DRIVERS.get(driver, {})
    found = types.get(_only(needed, f"{driver}/type"), types.get(""))
    unknown = Unknown(f"is of the class {display(named)}, whose devices are not known")
    return unknown if found is None else found


def _only(needed: Mapping[str, frozenset[str]], name: str) -> str:
    """Return the one value that is allowed; empty if there are several, or if any is."""
    values = needed.get(name, frozenset())
    return next(iter(values)) if len(values) == 1 else ""


def _count(asked: Mapping[str, Any]) -> MaybeInt:
    """Return the number of devices of a request, or why it is unknown, as a clause."""
    mode, number = asked.get("allocationMode") or _EXACT, asked.get("count")
    wanted = whole(number or 1)  # the API server replaces 0 as well
    admin, capacity = asked.get("adminAccess"), asked.get("capacity")
    because = ""
    if any(map(is_unresolved, (mode, number, admin, capacity))):
        because = "has a number of devices that is not known yet"
    elif mode == "All":
        because = "takes all devices of a node that match"
    elif admin is True:
        because = "has adminAccess, which allocates no device"
    elif mapping(capacity).get("requests"):
        because = "asks for a part of a device's capacity"
    elif mode != _EXACT:
        because = f"has the allocationMode {display(mode)}"
    if not because and isinstance(wanted, int) and 0 < wanted <= MAX_COUNT:
        return wanted
    return Unknown(because or f"has the count {display(number)}, which is not a number of devices")


def _gpu(needed: Mapping[str, frozenset[str]]) -> GpuFacts | Unknown | None:
    """Return the GPU with the most memory among the products that a driver names.

    Labels of nodes have the same names, of NVIDIA's with dashes. AMD's driver gives a partition the
    name of the whole GPU. Sources: NVIDIA/k8s-device-plugin internal/lm/resource.go;
    ROCm/k8s-gpu-dra-driver docs/driver-attributes.md.
    """
    if _PARTITION in needed.get(f"{AMD}/type", ()):
        return Unknown("it is a partition of a GPU")
    found: list[GpuFacts | Unknown | None] = []
    products = (needed.get(f"{driver}/productName", frozenset()) for driver in (NVIDIA, AMD))
    for product in sorted(frozenset().union(*products)):
        gpu = find_gpu(product.replace(" ", "-"))
        if isinstance(gpu, Unknown):
            return gpu
        found.append(GpuFacts(name=gpu.name, memory_gib=gpu.memory_gib))
    return largest_of(found)


# Reads the CEL expressions by which requests and classes of devices select devices.
#
# Only plain comparisons are read: `device.driver == 'gpu.nvidia.com'`, an attribute that equals a
# text or is in a list of strings, and several of them joined by `&&`. Whatever else an expression
# has selects fewer devices, and states nothing here.
#
# Source: kubernetes staging/src/k8s.io/api/resource/v1/types.go CELDeviceSelector.


DRIVER = "driver"
"""The key of the driver among the values that selectors require."""
_LONGEST = 10 * 1024
_TEXT = r"'[^'\\]*'|\"[^\"\\]*\""
_WORD = regex(rf"{_TEXT}|&&|\|\||[()\[\]{{}}?!]|[^\s&|()\[\]{{}}?!'\"]+|\S")
_NAME = rf"(?:\.(?P<field>[A-Za-z_]\w*)|\[\s*(?P<key>{_TEXT})\s*\])"
_ATTRIBUTE = rf"device\.attributes\s*\[\s*(?P<domain>{_TEXT})\s*\]\s*{_NAME}"
_LIST = rf"\[\s*(?P<several>(?:{_TEXT})(?:\s*,\s*(?:{_TEXT}))*)\s*\]"
_VALUE = rf"(?:device\.(?P<driver>driver)|{_ATTRIBUTE})"
_COMPARED = regex(
    rf"(?:(?P<first>{_TEXT})\s*==\s*)?{_VALUE}"
    rf"(?:\s*==\s*(?P<one>{_TEXT})|\s*in\s+{_LIST})?"
)
_OPEN, _CLOSED, _QUOTES = frozenset("([{"), frozenset(")]}"), frozenset("'\"")
_DEEPEST = 8


def required_values(selectors: object) -> Mapping[str, frozenset[str]]:
    """Return the values that selectors allow, by `driver` or `domain/attribute`.

    Args:
        selectors: The field `selectors` of a request or a class. All of them apply.
    """
    found: dict[str, frozenset[str]] = {}
    for selector in sequence(selectors):
        expression = mapping(mapping(selector).get("cel")).get("expression")
        for name, values in _comparisons(expression):
            found[name] = found.get(name, values) & values
    return found


def are_late(selectors: object) -> bool:
    """Return whether a selector is not known yet."""
    parts: Sequence[Any] = sequence(selectors)
    expressions = (mapping(mapping(part).get("cel")).get("expression") for part in parts)
    return any(map(is_unresolved, (selectors, *parts, *expressions)))


def unread_part(selectors: object, names: Container[str]) -> str:
    """Return a part of selectors that selects by anything but these names; empty without one."""
    for selector in sequence(selectors):
        expression = mapping(mapping(selector).get("cel")).get("expression")
        if not isinstance(expression, str) or is_unresolved(expression):
            return "an expression that is not known yet"
        if len(expression) > _LONGEST:
            return "a very long expression"
        for part in _conjuncts(expression):
            compared = _comparison(part)
            if compared is None or compared[0] not in names:
                return part
    return ""


def _comparisons(expression: object) -> Iterator[tuple[str, frozenset[str]]]:
    if isinstance(expression, str) and not is_unresolved(expression):
        parts = _conjuncts(expression) if len(expression) <= _LONGEST else ()
        yield from filter(None, map(_comparison, parts))


def _comparison(part: str) -> tuple[str, frozenset[str]] | None:
    """Read one part: what it compares, and the values that it allows."""
    match = _COMPARED.fullmatch(part)
    texts = [] if match is None else [t for t in match.group("first", "one", "several") if t]
    if match is None or len(texts) != 1:
        return None
    name = match["field"] or _plain(match["key"] or "")
    key = DRIVER if match["driver"] else f"{_plain(match['domain'])}/{name}"
    return key, frozenset(map(_plain, re.findall(_TEXT, texts[0])))


def _conjuncts(expression: str, levels: int = _DEEPEST) -> Iterator[str]:
    """Yield the parts of an expression that must all hold; one with alternatives as a whole."""
    depth, start, parts = 0, 0, list[str]()
    for match in _WORD.finditer(expression):
        word = match[0]
        if word in _QUOTES or word.startswith("//") or (depth == 0 and word in {"||", "?"}):
            yield expression
            return
        depth += (word in _OPEN) - (word in _CLOSED)
        if depth == 0 and word == "&&":
            parts.append(expression[start : match.start()].strip())
            start = match.end()
    for part in (*parts, expression[start:].strip()):
        inner = _within(part)
        if inner and levels:
            yield from _conjuncts(inner, levels - 1)
        else:
            yield part


def _within(part: str) -> str:
    """Return what a pair of parentheses around a whole expression holds; empty without one."""
    depth = 0
    for match in _WORD.finditer(part) if part.startswith("(") else ():
        depth += (match[0] in _OPEN) - (match[0] in _CLOSED)
        if depth == 0:
            return part[1:-1] if match.end() == len(part) else ""
    return ""


def _plain(text: str) -> str:
    return text[1:-1]
