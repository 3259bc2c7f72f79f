"""Rules of one object: the ports of a Service, and the selector and rollout of a workload."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

from kthena_components.core.findings import Finding, each_of, part_of_rule, refuse
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import GroupKind, Object
from kthena_components.core.remedies import either, remove, write
from kthena_components.core.schema.metadata import is_label, short_name
from kthena_components.core.schema.pod_containers import is_port_name
from kthena_components.core.topology.domains import OPERATORS, holds
from kthena_components.core.values.display import display, listing
from kthena_components.core.values.read import (
    MAX_PORT,
    digits,
    is_map,
    list_of_texts,
    mapping,
    require_known,
    sequence,
    unknown_inside,
    whole,
)
from kthena_components.core.values.regex import regex

_SERVICE: GroupKind = ("", "Service")
_LABELS, _SELECTOR = "spec.template.metadata.labels", "spec.selector"
_REFUSES = "so the API server refuses the object"


def selector_matches_template(found: Object) -> Iterator[Finding]:
    """The selector of a workload matches the labels of its own pod template.

    A label in the selector that the template lacks, or has with another value, is refused when the
    object is created. So is a template without a label that an expression requires, and an object
    whose template has labels without a selector, or with an empty one.

    Pass: matchLabels app chat-1, and a template with the labels app chat-1 and tier gpu.
    Fail: matchLabels app chat-1, and a template with app chat-2, or without labels; no selector.
    Level: mandatory.
    Source: kubernetes v1.34 pkg/apis/apps/validation/validation.go (ValidateDaemonSetSpec,
    ValidatePodTemplateSpecForStatefulSet, ValidatePodTemplateSpecForReplicaSet,
    ValidateDeploymentSpec, ValidateStatefulSetSpec); apimachinery
    pkg/apis/meta/v1/helpers.go (LabelSelectorAsSelector).
    """
    selector, template = found.spec.get("selector"), found.spec.get("template")
    if not is_map(template):
        return  # The finding about its containers says that it is not known.
    require_known(_SELECTOR, selector)
    metadata = mapping(template).get("metadata")
    stated = mapping(metadata).get("labels")
    require_known(_LABELS, metadata, stated)
    labels = mapping(stated)
    if selector is None or (is_map(selector) and not any(selector.values())):
        yield from _no_selector(template, labels, is_empty=selector is not None)
    if not is_map(selector):
        return
    for key, value in mapping(mapping(selector).get("matchLabels")).items():
        yield from _same(str(key), value, labels)
    for index, term in enumerate(sequence(mapping(selector).get("matchExpressions"))):
        yield from _holds(f"{_SELECTOR}.matchExpressions[{index}]", mapping(term), labels)


def _no_selector(
    template: Mapping[str, Any], labels: Mapping[str, Any], *, is_empty: bool
) -> Iterator[Finding]:
    """Report a missing selector. A template without labels is taken for a part of an object."""
    if labels and not unknown_inside(labels) and mapping(template.get("spec")).get("containers"):
        why = "is empty and would select all pods" if is_empty else "is missing"
        text = "write the labels of the template as matchLabels"
        yield refuse(_SELECTOR, f"{why}, {_REFUSES}", write({"matchLabels": {**labels}}, text))


@part_of_rule
def _same(key: str, value: Any, labels: Mapping[str, Any]) -> Iterator[Finding]:
    own = labels.get(key)
    require_known(_LABELS, value, own)
    if not isinstance(value, str) or own == value or not isinstance(own, str | None):
        return
    has = f"have no {key}" if own is None else f"have {key}: {display(own)}"
    seen = f"{has}, but {_SELECTOR}.matchLabels asks for {display(value)}, {_REFUSES}"
    yield refuse(_LABELS, seen, write({**labels, key: value}, f"write {key}: {value}"))


@part_of_rule
def _holds(path: str, term: Mapping[str, Any], labels: Mapping[str, Any]) -> Iterator[Finding]:
    """Check one expression of a selector against the labels of the object's own template."""
    key, operator, listed = (term.get(name) for name in ("key", "operator", "values"))
    require_known(path, key, operator, listed, unknown_inside(listed), labels.get(str(key)))
    own = labels.get(str(key))
    values = list_of_texts(listed)
    if isinstance(key, str) and operator in OPERATORS and not holds(term, labels):
        wanted = f" {listing(map(display, values), 'or')}" if values else ""
        has = "no such label" if own is None else f"the label {display(own)}"
        seen = f"is {key} {operator}{wanted}, and the template has {has}, {_REFUSES}"
        yield refuse(path, seen, "change the expression, or the label of the template")


_STRATEGY = {"Deployment": "spec.strategy", "DaemonSet": "spec.updateStrategy"}
"""Where kinds that may add pods in an update state how. A StatefulSet replaces one by one."""


def rollout_strategy(found: Object) -> Iterator[Finding]:
    """The rolling update of a workload may add or remove a pod, and has the type RollingUpdate.

    With maxSurge 0, maxUnavailable is at least 1: otherwise no pod could ever be replaced. On nodes
    whose GPUs are all in use, that is the way to update. A Deployment with the type Recreate, and a
    StatefulSet with OnDelete, have no rollingUpdate.

    Pass: maxSurge 0 and maxUnavailable 1; type Recreate alone.
    Fail: maxSurge 0 and maxUnavailable 0; type Recreate with rollingUpdate.
    Level: mandatory. The API server rejects the object.
    Source: kubernetes v1.34 pkg/apis/apps/validation/validation.go
    (ValidateRollingUpdateDeployment, ValidateDeploymentStrategy, ValidateRollingUpdateDaemonSet,
    ValidateStatefulSetSpec), pkg/apis/apps/v1/defaults.go (25 % of each; of a DaemonSet, no surge).
    """
    if not is_map(found.spec.get("template")):
        return  # The finding about its containers says that it is not known.
    path = _STRATEGY.get(found.kind, "spec.updateStrategy")
    strategy = found.spec.get(path.rpartition(".")[2])
    kind, rolling = (mapping(strategy).get(key) for key in ("type", "rollingUpdate"))
    require_known(path, strategy, kind, rolling)
    without = {"Deployment": "Recreate", "StatefulSet": "OnDelete"}.get(found.kind)
    if without and kind == without and rolling is not None:
        seen = f"is stated with the type {without}, {_REFUSES}"
        change = write("RollingUpdate", "write type RollingUpdate", at=found.at(f"{path}.type"))
        yield refuse(f"{path}.rollingUpdate", seen, either(remove(), change))
    elif found.kind in _STRATEGY and kind in (None, "", "RollingUpdate"):
        yield from _moves(mapping(rolling), f"{path}.rollingUpdate", found.kind)


def _moves(rolling: Mapping[str, Any], path: str, kind: str) -> Iterator[Finding]:
    surge, away = (rolling.get(key) for key in ("maxSurge", "maxUnavailable"))
    require_known(path, surge, away)
    usual = (0, 1) if kind == "DaemonSet" else ("25%", "25%")
    surge, away = usual[0] if surge is None else surge, usual[1] if away is None else away
    if surge in _NONE and away in _NONE:
        seen = f"is {display(away)}, and maxSurge is {display(surge)}, so no pod could be replaced"
        yield refuse(f"{path}.maxUnavailable", seen, write(1))


_NONE = (0, "0%")


_WHOLE = ("clusterIP", "selector", "type")
"""Fields of a Service that a patch which only changes ports does not have."""


def _with_ports(cluster: ClusterObjects) -> Iterator[tuple[Object]]:
    for one in cluster.of(_SERVICE):
        if any(key in one.spec for key in _WHOLE):
            yield (one,)


@each_of(_with_ports)
def service_ports(service: Object) -> Iterator[Finding]:
    """A Service has ports: several have names, and no two have one name, number or nodePort.

    A headless Service and one of type ExternalName may have none. Two ports may have the same
    number if their protocols differ. A targetPort that is a string is the name of a port of the
    container, so it has a letter, and at most 15 characters. A Service of type ClusterIP, the
    default, has no nodePort.

    Pass: {name: http, port: 80} and {name: metrics, port: 9090}; one port without a name.
    Fail: port 80 and port 9090, both without names; two ports with the name http; port 80 twice;
    targetPort "8000"; nodePort 30080 without a type; a selector without ports.
    Level: mandatory. The API server rejects the Service.
    Source: kubernetes v1.34 pkg/apis/core/validation/validation.go ValidateService and
    validateServicePort; staging/src/k8s.io/apimachinery/pkg/util/validation/validation.go
    IsValidPortName; pkg/apis/core/v1/defaults.go SetDefaults_Service.
    """
    ports = sequence(service.spec.get("ports"))
    yield from _no_ports(service)
    taken: dict[tuple[object, ...], int] = {}
    stated = {mapping(port).get("name") for port in ports if _is_name(mapping(port).get("name"))}
    for index, port in enumerate(map(mapping, ports)):
        if not port:
            continue
        path = service.at(f"spec.ports[{index}]")
        yield from _port_name(path, port, stated, many=len(ports) > 1)
        yield from _port_taken(path, port, taken, index)
        yield from _port_fields(path, port, service)


@part_of_rule
def _no_ports(service: Object) -> Iterator[Finding]:
    """Report that no port is stated. Without a selector, the object may be a part of one."""
    spec = service.spec
    kind, address, listed = (spec.get(key) for key in ("type", "clusterIP", "ports"))
    if listed in (None, []) and mapping(spec.get("selector")) and address != "None":
        require_known("spec.ports", kind, address, listed)
        if kind != "ExternalName":
            seen = "is missing, and only a headless Service and one of type ExternalName have none"
            yield refuse(service.at("spec.ports"), seen, "add the port of the pods")


def _is_name(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and bool(value)


@part_of_rule
def _port_name(
    path: str, port: Mapping[str, Any], stated: set[Any], *, many: bool
) -> Iterator[Finding]:
    require_known(f"{path}.name", name := port.get("name"))
    if many and name in (None, ""):
        number = whole(port.get("port"))
        free = f"port-{number}" if isinstance(number, int) else "http"
        words = (free, *(f"{free}-{n}" for n in range(2, len(stated) + 2)))
        new = next(word for word in words if word not in stated)
        stated.add(new)
        seen = "is missing, but the API server requires a name for each of several ports"
        yield refuse(f"{path}.name", seen, write(new))
    elif _is_name(name) and not is_label(name) and not _TO_REPLACE.fullmatch(name):
        seen = f"is {display(name)}, which is not a DNS-1123 label"
        yield refuse(f"{path}.name", seen, write(short_name(name) or "http"))


@part_of_rule
def _port_taken(
    path: str, port: Mapping[str, Any], taken: dict[tuple[object, ...], int], index: int
) -> Iterator[Finding]:
    """Report a name, a number or a nodePort that another port has."""
    protocol = port.get("protocol") or "TCP"
    for key in ("name", "port", "nodePort"):
        value = port.get(key)
        require_known(f"{path}.{key}", value, protocol)
        if not value or not isinstance(value, str | int) or not isinstance(protocol, str):
            continue
        first = taken.setdefault((key, value, "" if key == "name" else protocol), index)
        if first != index:
            seen = f"is {display(value)}, which ports[{first}] has already"
            yield refuse(f"{path}.{key}", seen, _OTHERS[key])


_OTHERS = {
    "name": "write another name",
    "port": "remove one of the two, or write another port",
    "nodePort": "write another nodePort, or remove it",
}


_TO_WRITE = regex(r"(?:[a-z0-9]+_)+port")
"""A word that says what to write, for sed to replace: target_port."""
_TO_REPLACE = regex(r"[A-Z][A-Z0-9_]*|(?:[a-z0-9]+_)+(?:port|name)")


@part_of_rule
def _port_fields(path: str, port: Mapping[str, Any], service: Object) -> Iterator[Finding]:
    """Report a targetPort that is not a name, and a nodePort that the type does not allow."""
    target, node, kind = port.get("targetPort"), port.get("nodePort"), service.spec.get("type")
    require_known(f"{path}.targetPort", target)
    if isinstance(target, str) and not (
        target == "" or is_port_name(target) or _TO_WRITE.fullmatch(target)
    ):
        seen = f"is the text {display(target)}, which is not a valid name of a port"
        number = digits(target)
        remedy = "write the name of a port of the container, or its number"
        if number is not None:
            remedy = write(number, f"write the number {number} without quotes")
        yield refuse(f"{path}.targetPort", seen, remedy)
    elif isinstance(port_number := whole(target), int) and not 1 <= port_number <= MAX_PORT:
        seen = f"is {port_number}, but must be from 1 to {MAX_PORT}"
        yield refuse(f"{path}.targetPort", seen, "write the port of the container")
    require_known(f"{path}.nodePort", node, kind)
    if isinstance(node, int) and node and kind in (None, "", "ClusterIP"):
        seen = f"is {node}, but a Service of type ClusterIP"
        seen += ", the default," if kind != "ClusterIP" else ""
        remedy = either(remove(), write("NodePort", "write type NodePort", at=service.at(_TYPE)))
        yield refuse(f"{path}.nodePort", f"{seen} must have none", remedy)


_TYPE = "spec.type"
