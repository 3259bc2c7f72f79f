"""Volcano's objects that gather pods: what a PodGroup says."""

from kthena_components.compiler.compile import compile_serving
from kthena_components.systems.volcano.emit import read_gang
from tests.support.specs import ENGINE_RAY, PREFILL_DECODE, changed

POD_GROUP = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}


def test_a_gang_has_the_topology_of_its_group_and_of_each_engine() -> None:
    spec = compile_serving(PREFILL_DECODE).manifests[0].body["spec"]
    assert spec["networkTopology"] == {"mode": "hard", "highestTierAllowed": 2}
    assert [item["networkTopology"] for item in spec["subGroupPolicy"]] == [
        {"mode": "hard", "highestTierAllowed": 1}
    ] * 2


def test_a_gang_waits_in_its_queue() -> None:
    spec = compile_serving(changed(ENGINE_RAY, {"queue": "research"})).manifests[0].body["spec"]
    assert spec["queue"] == "research"


def test_a_sub_group_is_held_together_by_the_replica_it_belongs_to() -> None:
    spec = compile_serving(ENGINE_RAY).manifests[0].body["spec"]
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


def test_what_volcanos_scheduler_wrote_into_a_gang_is_overwritten_or_made_anew() -> None:
    # It writes the number of a tier over its name. The list of sub groups is its own then, and an
    # update would be a conflict; beside another name, the number of the old tier would win.
    by_name = {"network_topology.group_policy": {"highest_tier_name": "rack"}}
    gang = compile_serving(changed(PREFILL_DECODE, by_name)).manifests[0]
    assert gang.body["metadata"]["annotations"]["pulumi.com/patchForce"] == "true"
    assert (gang.replace_on, gang.delete_first) == (("spec.networkTopology",), True)
