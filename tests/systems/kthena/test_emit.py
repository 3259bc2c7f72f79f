"""What is peculiar to Kthena: one object, in the shape that each version of the CRD has."""

from typing import Any

import pytest

from kthena_components.checker.manifest import read_manifest
from kthena_components.compiler.compile import compile_serving
from kthena_components.core.plan.manifest import BACKGROUND, Manifest
from kthena_components.core.values.unknown import Unknown
from tests.support.crds import schema_errors
from tests.support.specs import (
    ENGINE_RAY,
    GANG,
    GUIDE,
    NATIVE_8B,
    PREFILL_DECODE,
    TEMPLATES_PLAIN,
    Args,
    changed,
)
from tests.support.strategies import LATE

KTHENA = {"backend": "kthena"}
IDENTITY = {"apiVersion": "workload.serving.volcano.sh/v1alpha1", "kind": "ModelServing"}


def emitted(args: Args, changes: dict[str, Any] | None = None) -> Manifest:
    """Give the ModelServing that is emitted."""
    return compile_serving(changed(args, KTHENA | (changes or {}))).manifests[0]


def spec_of(args: Args, changes: dict[str, Any] | None = None) -> Any:
    return emitted(args, changes).body["spec"]


def test_a_template_passes_through_but_for_its_requests() -> None:
    (role,) = spec_of(GUIDE)["template"]["roles"]
    for field, given in (
        ("entryTemplate", "entry_template"),
        ("workerTemplate", "worker_template"),
    ):
        written, asked = role[field], GUIDE["roles"][0][given]
        (container,), (own,) = written["spec"]["containers"], asked["spec"]["containers"]
        assert container | {"resources": None} == own | {"resources": None}
        assert container["resources"] == {
            "limits": own["resources"]["limits"],
            "requests": own["resources"]["limits"] | own["resources"]["requests"],
        }
        assert written["spec"]["volumes"] == asked["spec"]["volumes"]


def test_what_kthena_decides_itself_is_left_to_it() -> None:
    spec = spec_of(NATIVE_8B)
    (role,) = spec["template"]["roles"]
    assert set(spec) == {"replicas", "schedulerName", "template"}
    assert set(spec["template"]) == {"roles"}
    assert set(role) == {"name", "replicas", "entryTemplate", "workerReplicas"}


def test_no_variable_is_injected_twice() -> None:
    (role,) = spec_of(ENGINE_RAY)["template"]["roles"]
    (container,) = role["entryTemplate"]["spec"]["containers"]
    assert [entry["name"] for entry in container["env"]] == ["HF_TOKEN"]


def test_a_gang_is_stated_as_minima_of_roles() -> None:
    template = spec_of(GANG)["template"]
    assert template["gangPolicy"] == {"minRoleReplicas": {"prefill": 2, "decode": 1}}


def test_a_changed_gang_makes_the_object_anew() -> None:
    manifest = emitted(GANG)
    assert manifest.replace_on == ("spec.template.gangPolicy",)
    assert manifest.delete_first


@pytest.mark.parametrize(
    ("version", "topology"),
    [
        ("0.1", {"mode": "hard", "highestTierAllowed": 1}),
        ("0.2", {"groupPolicy": {"mode": "hard", "highestTierAllowed": 1}}),
        ("1.0", {"groupPolicy": {"mode": "hard", "highestTierAllowed": 1}}),
    ],
)
def test_a_topology_is_flat_before_0_2(version: str, topology: dict[str, Any]) -> None:
    changes = {"kthena_version": version, "gang_policy.min_role_replicas.decode": 1}
    spec = spec_of(ENGINE_RAY, changes)
    assert spec["template"]["networkTopology"] == topology
    assert schema_errors(emitted(ENGINE_RAY, changes).body, version) == []


def test_a_topology_holds_for_the_group_and_for_each_engine() -> None:
    assert spec_of(PREFILL_DECODE)["template"]["networkTopology"] == {
        "groupPolicy": {"mode": "hard", "highestTierAllowed": 2},
        "rolePolicy": {"mode": "hard", "highestTierAllowed": 1},
    }


def test_a_queue_is_an_annotation() -> None:
    annotations = emitted(NATIVE_8B, {"queue": "research"}).body["metadata"]["annotations"]
    assert annotations["scheduling.volcano.sh/queue-name"] == "research"


@pytest.mark.parametrize(
    ("replicas", "annotations"),
    [
        (
            2,
            {
                "pulumi.com/deletionPropagationPolicy": "background",
                "pulumi.com/waitFor": '["condition=Available", '
                '"jsonpath={.status.updatedReplicas}=2"]',
            },
        ),
        (0, {"pulumi.com/deletionPropagationPolicy": "background"}),
    ],
    ids=["some", "none"],
)
def test_only_a_serving_with_groups_is_waited_for(
    replicas: int, annotations: dict[str, str]
) -> None:
    manifest = emitted(NATIVE_8B, {"replicas": replicas})
    assert manifest.body["metadata"]["annotations"] == annotations


@pytest.mark.parametrize(
    ("changes", "strategy"),
    [
        (
            {"rollout_strategy.rolling_update_configuration": {"max_unavailable": "50%"}},
            {
                "type": "ServingGroupRollingUpdate",
                "rollingUpdateConfiguration": {"maxUnavailable": "50%"},
            },
        ),
        (
            {"rollout_strategy.rolling_update_configuration": {"partition": 1}},
            {
                "type": "ServingGroupRollingUpdate",
                "rollingUpdateConfiguration": {"maxUnavailable": 1, "partition": 1},
            },
        ),
        ({"rollout_strategy.type": "RoleRollingUpdate"}, {"type": "RoleRollingUpdate"}),
    ],
    ids=["budget", "partition", "by-role"],
)
def test_a_rollout_is_written_as_it_was_stated(
    changes: dict[str, Any], strategy: dict[str, Any]
) -> None:
    assert spec_of(ENGINE_RAY, changes)["rolloutStrategy"] == strategy


def test_a_role_has_its_own_budget() -> None:
    changes = {"rollout_strategy.type": "RoleRollingUpdate", "roles[0].max_unavailable": 1}
    assert spec_of(ENGINE_RAY, changes)["template"]["roles"][0]["maxUnavailable"] == 1


def test_recovery_and_grace_are_the_controllers() -> None:
    changes = {"recovery_policy": "ServingGroupRecreate", "restart_grace_period_seconds": 60}
    spec = spec_of(GUIDE, changes)
    assert spec["recoveryPolicy"] == "ServingGroupRecreate"
    assert spec["template"]["restartGracePeriodSeconds"] == 60


def test_labels_and_annotations_of_a_template_reach_kthena() -> None:
    metadata = {"labels": {"team": "chat"}, "annotations": {"a": "b"}}
    changes = {"roles[0].entry_template.metadata": metadata}
    roles = spec_of(TEMPLATES_PLAIN, changes)["template"]["roles"]
    assert roles[0]["entryTemplate"]["metadata"] == metadata
    assert "metadata" not in roles[1]["entryTemplate"]


def test_a_worker_template_without_workers_is_kept_as_kthena_takes_it() -> None:
    changes = {"roles[0].worker_replicas": 0, "roles[0].worker_template": {"spec": {}}}
    manifest = emitted(TEMPLATES_PLAIN, changes)
    (role, _) = manifest.body["spec"]["template"]["roles"]
    assert role["workerTemplate"] == {"spec": {"containers": []}}


def test_a_gang_that_is_not_known_is_read_as_such() -> None:
    roles = [{"name": "a", "replicas": 3, "workerReplicas": 1}, {"name": "b", "workerReplicas": 0}]
    template = {"roles": roles, "gangPolicy": {"minRoleReplicas": {"a": LATE}}}
    facts = read_manifest({**IDENTITY, "spec": {"template": template}}, "objects[2]")
    assert facts is not None
    assert facts.gang is not None
    because = Unknown("minRoleReplicas.a is not known yet")
    assert facts.gang.minima == {"a": because, "b": 1}
    assert facts.gang.min_member == because
    assert facts.gang.path == "objects[2].spec.template.gangPolicy"
    assert [engine.path for engine in facts.engines] == [
        "objects[2].spec.template.roles[0]",
        "objects[2].spec.template.roles[1]",
    ]


def test_a_minimum_above_the_replicas_is_read_as_the_replicas() -> None:
    roles = [{"name": "a", "replicas": 2, "workerReplicas": 1}]
    template = {"roles": roles, "gangPolicy": {"minRoleReplicas": {"a": 5}}}
    facts = read_manifest({**IDENTITY, "spec": {"template": template}})
    assert facts is not None
    assert facts.gang is not None
    assert (facts.gang.minima, facts.gang.min_member) == ({"a": 2}, 4)


@pytest.mark.parametrize(
    ("scheduler", "expected"), [("volcano", True), ("default-scheduler", False), (None, True)]
)
def test_volcano_is_kthenas_own_scheduler(scheduler: str | None, expected: bool) -> None:
    spec = {"template": {"roles": []}, **({"schedulerName": scheduler} if scheduler else {})}
    facts = read_manifest({**IDENTITY, "spec": spec})
    assert facts is not None
    assert facts.gang_expected is expected
    assert (facts.gang is None) is not expected


def test_groups_below_a_partition_are_not_waited_for() -> None:
    update = {"replicas": 2, "rollout_strategy.rolling_update_configuration.partition": 1}
    annotations = emitted(NATIVE_8B, update).body["metadata"]["annotations"]
    assert annotations == {**BACKGROUND, "pulumi.com/waitFor": "condition=Available"}


def test_plugins_are_written_in_their_order() -> None:
    plugins: list[dict[str, Any]] = [
        {"name": "b", "config": {"a": [1, None]}, "scope": {"target": "Entry"}},
        {"name": "a"},
    ]
    args = changed(GUIDE, {"backend": "kthena", "backend_options": {"plugins": plugins}})

    spec = compile_serving(args).manifests[0].body["spec"]

    assert spec["plugins"] == [{"type": "BuiltIn", **plugin} for plugin in plugins]
