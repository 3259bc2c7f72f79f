"""Rules of one workload: its selector, and how its pods are replaced in an update."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.findings import Finding, part_of_rule, refuse
from kthena_components.core.objects.object import Object
from kthena_components.core.remedies import either, remove, write
from kthena_components.core.topology.domains import OPERATORS, holds
from kthena_components.core.values.display import display, listing
from kthena_components.core.values.read import (
    is_map,
    list_of_texts,
    mapping,
    require_known,
    sequence,
    unknown_inside,
)

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
