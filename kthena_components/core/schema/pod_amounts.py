"""The amounts of resources that Kubernetes accepts in the containers of a pod.

Source: kubernetes pkg/apis/core/validation/validation.go validateContainerResourceRequirements,
validateContainerResourceName and validateContainerResourceFieldSelector.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from math import ceil
from typing import Any

from kthena_components.core.findings import Finding, join_path, suggest_name
from kthena_components.core.remedies import or_more, write
from kthena_components.core.schema.metadata import is_qualified
from kthena_components.core.values.display import display, key_text
from kthena_components.core.values.quantity import is_accelerator, parse_quantity, render_quantity
from kthena_components.core.values.read import mapping, pairs, unknown_in

RULE = "pod-values"
_STANDARD = ("cpu", "memory", "ephemeral-storage")
_PAGES = "hugepages-"
FIELDS = tuple(f"{kind}.{name}" for kind in ("limits", "requests") for name in _STANDARD)
"""What a resourceFieldRef may name, beside huge pages."""


def judge_amounts(resources: object, path: str) -> Iterator[Finding]:
    """Report amounts of a container that no pod may have. Unknown ones are left out."""
    limits, requests = (_amounts(mapping(resources).get(key)) for key in ("limits", "requests"))
    for kind, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            yield from _amount(name, amount, join_path(path, f"{kind}.{key_text(name)}"))
    if unknown_in(resources) or unknown_in(mapping(resources).get("limits")):
        return
    stated = mapping(mapping(resources).get("limits"))
    for name, amount in requests.items():
        at = join_path(path, f"requests.{key_text(name)}")
        if name in limits:
            yield from _compared(name, amount, limits[name], at)
        elif name not in stated and not _is_shared(name) and not is_accelerator(name):
            seen = f"is {render_quantity(amount)}, but there is no limit, and {_WHOLE}"
            yield _say(at, seen, f"add the limit {render_quantity(amount)}")
    if any(n.startswith(_PAGES) for n in (*limits, *requests)):
        named = {*limits, *requests, *stated}
        if named.isdisjoint(_STANDARD[:2]) and not unknown_in(mapping(resources).get("requests")):
            yield _say(path, "has huge pages, but neither cpu nor memory", "add cpu or memory")


_WHOLE = "the limit and the request of a device or of huge pages are equal"


def _amounts(stated: object) -> dict[str, Decimal]:
    found = {name: parse_quantity(amount) for name, amount in pairs(stated)}
    return {n: a for n, a in found.items() if isinstance(n, str) and a is not None}


def _is_shared(name: str) -> bool:
    """Return whether a resource may be requested in part: Kubernetes' own, except huge pages."""
    return ("/" not in name or "kubernetes.io/" in name) and not name.startswith(_PAGES)


def _amount(name: str, amount: Decimal, path: str) -> Iterator[Finding]:
    if "/" not in name and name not in _STANDARD and not name.startswith(_PAGES):
        seen = f"{display(name)} is no resource of a container"
        yield _say(path, seen, suggest_name(name, _STANDARD))
    elif not is_qualified(f"requests.{name}" if not _is_shared(name) else name):
        yield _say(path, f"{display(name)} is not the name of a resource", "rename it")
    if amount < 0:
        yield _say(path, f"is {render_quantity(amount)}, but must be at least 0", or_more(0))
    elif not _is_shared(name) and not name.startswith(_PAGES) and amount != int(amount):
        seen = f"is {render_quantity(amount)}, and an amount of devices is a whole number"
        yield _say(path, seen, f"write {ceil(amount)}")
    elif name.startswith(_PAGES):
        size = parse_quantity(name.removeprefix(_PAGES))
        if size is not None and size > 0 and amount % size:
            seen = f"is {render_quantity(amount)}, which is no multiple of the size of a page"
            yield _say(path, seen, f"write {render_quantity(size * ceil(amount / size))}")


def _compared(name: str, amount: Decimal, limit: Decimal, path: str) -> Iterator[Finding]:
    most = render_quantity(limit)
    if amount > limit and not (is_accelerator(name) and limit >= 0):
        seen = f"is {render_quantity(amount)}, more than the limit {most}"
        yield _say(path, seen, f"write {most} or less, or raise the limit")
    elif amount != limit and not _is_shared(name) and not is_accelerator(name):
        yield _say(path, f"is {render_quantity(amount)}, but the limit is {most}, and {_WHOLE}",
                   write(most, f"write {most}"))  # fmt: skip


def judge_resource_field(field: object, path: str, *, in_volume: bool = False) -> Iterator[Finding]:
    """Report a resourceFieldRef that names what it cannot read."""
    asked: Mapping[str, Any] = mapping(field)
    name = asked.get("resource")
    if isinstance(name, str) and not unknown_in(name):
        kind, _, resource = name.partition(".")
        pages = kind in {"limits", "requests"} and resource.startswith(_PAGES)
        if name not in FIELDS and not pages:
            seen = f"is {display(name)}, but only CPU, memory and storage have such a field"
            yield _say(f"{path}.resource", seen, f"write one of {', '.join(FIELDS)}")
    if in_volume and field is not None and not unknown_in(field) and not asked.get("containerName"):
        yield _say(path, "has no containerName, which a volume needs", "add containerName")


def _say(path: str, seen: str, remedy: str) -> Finding:
    return Finding(path=path, seen=seen, remedy=remedy, rule=RULE)
