"""What a ModelInfer says of a serving, beside the emitters' laws."""

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kthena_components.compiler.compile import compile_serving
from kthena_components.core import naming
from kthena_components.core.findings import SpecError
from kthena_components.core.plan.manifest import WAIT_FOR, Manifest
from tests.support.specs import ALL, REMOVED, Args, changed, example_for
from tests.support.strategies import law, servings
from tests.support.successor import as_model_serving
from tests.systems.matrixinfer.webhook import refusals

UPDATE = "rollout_strategy.rolling_update_configuration"
GUIDE, ENGINE = example_for("matrixinfer", "guide"), example_for("matrixinfer", "engine-native")
SPLIT = example_for("matrixinfer", "prefill-decode")


def emitted(args: Args, changes: dict[str, Any] | None = None) -> Manifest:
    """Give the ModelInfer that is written for a serving."""
    return compile_serving(changed(args, changes)).manifests[0]


def spec_of(args: Args, changes: dict[str, Any] | None = None) -> Any:
    """Give its spec."""
    return emitted(args, changes).body["spec"]


@law
@given(st.data())
def test_kthena_0_1_gets_the_same_object_under_its_later_names(data: st.DataObject) -> None:
    args = data.draw(servings("matrixinfer"))
    later = changed(args, {"backend": "kthena", "kthena_version": "0.1"})
    later.pop("backend_options", None)
    rolling = later.get("rollout_strategy", {}).get("rolling_update_configuration", {})
    rolling.pop("max_surge", None)
    if isinstance(rolling.get("partition"), str):
        rolling.pop("partition")
        args = changed(args, {f"{UPDATE}.partition": REMOVED})
    if "network_topology" in later:
        later.setdefault("gang_policy", {"min_role_replicas": {}})
        args["gang_policy"] = later["gang_policy"]
    try:
        known = compile_serving(later).manifests
    except SpecError:
        assume(False)
        raise
    mine = compile_serving(args).manifests
    body = dict(mine[0].body)
    written = body["spec"].get("rolloutStrategy", {}).get("rollingUpdateConfiguration", {})
    assert written.pop("maxSurge", 0) in {0, "0%"}
    assert as_model_serving(body) == json.loads(json.dumps(known[0].body))
    assert mine[1:] == known[1:], "the front Service selects the same labels"
    assert mine[0].timeout_seconds == known[0].timeout_seconds


@law
@given(st.data())
def test_the_webhook_takes_every_model_infer(data: st.DataObject) -> None:
    assert refusals(compile_serving(data.draw(servings("matrixinfer"))).manifests[0].body) == []


@pytest.mark.parametrize(
    ("options", "group"),
    [
        ({}, "workload.matrixinfer.ai"),
        ({"api_group": "workload.matrixinfer.ai"}, "workload.matrixinfer.ai"),
        ({"api_group": "workload.volcano.sh"}, "workload.volcano.sh"),
    ],
)
def test_the_api_group_is_chosen(options: dict[str, str], group: str) -> None:
    body = emitted(GUIDE, {"backend_options": options}).body
    assert (body["apiVersion"], body["kind"]) == (f"{group}/v1alpha1", "ModelInfer")


@pytest.mark.parametrize(
    ("changes", "gang"),
    [
        ({"gang_policy": REMOVED}, {}),
        ({}, {"minRoleReplicas": {"llama-405b": 1}}),
        (
            {"network_topology.group_policy.highest_tier_allowed": 1},
            {
                "minRoleReplicas": {"llama-405b": 1},
                "networkTopology": {"mode": "hard", "highestTierAllowed": 1},
            },
        ),
        (
            {"gang_policy": REMOVED, "network_topology.group_policy.mode": "soft"},
            {"networkTopology": {"mode": "soft"}},
        ),
    ],
    ids=["all-replicas", "minima", "topology", "topology-alone"],
)
def test_there_is_always_a_gang(changes: dict[str, Any], gang: dict[str, Any]) -> None:
    assert spec_of(GUIDE, changes)["template"]["gangSchedule"] == gang


@pytest.mark.parametrize("args", ALL)
def test_every_template_names_the_scheduler(args: str) -> None:
    for role in spec_of(example_for("matrixinfer", args))["template"]["roles"]:
        for template in (role[at] for at in ("entryTemplate", "workerTemplate") if at in role):
            assert template["spec"]["schedulerName"] == "volcano"


def test_the_front_service_selects_the_entries_of_its_role() -> None:
    made = compile_serving({**SPLIT, "pod_disruption_budget": False}).manifests
    selector = made[-1].body["spec"]["selector"]
    assert selector[naming.ROLE] == SPLIT["expose"]["role"]
    chosen = [
        f"{role['name']} {at}"
        for role in made[0].body["spec"]["template"]["roles"]
        for at in ("entry", "worker")
        if selector.items()
        <= role.get(f"{at}Template", {"metadata": {"labels": {}}})["metadata"]["labels"].items()
    ]
    assert chosen == [f"{SPLIT['expose']['role']} entry"]


def test_labels_of_the_user_stay() -> None:
    (role,) = spec_of(ENGINE, {"roles[0].overlay.metadata.labels.team": "chat"})["template"][
        "roles"
    ]
    assert role["workerTemplate"]["metadata"]["labels"]["team"] == "chat"


@pytest.mark.parametrize(
    ("policy", "written"),
    [
        ("ServingGroupRecreate", "InferGroupRecreate"),
        ("RoleRecreate", "RoleRecreate"),
        ("None", "None"),
    ],
)
def test_the_recovery_policy_has_the_names_of_model_infer(policy: str, written: str) -> None:
    spec = spec_of(GUIDE, {"recovery_policy": policy, "restart_grace_period_seconds": 60})
    assert spec["recoveryPolicy"] == written
    assert spec["template"]["restartGracePeriodSeconds"] == 60


@pytest.mark.parametrize(
    ("stated", "written"),
    [
        ({}, {"maxUnavailable": 1}),
        ({"max_surge": 0}, {"maxUnavailable": 1, "maxSurge": 0}),
        ({"partition": 2}, {"maxUnavailable": 1, "partition": 2}),
        ({"partition": "50%"}, {"maxUnavailable": 1, "partition": 2}),
        ({"partition": "60%"}, {"maxUnavailable": 1, "partition": 3}),
    ],
)
def test_a_partition_is_a_count_of_groups(stated: dict[str, Any], written: dict[str, Any]) -> None:
    spec = spec_of(ENGINE, {"replicas": 4, UPDATE: stated})
    rolling = {"type": "InferGroupRollingUpdate", "rollingUpdateConfiguration": written}
    assert spec["rolloutStrategy"] == rolling


def test_defaults_are_left_to_the_crd() -> None:
    spec = spec_of(changed(GUIDE, {"gang_policy": REMOVED}))
    assert sorted(spec) == ["replicas", "schedulerName", "template"]
    assert sorted(spec["template"]) == ["gangSchedule", "roles"]


@pytest.mark.parametrize(
    ("changes", "waits"),
    [
        ({"replicas": 2}, '["condition=Available", "jsonpath={.status.updatedReplicas}=2"]'),
        ({"replicas": 2, f"{UPDATE}.partition": 1}, "condition=Available"),
        ({"replicas": 0}, None),
    ],
    ids=["all", "partition", "none"],
)
def test_up_waits_as_for_a_model_serving(changes: dict[str, Any], waits: str | None) -> None:
    annotations = emitted(ENGINE, changes).body["metadata"].get("annotations", {})
    assert annotations.get(WAIT_FOR) == waits


def test_nothing_replaces_a_model_infer() -> None:
    assert emitted(GUIDE).replace_on == (), "its CRD has no rule about updates"
