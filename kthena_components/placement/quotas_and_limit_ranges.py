"""What the quotas and LimitRanges of a namespace do with new pods. Pure.

Source: Kubernetes 1.34 pkg/quota/v1/evaluator/core/pods.go and
staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go. A pod counts from its
creation, also while it waits for a node. Limits are not compared.

Source: Kubernetes 1.34 plugin/pkg/admission/limitranger/admission.go, and
SetDefaults_LimitRangeItem and SetDefaults_Pod of pkg/apis/core/v1/defaults.go.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, Decimal
from functools import partial
from typing import Any

from kthena_components.cluster.objects import amounts_of, name_of, namespace_of
from kthena_components.core.objects.object import requests_in
from kthena_components.core.topology.domains import holds
from kthena_components.core.topology.node_fit import Amounts
from kthena_components.core.values.quantity import add_resources, render_quantity
from kthena_components.core.values.read import group_kind, mapping, sequence
from kthena_components.core.values.unknown import Unknown
from kthena_components.placement.model import Body, PodGroup, PodSet, Quota, Refusal, Scope


class Quotas:
    """What the quotas of a cluster have left, while pods are created."""

    def __init__(self, quotas: Iterable[Quota]) -> None:
        """Begin with what is used."""
        self._spaces: dict[str, list[Quota]] = {}
        for quota in quotas:
            self._spaces.setdefault(quota.namespace, []).append(quota)

    @property
    def now(self) -> list[Quota]:
        """The quotas with what is used now."""
        return [quota for quotas in self._spaces.values() for quota in quotas]

    def create(self, group: PodGroup) -> list[int]:
        """Create the pods of a group in their order, and count how many of each set there are."""
        return [0 if pods.refusals else self._create(group.namespace, pods) for pods in group.pods]

    def _create(self, namespace: str, pods: PodSet) -> int:
        """Create as many pods of a set as the namespace's quotas allow, and charge them."""
        if namespace not in self._spaces:
            return pods.count
        quotas, each = self._spaces[namespace], charged(pods.requests)
        room = (_room(quota, each) for quota in quotas if counts(quota, pods))
        number = min((pods.count, *room))
        self._spaces[namespace] = [
            replace(quota, used=add_resources(quota.used, each, number))
            if counts(quota, pods) else quota
            for quota in quotas
        ]  # fmt: skip
        return number


def _room(quota: Quota, each: Amounts) -> int:
    """Count the equal pods for which a quota has room. What they do not request does not count."""
    left = (
        (hard - quota.used.get(key, Decimal(0))) // each[key]
        for key, hard in quota.hard.items()
        if each.get(key)
    )
    return max(0, int(min(left, default=Decimal(10**9))))


def charged(requests: Amounts) -> dict[str, Decimal]:
    """Return what a pod counts for in a ResourceQuota: by both keys, and as one pod."""
    return {
        "pods": Decimal(1),
        "count/pods": Decimal(1),
        **requests,
        **{f"requests.{key}": amount for key, amount in requests.items()},
    }


def counts(quota: Quota, pods: PodSet) -> bool:
    """Say whether a quota counts pods: all of its scopes hold."""
    return all(_in_scope(scope, pods) for scope in quota.scopes)


def _in_scope(scope: Scope, pods: PodSet) -> bool:
    """Return whether pods are in a scope of a quota, such as BestEffort or a PriorityClass."""
    spec, effort = pods.spec, any(pods.requests.get(key) for key in ("cpu", "memory"))
    ends = spec.get("activeDeadlineSeconds") is not None
    if scope.name == "PriorityClass":
        named = str(spec.get("priorityClassName") or "")
        rule = {"key": "", "operator": scope.operator, "values": list(scope.values)}
        return holds(rule, {"": named} if named else {})
    if scope.name == "CrossNamespacePodAffinity":
        affinity = mapping(spec.get("affinity"))
        others = str([affinity.get(key) for key in ("podAffinity", "podAntiAffinity")])
        return "'namespaces'" in others or "'namespaceSelector'" in others
    matches = {"Terminating": ends, "NotTerminating": not ends,
            "BestEffort": not effort, "NotBestEffort": effort}  # fmt: skip
    return matches.get(scope.name, False)


def released(quotas: Iterable[Quota], gone: Mapping[str, Sequence[PodSet]]) -> list[Quota]:
    """Take away what deleted pods requested: one of each set, by namespace."""
    return [
        replace(quota, used=less(quota.used, [
            charged(pods.requests)
            for pods in gone.get(quota.namespace, ())
            if counts(quota, pods)
        ]))
        for quota in quotas
    ]  # fmt: skip


def less(used: Amounts, taken: Iterable[Amounts]) -> dict[str, Decimal]:
    """Subtract amounts from those that are used; nothing is negative."""
    left = dict(used)
    for amounts in taken:
        for key in left.keys() & amounts.keys():
            left[key] = max(Decimal(0), left[key] - amounts[key])
    return left


def shortages(
    quotas: Iterable[Quota], group: PodGroup, number: int
) -> Iterator[tuple[Quota, dict[str, Decimal]]]:
    """List the quotas without room for the first pods of a group, with all that these ask for."""
    for quota in quotas:
        asked, left = dict[str, Decimal](), number
        for pods in group.pods:
            count = min(pods.count, left)
            left -= count
            if counts(quota, pods):
                asked = add_resources(asked, charged(pods.requests), count)
        short = {
            key: asked[key]
            for key, hard in quota.hard.items()
            if asked.get(key) and quota.used.get(key, Decimal(0)) + asked[key] > hard
        }
        if quota.namespace == group.namespace and short:
            yield quota, short


LIMIT_RANGE = ("", "LimitRange")
_IN_NO_ORDER = Unknown(
    "its namespace has several LimitRanges with defaults, which the API server applies in no fixed "
    "order"
)
_CONTAINERS = ("initContainers", "containers")


def ranges_of(bodies: Iterable[Body], namespace: str) -> list[Body]:
    """Return the LimitRanges of a namespace."""
    return [body for body in bodies
            if group_kind(body) == LIMIT_RANGE and _space(body) == namespace]  # fmt: skip


def ranges_among(bodies: Iterable[Body], stated: Iterable[Body]) -> list[Body]:
    """Return the LimitRanges among objects, and those of a cluster that they do not replace."""
    found = [*stated, *(body for body in bodies if group_kind(body) == LIMIT_RANGE)]
    return list({(_space(body), name_of(body)): body for body in found}.values())


def _space(body: Body) -> str:
    return namespace_of(body) or "default"


def with_defaults(spec: Body, ranges: Sequence[Body]) -> dict[str, Any] | Unknown:
    """Give each container the requests and limits that it does not state.

    The API server applies several LimitRanges in no fixed order, so the result is not known if it
    depends on the order. The first one that has a value decides, so each one is tried as the first.
    """
    found = _in_order(spec, ranges)
    others = (_in_order(spec, (each, *ranges)) for each in ranges[1:])
    return found if all(other == found for other in others) else _IN_NO_ORDER


def _in_order(spec: Body, ranges: Iterable[Body]) -> dict[str, Any]:
    """Fill in requests and limits of containers by each LimitRange, in their order."""
    found = _each_container(spec, _with_own_limits)
    for body in ranges:
        requests, limits = dict[str, Any](), dict[str, Any]()
        for item in _items(body, "Container"):
            most, least = mapping(item.get("max")), mapping(item.get("min"))
            usual = {**most, **mapping(item.get("default"))}
            limits |= usual
            requests |= {**least, **usual, **mapping(item.get("defaultRequest"))}
        found = _each_container(found, partial(_filled, requests, limits))
    return found


def refusals(spec: Body, ranges: Iterable[Body]) -> tuple[Refusal, ...]:
    """List why LimitRanges refuse a pod that has its defaults.

    A default limit below a stated request is refused, too: by the validation of pods.
    """
    return tuple(
        Refusal(limit_range=name_of(body), text=f"{who} {text}", change=change)
        for body in ranges
        for who, text, change in _refused(spec, body)
    )


def _refused(spec: Body, body: Body) -> Iterator[tuple[str, str, str]]:
    """List what a LimitRange refuses: who exceeds it, how, and what to change."""
    for container in _containers(spec):
        who = f"the container {container.get('name', '?')}"
        requests, limits = (amounts_of(mapping(container.get("resources")).get(key))
                            for key in ("requests", "limits"))  # fmt: skip
        for item in _items(body, "Container"):
            for text, change in (*_outside(item, requests, limits),
                                 *_crossed(item, requests, limits)):  # fmt: skip
                yield who, text, change
    for item in _items(body, "Pod"):
        only = _each_container(spec, _only_limits)
        totals = [requests_in(each) for each in (spec, only)]
        requests, limits = ({} if isinstance(one, Unknown) else one for one in totals)
        for text, change in _outside(item, requests, limits):
            yield "the pod", text, change


def _outside(item: Body, requests: Amounts, limits: Amounts) -> Iterator[tuple[str, str]]:
    """Compare requests and limits with `min`, `max` and `maxLimitRequestRatio`."""
    for key, least in amounts_of(item.get("min")).items():
        lower = min(requests.get(key, Decimal(0)), limits.get(key, least))
        if lower < least:
            text = f"requests or is limited to {_shown(lower, key)}, below min {_shown(least)}"
            yield text, f"lower min {key} to {_shown(lower)}"
    for key, most in amounts_of(item.get("max")).items():
        upper = max(limits.get(key, Decimal(0)), requests.get(key, Decimal(0)))
        if key not in limits:
            yield f"has no limit of {key}, and max is {_shown(most)}", f"remove max {key}"
        elif upper > most:
            text = f"requests or is limited to {_shown(upper, key)}, above max {_shown(most)}"
            yield text, f"raise max {key} to {_shown(upper)}"
    for key, most in amounts_of(item.get("maxLimitRequestRatio")).items():
        request, limit = requests.get(key), limits.get(key)
        if not request or not limit:
            lacking = "limit" if request else "request"
            text = f"has no {lacking} of {key}, and maxLimitRequestRatio is {_shown(most)}"
            yield text, f"remove maxLimitRequestRatio {key}"
        elif limit > most * request:
            ratio = (limit / request).quantize(Decimal("0.001"), rounding=ROUND_CEILING)
            ratio_text = f"{ratio.normalize():f}"
            text = f"has a limit of {key} that is {ratio_text} times its request, above "
            text += f"maxLimitRequestRatio {_shown(most)}"
            yield text, f"raise maxLimitRequestRatio {key} to {ratio_text}"


def _crossed(item: Body, requests: Amounts, limits: Amounts) -> Iterator[tuple[str, str]]:
    """Compare requests with the limits that a LimitRange has added."""
    for key, usual in amounts_of(item.get("default")).items():
        if limits.get(key) == usual and requests.get(key, Decimal(0)) > usual:
            asked = requests[key]
            text = f"requests {_shown(asked, key)}, above its limit {_shown(usual)}, the default"
            yield text, f"raise default {key} to {_shown(asked)}"


def _shown(amount: Decimal, key: str = "") -> str:
    return f"{render_quantity(amount.normalize())} {key}".strip()


def _items(body: Body, kind: str) -> list[Mapping[str, Any]]:
    items = map(mapping, sequence(mapping(body.get("spec")).get("limits")))
    return [item for item in items if item.get("type") == kind]


def _containers(spec: Body) -> Sequence[Mapping[str, Any]]:
    return [mapping(one) for key in _CONTAINERS for one in sequence(spec.get(key))]


def _with_own_limits(stated: Body) -> dict[str, Any]:
    """Request what is limited, where no request is stated, as the API server does."""
    limits = dict(mapping(stated.get("limits")))
    return {"requests": {**limits, **mapping(stated.get("requests"))}, "limits": limits}


def _filled(requests: Body, limits: Body, stated: Body) -> dict[str, Any]:
    return {"requests": {**requests, **mapping(stated.get("requests"))},
            "limits": {**limits, **mapping(stated.get("limits"))}}  # fmt: skip


def _only_limits(stated: Body) -> dict[str, Any]:
    return {"limits": stated.get("limits")}


def _each_container(spec: Body, change: Callable[[Body], Body]) -> dict[str, Any]:
    """Change the resources of each container."""
    return {**spec, **{
        key: [{**mapping(one), "resources": change(mapping(mapping(one).get("resources")))}
              for one in sequence(spec.get(key))]
        for key in _CONTAINERS if spec.get(key)
    }}  # fmt: skip
