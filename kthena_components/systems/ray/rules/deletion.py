"""KubeRay's rules about what is deleted after a RayJob. A rule's docstring documents it."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from kthena_components.core.findings import Finding, not_checked, refuse
from kthena_components.core.values.read import (
    mapping,
    require_known,
    sequence,
    unknown_inside,
    unknown_within,
    whole,
)
from kthena_components.systems.ray.view import RayView

_AT = "spec.deletionStrategy"
_OLD = ("onSuccess", "onFailure")
_STATES = ("jobStatus", "jobDeploymentStatus")
_ORDER = ("DeleteWorkers", "DeleteCluster", "DeleteSelf")
"""The order of deletion."""


def ray_deletion(view: RayView) -> Iterator[Finding]:
    """A deletionStrategy has rules, or onSuccess and onFailure, that do not contradict each other.

    Each rule has one state of the job and one policy, and each such pair occurs once. Workers are
    deleted no later than their cluster, and the cluster no later than the job. KubeRay keeps a
    selected cluster, and the workers of a cluster with an autoscaler. shutdownAfterJobFinishes
    excludes rules and DeleteNone.

    Pass: deletionRules DeleteWorkers after 60 s and DeleteCluster after 600 s of SUCCEEDED.
    Fail: onSuccess alone; a rule with jobStatus and jobDeploymentStatus; DeleteCluster after 10 s
    and DeleteWorkers after 20 s of the same state.
    Level: mandatory. The CRD of KubeRay or KubeRay rejects it, since 1.5.
    Source: ray-project/kuberay v1.7.0 ray-operator/config/crd/bases/ray.io_rayjobs.yaml;
    controllers/ray/utils/validation.go validateDeletionConfiguration, validateDeletionRules,
    validateTTLConsistency, validateLegacyDeletionPolicies.
    """
    spec, stated = view.object.spec, view.object.spec.get("deletionStrategy")
    if stated is None or not view.has_since("1.5"):
        return
    shut, scaled = spec.get("shutdownAfterJobFinishes"), view.fields.get("enableInTreeAutoscaling")
    selector = spec.get("clusterSelector")
    require_known(_AT, unknown_inside(stated), shut, scaled, selector)
    strategy = mapping(stated)
    rules, at = strategy.get("deletionRules"), f"{_AT}.deletionRules"
    old = [name for name in _OLD if strategy.get(name) is not None]
    yield from _beside(rules, old, shut)
    is_selected = bool(mapping(selector))
    for name in old:
        path, policy = f"{_AT}.{name}.policy", mapping(strategy[name]).get("policy")
        yield from _stated(policy, path, shut)
        yield from _possible(policy, path, is_selected=is_selected, scaled=scaled)
    read: dict[tuple[str, str], dict[str, int]] = {}
    for index, rule in enumerate(map(mapping, sequence(rules))):
        path = f"{at}[{index}]"
        policy = rule.get("policy")
        if gap := unknown_within(sequence(rules)[index]):
            yield not_checked(path, gap)
            continue
        yield from _possible(policy, f"{path}.policy", is_selected=is_selected, scaled=scaled)
        yield from _one_rule(rule, path, read)
    yield from _in_order(at, read)


def _beside(rules: object, old: Sequence[str], shut: object) -> Iterator[Finding]:
    at = f"{_AT}.deletionRules"
    if not rules and len(old) < len(_OLD):
        seen = "has neither deletionRules, nor both onSuccess and onFailure"
        yield refuse(_AT, seen, "write deletionRules")
    if rules is not None and old:
        yield refuse(at, f"are given beside {old[0]}", "remove one of them")
    if rules and shut is True:
        remedy = "remove the latter, and add a rule for DeleteCluster"
        yield refuse(at, "are given beside shutdownAfterJobFinishes", remedy)


def _stated(policy: object, path: str, shut: object) -> Iterator[Finding]:
    if policy is None:
        yield refuse(path, "is missing", "write for example DeleteCluster")
    elif policy == "DeleteNone" and shut is True:
        seen = "is DeleteNone, but shutdownAfterJobFinishes is true"
        yield refuse(path, seen, "remove the one or the other")


def _possible(policy: object, path: str, *, is_selected: bool, scaled: object) -> Iterator[Finding]:
    if is_selected and policy in ("DeleteCluster", "DeleteWorkers"):
        seen = f"is {policy}, but clusterSelector is given, and that cluster is kept"
        yield refuse(path, seen, "write DeleteSelf or DeleteNone")
    elif policy == "DeleteWorkers" and scaled is True:
        seen = "is DeleteWorkers, but the cluster scales by itself"
        yield refuse(path, seen, "write DeleteCluster, or remove enableInTreeAutoscaling")


def _one_rule(
    rule: Mapping[str, Any], path: str, read: dict[tuple[str, str], dict[str, int]]
) -> Iterator[Finding]:
    condition, policy = mapping(rule.get("condition")), str(rule.get("policy"))
    named = [name for name in _STATES if condition.get(name) is not None]
    if len(named) != 1:
        both = "both jobStatus and" if named else "neither jobStatus nor"
        seen = f"names {both} jobDeploymentStatus"
        yield refuse(f"{path}.condition", seen, "name one of them")
        return
    known = read.setdefault((named[0], str(condition[named[0]])), {})
    if policy in known:
        seen = f"is {policy} for {named[0]} {condition[named[0]]}, as another rule is"
        yield refuse(path, seen, "remove one of them")
    seconds = whole(condition.get("ttlSeconds"))
    known.setdefault(policy, seconds if isinstance(seconds, int) else 0)


def _in_order(at: str, read: Mapping[tuple[str, str], Mapping[str, int]]) -> Iterator[Finding]:
    for (kind, state), seconds in read.items():
        for first, then in pairwise(policy for policy in _ORDER if policy in seconds):
            if seconds[then] < seconds[first]:
                seen = f"do {then} {seconds[then]} s and {first} {seconds[first]} s after {kind} "
                seen += f"{state}, but {first} comes first"
                remedy = f"write ttlSeconds {seconds[first]} or more for {then}"
                yield refuse(at, seen, remedy)
