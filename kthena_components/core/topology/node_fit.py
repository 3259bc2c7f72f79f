"""Decides which nodes accept a pod, and how many equal pods fit on a node. Pure.

Source: Kubernetes 1.34 component-helpers scheduling/corev1 (MatchNodeSelectorTerms) and
core/v1/toleration.go (ToleratesTaint), which Volcano's plugin `predicates` calls.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from kthena_components.core.topology.domains import Labels, holds
from kthena_components.core.values.read import mapping, sequence, unknown_within

Body = Mapping[str, Any]
_KEEPS_OUT = ("NoSchedule", "NoExecute")
_OF_KUBERNETES = "node.kubernetes.io/"
"""Taints of a cordoned, unready or overloaded node: a temporary state."""
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def obstacles(spec: Body, node: Body) -> Iterator[str]:
    """List why a node rejects pods of a spec, such as `with the taint …`; empty if it accepts."""
    labels = mapping(mapping(node.get("metadata")).get("labels"))
    wanted = mapping(spec.get("nodeSelector"))
    lacking = [f"{key}={value}" for key, value in wanted.items() if labels.get(key) != value]
    if lacking:
        yield f"without the {'label' if len(lacking) == 1 else 'labels'} {', '.join(lacking)}"
    if not _matches_affinity(spec, node, labels):
        yield "outside the node affinity"
    for taint in untolerated(spec, node):
        yield f"with the taint {_title(taint)}"


def tolerating_devices(spec: Body, requests: Iterable[str]) -> Body:
    """Add the tolerations that the API server's plugin ExtendedResourceToleration adds.

    Source: Kubernetes 1.34 plugin/pkg/admission/extendedresourcetoleration/admission.go.
    """
    added = [
        {"key": name, "operator": "Exists", "effect": "NoSchedule"}
        for name in requests
        if "/" in name and "kubernetes.io/" not in name
    ]
    return {**spec, "tolerations": [*sequence(spec.get("tolerations")), *added]}


def untolerated(spec: Body, node: Body) -> list[Body]:
    """List the taints of a node that pods of a spec do not tolerate."""
    tolerations = [mapping(item) for item in sequence(spec.get("tolerations"))]
    return [
        taint
        for taint in map(mapping, sequence(mapping(node.get("spec")).get("taints")))
        if taint.get("effect") in _KEEPS_OUT
        and not str(taint.get("key", "")).startswith(_OF_KUBERNETES)
        and not any(_tolerates(toleration, taint) for toleration in tolerations)
    ]


def _title(taint: Body) -> str:
    """Write a taint as kubectl does: `key=value:effect`."""
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key')}{value}:{taint.get('effect')}"


def _tolerates(toleration: Body, taint: Body) -> bool:
    """Return whether a toleration matches a taint, by the effect, the key and the value."""
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("key") not in (None, "", taint.get("key")):
        return False
    match toleration.get("operator"):
        case None | "" | "Equal":
            return (toleration.get("value") or "") == (taint.get("value") or "")
        case "Exists":
            return True
        case _:
            return False


_OTHER_PODS = ("namespaces", "namespaceSelector", "matchLabelKeys", "mismatchLabelKeys")


def apart_from(spec: Body, labels: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
    """Yield the topology keys whose domains pods of a spec never share with pods of some labels.

    A term that looks into other namespaces, or at labels by their keys, is left out, and one of
    which something is not known.

    Args:
        spec: The spec of the pods.
        labels: The labels of the others, in their namespace, or their own ones.

    Yields:
        The path of the term in the spec, and its topologyKey.
    """
    at = f"affinity.podAntiAffinity.{REQUIRED}"
    terms = mapping(mapping(spec.get("affinity")).get("podAntiAffinity")).get(REQUIRED)
    for index, term in enumerate(map(mapping, sequence(terms))):
        key, selector = term.get("topologyKey"), mapping(term.get("labelSelector"))
        wanted = mapping(selector.get("matchLabels"))
        expressions = sequence(selector.get("matchExpressions"))
        matches = all(labels.get(name) == value for name, value in wanted.items()) and all(
            holds(mapping(each), labels) for each in expressions
        )
        of_these = isinstance(key, str) and not any(term.get(name) for name in _OTHER_PODS)
        # Controllers add labels, and those of a template may not be known.
        stated = all(str(mapping(each).get("key")) in labels for each in expressions)
        late = unknown_within(key, selector, labels if expressions else None)
        if of_these and stated and not late and matches and (wanted or expressions):
            yield f"{at}[{index}]", str(key)


def _matches_affinity(spec: Body, node: Body, labels: Labels) -> bool:
    """Match the required node affinity: one term must match, and an empty term never does."""
    stated = mapping(mapping(mapping(spec.get("affinity")).get("nodeAffinity")).get(REQUIRED))
    if not stated:
        return True
    fields = {"metadata.name": str(mapping(node.get("metadata")).get("name", ""))}
    terms = map(mapping, sequence(stated.get("nodeSelectorTerms")))
    return any(
        all(_holds(item, labels) for item in by_label)
        and all(_holds(item, fields) for item in by_field)
        for term in terms
        for by_label in [sequence(term.get("matchExpressions"))]
        for by_field in [sequence(term.get("matchFields"))]
        if by_label or by_field
    )


def _holds(item: object, labels: Labels) -> bool:
    """Evaluate an expression of a node selector, with Gt and Lt for whole numbers."""
    expression: Mapping[str, Any] = mapping(item)
    operator = expression.get("operator")
    if operator not in ("Gt", "Lt"):
        return holds(expression, labels)
    try:
        seen = int(labels[str(expression.get("key"))])
        (bound,) = map(int, sequence(expression.get("values")))
    except (KeyError, ValueError):
        return False
    return seen > bound if operator == "Gt" else seen < bound


# Counts equal pods that fit on a node, for gangs in HyperNodes.


Amounts = Mapping[str, Decimal]
"""Amounts by resource name, in the base unit of each."""
USUAL_PODS = Decimal(110)
"""Maximum pods of a node that states no limit: the kubelet's default.

Source: kubernetes pkg/kubelet/apis/config/v1beta1/defaults.go, MaxPods.
"""


def slots(room: Amounts, each: Amounts) -> int:
    """Count the pods that fit into a node's free resources.

    Args:
        room: Free resources; a resource that is not listed has none, except `pods`.
        each: Requests of one pod. Zero amounts are ignored.
    """
    fits = [room.get(key, Decimal(0)) / amount for key, amount in each.items() if amount]
    most = min((*fits, room.get("pods", USUAL_PODS)))
    return max(0, math.floor(most)) if most.is_finite() else 0


def least_of(requests: Sequence[Amounts]) -> dict[str, Decimal]:
    """Return the smallest request of several pods, for each resource."""
    shared = set(requests[0]).intersection(*requests[1:]) if requests else set()
    return {key: min(one[key] for one in requests) for key in shared}
