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
from kthena_components.core.checks.volcano_reading import Rule, name_problem, spec_of
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

    Resources that only one of the lists names are not compared.

    Pass: guarantee 8, deserved 16, capability 16.
    Fail: guarantee 8, capability 4.
    Level: mandatory. Volcano's webhook refuses it.
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
        if less is None or more is None:
            continue
        if gap := first_gap(less, more):
            yield not_checked(f"spec.{low}", gap, rule)
            continue
        for resource in mapping(less):
            path = join_path(f"spec.{low}", key_text(resource))
            yield from _ordered(path, high, mapping(less)[resource], mapping(more).get(resource))


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
