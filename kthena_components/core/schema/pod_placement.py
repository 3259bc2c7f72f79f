"""The affinity, spread and tolerations of pods that Kubernetes accepts.

Source: kubernetes v1.34 pkg/apis/core/validation/validation.go validateAffinity,
validateTopologySpreadConstraints and ValidateTolerations;
k8s.io/apimachinery pkg/apis/meta/v1/validation/validation.go ValidateLabelSelector.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.findings import Finding, count_of, suggest
from kthena_components.core.schema.metadata import (
    check_domain,
    check_key,
    check_label_value,
    check_labels,
    check_words,
    is_label,
    is_label_value,
    is_qualified,
    known,
    say,
)
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    first_unknown,
    is_map,
    mapping,
    pairs,
    sequence,
    unknown_in,
    unknown_inside,
)

_TOLERATION_WORDS = {
    "operator": ("Exists", "Equal"),
    "effect": ("NoSchedule", "PreferNoSchedule", "NoExecute"),
}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_SETS, _EXIST = ("In", "NotIn"), ("Exists", "DoesNotExist")
_ORDER = ("Gt", "Lt")


def check_placement(
    pod: Mapping[str, Any], path: str, labels: Mapping[str, Any]
) -> Iterator[Finding]:
    """Report where a pod with these labels may run, if Kubernetes rejects that."""
    yield from check_labels(pod.get("nodeSelector"), f"{path}.nodeSelector")
    for index, item in enumerate(sequence(pod.get("tolerations"))):
        yield from _toleration(mapping(item), f"{path}.tolerations[{index}]")
    affinity = mapping(pod.get("affinity"))
    if affinity:
        yield from _affinity(affinity, f"{path}.affinity", labels)
    spread = sequence(pod.get("topologySpreadConstraints"))
    if spread:
        yield from _spread(spread, f"{path}.topologySpreadConstraints", labels)


def _toleration(fields: Mapping[str, Any], path: str) -> Iterator[Finding]:
    yield from check_words(fields, _TOLERATION_WORDS, path)
    key, operator, value = (fields.get(name) for name in ("key", "operator", "value"))
    if first_unknown(key, operator, value, fields.get("effect")):
        return
    if not key and operator != "Exists":
        yield say(path, "has no key, but its operator is not Exists", "write operator: Exists")
    elif isinstance(key, str) and key and not is_qualified(key):
        yield say(f"{path}.key", f"is {display(key)}, which no taint has", "write a taint's key")
    if operator == "Exists" and value:
        seen = f"is {display(value)}, but operator Exists matches any value"
        yield say(f"{path}.value", seen, "remove it")
    elif isinstance(value, str) and not is_label_value(value):
        yield say(
            f"{path}.value", f"is {display(value)}, which no taint has", "write a taint's value"
        )
    if fields.get("tolerationSeconds") is not None and fields.get("effect") != "NoExecute":
        seen = "is given, but only a toleration of effect NoExecute ends"
        yield say(f"{path}.tolerationSeconds", seen, "write effect: NoExecute, or remove it")


def _affinity(
    affinity: Mapping[str, Any], path: str, labels: Mapping[str, Any]
) -> Iterator[Finding]:
    nodes, at = mapping(affinity.get("nodeAffinity")), f"{path}.nodeAffinity"
    required = nodes.get(_REQUIRED)
    if is_map(required):
        terms, where = required.get("nodeSelectorTerms"), f"{at}.{_REQUIRED}.nodeSelectorTerms"
        if isinstance(terms, list | tuple) and not terms:
            yield say(where, "is empty", "write at least one term, or remove the field above it")
        for index, term in enumerate(sequence(terms)):
            yield from _nodes(mapping(term), f"{where}[{index}]", values=True)
    for index, term in enumerate(sequence(nodes.get(_PREFERRED))):
        where = f"{at}.{_PREFERRED}[{index}].preference"
        yield from _nodes(mapping(mapping(term).get("preference")), where, values=False)
    for kind in ("podAffinity", "podAntiAffinity"):
        fields, at = mapping(affinity.get(kind)), f"{path}.{kind}"
        for index, term in enumerate(sequence(fields.get(_REQUIRED))):
            yield from _pods(mapping(term), f"{at}.{_REQUIRED}[{index}]", labels)
        for index, term in enumerate(sequence(fields.get(_PREFERRED))):
            where = f"{at}.{_PREFERRED}[{index}].podAffinityTerm"
            yield from _pods(mapping(mapping(term).get("podAffinityTerm")), where, labels)


def _nodes(term: Mapping[str, Any], path: str, *, values: bool) -> Iterator[Finding]:
    """Check a term about nodes. Kubernetes checks its values only where it is required."""
    for index, each in enumerate(sequence(term.get("matchExpressions"))):
        at = f"{path}.matchExpressions[{index}]"
        yield from _expression(mapping(each), at, (*_SETS, *_EXIST, *_ORDER), values=values)
    for index, each in enumerate(sequence(term.get("matchFields"))):
        yield from _name_of_node(mapping(each), f"{path}.matchFields[{index}]")


def _name_of_node(fields: Mapping[str, Any], path: str) -> Iterator[Finding]:
    key, operator, values = (fields.get(name) for name in ("key", "operator", "values"))
    if first_unknown(key, operator) or unknown_inside(values):
        return
    if key != "metadata.name":
        yield say(f"{path}.key", f"is {display(key)}, but only metadata.name can be matched",
                  "write metadata.name")  # fmt: skip
    if operator not in _SETS:
        yield say(f"{path}.operator", f"is {display(operator)}, but must be one of In, NotIn",
                  "write In")  # fmt: skip
    elif len(sequence(values)) != 1:
        has = count_of(len(sequence(values)), "value")
        yield say(f"{path}.values", f"has {has}, but must have one", "write one name")
    for index, each in enumerate(sequence(values)):
        yield from check_domain(each, f"{path}.values[{index}]")


def _expression(
    fields: Mapping[str, Any], path: str, operators: tuple[str, ...], *, values: bool = True
) -> Iterator[Finding]:
    yield from check_key(fields.get("key"), f"{path}.key")
    operator, stated = fields.get("operator"), fields.get("values")
    if values:
        for index, each in enumerate(sequence(stated)):
            yield from check_label_value(each, f"{path}.values[{index}]")
    if known(operator) is None or unknown_in(stated):
        return
    number = len(sequence(stated))
    if operator not in operators:
        seen = f"is {display(operator)}, but must be one of {', '.join(operators)}"
        yield say(f"{path}.operator", seen, suggest(str(operator), operators))
    elif operator in _SETS and not number:
        yield say(f"{path}.values", f"is empty, but {operator} needs values",
                  "write at least one value, or operator: Exists")  # fmt: skip
    elif operator in _EXIST and number:
        seen = f"has {count_of(number, 'value')}, but {operator} takes none"
        yield say(f"{path}.values", seen, "remove it, or write operator: In")
    elif operator in _ORDER and number != 1:
        seen = f"has {count_of(number, 'value')}, but {operator} compares with one"
        yield say(f"{path}.values", seen, "write one number")


def _pods(term: Mapping[str, Any], path: str, labels: Mapping[str, Any]) -> Iterator[Finding]:
    for name in ("labelSelector", "namespaceSelector"):
        yield from _selector(term.get(name), f"{path}.{name}")
    yield from check_key(term.get("topologyKey") or None, f"{path}.topologyKey")
    for index, each in enumerate(sequence(term.get("namespaces"))):
        if known(each) is not None and not is_label(each):
            seen = f"is {display(each)}, which no namespace has as its name"
            yield say(f"{path}.namespaces[{index}]", seen, "write a namespace's name")
    yield from _label_keys(term, path, labels)


def _selector(selector: object, path: str) -> Iterator[Finding]:
    fields = mapping(selector)
    yield from check_labels(fields.get("matchLabels"), f"{path}.matchLabels")
    for index, each in enumerate(sequence(fields.get("matchExpressions"))):
        at = f"{path}.matchExpressions[{index}]"
        yield from _expression(mapping(each), at, (*_SETS, *_EXIST))


def _label_keys(
    fields: Mapping[str, Any], path: str, labels: Mapping[str, Any]
) -> Iterator[Finding]:
    """Check the keys whose values are those of the pod itself.

    The API server adds to the selector of a pod those that the pod has as labels.
    """
    selector = fields.get("labelSelector")
    unlike = sequence(fields.get("mismatchLabelKeys"))
    stated = mapping(selector)
    selected = [key for key, _ in pairs(stated.get("matchLabels"))]
    selected += [mapping(e).get("key") for e in sequence(stated.get("matchExpressions"))]
    for name in ("matchLabelKeys", "mismatchLabelKeys"):
        keys = sequence(fields.get(name))
        if keys and selector is None:
            yield say(f"{path}.{name}", "is given, but there is no labelSelector",
                      "add a labelSelector, or remove it")  # fmt: skip
            continue
        for index, key in enumerate(keys):
            at = f"{path}.{name}[{index}]"
            yield from check_key(key, at)
            if name != "matchLabelKeys" or known(key) is None:
                continue
            if selected.count(key) + (key in labels) > 1:
                yield say(at, f"is {display(key)}, which labelSelector has, too", "remove one")
            elif key in unlike:
                yield say(at, f"is {display(key)}, which mismatchLabelKeys has, too", "remove one")


def _spread(items: Any, path: str, labels: Mapping[str, Any]) -> Iterator[Finding]:
    first: dict[tuple[str, str], int] = {}
    for index, item in enumerate(items):
        fields, at = mapping(item), f"{path}[{index}]"
        yield from _selector(fields.get("labelSelector"), f"{at}.labelSelector")
        yield from _label_keys(fields, at, labels)
        key, action = known(fields.get("topologyKey")), known(fields.get("whenUnsatisfiable"))
        if fields.get("minDomains") is not None and action not in {None, "DoNotSchedule"}:
            seen = f"is given, but whenUnsatisfiable is {display(action)}"
            yield say(f"{at}.minDomains", seen, "write whenUnsatisfiable: DoNotSchedule")
        if key is None or action is None:
            continue
        before = first.setdefault((key, action), index)
        if before != index:
            seen = f"has the topologyKey and whenUnsatisfiable of item {before}"
            yield say(at, f"{seen}, and each pair is stated once", "remove one")
