"""Volcano's objects that gather pods: what a PodGroup says."""

from typing import Any

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.plan.manifest import Manifest
from kthena_components.systems.volcano.emit import read_gang
from tests.support.specs import ENGINE_RAY, PREFILL_DECODE, Args, changed

POD_GROUP = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}


def gang_of(args: Args) -> Manifest:
    """Give the PodGroup of the first group."""
    manifests = compile_serving(args).manifests
    return next(manifest for manifest in manifests if manifest.kind == "PodGroup")


def test_a_gang_has_the_topology_of_its_group_and_of_each_engine() -> None:
    spec = gang_of(PREFILL_DECODE).body["spec"]
    assert spec["networkTopology"] == {"mode": "hard", "highestTierAllowed": 2}
    assert [item["networkTopology"] for item in spec["subGroupPolicy"]] == [
        {"mode": "hard", "highestTierAllowed": 1}
    ] * 2


def test_a_gang_waits_in_its_queue() -> None:
    spec = gang_of(changed(ENGINE_RAY, {"queue": "research"})).body["spec"]
    assert spec["queue"] == "research"


def test_a_sub_group_is_held_together_by_the_replica_it_belongs_to() -> None:
    spec = gang_of(ENGINE_RAY).body["spec"]
    assert spec["subGroupPolicy"] == [
        {
            "name": "decode",
            "labelSelector": {
                "matchLabels": {
                    "modelserving.volcano.sh/name": "chat",
                    "modelserving.volcano.sh/role": "decode",
                }
            },
            "matchLabelKeys": ["modelserving.volcano.sh/role-id"],
            "subGroupSize": 2,
            "minSubGroups": 1,
        }
    ]


def test_a_gang_is_read_with_its_minima() -> None:
    spec = {"minMember": 7, "subGroupPolicy": [{"name": "a", "minSubGroups": 2}, {"name": 3}, "x"]}
    gang = read_gang({**POD_GROUP, "spec": spec}, "objects[4]")
    assert (gang.min_member, gang.minima) == (7, {"a": 2})
    assert gang.path == "objects[4].spec.minMember"


def gang(topology: dict[str, Any]) -> Manifest:
    return gang_of(changed(PREFILL_DECODE, {"network_topology": topology}))


def test_a_tier_by_name_makes_the_scheduler_the_owner_of_the_sub_groups() -> None:
    # It writes the number of the tier. The list is one value, so an update would be a conflict.
    by_name = {"mode": "hard", "highest_tier_name": "rack"}
    forced = gang({"role_policy": by_name}).body["metadata"]["annotations"]
    assert forced["pulumi.com/patchForce"] == "true"
    by_number = {"mode": "hard", "highest_tier_allowed": 1}
    for topology in ({"group_policy": by_name}, {"role_policy": by_number}):
        assert "pulumi.com/patchForce" not in gang(topology).body["metadata"]["annotations"]


def test_another_tier_makes_the_gang_anew() -> None:
    # Beside another name, the number that the scheduler wrote would win.
    made = gang({"group_policy": {"highest_tier_name": "rack"}})
    assert (made.replace_on, made.delete_first) == (("spec.networkTopology",), True)


def test_a_gang_comes_after_its_services_and_before_its_pods() -> None:
    """Another stack's update fails at the Services, before it could force the gang."""
    made, manifests = gang_of(PREFILL_DECODE), compile_serving(PREFILL_DECODE).manifests
    own = [one for one in manifests if one.group == made.group]
    assert {one.key for one in own if one.kind == "Service"} <= set(made.after)
    assert all(made.key in one.after for one in own if one.kind == "StatefulSet")
