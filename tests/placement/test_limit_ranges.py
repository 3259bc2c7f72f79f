"""LimitRanges give pods requests that they do not state, and refuse pods, with the change."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kthena_components.core.values.unknown import Unknown
from kthena_components.placement.anonymous import without_names
from kthena_components.placement.answer import answer, ask
from kthena_components.placement.from_objects import cluster_of
from kthena_components.placement.inventory import parse_inventory
from kthena_components.placement.inventory_write import write_inventory
from kthena_components.placement.model import Cause, Outcome, Verdict
from kthena_components.placement.quotas_and_limit_ranges import refusals, with_defaults
from tests.support.for_each import for_each
from tests.support.placement import GPU, racks

CONTAINER, POD = "Container", "Pod"
EIGHT = {"limits": {GPU: "8"}}


def limit_range(kind: str = CONTAINER, namespace: str = "serving", **item: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "LimitRange",
            "metadata": {"name": "team", "namespace": namespace},
            "spec": {"limits": [{"type": kind, **item}]}}  # fmt: skip


def deployment(*resources: Mapping[str, Any], init: Mapping[str, Any] | None = None) -> Any:
    containers = [{"name": f"c{at}", "resources": one} for at, one in enumerate(resources)]
    first = [{"name": "first", "resources": init}] if init is not None else []
    spec = {"containers": containers, **({"initContainers": first} if first else {})}
    return {"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "chat", "namespace": "serving"},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "chat"}}, "template": {
                "metadata": {"labels": {"app": "chat"}}, "spec": spec}}}  # fmt: skip


def outcome_of(limits: Mapping[str, Any], body: Mapping[str, Any]) -> Outcome:
    """Ask with the LimitRange in the cluster, and with it among the files: both say the same."""
    where = racks(1)
    (one,) = answer(ask(replace(where, limit_ranges=(limits,)), [body]))
    (other,) = answer(ask(where, [limits, body]))
    assert one == other
    return one


DEFAULTS: dict[str, tuple[dict[str, Any], Any, dict[str, Any]]] = {
    "the default request": (
        limit_range(defaultRequest={"cpu": "2"}), deployment(EIGHT), {GPU: 8, "cpu": 2}),
    "the default limit, without a default request": (
        limit_range(default={"cpu": "3"}), deployment(EIGHT), {GPU: 8, "cpu": 3}),
    "max, without a default": (
        limit_range(max={"cpu": "4"}), deployment(EIGHT), {GPU: 8, "cpu": 4}),
    "min, without a default": (
        limit_range(min={"cpu": "1"}), deployment(EIGHT), {GPU: 8, "cpu": 1}),
    "the default before min": (
        limit_range(min={"cpu": "1"}, default={"cpu": "2"}), deployment(EIGHT), {GPU: 8, "cpu": 2}),
    "each container": (
        limit_range(defaultRequest={"cpu": "2"}), deployment(EIGHT, {}), {GPU: 8, "cpu": 4}),
    "init containers": (
        limit_range(defaultRequest={"cpu": "2"}),
        deployment({"requests": {"cpu": "1"}}, init={}), {"cpu": 2}),
    "what a container states": (
        limit_range(defaultRequest={"cpu": "2"}), deployment({"requests": {"cpu": "5"}}),
        {"cpu": 5}),
    "a stated limit is the request, before any default": (
        limit_range(defaultRequest={"cpu": "2"}), deployment({"limits": {"cpu": "5"}}),
        {"cpu": 5}),
    "no defaults for pods": (limit_range(POD, min={GPU: "8"}), deployment(EIGHT), {GPU: 8}),
    "another namespace": (
        limit_range(namespace="x", default={"cpu": "3"}, max={GPU: "1"}), deployment(EIGHT),
        {GPU: 8}),
}  # fmt: skip


@for_each(("limits", "body", "asked"), DEFAULTS.values(), ids=DEFAULTS)
def test_what_containers_do_not_state_comes_from_the_limit_range(
    limits: dict[str, Any], body: Any, asked: dict[str, Any]
) -> None:
    found = outcome_of(limits, body)
    assert found.group.pods[0].requests == asked
    assert found.verdict is Verdict.FITS


REFUSED: dict[str, tuple[dict[str, Any], Any, str, str]] = {
    "a limit above max": (
        limit_range(max={GPU: "4"}), deployment(EIGHT),
        f"the container c0 requests or is limited to 8 {GPU}, above max 4",
        f"raise max {GPU} to 8"),
    "an init container above max": (
        limit_range(max={"cpu": "2"}), deployment({}, init={"limits": {"cpu": "2500m"}}),
        "the container first requests or is limited to 2500m cpu, above max 2",
        "raise max cpu to 2500m"),
    "a request below min": (
        limit_range(min={"cpu": "2"}), deployment({"requests": {"cpu": "1"}}),
        "the container c0 requests or is limited to 1 cpu, below min 2", "lower min cpu to 1"),
    "a ratio": (
        limit_range(maxLimitRequestRatio={"cpu": "2"}),
        deployment({"requests": {"cpu": "3"}, "limits": {"cpu": "10"}}),
        ("the container c0 has a limit of cpu that is 3.334 times its request, above "
        "maxLimitRequestRatio 2"), "raise maxLimitRequestRatio cpu to 3.334"),
    "a ratio, and no limit": (
        limit_range(maxLimitRequestRatio={"cpu": "2"}), deployment({"requests": {"cpu": "3"}}),
        "the container c0 has no limit of cpu, and maxLimitRequestRatio is 2",
        "remove maxLimitRequestRatio cpu"),
    "a request above the default limit": (
        limit_range(default={"memory": "1Gi"}), deployment({"requests": {"memory": "2Gi"}}),
        "the container c0 requests 2Gi memory, above its limit 1Gi, the default",
        "raise default memory to 2Gi"),
    "the sum of a pod": (
        limit_range(POD, max={"cpu": "3"}),
        deployment({"limits": {"cpu": "2"}}, {"limits": {"cpu": "2"}}),
        "the pod requests or is limited to 4 cpu, above max 3", "raise max cpu to 4"),
    "a pod without a limit": (
        limit_range(POD, max={"cpu": "3"}), deployment({"requests": {"cpu": "2"}}),
        "the pod has no limit of cpu, and max is 3", "remove max cpu"),
    "a pod below min": (
        limit_range(POD, min={"cpu": "3"}), deployment({"requests": {"cpu": "2"}}),
        "the pod requests or is limited to 2 cpu, below min 3", "lower min cpu to 2"),
}  # fmt: skip


@for_each(("limits", "body", "text", "change"), REFUSED.values(), ids=REFUSED)
def test_a_refused_pod_never_runs(
    limits: dict[str, Any], body: Any, text: str, change: str
) -> None:
    found = outcome_of(limits, body)
    (obstacle,) = found.obstacles
    assert (found.verdict, obstacle.cause) == (Verdict.NEVER, Cause.LIMIT_RANGE)
    assert obstacle.text == (
        f"the LimitRange team of the namespace serving refuses its pods: {text}"
    )
    assert [one.text for one in obstacle.changes] == [f"In the LimitRange team, {change}"]


def test_no_change_is_named_that_does_not_suffice() -> None:
    """Also with a larger maximum, no node has 16 GPUs."""
    found = outcome_of(limit_range(max={GPU: "4"}), deployment({"limits": {GPU: "16"}}))
    assert found.verdict is Verdict.NEVER
    assert [one.changes for one in found.obstacles] == [()]


def test_a_limit_range_among_the_files_replaces_the_cluster_s_of_the_same_name() -> None:
    where = replace(racks(1), limit_ranges=(limit_range(max={GPU: "4"}),))
    files = [limit_range(max={GPU: "8"}), deployment(EIGHT)]
    assert [one.verdict for one in answer(ask(where, files))] == [Verdict.FITS]


def test_an_inventory_keeps_limit_ranges_also_without_names() -> None:
    nodes = [{"apiVersion": "v1", "kind": "Node", **node.body} for node in racks(1).nodes]
    where, findings = cluster_of([*nodes, limit_range(max={GPU: "4"})])
    assert findings == []
    for written in (where, without_names(where)):
        text = write_inventory(written)
        assert ("serving" in text) == (written is where)
        read = parse_inventory(text)
        (found,) = answer(ask(read, [deployment(EIGHT)]))
        assert [one.cause for one in found.obstacles] == [Cause.LIMIT_RANGE]


def test_an_unknown_amount_says_nothing() -> None:
    limits = limit_range(max={GPU: Unknown("a secret")})
    (found,) = answer(ask(racks(1), [limits, deployment(EIGHT)]))
    assert (found.verdict, found.note) == (Verdict.UNKNOWN, "a secret")


AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory"]), st.integers(1, 9).map(str))


@given(AMOUNTS, AMOUNTS)
def test_pods_that_state_nothing_are_accepted_with_the_defaults(
    least: dict[str, str], more: dict[str, str]
) -> None:
    """`max` is never below `min`, which the API server demands."""
    most = {key: str(int(least.get(key, 0)) + int(amount)) for key, amount in more.items()}
    limits = [limit_range(min=least, max=most)]
    spec = with_defaults({"containers": [{"name": "c"}]}, limits)
    assert not isinstance(spec, Unknown)
    assert refusals(spec, limits) == ()


@given(AMOUNTS, AMOUNTS)
def test_the_order_of_limit_ranges_is_not_guessed(
    one: dict[str, str], other: dict[str, str]
) -> None:
    limits = [limit_range(default=one), limit_range(default=other)]
    found = [
        with_defaults({"containers": [{"name": "c"}]}, each) for each in (limits, limits[::-1])
    ]
    if any(one[key] != other[key] for key in one.keys() & other.keys()):
        assert all(isinstance(each, Unknown) for each in found)
    else:
        assert found[0] == found[1]
        assert not isinstance(found[0], Unknown)
