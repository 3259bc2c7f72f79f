"""Reads what applies to pods, and accelerators that a device plugin counts more than once.

Source of the policies: kubernetes plugin/pkg/admission/priority/admission.go,
pkg/registry/core/pod/storage eviction.go,
staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/helpers.go LabelSelectorAsSelector.

With time slices or MPS, NVIDIA's device plugin offers each GPU several times under one name. A
pod that requests several may get the same device, so its number of devices is unknown.

Source of the sharing: k8s-device-plugin api/config/v1/sharing.go and replicas.go.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.quantity import is_accelerator
from kthena_components.core.values.read import (
    DEFAULT_NAMESPACE,
    group_kind,
    mapping,
    sequence,
    spec_of,
    unknown_in,
    unknown_within,
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
    """Return whether an expression of a label selector may match; unknown values may.

    `more` means that a controller adds labels which are not visible.
    """
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


# Reads the default requests and limits that a LimitRange adds to containers of its namespace.
#
# Source: kubernetes pkg/apis/core/v1/defaults.go SetDefaults_LimitRangeItem, and
# plugin/pkg/admission/limitranger/admission.go mergePodResourceRequirements.


Amounts = dict[str, Any]
_FIELDS = {"limits": ("default", "max"), "requests": ("defaultRequest", "default", "max", "min")}
"""Fields of a LimitRange from which containers get amounts that they do not state."""
_DIFFER = "a number on which several LimitRanges differ"


@dataclass(slots=True)
class LimitRanges:
    """The accelerators that LimitRanges give to containers, by namespace."""

    _limits: dict[str, Amounts] = field(default_factory=dict)
    _requests: dict[str, Amounts] = field(default_factory=dict)
    _given: set[tuple[str, str, str]] = field(default_factory=set)
    """Namespace, `limits` or `requests`, and any resource: cpu and memory as well."""
    _unclear: set[str] = field(default_factory=set)
    """Namespaces with a LimitRange that is not known in full."""

    def __bool__(self) -> bool:
        """Return whether any gives accelerators."""
        return bool(self._limits or self._requests)

    def add(self, body: Mapping[str, Any]) -> None:
        """Add an object; other kinds are ignored."""
        if body.get("apiVersion") != "v1" or body.get("kind") != "LimitRange":
            return
        space = mapping(body.get("metadata")).get("namespace")
        named = space if isinstance(space, str) and not is_unresolved(space) else ""
        if unknown_within(body.get("spec")):
            self._unclear.add(named)
        for item in map(mapping, sequence(mapping(body.get("spec")).get("limits"))):
            if item.get("type") != "Container":
                continue
            limits = {**_accelerators(item.get("max")), **_accelerators(item.get("default"))}
            least = {**_accelerators(item.get("min")), **limits}
            _merge(self._limits, named, limits)
            _merge(self._requests, named, {**least, **_accelerators(item.get("defaultRequest"))})
            for kind, fields in _FIELDS.items():
                names = (str(name) for at in fields for name in mapping(item.get(at)))
                self._given.update((named, kind, name) for name in names)

    def gives(self, kind: str, resource: str, namespace: str) -> bool:
        """Return whether a container of a namespace may get an amount that it does not state.

        Args:
            kind: `limits` or `requests`.
            resource: The resource: cpu, memory.
            namespace: The namespace, empty if the object states none.
        """
        if any(not namespace or space in {"", namespace} for space in self._unclear):
            return True
        return any(
            (kind, resource) == (stated, name) and (not namespace or space in {"", namespace})
            for space, stated, name in self._given
        )

    def fill(self, spec: Mapping[str, Any], namespace: str) -> Mapping[str, Any]:
        """Return the spec of a pod with what its namespace adds to its containers."""
        limits, requests = _of(self._limits, namespace), _of(self._requests, namespace)
        if not (limits or requests):
            return spec
        filled: dict[str, Any] = {}
        for name in ("containers", "initContainers"):
            if isinstance(items := spec.get(name), list):
                filled[name] = [_filled(item, limits, requests) for item in items]
        return {**spec, **filled}


def _accelerators(amounts: object) -> Amounts:
    return {str(key): value for key, value in mapping(amounts).items() if is_accelerator(str(key))}


def _merge(known: dict[str, Amounts], namespace: str, added: Amounts) -> None:
    """Add amounts; the order in which several LimitRanges apply is not known."""
    if added:
        here = known.setdefault(namespace, {})
        for key, value in added.items():
            here[key] = value if str(here.get(key, value)) == str(value) else _DIFFER


def _of(known: Mapping[str, Amounts], namespace: str) -> Amounts:
    """Return the amounts of a namespace. Without one, the deployment sets it for both sides."""
    if not namespace:
        return next(iter(known.values()), {}) if len(known) == 1 else known.get("", {})
    return known.get(namespace, known.get("", {}))


def _filled(item: object, limits: Amounts, requests: Amounts) -> object:
    """Return a container with defaults; the API server has copied its limits to its requests."""
    resources = mapping(item).get("resources")
    stated = [mapping(resources).get(key) for key in ("limits", "requests")]
    if not isinstance(item, Mapping) or any(map(is_unresolved, (resources, *stated))):
        return item
    own = {**mapping(stated[0]), **mapping(stated[1])}
    added = {"limits": {**limits, **mapping(stated[0])}, "requests": {**requests, **own}}
    return {**item, "resources": {**mapping(resources), **added}}


SHARING = "sharing"
_WAYS = {"timeSlicing": "time slices", "mps": "shares of MPS"}
MARKS = tuple(_WAYS)
_DEEPEST = 12
_ONE = 1


@dataclass(slots=True)
class Sharing:
    """The resources that a device plugin of the cluster offers several times per device."""

    _found: dict[str, Unknown] = field(default_factory=dict)

    def add(self, value: object, file: str) -> None:
        """Add what a document configures: a ConfigMap, values of a chart, or the file itself."""
        for config in _configs(value, _DEEPEST):
            for way, words in _WAYS.items():
                part = mapping(config.get(way))
                for item in map(mapping, sequence(part.get("resources"))):
                    if _is_renamed(part, item) or not _is_several(item.get("replicas")):
                        continue
                    because = f"{item.get('name')} may be {words} of fewer devices ({file})"
                    self._found.setdefault(str(item.get("name")), Unknown(because))

    def of(self, resources: Iterator[str]) -> Unknown | None:
        """Return why the number of devices of these resources is unknown; None if it is known."""
        return next((self._found[name] for name in resources if name in self._found), None)


def _is_renamed(part: Mapping[str, Any], item: Mapping[str, Any]) -> bool:
    """Return whether shares have another resource name, such as nvidia.com/gpu.shared."""
    return part.get("renameByDefault") is True or item.get("rename") not in (None, "")


def _is_several(replicas: object) -> bool:
    return not isinstance(replicas, int) or replicas > _ONE


def _configs(value: object, deep: int) -> Iterator[Mapping[str, Any]]:
    """Return each mapping named `sharing`, in strings as well."""
    if not deep:
        return
    if isinstance(value, str):
        if SHARING in value and any(mark in value for mark in MARKS):
            from kthena_components.core.values.values_in_text import read_yaml_text  # noqa: PLC0415 - loads PyYAML

            yield from _configs(read_yaml_text(value, "a configuration"), deep - 1)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if key == SHARING and isinstance(inner, Mapping):
                yield inner
            else:
                yield from _configs(inner, deep - 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _configs(inner, deep - 1)
