"""Forms the subgroups of a cluster's PodGroups from pods' labels, as Volcano does."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from kthena_components.core.findings import Finding, count_of, not_checked
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import EACH_POD, POD_GROUP, Object, PodSet
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import (
    NOT_YET_KNOWN,
    count,
    mapping,
    sequence,
    unknown_in,
    unknown_inside,
)
from kthena_components.core.values.unknown import MaybeInt, Unknown, total
from kthena_components.systems.volcano.rules.gang_pods_and_foreign_groups import policies_of

_MOST_COMPARED = 1_000_000
_TOO_MANY = Unknown("there are too many pods and policies to compare them all")


@dataclass(slots=True)
class _Sub:
    """The pods of one policy, by the values of its keys."""

    groups: dict[tuple[str, ...], list[MaybeInt]] = field(default_factory=dict)
    gap: Unknown | None = None


def subgroup_has_pods(cluster: ClusterObjects) -> Iterator[Finding]:
    """Each subgroup policy finds at least minSubGroups subgroups of subGroupSize pods.

    A pod belongs to the first policy whose labelSelector it matches and whose matchLabelKeys it all
    has; the values of these keys distinguish the subgroups.

    Pass: minSubGroups 1, subGroupSize 2, two pods that share the value of the key.
    Fail: the same with pods of another role, without the key, or with only one pod.
    Level: mandatory.
    Source: Volcano v1.14 pkg/scheduler/api/sub_job_info.go getSubJobMatchValues, job_info.go
    CheckSubJobValid and CheckSubJobReady; run on 1.14.1.
    """
    for (namespace, name), entry in cluster.named(POD_GROUP).items():
        pods = cluster.gangs.get((namespace, name), [])
        if pods:
            yield from _check(cluster, entry, pods)


def _check(cluster: ClusterObjects, entry: Object, pods: list[PodSet]) -> Iterator[Finding]:
    policies = policies_of(entry)
    subs = _gather(policies, pods)
    for i, (policy, sub) in enumerate(zip(policies, subs, strict=True)):
        least, size = count(policy.get("minSubGroups"), 0), count(policy.get("subGroupSize"), 1)
        keyed = any(isinstance(key, str) and key for key in sequence(policy.get("matchLabelKeys")))
        if not isinstance(least, int) or not isinstance(size, int) or least <= 0 or not keyed:
            continue  # subgroup-match-label-keys reports missing keys
        path = entry.at(f"spec.subGroupPolicy[{i}]")
        sizes = [total(counts) for counts in sub.groups.values()]
        whole = sum(1 for number in sizes if isinstance(number, int) and number >= size)
        if whole >= least:
            continue
        gap = next((number for number in sizes if isinstance(number, Unknown)), None)
        if gap := gap or sub.gap or cluster.unsure:
            yield not_checked(path, gap)
            continue
        have = "has" if whole == 1 else "have"
        yield Finding(
            path=path,
            seen=f"waits for {count_of(least, 'subgroup')} of {count_of(size, 'pod')}, but the "
            f"labels of the gang's pods form {count_of(len(sizes), 'subgroup')}, of which {whole} "
            f"{have} enough pods, so none of them ever starts",
            remedy="make labelSelector, matchLabelKeys and subGroupSize fit the pods",
        )


def _gather(policies: list[Mapping[str, Any]], pods: list[PodSet]) -> list[_Sub]:
    subs = [_Sub() for _ in policies]
    gap = _TOO_MANY if len(pods) * sum(map(_size, policies)) > _MOST_COMPARED else None
    for item in pods if gap is None else ():
        for policy, sub in zip(policies, subs, strict=True):
            values = _values(policy, item)
            if isinstance(values, Unknown):
                gap = gap or values
                break
            if values is not None:
                if item.count != 0:
                    sub.groups.setdefault(values, []).append(item.count)
                break
    for sub in subs:
        sub.gap = gap
    return subs


def _size(policy: Mapping[str, Any]) -> int:
    """Count the comparisons per pod."""
    selector = mapping(policy.get("labelSelector"))
    expressions = sequence(selector.get("matchExpressions"))
    values = sum(len(sequence(mapping(one).get("values"))) for one in expressions)
    keys = sequence(policy.get("matchLabelKeys"))
    return 1 + len(mapping(selector.get("matchLabels"))) + len(expressions) + values + len(keys)


def _values(policy: Mapping[str, Any], pods: PodSet) -> tuple[str, ...] | Unknown | None:
    """Return the values that identify a pod's subgroup; None if the policy does not apply to it."""
    matches = _matches(policy.get("labelSelector"), pods.labels)
    if matches is False:
        return None
    keys = policy.get("matchLabelKeys")
    if gap := (matches if isinstance(matches, Unknown) else None) or unknown_inside(keys):
        return gap
    found: list[str] = []
    for key in sequence(keys):
        value = pods.labels.get(key) if isinstance(key, str) else None
        if gap := unknown_in(value):
            return gap
        if value is None and isinstance(key, str) and key in EACH_POD:
            return Unknown(f"the label {key} is added when the pod is created")
        if not isinstance(value, str) or not value:
            return None
        found.append(value)
    return tuple(found) or None


def _matches(selector: object, labels: Mapping[str, Any]) -> bool | Unknown:
    """Return whether labels match a selector; a missing selector matches everything."""
    fields = mapping(selector)
    wanted, listed = fields.get("matchLabels"), fields.get("matchExpressions")
    if gap := unknown_in(selector) or unknown_inside(wanted, listed):
        return gap
    found: list[bool | Unknown] = [
        unknown_in(labels.get(key)) or labels.get(key) == value
        for key, value in mapping(wanted).items()
    ]
    found += [_expression(mapping(expression), labels) for expression in sequence(listed)]
    if False in found:
        return False
    return next((value for value in found if isinstance(value, Unknown)), True)


def _expression(expression: Mapping[str, Any], labels: Mapping[str, Any]) -> bool | Unknown:
    key, operator = expression.get("key"), str(expression.get("operator"))
    value = labels.get(key) if isinstance(key, str) else NOT_YET_KNOWN
    if gap := unknown_in(value) or unknown_inside(expression, expression.get("values")):
        return gap
    values = sequence(expression.get("values"))
    held: dict[str, bool] = {
        "In": value is not None and value in values,
        "NotIn": value is None or value not in values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }
    return held.get(operator, Unknown("the selector has an operator that is not known here"))
