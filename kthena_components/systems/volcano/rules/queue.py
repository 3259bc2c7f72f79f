"""Checks Queues: weights, limits, guarantees and parents, and the resources that Volcano counts.

Source: Volcano v1.14 pkg/scheduler/api/resource_info.go NewResource; k8s.io/kubernetes
pkg/apis/core/helper/helpers.go IsIntegerResourceName and pkg/apis/core/v1/helper/helpers.go.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, Decimal
from itertools import combinations
from typing import Any

from kthena_components.core.findings import Finding, join_path, part_of_rule
from kthena_components.core.objects.object import Object
from kthena_components.core.remedies import at_most, or_more
from kthena_components.core.schema.metadata import is_qualified
from kthena_components.core.schema.versions import has_since
from kthena_components.core.values.display import display, key_text
from kthena_components.core.values.quantity import parse_quantity
from kthena_components.core.values.read import mapping, require_known, text, unknown_in, whole
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import known
from kthena_components.systems.volcano.rules.hypernode_names_topology import volcano_name
from kthena_components.systems.volcano.view import Rule, name_problem

DEFAULTED = frozenset({"cpu", "memory"})
"""Resources of every list: 0 by default."""
_WHOLE = frozenset(
    {
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    }
)
_MOST_OF_ALL = 2**63 - 1


def is_whole(resource: str) -> bool:
    """Return whether a resource has no fractions: a count of objects or devices."""
    return resource in _WHOLE or _is_device(resource)


def is_counted(resource: str) -> bool:
    """Return whether Volcano counts a resource at all; it ignores others."""
    if resource.startswith("count/"):
        return False
    prefixed = resource.startswith(("hugepages-", "attachable-volumes-"))
    known = resource in DEFAULTED or resource in {"pods", "ephemeral-storage"}
    return known or prefixed or "kubernetes.io/" in resource or _is_device(resource)


def largest(resource: str) -> int:
    """Return the largest amount that Volcano can count: beyond 64 bits it compares wrongly."""
    return _MOST_OF_ALL // _units(resource)


def in_units(resource: str, amount: Decimal) -> int:
    """Return an amount in Volcano's units: ones for memory and pods, thousandths for others."""
    return int((amount * _units(resource)).to_integral_value(ROUND_CEILING))


def together(resource: str, amounts: Iterable[Decimal]) -> Decimal:
    """Add amounts as Volcano does, each rounded up to its units."""
    return Decimal(sum(in_units(resource, amount) for amount in amounts)) / _units(resource)


def exceeds(resource: str, amounts: Sequence[Decimal], limit: Decimal | None) -> bool:
    """Return whether the sum of amounts exceeds a limit; None for a list without the resource.

    A missing resource counts as 0, and for a device even 0 is more. Resources that Volcano does not
    or can no longer count exceed nothing.
    """
    stated = [*amounts, *([] if limit is None else [limit])]
    if not (amounts and is_counted(resource)) or max(stated) > largest(resource):
        return False
    total = together(resource, amounts)
    if limit is None:
        return total > 0 or resource not in DEFAULTED
    return total > together(resource, [limit])


def _units(resource: str) -> int:
    return 1 if resource in {"memory", "pods"} else 1000


def _is_device(resource: str) -> bool:
    if "/" not in resource or "kubernetes.io/" in resource or resource.startswith("requests."):
        return False
    return is_qualified(f"requests.{resource}")


_MOST = 65535
_HIERARCHY, _WEIGHTS = "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"
_NUMBER = regex(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?|inf(?:inity)?", re.IGNORECASE
)


def queue_weight(found: Object) -> Iterator[Finding]:
    """The weight of a queue is from 1 to 65535.

    Pass: weight 1.
    Fail: weight 0.
    Level: mandatory. The API server rejects it.
    Source: Volcano v1.14 config/crd/volcano/bases, scheduling.volcano.sh_queues.yaml.
    """
    stated = found.spec.get("weight")
    weight = whole(stated)
    weight = known(weight, "spec.weight")
    if stated is not None and not (isinstance(weight, int) and 1 <= weight <= _MOST):
        yield Finding(
            path="spec.weight",
            seen=f"is {display(stated)}, but must be a whole number from 1 to {_MOST}",
            remedy=f"write a number from 1 to {_MOST}",
        )


def queue_quantities(found: Object) -> Iterator[Finding]:
    """For each resource of a queue, guarantee is at most deserved, and deserved at most capability.

    Since 1.14.2 a resource that capability does not name has no limit, and a guarantee needs
    deserved to name the same resource. In 1.14.0 and 1.14.1 a resource that the larger list does
    not name counts as 0. No amount is negative, and pods and devices have no fractions.

    Pass: guarantee 8, deserved 16, capability 16; deserved cpu 100, if capability only names
    nvidia.com/gpu (since 1.14.2).
    Fail: guarantee 8, deserved 4; deserved 8, capability 4; nvidia.com/gpu 500m.
    Level: mandatory, because Volcano's webhook rejects it.
    Source: Volcano v1.14.1, v1.14.2 and v1.15.1 pkg/webhooks/admission/queues/validate/
    validate_queue.go validateResourceOfQueue, since 1.14.2 validateResourceQuantityOfQueue.
    """
    spec, newer = found.spec, caps_only_what_it_names(found)
    lists = {
        "guarantee.resource": _without_null(mapping(spec.get("guarantee")).get("resource")),
        "deserved": _without_null(spec.get("deserved")),
        "capability": _without_null(spec.get("capability")),
    }
    for where, stated in lists.items():
        for resource, amount in mapping(stated).items():
            yield from _amount(join_path(f"spec.{where}", key_text(resource)), resource, amount)
    for (low, less), (high, more) in combinations(lists.items(), 2):
        if high == "deserved" and (more is None or more == {}):
            yield from _guaranteed_alone(less, newer=newer)
        if less is None or more is None or (newer and high == "capability" != low != "deserved"):
            continue
        yield from _compared(f"spec.{low}", high, (less, more), newer=newer)


@part_of_rule
def _compared(
    low: str, high: str, lists: tuple[object, object], *, newer: bool
) -> Iterator[Finding]:
    """Compare two lists of amounts by resource; newer releases accept missing resources."""
    require_known(low, *lists)
    less, more = map(mapping, lists)
    for resource, amount in less.items() if more else ():  # An empty list equals a missing one.
        path = join_path(low, key_text(resource))
        if resource in more:
            yield from _ordered(path, high, resource, (amount, more[resource]), newer=newer)
        elif not newer or high == "deserved":
            yield from _not_named(path, high, resource, amount, newer=newer)


def caps_only_what_it_names(found: Object) -> bool:
    """Tell whether the Volcano that reads a queue limits no resource that capability does not name.

    Source: Volcano v1.14.2 pkg/webhooks/admission/queues/validate/validate_queue.go.
    """
    return has_since(found.context.versions, "volcano", "1.14.2")


def _without_null(listed: object) -> object:
    """Drop null values, as the API server does."""
    if not isinstance(listed, dict):
        return listed
    return {resource: amount for resource, amount in listed.items() if amount is not None}


def _amount(path: str, resource: object, amount: object) -> Iterator[Finding]:
    """Check an amount: at least 0, countable by Volcano, and whole for counted resources."""
    number = parse_quantity(amount)
    if unknown_in(amount) or number is None:
        return
    if number > largest(str(resource)):
        seen = f"is {display(amount)}, more than Volcano can count"
        yield Finding(path=path, seen=seen, remedy=f"write at most {largest(str(resource))}")
    elif number < 0:
        seen = f"is {display(amount)}, but must be at least 0"
        yield Finding(path=path, seen=seen, remedy=or_more(0))
    elif is_whole(str(resource)) and in_units("", number) % 1000:
        seen = f"is {display(amount)}, but this resource is counted in whole numbers"
        yield Finding(path=path, seen=seen, remedy="write a whole number")


@part_of_rule
def _guaranteed_alone(guaranteed: object, *, newer: bool) -> Iterator[Finding]:
    """Report a guarantee without deserved, which the webhook takes as 0."""
    path = "spec.guarantee.resource"
    require_known(path, guaranteed)
    if any(newer or _exceeds(*stated, None) for stated in mapping(guaranteed).items()):
        yield Finding(
            path=path,
            seen="is given without deserved, and Volcano's webhook rejects a guarantee above that",
            remedy="add deserved, with as much of each resource",
        )


def _exceeds(resource: object, amount: object, limit: object) -> bool:
    number = parse_quantity(amount)
    return number is not None and exceeds(str(resource), [number], parse_quantity(limit))


@part_of_rule
def _not_named(
    path: str, high: str, resource: object, amount: object, *, newer: bool
) -> Iterator[Finding]:
    """Check an amount that the larger list does not name; counts of objects are not resources."""
    require_known(path, amount)
    if newer or _exceeds(resource, amount, None):
        why = "" if newer else " counts that as 0 and"
        yield Finding(
            path=path,
            seen=f"is {display(amount)}, but {high} does not name it, and Volcano's webhook{why} "
            f"rejects {'that' if newer else 'more'}",
            remedy=f"add it to {high}, with at least {amount}",
        )


@part_of_rule
def _ordered(
    path: str, high: str, resource: object, amounts: tuple[object, object], *, newer: bool
) -> Iterator[Finding]:
    """Report an amount above its limit; older releases compare in whole units."""
    less, more = amounts
    require_known(path, less, more)
    least, most = parse_quantity(less), parse_quantity(more)
    if least is None or most is None:
        return
    if least > most if newer else _exceeds(resource, less, more):
        yield Finding(
            path=path,
            seen=f"is {display(less)}, but {high} has {display(more)}, and Volcano's webhook "
            "rejects more than that",
            remedy=at_most(more),
        )


def queue_parent(found: Object) -> Iterator[Finding]:
    """The parent of a queue is another queue, with a valid name.

    A hierarchy in annotations has as many weights as parts, and each weight is above 0.

    Pass: parent research for the queue research-night.
    Fail: parent research for the queue research.
    Level: mandatory. Volcano's webhook rejects it.
    Source: Volcano v1.14 pkg/webhooks/admission/queues/validate/validate_queue.go
    validateHierarchicalQueue and validateHierarchicalAttributes.
    """
    yield from _hierarchy(mapping(found.metadata.get("annotations")))
    parent, name = found.spec.get("parent"), found.metadata.get("name")
    if parent is None:
        return
    require_known("spec.parent", None if unknown_in(parent) else name)
    if isinstance(parent, str) and parent == name and not unknown_in(parent):
        yield Finding(
            path="spec.parent",
            seen=f"is {display(parent)}, the queue itself, and Volcano's webhook rejects that",
            remedy="name another queue, or remove it",
        )
    else:
        yield from name_problem(parent, "spec.parent", "the name of a Queue")


@part_of_rule
def _hierarchy(annotations: Mapping[str, Any]) -> Iterator[Finding]:
    """Check the annotations of a hierarchy: as many weights as parts, all above 0."""
    path = "metadata.annotations"
    parts, weights = (text(annotations.get(key), "") for key in (_HIERARCHY, _WEIGHTS))
    require_known(path, parts, weights)
    if not (isinstance(parts, str) and isinstance(weights, str) and (parts or weights)):
        return
    numbers = weights.split("/")
    if len(parts.split("/")) != len(numbers):
        seen = f"{_HIERARCHY} {display(parts)} and {_WEIGHTS} {display(weights)} differ in length"
        yield Finding(path=path, seen=seen, remedy="write a weight for each part")
    elif wrong := [number for number in numbers if not _is_weight(number)]:
        seen = f"{_WEIGHTS} has {display(wrong[0])}, which is not a number above 0"
        yield Finding(path=path, seen=seen, remedy="write, for example, 1")


def _is_weight(written: str) -> bool:
    return _NUMBER.fullmatch(written) is not None and float(written) > 0


QUEUE_RULES: tuple[Rule, ...] = (volcano_name, queue_weight, queue_quantities, queue_parent)
