"""Reads the PriorityClasses and PodDisruptionBudgets that apply to pods.

Source: kubernetes plugin/pkg/admission/priority/admission.go, pkg/registry/core/pod/storage
eviction.go, staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/helpers.go LabelSelectorAsSelector.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kthena_components.core.values.read import (
    DEFAULT_NAMESPACE,
    group_kind,
    mapping,
    sequence,
    spec_of,
    unknown_in,
)
from kthena_components.core.values.unknown import Unknown, is_unresolved

PRIORITY_CLASS = ("scheduling.k8s.io", "PriorityClass")
BUDGET = ("policy", "PodDisruptionBudget")
AROUND = ("PriorityClass", "PodDisruptionBudget")
"""Kinds of objects that `PodPolicies.add` reads."""


@dataclass(slots=True)
class PodPolicies:
    """PriorityClasses and PodDisruptionBudgets of one cluster."""

    complete: bool = False
    """Whether the cluster has no others."""
    default_priority: bool = False
    """Whether a pod without a PriorityClass may get one."""
    _budgets: list[tuple[object, object]] = field(default_factory=list)
    """Namespace and selector of each PodDisruptionBudget."""

    def add(self, body: Mapping[str, Any]) -> None:
        """Add an object; other kinds are ignored."""
        if group_kind(body) == PRIORITY_CLASS:
            stated = body.get("globalDefault")
            self.default_priority |= stated is True or is_unresolved(stated)
        elif group_kind(body) == BUDGET:
            space = mapping(body.get("metadata")).get("namespace")
            self._budgets.append((space, spec_of(body).get("selector")))

    def evictions_limited(
        self, namespace: object, labels: Mapping[str, Any], *, more: bool
    ) -> bool:
        """Return whether a PodDisruptionBudget may select pods; True if others may exist.

        Args:
            namespace: The namespace of the pods.
            labels: Their labels.
            more: Whether a controller may add labels to them.
        """
        return not self.complete or any(
            _same(space, namespace) and _selects(selector, labels, more)
            for space, selector in self._budgets
        )


def _same(one: object, other: object) -> bool:
    if is_unresolved(one) or is_unresolved(other):
        return True
    return (one or DEFAULT_NAMESPACE) == (other or DEFAULT_NAMESPACE)


def _selects(selector: object, labels: Mapping[str, Any], more: bool) -> bool:
    """Return whether a selector may match; one that is missing matches nothing."""
    if selector is None:
        return False
    if is_unresolved(selector) or is_unresolved(labels):
        return True
    wanted = mapping(mapping(selector).get("matchLabels")).items()
    rules = sequence(mapping(selector).get("matchExpressions"))
    return all(_holds("In", labels, key, [value], more) for key, value in wanted) and all(
        _holds(rule.get("operator"), labels, rule.get("key"), _values(rule), more)
        for rule in map(mapping, rules)
    )


def _values(rule: Mapping[str, Any]) -> Any:
    """Return the values of a rule, or why they are not known yet."""
    listed = rule.get("values")
    return unknown_in(listed) or sequence(listed)


def _holds(
    operator: object, labels: Mapping[str, Any], key: object, values: Any, more: bool
) -> bool:
    held = labels.get(key) if isinstance(key, str) else None
    if (
        isinstance(values, Unknown)
        or any(map(is_unresolved, (operator, key, held, *values)))
        or (held is None and more)
    ):
        return True
    if operator in ("Exists", "DoesNotExist"):
        return (held is not None) is (operator == "Exists")
    return (held in values) is (operator == "In")
