"""Decides which nodes accept a pod, and how many equal pods fit on a node. Pure.

Source: Kubernetes 1.34 component-helpers scheduling/corev1 (MatchNodeSelectorTerms) and
core/v1/toleration.go (ToleratesTaint), which Volcano's plugin `predicates` calls.
"""

import math
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from decimal import Decimal
from functools import cached_property, partial
from typing import Any

from kthena_components.core import naming
from kthena_components.core.topology.domains import Labels, holds, matches
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping, sequence, unknown_within
from kthena_components.core.values.unknown import is_unresolved

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
        labels: The labels of the others, in their namespace, or their own ones.

    Yields:
        The path of the term in the spec, and its topologyKey.
    """
    return _terms(spec, labels, "podAntiAffinity")


def together_with(spec: Body, labels: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
    """Yield the topology keys whose domains pods of a spec always share, as `apart_from` does."""
    return _terms(spec, labels, "podAffinity")


def _terms(spec: Body, labels: Mapping[Any, Any], kind: str) -> Iterator[tuple[str, str]]:
    """Yield the required terms of one kind that match some labels."""
    terms = mapping(mapping(spec.get("affinity")).get(kind)).get(REQUIRED)
    for index, term in enumerate(map(mapping, sequence(terms))):
        key, selector = term.get("topologyKey"), mapping(term.get("labelSelector"))
        of_these = isinstance(key, str) and not any(term.get(name) for name in _OTHER_PODS)
        stated = selector.get("matchLabels") or selector.get("matchExpressions")
        if of_these and not unknown_within(key) and stated and selects(selector, labels):
            yield f"affinity.{kind}.{REQUIRED}[{index}]", str(key)


def selects(selector: Body, labels: Mapping[Any, Any]) -> bool:
    """Return whether a selector surely matches pods of some labels."""
    expressions = sequence(selector.get("matchExpressions"))
    # Controllers add labels, and those of a template may not be known.
    stated = all(str(mapping(each).get("key")) in labels for each in expressions)
    late = unknown_within(selector, labels if expressions else None)
    return bool(stated and not late) and matches(selector, labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A constraint on the spread of pods that their scheduler must meet."""

    path: str = field(compare=False)
    """Its path in the spec."""
    key: str
    selector: Body = field(compare=False)
    """The pods that it counts."""
    counts: str
    """The same as a string, with the values of matchLabelKeys."""
    by_template: bool
    """Whether it counts pods of one template only, by a label that their controller adds."""
    keys: frozenset[str]
    """The labels that a Node must have to be in a domain: those of all constraints."""
    most: int
    """maxSkew."""
    domains: int
    """minDomains."""
    all_nodes: bool
    """Whether nodes that the pods do not select count."""
    no_tainted: bool
    """Whether nodes with taints that the pods do not tolerate do not count."""


_OF_TEMPLATES = frozenset({"pod-template-hash", "controller-revision-hash"})
"""Labels that controllers of Kubernetes add with one value to all pods of a template."""


def spreads(spec: Body, labels: Mapping[Any, Any]) -> Iterator[Spread]:
    """Yield the constraints that count the pods themselves; others never keep them off a node.

    One whose matchLabelKeys count each pod alone, by its index, is left out. Source: Kubernetes
    1.34 pkg/scheduler/framework/plugins/podtopologyspread/filtering.go and common.go.
    """
    stated = [*map(mapping, sequence(spec.get("topologySpreadConstraints")))]
    binding = [each for each in stated if each.get("whenUnsatisfiable") == "DoNotSchedule"]
    keys = frozenset(str(each.get("topologyKey")) for each in binding)
    for index, item in enumerate(stated):
        key, most = item.get("topologyKey"), item.get("maxSkew")
        domains, selector = item.get("minDomains"), item.get("labelSelector")
        same = {name: labels.get(name) for name in map(str, sequence(item.get("matchLabelKeys")))}
        added = {each for each, value in same.items() if value is None}
        late = unknown_within([*stated, *same.values()])
        if late or item not in binding or not added <= _OF_TEMPLATES:
            continue
        if not (isinstance(key, str) and isinstance(most, int) and isinstance(selector, Mapping)):
            continue
        if most > 0 and isinstance(domains, int | None) and selects(selector, labels):
            yield Spread(
                path=f"topologySpreadConstraints[{index}]",
                key=key,
                selector=selector,
                counts=repr((selector, sorted(same.items(), key=str))),
                by_template=bool(added),
                keys=keys,
                most=most,
                domains=domains or 1,
                all_nodes=item.get("nodeAffinityPolicy") == "Ignore",
                no_tainted=item.get("nodeTaintsPolicy") == "Honor",
            )


HostPort = tuple[str, str, int]
"""The protocol, the address and the number of a port of a node."""
_ANY = "0.0.0.0"  # noqa: S104 - compared only


def host_ports(spec: Body) -> Iterator[tuple[str, HostPort]]:
    """Yield the ports of its node that a pod takes, each with its path in the spec.

    With hostNetwork, that is each port of its containers. Source: Kubernetes 1.34
    pkg/scheduler/util/utils.go (GetHostPorts) and pkg/apis/core/v1/defaults.go
    (defaultHostNetworkPorts).
    """
    on_host = spec.get("hostNetwork") is True
    for place, container in _staying(spec):
        for number, port in enumerate(map(mapping, sequence(container.get("ports")))):
            taken = port.get("hostPort") or (port.get("containerPort") if on_host else None)
            known = isinstance(taken, int) and not unknown_within(port)
            if known and taken:
                address = str(port.get("hostIP") or "").replace(_ANY, "")
                path = f"{place}.ports[{number}]"
                yield path, (str(port.get("protocol") or "TCP"), address, taken)


def _staying(spec: Body) -> Iterator[tuple[str, Body]]:
    """Yield the containers that run as long as their pod, each with its path in the spec."""
    for key in ("containers", "initContainers"):
        for index, container in enumerate(map(mapping, sequence(spec.get(key)))):
            if key == "containers" or container.get("restartPolicy") == "Always":
                yield f"{key}[{index}]", container


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
    except (KeyError, TypeError, ValueError):
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


# Which of some Nodes pods may use.


_Test = Callable[[Body], bool]


def labels_of(node: Body) -> Labels:
    """Return the labels of a node. Values that are no strings are left out: no cluster has them."""
    labels = mapping(mapping(node.get("metadata")).get("labels"))
    if all(isinstance(value, str) for value in labels.values()):
        return labels
    return {key: value for key, value in labels.items() if isinstance(value, str)}


class NodeChoice:
    """Some Nodes, and which of them pods may use. Pods with equal constraints are asked once."""

    def __init__(self, nodes: list[Body]) -> None:
        """Take the Nodes."""
        self.nodes = nodes
        self._own = {str(key) for one in nodes for key in labels_of(one)}
        self._found: dict[str, tuple[list[Body], str]] = {}

    @cached_property
    def are_whole(self) -> bool:
        """Whether they have all labels of a cluster: the kubelet adds the label with the name."""
        return all(naming.HOSTNAME in labels_of(one) for one in self.nodes)

    def usable(
        self, spec: Mapping[str, Any], asked: Collection[str], labels: Container[str] | None = None
    ) -> tuple[list[Body], str]:
        """Return the Nodes on which pods may start, and the fields of the pods that exclude others.

        Args:
            asked: The resources that they request.
            labels: The labels that are compared. None: those that a Node has.
        """
        affinity = mapping(spec.get("affinity")).get("nodeAffinity")
        stated = (*map(spec.get, ("nodeName", "nodeSelector", "tolerations")), affinity)
        key = repr((stated, sorted(asked), labels is None))
        if key not in self._found:
            tests = _tests(spec, self._own if labels is None else labels, asked)
            self._found[key] = _usable(self.nodes, [*tests])
        return self._found[key]


class Every(Container[str]):
    """All labels."""

    def __contains__(self, key: object) -> bool:
        return True


def _usable(nodes: list[Body], tests: list[tuple[str, _Test]]) -> tuple[list[Body], str]:
    """Return the Nodes on which pods may start, and the fields of the pods that exclude others."""
    left, by = nodes, list[str]()
    for name, test in tests:
        allowed = [node for node in left if test(node)]
        if len(allowed) < len(left):
            left = allowed
            by.append(name)
    return left, " and ".join(by)


def _tests(
    spec: Mapping[str, Any], stated: Container[str], asked: Collection[str]
) -> Iterator[tuple[str, _Test]]:
    """Return what decides which Nodes pods may use, by field. Unknown values decide nothing."""
    name, selector = spec.get("nodeName"), mapping(spec.get("nodeSelector"))
    if isinstance(name, str) and name and not is_unresolved(name):
        yield "nodeName", lambda node: mapping(node.get("metadata")).get("name") == name
    wanted = {
        key: value for key, value in selector.items() if key in stated and not is_unresolved(value)
    }
    yield "nodeSelector", partial(_accepts, {"nodeSelector": wanted, **_ALL_TAINTS})
    yield "nodeAffinity", partial(_accepts, {"affinity": _affinity(spec, stated), **_ALL_TAINTS})
    if not unknown_within(spec.get("tolerations")):
        added = [{"operator": "Exists", "effect": "NoSchedule"}] if name else []  # by the kubelet
        tolerations = [*tolerating_devices(spec, asked)["tolerations"], *added]
        yield "tolerations", partial(_accepts, {"tolerations": tolerations})


_ALL_TAINTS = {"tolerations": [{"operator": "Exists"}]}


def _accepts(fields: Mapping[str, Any], node: Body) -> bool:
    """Return whether a Node may accept pods, by some fields of their spec."""
    labels = mapping(node.get("metadata")).get("labels")
    if unknown_within(labels) or unknown_within(mapping(node.get("spec")).get("taints")):
        return True
    return not any(obstacles(fields, node))


def _affinity(spec: Mapping[str, Any], stated: Container[str]) -> Mapping[str, Any]:
    """Return the required affinity to nodes, of labels that Nodes state; empty if none is left."""
    required = mapping(mapping(mapping(spec.get("affinity")).get("nodeAffinity")).get(REQUIRED))
    terms = [
        {
            **term,
            "matchExpressions": [
                each
                for each in map(mapping, sequence(term.get("matchExpressions")))
                if str(each.get("key")) in stated
            ],
        }
        for term in map(mapping, sequence(required.get("nodeSelectorTerms")))
    ]
    open_to_all = not all(term["matchExpressions"] or term.get("matchFields") for term in terms)
    if open_to_all or unknown_within(required):
        return {}
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}} if terms else {}
