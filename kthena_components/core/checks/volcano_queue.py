"""Queues: what each one may take, owns and never lends. A rule's docstring documents it."""

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

from kthena_components.core.checks.kthena_reading import (
    first_gap,
    gap_of,
    key_text,
    mapping,
    not_checked,
    show,
    whole,
)
from kthena_components.core.checks.volcano_reading import Rule, advise, name_problem, spec_of
from kthena_components.core.findings import Finding, join_path
from kthena_components.core.known import Unknown
from kthena_components.core.quantity import parse_quantity

_MOST = 65535


def queue_weight(manifest: Mapping[str, Any]) -> Iterator[Finding]:
    """The weight of a queue is from 1 to 65535.

    Pass: weight 1.
    Fail: weight 0.
    Level: mandatory. The API server refuses it.
    Source: Volcano v1.14 config/crd/volcano/bases, scheduling.volcano.sh_queues.yaml.
    """
    stated = spec_of(manifest).get("weight")
    weight = whole(stated)
    if isinstance(weight, Unknown):
        yield not_checked("spec.weight", weight, "queue-weight")
    elif stated is not None and not (isinstance(weight, int) and 1 <= weight <= _MOST):
        yield Finding(
            path="spec.weight",
            seen=f"is {show(stated)}, but must be a whole number from 1 to {_MOST}",
            remedy=f"write a number from 1 to {_MOST}",
            rule="queue-weight",
        )


def queue_quantities(manifest: Mapping[str, Any]) -> Iterator[Finding]:
    """Of each resource a queue is guaranteed at most what it deserves, and that is within its cap.

    Where the larger list is given and does not name a resource, the webhook takes that for 0.
    In 1.14 it does so where deserved is not given at all, too.

    Pass: guarantee 8, deserved 16, capability 16.
    Fail: guarantee 8, capability 4; deserved cpu 100, where capability names nvidia.com/gpu alone.
    Level: mandatory, since Volcano's webhook refuses it; advisory for a guarantee alone.
    Source: Volcano v1.14 pkg/webhooks/admission/queues/validate/validate_queue.go
    validateResourceOfQueue.
    """
    spec, rule = spec_of(manifest), "queue-quantities"
    lists = {
        "guarantee.resource": mapping(spec.get("guarantee")).get("resource"),
        "deserved": spec.get("deserved"),
        "capability": spec.get("capability"),
    }
    for (low, less), (high, more) in combinations(lists.items(), 2):
        if high == "deserved" and (more is None or more == {}):
            yield from _guaranteed_alone(less)
        if less is None or more is None:
            continue
        if gap := first_gap(less, more):
            yield not_checked(f"spec.{low}", gap, rule)
            continue
        # A list that names nothing is like none.
        for resource in mapping(less) if mapping(more) else ():
            path = join_path(f"spec.{low}", key_text(resource))
            amount = mapping(less)[resource]
            if resource in mapping(more):
                yield from _ordered(path, high, amount, mapping(more)[resource])
            else:
                yield from _not_named(path, high, resource, amount)


def _guaranteed_alone(guaranteed: object) -> Iterator[Finding]:
    if gap := gap_of(guaranteed):
        yield not_checked("spec.guarantee.resource", gap, "queue-quantities")
    elif any((parse_quantity(amount) or 0) > 0 for amount in mapping(guaranteed).values()):
        yield advise(
            "spec.guarantee.resource",
            "is given without deserved, which Volcano's webhook takes for 0 and refuses in 1.14",
            "add deserved, with as much of each resource",
            "queue-quantities",
        )


def _not_named(path: str, high: str, resource: object, amount: object) -> Iterator[Finding]:
    """Judge an amount of which the larger list says nothing; counts of objects are no resources."""
    if gap := gap_of(amount):
        yield not_checked(path, gap, "queue-quantities")
    elif _is_resource(resource) and (parse_quantity(amount) or 0) > 0:
        yield Finding(
            path=path,
            seen=f"is {show(amount)}, but {high} does not name it, and Volcano's webhook takes "
            "that for 0 and refuses more",
            remedy=f"add it to {high}, with at least {amount}",
            rule="queue-quantities",
        )


def _is_resource(name: object) -> bool:
    """Tell whether Volcano counts a resource: of itself, or one with a domain of its own."""
    text = key_text(name)
    domain = "/" in text and not text.startswith(("count/", "requests."))
    return domain or text in {"cpu", "memory", "pods", "ephemeral-storage"}


def _ordered(path: str, high: str, less: object, more: object) -> Iterator[Finding]:
    if more is None or less is None:
        return
    if gap := first_gap(less, more):
        yield not_checked(path, gap, "queue-quantities")
        return
    low, limit = parse_quantity(less), parse_quantity(more)
    if low is not None and limit is not None and low > limit:
        yield Finding(
            path=path,
            seen=f"is {show(less)}, but {high} has {show(more)}, and Volcano's webhook refuses "
            "more than that",
            remedy=f"write at most {more}",
            rule="queue-quantities",
        )


def queue_parent(manifest: Mapping[str, Any]) -> Iterator[Finding]:
    """The parent of a queue is another queue, and has a name that a queue can have.

    Pass: parent research for the queue research-night.
    Fail: parent research for the queue research.
    Level: mandatory. Volcano's webhook refuses it.
    Source: Volcano v1.14 pkg/webhooks/admission/queues/validate/validate_queue.go
    validateHierarchicalQueue.
    """
    parent, name = spec_of(manifest).get("parent"), mapping(manifest.get("metadata")).get("name")
    if parent in (None, ""):
        return
    if gap_of(name) and not gap_of(parent):
        yield not_checked("spec.parent", gap_of(name) or Unknown(""), "queue-parent")
    elif isinstance(parent, str) and parent == name and not gap_of(parent):
        yield Finding(
            path="spec.parent",
            seen=f"is {show(parent)}, the queue itself, and Volcano's webhook refuses that",
            remedy="name another queue, or remove it",
            rule="queue-parent",
        )
    else:
        yield from name_problem(parent, "spec.parent", "the name of a Queue")


QUEUE_RULES: tuple[Rule, ...] = (queue_weight, queue_quantities, queue_parent)
