"""lws-shape and lws-gang-startup, for a LeaderWorkerSet."""

from typing import Any

import pytest

from tests.support.peers import LATE, LWS_SGLANG, LWS_VLLM, said_by

LATER = "not checked, because the value is known only after the deployment."
TEMPLATE = "spec/leaderWorkerTemplate"
AT = "spec.leaderWorkerTemplate"
ROLLING = "spec/rolloutStrategy/rollingUpdateConfiguration"
ROLLING_AT = "spec.rolloutStrategy.rollingUpdateConfiguration"


def shape(changes: dict[str, Any]) -> list[str]:
    return said_by("lws-shape", LWS_VLLM, changes)


@pytest.mark.parametrize("name", ["a", "a-9", "x" * 63])
def test_a_dns_1035_label_is_a_name(name: str) -> None:
    assert shape({"metadata/name": name}) == []


@pytest.mark.parametrize("name", ["9a", "A", "a-", "x" * 64])
def test_other_names_are_refused(name: str) -> None:
    shown = f"'{name[:40]}…'" if len(name) > 40 else f"'{name}'"
    assert shape({"metadata/name": name}) == [
        (
            f"metadata.name: is {shown}, which is not a DNS-1035 label of at most 63 "
            "characters. Write lower-case letters, digits and dashes, a letter first, no dash "
            "last. [lws-shape]"
        )
    ]


def test_a_late_name_is_not_checked() -> None:
    assert shape({"metadata/name": LATE}) == [f"metadata.name: {LATER} [lws-shape]"]


def test_the_size_is_at_least_1() -> None:
    assert shape({f"{TEMPLATE}/size": 1}) == []
    assert shape({f"{TEMPLATE}/size": 0}) == [
        f"{AT}.size: is 0, but must be at least 1: the leader counts. Write 1 or more. [lws-shape]"
    ]
    assert shape({f"{TEMPLATE}/size": "2"}) == [
        f"{AT}.size: is '2', but must be a whole number. Write 1. [lws-shape]"
    ]
    assert shape({f"{TEMPLATE}/size": LATE}) == [f"{AT}.size: {LATER} [lws-shape]"]


def test_replicas_are_not_negative() -> None:
    assert shape({"spec/replicas": 0}) == []
    assert shape({"spec/replicas": -1}) == [
        "spec.replicas: is -1, but must be at least 0. Write 0 or more. [lws-shape]"
    ]


def test_pods_are_counted_in_32_bits() -> None:
    assert shape({"spec/replicas": 2**30 - 1}) == []
    assert shape({"spec/replicas": 2**30}) == [
        (
            "spec.replicas: creates 2 × 1073741824 pods, but may create at most 2147483647. "
            "Write at most 1073741823. [lws-shape]"
        )
    ]


@pytest.mark.parametrize(
    ("down", "up"), [(1, 0), (0, 1), ("50%", 0), ("0%", "1%"), (None, None), ("100%", None)]
)
def test_a_budget_above_0_passes(down: object, up: object) -> None:
    assert shape({f"{ROLLING}/maxUnavailable": down, f"{ROLLING}/maxSurge": up}) == []


def test_an_update_must_be_able_to_begin() -> None:
    zero = {f"{ROLLING}/maxUnavailable": 0, f"{ROLLING}/maxSurge": 0}
    assert shape(zero) == [
        (
            f"{ROLLING_AT}.maxUnavailable: is 0 and maxSurge is 0, so no update could start. "
            "Write maxUnavailable: 1, or maxSurge: 1. [lws-shape]"
        )
    ]
    assert shape({**zero, "spec/replicas": 0}) == []
    assert shape({f"{ROLLING}/maxUnavailable": "49%"}) == [
        (
            f"{ROLLING_AT}.maxUnavailable: is '49%' of 2 replicas and maxSurge is 0, so no update "
            "could start. Write maxUnavailable: 1, or maxSurge: 1. [lws-shape]"
        )
    ]


@pytest.mark.parametrize("value", ["101%", -1, "1", True, 1.5, 2**31])
@pytest.mark.parametrize("field", ["maxUnavailable", "maxSurge"])
def test_a_budget_is_a_count_or_a_percentage(field: str, value: object) -> None:
    shown = {"101%": "'101%'", "1": "'1'", "True": "true"}.get(str(value), str(value))
    assert shape({f"{ROLLING}/{field}": value}) == [
        (
            f"{ROLLING_AT}.{field}: is {shown}, but must be a count or a percentage up to 100%. "
            "Write, for example, 1 or 25%. [lws-shape]"
        )
    ]


def test_a_late_budget_is_not_checked() -> None:
    assert shape({f"{ROLLING}/maxSurge": LATE}) == [f"{ROLLING_AT}.maxSurge: {LATER} [lws-shape]"]


def test_the_partition_is_not_negative() -> None:
    assert shape({f"{ROLLING}/partition": 0}) == []
    assert shape({f"{ROLLING}/partition": -1}) == [
        f"{ROLLING_AT}.partition: is -1, but must be at least 0. Write 0 or more. [lws-shape]"
    ]


@pytest.mark.parametrize(
    ("size", "sub", "kind"),
    [(8, 4, None), (9, 4, None), (9, 4, "LeaderExcluded"), (4, 4, None), (1, 1, None)],
)
def test_a_subgroup_divides_the_group(size: int, sub: int, kind: str | None) -> None:
    policy = {"subGroupSize": sub, "subGroupPolicyType": kind}
    assert shape({f"{TEMPLATE}/size": size, f"{TEMPLATE}/subGroupPolicy": policy}) == []


@pytest.mark.parametrize(
    ("size", "sub", "kind", "seen"),
    [
        (
            8,
            3,
            None,
            "is 3, which divides neither 8 (size) nor 7 (without leader). Write, for example, 2",
        ),
        (
            8,
            4,
            "LeaderExcluded",
            "is 4, which does not divide 7 (size 8 without leader). Write, for example, 1",
        ),
        (2, 3, None, "is 3, but the group has 2 pods. Write at most 2"),
        (2, 0, None, "is 0, but must be at least 1. Write 1 or more"),
        (2, LATE, None, LATER.rstrip(".")),
    ],
)
def test_another_subgroup_is_refused(size: int, sub: object, kind: str | None, seen: str) -> None:
    policy = {"subGroupSize": sub, "subGroupPolicyType": kind}
    assert shape({f"{TEMPLATE}/size": size, f"{TEMPLATE}/subGroupPolicy": policy}) == [
        f"{AT}.subGroupPolicy.subGroupSize: {seen}. [lws-shape]"
    ]


def test_a_topology_of_subgroups_needs_subgroups() -> None:
    key = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"
    given = {"metadata/annotations": {key: "rack"}}
    assert shape({**given, f"{TEMPLATE}/subGroupPolicy": {"subGroupSize": 1}}) == []
    assert shape(given) == [
        (
            f"metadata.annotations.{key}: is given, but there are no subgroups. "
            "Add subGroupPolicy.subGroupSize, or remove it. [lws-shape]"
        )
    ]


READY = {"spec/startupPolicy": "LeaderReady"}
VOLCANO = {f"{TEMPLATE}/workerTemplate/spec/schedulerName": "volcano"}
QUEUE = {"metadata/annotations": {"scheduling.volcano.sh/queue-name": "research"}}


@pytest.mark.parametrize(
    ("gang", "what"),
    [
        (VOLCANO, "the scheduler volcano"),
        (QUEUE, "the annotation scheduling.volcano.sh/queue-name"),
    ],
)
def test_leader_ready_and_a_gang_contradict(gang: dict[str, Any], what: str) -> None:
    assert said_by("lws-gang-startup", LWS_SGLANG, {**READY, **gang}) == [
        (
            f"spec.startupPolicy: is LeaderReady, but {what} requests a gang: it would contain "
            "only the leader, and not the 2 pods of a group. Write LeaderCreated, or disable gang "
            "scheduling. [lws-gang-startup]"
        )
    ]


@pytest.mark.parametrize(
    "changes",
    [
        READY,
        VOLCANO,
        {**VOLCANO, "spec/startupPolicy": "LeaderCreated"},
        {**READY, **VOLCANO, f"{TEMPLATE}/size": 1},
    ],
)
def test_one_without_the_other_passes(changes: dict[str, Any]) -> None:
    assert said_by("lws-gang-startup", LWS_SGLANG, changes) == []


def test_a_late_startup_policy_is_not_checked() -> None:
    assert said_by("lws-gang-startup", LWS_SGLANG, {**VOLCANO, "spec/startupPolicy": LATE}) == [
        f"spec.startupPolicy: {LATER} [lws-gang-startup]"
    ]
