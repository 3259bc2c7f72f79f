"""lws-shape, for the roles of a DisaggregatedSet."""

from typing import Any

import pytest

from tests.support.peers import LATE, disaggregated, ds_role, said_by

LATER = "not checked, because the value is known only after the deployment."
PAIR = disaggregated(ds_role("prefill"), ds_role("decode"))
ROLE = "spec/roles/0/spec"


def pair(changes: dict[str, Any]) -> list[str]:
    return said_by("lws-shape", PAIR, changes)


@pytest.mark.parametrize("count", [2, 10])
def test_2_to_10_roles_pass(count: int) -> None:
    assert said_by("lws-shape", disaggregated(*(ds_role(f"r{n}") for n in range(count)))) == []


@pytest.mark.parametrize(
    ("count", "remedy"), [(1, "Use a LeaderWorkerSet"), (11, "Change roles"), (0, "Change roles")]
)
def test_other_numbers_of_roles_are_refused(count: int, remedy: str) -> None:
    roles = "role" if count == 1 else "roles"
    assert said_by("lws-shape", disaggregated(*(ds_role(f"r{n}") for n in range(count)))) == [
        f"spec.roles: has {count} {roles}, but must have 2 to 10. {remedy}. [lws-shape]"
    ]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"spec/roles/1/name": "prefill"},
            (
                "spec.roles[1].name: is 'prefill', already the name of spec.roles[0]. Rename one "
                "of them"
            ),
        ),
        (
            {f"{ROLE}/replicas": 0},
            (
                "spec.roles[0].spec.replicas: is 0, but spec.roles[1].spec.replicas is 1. Write 1 "
                "or more, or 0 in every role"
            ),
        ),
        (
            {f"{ROLE}/rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 1}}},
            (
                "spec.roles[0].spec.rolloutStrategy.rollingUpdateConfiguration.partition: is 1, "
                "but a DisaggregatedSet updates its roles together. Remove it"
            ),
        ),
        (
            {f"{ROLE}/rolloutStrategy": {"type": "Recreate"}},
            (
                "spec.roles[0].spec.rolloutStrategy.type: is 'Recreate', but a DisaggregatedSet "
                "only supports RollingUpdate. Remove it"
            ),
        ),
        (
            {"spec/slices": 2, "spec/roles/0/scaling": {"mode": "External"}},
            (
                "spec.slices: is 2, but spec.roles[0] is scaled externally (External). Write 1, "
                "or scaling.mode: Static"
            ),
        ),
        ({"spec/slices": 101}, "spec.slices: is 101, but must be at most 100. Write 100"),
        (
            {"spec/placementPolicy": {"type": "ExclusiveSlice"}},
            (
                "spec.placementPolicy.topology: is missing, but the type is 'ExclusiveSlice'. Name "
                "the node label that a slice shares"
            ),
        ),
        (
            {"metadata/name": "c" * 32, f"{ROLE}/leaderWorkerTemplate/size": 2},
            (
                "spec.roles[0].name: is 'prefill', and the generated names have up to 64 "
                "characters; at most 63 are allowed. Shorten it or metadata.name by 1"
            ),
        ),
        (
            {"metadata/name": "c" * 34},
            (
                "spec.roles[0].name: is 'prefill', and the generated names have up to 64 "
                "characters; at most 63 are allowed. Shorten it or metadata.name by 1"
            ),
        ),
    ],
)
def test_a_disaggregated_set_with_a_fault_is_refused(changes: dict[str, Any], said: str) -> None:
    assert pair(changes) == [f"{said}. [lws-shape]"]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"metadata/name": "c" * 31, f"{ROLE}/leaderWorkerTemplate/size": 2},
        {"metadata/name": "c" * 33},
        {"spec/slices": 10, "metadata/name": "c" * 31},
        {f"{ROLE}/replicas": 0, "spec/roles/1/spec/replicas": 0},
        {f"{ROLE}/replicas": 0, "spec/roles/0/scaling": {"mode": "External"}},
        {f"{ROLE}/rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 0}}},
        {"spec/placementPolicy": {"type": "ExclusiveSlice", "topology": "rack"}},
    ],
)
def test_a_disaggregated_set_without_a_fault_passes(changes: dict[str, Any]) -> None:
    assert pair(changes) == []


def test_a_placement_and_an_exclusive_topology_contradict() -> None:
    key = "leaderworkerset.sigs.k8s.io/exclusive-topology"
    placed = {"type": "ExclusiveTopology", "topology": "rack"}
    annotated = {"spec/roles/1/metadata": {"annotations": {key: "rack"}}}
    assert pair({"spec/placementPolicy": placed, **annotated}) == [
        (
            f"spec.roles[1]: has the annotation {key}, but spec.placementPolicy.type is "
            "'ExclusiveTopology'. Keep one of them. [lws-shape]"
        )
    ]


def test_late_roles_are_not_checked() -> None:
    assert pair({"spec/roles": LATE}) == [f"spec.roles: {LATER} [lws-shape]"]
