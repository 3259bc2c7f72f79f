"""The amounts of resources that Kubernetes accepts in a pod and in its containers.

Source: kubernetes pkg/apis/core/validation/validation.go validateResourceRequirements,
validateContainerResourceName, validateContainerResourceFieldSelector, validatePodResourceName and
validatePodResourceConsistency.
"""

from collections.abc import Container, Iterator, Mapping
from decimal import Decimal
from math import ceil
from typing import Any

from kthena_components.core.findings import Finding, join_path, suggest_name
from kthena_components.core.remedies import or_more
from kthena_components.core.schema.metadata import is_qualified, say
from kthena_components.core.values.display import display, key_text
from kthena_components.core.values.quantity import is_accelerator, parse_quantity, render_quantity
from kthena_components.core.values.read import mapping, pairs, sequence, unknown_in

_STANDARD = ("cpu", "memory", "ephemeral-storage")
_PAGES = "hugepages-"
FIELDS = tuple(f"{kind}.{name}" for kind in ("limits", "requests") for name in _STANDARD)
"""What a resourceFieldRef may name, beside huge pages."""
_PARTS = frozenset({Decimal(1), Decimal("0.001")})
_UNITS = frozenset(
    Decimal(base) ** power for base in (1000, 1024) for power in range(7)
)  # 1, 1k to 1E, 1Ki to 1Ei


def check_amounts(resources: object, path: str) -> Iterator[Finding]:
    """Report amounts of a container that no pod may have. Unknown ones are left out."""
    limits, requests = (_amounts(mapping(resources).get(key)) for key in ("limits", "requests"))
    if not limits and not requests:
        return
    for kind, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            yield from _amount(name, amount, amounts, join_path(path, f"{kind}.{key_text(name)}"))
    if unknown_in(resources) or unknown_in(mapping(resources).get("limits")):
        return
    stated = mapping(mapping(resources).get("limits"))
    for name, amount in requests.items():
        at = join_path(path, f"requests.{key_text(name)}")
        if name in limits:
            yield from _compared(name, amount, limits[name], at, _as_stated(stated[name]))
        elif name not in stated and not _is_shared(name) and not is_accelerator(name):
            seen = f"is {render_quantity(amount)}, but there is no limit, and {_WHOLE}"
            yield say(at, seen, f"add the limit {render_quantity(amount)}")
    if any(n.startswith(_PAGES) for n in (*limits, *requests)):
        named = {*limits, *requests, *stated}
        if named.isdisjoint(_STANDARD[:2]) and not unknown_in(mapping(resources).get("requests")):
            yield say(path, "has huge pages, but neither cpu nor memory", "add cpu or memory")


def check_pod_amounts(pod: Mapping[str, Any], path: str) -> Iterator[Finding]:
    """Report amounts for all containers of a pod together: only CPU, memory and huge pages."""
    resources, at = mapping(pod.get("resources")), join_path(path, "resources")
    for kind in ("limits", "requests"):
        for name in _amounts(resources.get(kind)):
            if not _is_of_pods(name):
                seen = "is for the whole pod, which only cpu, memory and huge pages may be"
                where = join_path(at, f"{kind}.{key_text(name)}")
                yield say(where, seen, "move it to resources of a container")
    if resources.get("claims") and not unknown_in(resources["claims"]):
        seen = "is for the whole pod, which no claim may be"
        yield say(f"{at}.claims", seen, "move it to resources of a container")
    kept = {
        kind: {name: amount for name, amount in pairs(resources.get(kind)) if _is_of_pods(name)}
        for kind in ("limits", "requests")
    }
    yield from check_amounts(kept, at)
    yield from _beside_pod(pod, resources, path)


def _is_of_pods(name: object) -> bool:
    """Return whether an amount may be for a whole pod.

    Source: k8s.io/component-helpers v0.34 resource/helpers.go IsSupportedPodLevelResource.
    """
    return name in {"cpu", "memory"} or str(name).startswith(_PAGES)


def _beside_pod(pod: Mapping[str, Any], whole: Mapping[str, Any], path: str) -> Iterator[Finding]:
    """Compare the amounts of containers with those of their pod."""
    containers = [mapping(each) for each in sequence(pod.get("containers"))]
    most, least = _amounts(whole.get("limits")), _amounts(whole.get("requests"))
    asked: dict[str, Decimal] = {}
    for index, each in enumerate(containers):
        own = mapping(each.get("resources"))
        limits, requests = _amounts(own.get("limits")), _amounts(own.get("requests"))
        # A request that is not stated equals the limit; one that is not known counts as nothing.
        hidden = own.get("requests")
        known = limits if unknown_in(hidden) is None else {}
        usual = {name: known[name] for name in known if name not in mapping(hidden)}
        for name, amount in {**usual, **requests}.items():
            asked[name] = asked.get(name, Decimal(0)) + amount
        for name in limits:
            if name in most and limits[name] > most[name]:
                at = f"{path}.containers[{index}].resources.limits.{key_text(name)}"
                seen = f"is {render_quantity(limits[name])}, more than the pod's limit "
                seen += render_quantity(most[name])
                yield say(at, seen, f"write {render_quantity(most[name])} or less")
    for name, amount in least.items():
        if asked.get(name, amount) > amount:
            at = join_path(path, f"resources.requests.{key_text(name)}")
            seen = f"is {render_quantity(amount)}, but its containers request "
            seen += render_quantity(asked[name])
            yield say(at, seen, f"write {render_quantity(asked[name])}")


_WHOLE = "the limit and the request of a device or of huge pages are equal"


def _amounts(stated: object) -> dict[str, Decimal]:
    found = {name: parse_quantity(amount) for name, amount in pairs(stated)}
    return {n: a for n, a in found.items() if isinstance(n, str) and a is not None}


def _is_shared(name: str) -> bool:
    """Return whether a resource may be requested in part: Kubernetes' own, except huge pages."""
    return ("/" not in name or "kubernetes.io/" in name) and not name.startswith(_PAGES)


def _amount(name: str, amount: Decimal, stated: Container[str], path: str) -> Iterator[Finding]:
    if "/" not in name and name not in _STANDARD and not name.startswith(_PAGES):
        seen = f"{display(name)} is no resource of a container"
        yield say(path, seen, suggest_name(name, _STANDARD, stated))
    elif not is_qualified(f"requests.{name}" if not _is_shared(name) else name):
        yield say(path, f"{display(name)} is not the name of a resource", "rename it")
    if amount < 0:
        yield say(path, f"is {render_quantity(amount)}, but must be at least 0", or_more(0))
    elif not _is_shared(name) and not name.startswith(_PAGES) and amount != int(amount):
        seen = f"is {render_quantity(amount)}, and an amount of devices is a whole number"
        yield say(path, seen, f"write {ceil(amount)}")
    elif name.startswith(_PAGES):
        size = parse_quantity(name.removeprefix(_PAGES))
        if size is not None and size > 0 and amount % size:
            seen = f"is {render_quantity(amount)}, which is no multiple of the size of a page"
            yield say(path, seen, f"write {render_quantity(size * ceil(amount / size))}")


def _compared(
    name: str, amount: Decimal, limit: Decimal, path: str, most: str
) -> Iterator[Finding]:
    """Compare a request with its limit, which is written like `most`."""
    if amount > limit and not (is_accelerator(name) and limit >= 0):
        seen = f"is {render_quantity(amount)}, more than the limit {most}"
        yield say(path, seen, f"write {most} or less, or raise the limit")
    elif amount != limit and not _is_shared(name) and not is_accelerator(name):
        yield say(path, f"is {render_quantity(amount)}, but the limit is {most}, and {_WHOLE}",
                  f"write {most}")  # fmt: skip


def _as_stated(amount: object) -> str:
    """Write an amount as in the manifest: 64M is easier to find there than 62500Ki."""
    return amount if isinstance(amount, str) else display(amount)


def check_resource_field(field: object, path: str, *, in_volume: bool = False) -> Iterator[Finding]:
    """Report a resourceFieldRef that names what it cannot read."""
    asked: Mapping[str, Any] = mapping(field)
    name = asked.get("resource")
    if isinstance(name, str) and not unknown_in(name):
        kind, _, resource = name.partition(".")
        pages = kind in {"limits", "requests"} and resource.startswith(_PAGES)
        if name not in FIELDS and not pages:
            seen = f"is {display(name)}, but only CPU, memory and storage have such a field"
            yield say(f"{path}.resource", seen, f"write one of {', '.join(FIELDS)}")
    yield from _divisor(asked, path)
    if in_volume and field is not None and not unknown_in(field) and not asked.get("containerName"):
        yield say(path, "has no containerName, which a volume needs", "add containerName")


def _divisor(asked: Mapping[str, Any], path: str) -> Iterator[Finding]:
    name, divisor = asked.get("resource"), parse_quantity(asked.get("divisor"))
    if not isinstance(name, str) or unknown_in(name) or not divisor:
        return
    is_cpu = name.endswith(".cpu")
    if divisor not in (_PARTS if is_cpu else _UNITS):
        units = "1 or 1m" if is_cpu else "1 or a unit, such as 1Mi or 1G"
        yield say(f"{path}.divisor", f"is {display(asked['divisor'])}, but must be {units}",
                  f"write {'1' if is_cpu else '1Mi'}")  # fmt: skip
