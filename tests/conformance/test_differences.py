"""What conformance compares, without a cluster: no difference may slip through."""

import copy
import random
from collections import Counter
from typing import Any

import pytest

from conformance.kthena.differences import (
    ALLOWED,
    INSTANCE_SERVICE,
    TIER_NAME,
    ZEROS,
    compare,
    level,
    unused,
)
from conformance.kthena.emission import draw
from conformance.support import random_servings
from kthena_components.compiler.compile import compile_serving
from tests.support.specs import ENGINE_RAY, changed

PLAN = compile_serving(changed(ENGINE_RAY, {"replicas": 1})).plan
POD: dict[str, Any] = {
    "kind": "Pod",
    "metadata": {"name": "chat-0-decode-0-1", "labels": {"app": "chat"}},
    "spec": {"containers": [{"name": "engine", "env": [{"name": "TZ", "value": "UTC"}]}]},
}


def differences(native: list[dict[str, Any]], kthena: list[dict[str, Any]]) -> list[str]:
    used = Counter[str]()
    here, there = (level(copy.deepcopy(side), "team", used) for side in (native, kthena))
    return [str(each) for each in compare(here, there, PLAN, used)]


def test_the_same_objects_do_not_differ() -> None:
    assert not differences([POD], [POD])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"metadata.labels.app": "x"}, "metadata.labels.app: native 'x', Kthena 'chat'"),
        ({"metadata.labels.more": "x"}, "metadata.labels.more: native 'x', Kthena '(nothing)'"),
        ({"spec.containers[0].env[0].value": "CET"}, "env[0].value: native 'CET', Kthena 'UTC'"),
        ({"spec.nodeSelector": {}}, "spec.nodeSelector: native {}, Kthena '(nothing)'"),
    ],
)
def test_every_other_value_is_told(change: dict[str, Any], said: str) -> None:
    (found,) = differences([changed(POD, change)], [POD])
    assert said in found


def test_an_object_on_one_side_alone_is_told() -> None:
    assert differences([POD], []) == ["Pod chat-0-decode-0-1: native 'there', Kthena '(nothing)'"]


def test_what_is_allowed_on_one_side_is_not_allowed_on_the_other() -> None:
    hostname = changed(POD, {"spec.hostname": "chat-0-decode-0-1"})
    assert not differences([hostname], [POD])
    assert differences([POD], [hostname])


def test_hashes_differ_only_in_what_they_tell_apart() -> None:
    def pods(*hashes: str) -> list[dict[str, Any]]:
        label = "modelserving.volcano.sh/role-template-hash"
        return [
            {"kind": "Pod", "metadata": {"name": f"p-{n}", "labels": {label: text}}, "spec": {}}
            for n, text in enumerate(hashes)
        ]

    assert not differences(pods("a", "b", "a"), pods("x", "y", "x"))
    assert differences(pods("a", "b", "a"), pods("x", "y", "y"))


def test_a_native_service_is_allowed_by_its_name_alone() -> None:
    def service(name: str) -> dict[str, Any]:
        return {"kind": "Service", "metadata": {"name": name}, "spec": {}}

    assert not differences([service("chat-0-decode-0")], [])
    assert differences([service("chat-0-decode-0-0")], [])
    assert differences([], [service("chat-0-decode-0")])


def test_a_gang_that_asks_for_nothing_and_a_tier_by_name() -> None:
    def gang(spec: dict[str, Any]) -> dict[str, Any]:
        return {"kind": "PodGroup", "metadata": {"name": "chat-0"}, "spec": spec}

    named = gang({"minResources": {}, "networkTopology": {"highestTierName": "rack"}})
    numbered = gang({"minResources": {"cpu": "0"}, "networkTopology": {"highestTierAllowed": 1}})
    assert not differences([named], [numbered])
    numbered["spec"]["minResources"]["cpu"] = "1"
    assert differences([named], [numbered])


def test_what_nothing_needs_is_told() -> None:
    everything = unused({})
    assert {INSTANCE_SERVICE, TIER_NAME, ZEROS} <= set(everything)
    assert len(everything) > len(ALLOWED)


def test_the_same_seed_draws_the_same_servings() -> None:
    first, second = (draw(random.Random(3), 12) for _ in range(2))
    assert first == second
    assert all(0 < random_servings.pods_of(args) <= random_servings.MOST_PODS for args in first)
