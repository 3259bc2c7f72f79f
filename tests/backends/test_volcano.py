"""Volcano's objects that gather pods: what a Queue and a PodGroup say."""

from typing import Any

import pytest

from kthena_components.backends.compiler import compile_serving
from kthena_components.backends.queues import emit_queue
from kthena_components.backends.volcano import read_gang
from kthena_components.core.spec import QueueSpec
from tests.support.crds import schema_errors
from tests.support.specs import ENGINE_RAY, PREFILL_DECODE, changed

POD_GROUP = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}


@pytest.mark.parametrize(
    ("fields", "spec"),
    [
        ({}, {"weight": 1, "reclaimable": True}),
        (
            {
                "weight": 4,
                "reclaimable": False,
                "parent": "root",
                "capability": {"nvidia.com/gpu": "64"},
                "deserved": {"nvidia.com/gpu": "32"},
                "guarantee": {"nvidia.com/gpu": "16"},
            },
            {
                "weight": 4,
                "reclaimable": False,
                "parent": "root",
                "capability": {"nvidia.com/gpu": "64"},
                "deserved": {"nvidia.com/gpu": "32"},
                "guarantee": {"resource": {"nvidia.com/gpu": "16"}},
            },
        ),
    ],
    ids=["plain", "full"],
)
def test_a_queue_is_written_as_the_crd_wants_it(
    fields: dict[str, Any], spec: dict[str, Any]
) -> None:
    body = emit_queue(QueueSpec.model_validate({"name": "research", **fields})).body
    assert body["spec"] == spec
    assert body["metadata"]["name"] == "research"
    assert schema_errors(body) == []


def test_a_queue_is_waited_for_until_it_takes_pod_groups() -> None:
    # Volcano's webhook refuses a PodGroup whose Queue its controller has not opened yet.
    body = emit_queue(QueueSpec.model_validate({"name": "research"})).body
    until_open = {"pulumi.com/waitFor": "jsonpath={.status.state}=Open"}
    assert body["metadata"]["annotations"] == until_open


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


def test_a_queue_is_there_when_it_is_open() -> None:
    # Volcano's webhook refuses a PodGroup whose Queue its controller has not opened yet.
    manifest = emit_queue(QueueSpec(name="research"))
    annotations = manifest.body["metadata"]["annotations"]
    assert annotations == {"pulumi.com/waitFor": "jsonpath={.status.state}=Open"}
    assert manifest.timeout_seconds == 60
