"""Amounts in fields that Dynamo's CRDs do not have.

Source: ai-dynamo/dynamo deploy/operator/api/v1alpha1/common.go, ResourceItem. The field for nodes
of early releases is in docs/guides, Multinode Deployment Guide;
api/v1alpha1/dynamocomponentdeployment_types.go MultinodeSpec has the field of later ones.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.facts.context import Context
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.findings import Finding, join_path, refuse
from kthena_components.core.remedies import remove, together, write
from kthena_components.core.values.display import key_text
from kthena_components.core.values.read import first_unknown, mapping, unknown_in, whole
from kthena_components.systems.dynamo.view import LEAST_NODES, Component, template_of


def misplaced_nodes(item: Component) -> Iterator[Finding]:
    """Report the fields of a component that state a number of nodes in a wrong place."""
    stated = dict(_misplaced_counts(item))
    if not stated:
        return
    seen = "is not a field of Dynamo's CRD"
    seen += ", so an engine of this component has 1 pod" if item.nodes == 1 else ""
    yield refuse(next(iter(stated)), seen, _remedy(item, stated))


def _misplaced_counts(item: Component) -> Iterator[tuple[str, object]]:
    """List the fields of a component that other APIs use for its number of nodes."""
    multinode = mapping(item.fields.get("multinode"))
    for path, fields, names in (
        (item.path, item.fields, ("numberOfNodes", "nodeCount")),
        (f"{item.path}.multinode", multinode, ("numberOfNodes",)),
    ):
        # A map that is not known yet answers every lookup, but contains no key.
        present = (name for name in names if name in fields and fields[name] is not None)
        yield from ((f"{path}.{name}", fields[name]) for name in present)


def _remedy(item: Component, stated: Mapping[str, object]) -> str:
    """Keep the first number that multinode.nodeCount may have."""
    at, given = f"{item.path}.multinode", item.fields.get("multinode")
    removed = [remove(at=path) for path in stated]
    text = "remove it" if len(stated) == 1 else f"remove {' and '.join(stated)}"
    if unknown_in(given) or mapping(given).get("nodeCount") is not None:
        return together(*removed, text=text)
    numbers = [whole(number) for number in stated.values()]
    if first_unknown(*numbers):
        return f"{text}, and write the number as {at}.nodeCount"
    count = next((n for n in numbers if isinstance(n, int) and n >= LEAST_NODES), None)
    if count is not None:
        same = "it" if len(stated) == 1 else str(count)
        new = write({"nodeCount": count}, at=at)
        return together(*removed, new, text=f"write {same} as multinode.nodeCount")
    if given is None:
        return together(*removed, text=text)
    # An empty multinode would have 2 nodes.
    return together(*removed, remove(at=at), text=f"remove {at}: 1 node is the default")


def enough_nodes(item: Component, context: Context) -> str:
    """Say what to write for a number of nodes below the least one: as many as its engine needs."""
    pod = read_pod(template_of(item), item.path, context=context)
    ranks = None if pod.command is None else pod.command.per_rank_world
    gpus, at = pod.gpus, f"{item.path}.multinode"
    alone = remove(f"remove {at}", at=at)
    if not isinstance(ranks, int) or not isinstance(gpus, int) or gpus < 1:
        return f"{alone}, or write {LEAST_NODES} or more"
    return write(-(-ranks // gpus), at=f"{at}.nodeCount") if ranks > gpus else alone


_NAMES = ("cpu", "memory", "gpu", "gpuType", "custom")
_GPU = "nvidia.com/gpu"


def misplaced_amounts(item: Component) -> Iterator[Finding]:
    """Report the amounts of a component that have the names of a container's resources."""
    resources = mapping(item.fields.get("resources")) if item.alpha else {}
    for kind in ("limits", "requests"):
        amounts, at = mapping(resources.get(kind)), f"{item.path}.resources.{kind}"
        for name in amounts:
            if not unknown_in(name) and name not in _NAMES:
                yield from _misplaced(at, name, amounts)


def _misplaced(at: str, name: str, amounts: Mapping[str, Any]) -> Iterator[Finding]:
    """Refuse a resource name that Dynamo's CRD drops; `gpu` has a place of its own."""
    path, amount = join_path(at, key_text(name)), amounts[name]
    remedy = f"write it as custom: {{{key_text(name)}: …}}"
    if name == _GPU and amounts.get("gpu") is None:
        remedy, known = "write it as gpu", isinstance(amount, str | int)
        if known and not unknown_in(amount):
            moved = remove(at=path), write(str(amount), at=f"{at}.gpu")
            remedy = together(*moved, text=remedy)
    seen = f"is not a field of Dynamo's CRD, whose names are {', '.join(_NAMES)}"
    yield refuse(path, seen, remedy)
