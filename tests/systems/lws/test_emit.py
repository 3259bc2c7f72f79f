"""What a LeaderWorkerSet and a DisaggregatedSet say of a serving, beside the emitters' laws."""

from typing import Any

import pytest

from kthena_components.checker.check_cluster_objects import check_objects_together
from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import Level
from kthena_components.core.plan.manifest import WAIT_FOR, Manifest
from tests.support.for_each import for_each
from tests.support.specs import REMOVED, Args, changed, example_for

UPDATE = "rollout_strategy.rolling_update_configuration"
GUIDE, ENGINE = example_for("lws", "guide"), example_for("lws", "engine-native")
SPLIT = example_for("lws", "prefill-decode")


def emitted(args: Args, changes: dict[str, Any] | None = None) -> Manifest:
    """Give the set that is written for a serving."""
    return compile_serving(changed(args, changes)).manifests[0]


def spec_of(args: Args, changes: dict[str, Any] | None = None) -> Any:
    """Give the spec of the LeaderWorkerSet that is written for a serving of one role."""
    return emitted(args, changes).body["spec"]


def containers(spec: Any) -> list[Any]:
    """Give the containers of leader and workers."""
    templates = (spec["leaderWorkerTemplate"][f"{one}Template"] for one in ("leader", "worker"))
    return [container for one in templates for container in one["spec"]["containers"]]


def test_kthenas_variables_are_those_of_lws() -> None:
    for container in containers(spec_of(GUIDE)):
        assert container["env"][-3:] == [
            {"name": "GROUP_SIZE", "value": "$(LWS_GROUP_SIZE)"},
            {"name": "ENTRY_ADDRESS", "value": "$(LWS_LEADER_ADDRESS)"},
            {"name": "WORKER_INDEX", "value": "$(LWS_WORKER_INDEX)"},
        ]


def test_the_templates_of_the_guide_are_unchanged() -> None:
    roles = GUIDE["roles"][0]
    for made, field in zip(containers(spec_of(GUIDE)), ("entry", "worker"), strict=True):
        (asked,) = roles[f"{field}_template"]["spec"]["containers"]
        assert made["command"] == asked["command"]
        assert made["env"][: len(asked["env"])] == asked["env"]


def test_every_engine_of_every_group_is_a_group_of_the_set() -> None:
    spec = spec_of(ENGINE, {"replicas": 3, "roles[0].replicas": 2})
    assert (spec["replicas"], spec["leaderWorkerTemplate"]["size"]) == (6, 2)


def test_the_options_reach_the_set() -> None:
    role = ENGINE["roles"][0]["name"]
    subgroup = {"size": 1, "type": "LeaderExcluded", "exclusive_topology": "rack"}
    options = {
        "subgroups": {role: subgroup},
        "exclusive_topology": "topology.kubernetes.io/zone",
        "recreate_after_start": True,
        "subdomain_policy": "UniquePerReplica",
    }
    changes = {"backend_options": options, "scheduler_name": "default-scheduler"}

    body = emitted(ENGINE, changes).body

    assert (
        body["metadata"]["annotations"].items()
        >= {
            "leaderworkerset.sigs.k8s.io/exclusive-topology": "topology.kubernetes.io/zone",
            "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology": "rack",
        }.items()
    )
    template = body["spec"]["leaderWorkerTemplate"]
    policy = {"subGroupPolicyType": "LeaderExcluded", "subGroupSize": 1}
    assert template["subGroupPolicy"] == policy
    assert template["restartPolicy"] == "RecreateGroupAfterStart"
    assert body["spec"]["networkConfig"] == {"subdomainPolicy": "UniquePerReplica"}


def test_workers_may_wait_for_a_leader_that_does_not_wait_for_them() -> None:
    probe = "roles[0].entry_template.spec.containers[0].readinessProbe"
    changes = {"backend_options": {"startup_policy": "LeaderReady"}, probe: REMOVED}
    compiled = compile_serving(changed(GUIDE, changes))
    assert compiled.manifests[0].body["spec"]["startupPolicy"] == "LeaderReady"
    (found,) = (each for each in compiled.findings if each.rule == "lws-gang-startup")
    assert (found.path, found.level) == ("backend_options.startup_policy", Level.ADVISORY)
    assert "not the 2 pods of role" in found.seen


@for_each(
    "changes",
    [
        {"backend_options": {"startup_policy": "LeaderCreated"}},
        {
            "backend_options": {"startup_policy": "LeaderReady"},
            "gang_policy": REMOVED,
            "scheduler_name": "default-scheduler",
        },
    ],
)
def test_a_gang_of_all_pods_or_none_says_nothing(changes: dict[str, Any]) -> None:
    probe = "roles[0].entry_template.spec.containers[0].readinessProbe"
    found = compile_serving(changed(GUIDE, {**changes, probe: REMOVED})).findings
    assert [each for each in found if each.rule == "lws-gang-startup"] == []


def test_a_pod_without_workers_has_one_template() -> None:
    template = spec_of(example_for("lws", "native-8b"))["leaderWorkerTemplate"]
    assert "leaderTemplate" not in template
    labels = template["workerTemplate"]["metadata"]["labels"]
    assert labels["modelserving.volcano.sh/entry"] == "true"


@pytest.mark.parametrize(
    ("policy", "written"),
    [
        (None, "RecreateGroupOnPodRestart"),
        ("RoleRecreate", "RecreateGroupOnPodRestart"),
        ("ServingGroupRecreate", "RecreateGroupOnPodRestart"),
        ("None", "None"),
    ],
)
def test_an_engine_is_recreated_as_a_whole(policy: str | None, written: str) -> None:
    spec = spec_of(ENGINE, {"recovery_policy": policy} if policy else {})
    assert spec["leaderWorkerTemplate"]["restartPolicy"] == written


def test_workers_do_not_wait_for_their_leader() -> None:
    assert spec_of(ENGINE)["startupPolicy"] == "LeaderCreated"


@pytest.mark.parametrize(
    ("groups", "engines", "stated", "written"),
    [
        (4, 1, {"max_unavailable": 2}, {"maxUnavailable": 2}),
        (4, 3, {"max_unavailable": "50%"}, {"maxUnavailable": 6}),
        (4, 1, {"max_unavailable": 0, "max_surge": "25%"}, {"maxUnavailable": 0, "maxSurge": 1}),
        (4, 2, {"max_unavailable": 1, "max_surge": 1}, {"maxUnavailable": 2, "maxSurge": 2}),
        (4, 2, {"partition": "30%"}, {"maxUnavailable": 2, "partition": 4}),
        (0, 1, {"max_unavailable": 1}, {"maxUnavailable": 1}),
    ],
)
def test_a_budget_of_groups_is_written_in_engines(
    groups: int, engines: int, stated: Args, written: Args
) -> None:
    changes = {"replicas": groups, "roles[0].replicas": engines, UPDATE: stated}
    strategy = spec_of(ENGINE, changes)["rolloutStrategy"]
    assert strategy == {"type": "RollingUpdate", "rollingUpdateConfiguration": written}


def test_the_engines_of_one_group_may_have_a_budget() -> None:
    rollout = {"rollout_strategy": {"type": "RoleRollingUpdate"}, "replicas": 1}
    spec = spec_of(ENGINE, {**rollout, "roles[0].replicas": 4, "roles[0].max_unavailable": "50%"})
    assert spec["rolloutStrategy"]["rollingUpdateConfiguration"] == {"maxUnavailable": "50%"}


def test_without_a_budget_lws_has_its_own() -> None:
    assert "rolloutStrategy" not in spec_of(ENGINE)


@pytest.mark.parametrize(
    ("changes", "waits"),
    [
        ({}, '["condition=Available", "jsonpath={.status.updatedReplicas}=2"]'),
        ({UPDATE: {"partition": 1}}, "condition=Available"),
        ({"replicas": 0}, "condition=Available"),
    ],
)
def test_up_waits_until_every_engine_is_updated(changes: Args, waits: str) -> None:
    made = emitted(ENGINE, changes)
    assert made.body["metadata"]["annotations"] == {WAIT_FOR: waits}
    assert made.timeout_seconds == 3600


def test_a_disaggregated_set_has_no_status_to_wait_for() -> None:
    made = emitted(SPLIT)
    assert "annotations" not in made.body["metadata"]
    assert made.timeout_seconds is None


@pytest.mark.parametrize("args", [ENGINE, SPLIT], ids=["one", "several"])
def test_the_queue_is_that_of_each_set(args: Args) -> None:
    body = emitted(args, {"queue": "research"}).body
    for holder in body["spec"].get("roles", [body]):
        annotations = holder["metadata"]["annotations"]
        assert annotations["scheduling.volcano.sh/queue-name"] == "research"


@pytest.mark.parametrize("args", [ENGINE, SPLIT], ids=["one", "several"])
def test_the_front_service_selects_the_leaders(args: Args) -> None:
    written = compile_serving({**args, "pod_disruption_budget": False}).manifests
    bodies = {m.key: m.body for m in written}
    (front,) = (body for key, body in bodies.items() if key.startswith("Service/"))
    (made,) = (body for key, body in bodies.items() if not key.startswith("Service/"))
    assert [f for f in check_objects_together(bodies) if f.rule == "service-selects-pods"] == []
    assert front["metadata"]["name"] != made["metadata"]["name"] or made["kind"] != (
        "LeaderWorkerSet"
    ), "LWS creates a Service with the name of each LeaderWorkerSet"
    selector = front["spec"]["selector"]
    specs = [role["spec"] for role in made["spec"].get("roles", [made])]
    leaders = [s["leaderWorkerTemplate"]["leaderTemplate"]["metadata"]["labels"] for s in specs]
    workers = [s["leaderWorkerTemplate"]["workerTemplate"]["metadata"]["labels"] for s in specs]
    assert sum(selector.items() <= labels.items() for labels in leaders) == 1
    assert not any(selector.items() <= labels.items() for labels in workers)


@pytest.mark.parametrize("scheduler", ["volcano", "default-scheduler"])
def test_pods_go_to_the_scheduler_of_the_serving(scheduler: str) -> None:
    template = spec_of(ENGINE, {"scheduler_name": scheduler})["leaderWorkerTemplate"]
    pods = (template[f"{one}Template"]["spec"] for one in ("leader", "worker"))
    assert {pod["schedulerName"] for pod in pods} == {scheduler}


def test_what_scales_a_set_keeps_its_number() -> None:
    made, plain = emitted(ENGINE, {"autoscaled": True}), emitted(ENGINE)
    assert (made.ignore, plain.ignore) == (("spec.replicas",), ())
    assert made.body["spec"] == plain.body["spec"]
    waits = [one.body["metadata"]["annotations"][WAIT_FOR] for one in (made, plain)]
    assert waits[0] == "condition=Available"
    assert "updatedReplicas" in waits[1]


def test_a_set_that_exists_keeps_its_name() -> None:
    plain = emitted(ENGINE)
    named = emitted(ENGINE, {"backend_options": {"set_name": "llama"}})
    assert named.name == "llama"
    assert named.body["spec"] == plain.body["spec"]
