"""What is peculiar to the native backend: what each pod is told, and what waits for what."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given

from kthena_components.compiler.compile import Compiled, compile_serving
from kthena_components.core import naming
from kthena_components.core.plan.manifest import Manifest
from kthena_components.core.values.quantity import parse_quantity
from tests.support.specs import (
    ENGINE_RAY,
    GANG,
    GUIDE,
    NATIVE_8B,
    PREFILL_DECODE,
    REMOVED,
    TEMPLATES_PLAIN,
    Args,
    changed,
)
from tests.support.strategies import law, servings


def manifests(args: Args, changes: Mapping[str, Any] | None = None) -> dict[str, Manifest]:
    """Give what is emitted, by key."""
    return {m.key: m for m in compile_serving(changed(args, changes)).manifests}


def of_kind(compiled: Compiled, kind: str) -> list[Manifest]:
    return [manifest for manifest in compiled.manifests if manifest.kind == kind]


def spec_of(manifest: Manifest) -> Any:
    return manifest.body["spec"]


def containers(pod_spec: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from pod_spec.get("initContainers", [])
    yield from pod_spec["containers"]


@pytest.mark.property
@law
@given(servings("native"))
def test_every_container_ends_with_the_three_variables(args: Args) -> None:
    for stateful_set in of_kind(compile_serving(args), "StatefulSet"):
        for container in containers(spec_of(stateful_set)["template"]["spec"]):
            names = [entry["name"] for entry in container["env"]]
            assert tuple(names[-3:]) == ("GROUP_SIZE", "ENTRY_ADDRESS", "WORKER_INDEX")
            assert len(set(names)) == len(names)


@pytest.mark.property
@law
@given(servings("native"))
def test_every_pod_is_selected_by_its_own_stateful_set_alone(args: Args) -> None:
    sets = [spec_of(m) for m in of_kind(compile_serving(args), "StatefulSet")]
    for own in sets:
        labels = own["template"]["metadata"]["labels"]
        selecting = [s for s in sets if s["selector"]["matchLabels"].items() <= labels.items()]
        assert selecting == [own]


@pytest.mark.property
@law
@given(servings("native"))
def test_a_gang_is_as_large_as_the_pods_of_its_minima(args: Args) -> None:
    compiled = compile_serving(args)
    minima = args.get("gang_policy", {}).get("min_role_replicas", {})
    for pod_group in of_kind(compiled, "PodGroup"):
        pods = cpu_like = 0
        for role in compiled.plan.roles:
            for instance in range(minima.get(role.name, role.replicas)):
                made = [
                    spec_of(m)
                    for m in of_kind(compiled, "StatefulSet")
                    if m.group == pod_group.group
                    and m.body["metadata"]["labels"][naming.ROLE_ID] == f"{role.name}-{instance}"
                ]
                pods += sum(spec["replicas"] for spec in made)
                cpu_like += sum(spec["replicas"] * gpus(spec["template"]["spec"]) for spec in made)
        assert spec_of(pod_group)["minMember"] == pods
        wanted = parse_quantity(spec_of(pod_group)["minResources"].get("nvidia.com/gpu", 0))
        assert wanted == cpu_like


def gpus(pod_spec: Mapping[str, Any]) -> int:
    asked = [c.get("resources", {}).get("requests", {}) for c in pod_spec["containers"]]
    return sum(int(requests.get("nvidia.com/gpu", 0)) for requests in asked)


@pytest.mark.property
@law
@given(servings("native"))
def test_every_service_selects_pods_that_exist(args: Args) -> None:
    compiled = compile_serving(args)
    labels = [
        spec_of(m)["template"]["metadata"]["labels"] for m in of_kind(compiled, "StatefulSet")
    ]
    for service in of_kind(compiled, "Service"):
        if service.group is not None:
            selector = spec_of(service)["selector"]
            assert any(selector.items() <= pod.items() for pod in labels)


@pytest.mark.parametrize(
    ("args", "changes", "member"),
    [(PREFILL_DECODE, {"gang_policy": REMOVED}, 11), (PREFILL_DECODE, {}, 7), (GANG, {}, 6)],
    ids=["every-engine", "one-of-each", "two-and-one"],
)
def test_a_gang_counts_whole_engines(args: Args, changes: dict[str, Any], member: int) -> None:
    (pod_group,) = of_kind(compile_serving(changed(args, changes)), "PodGroup")
    assert spec_of(pod_group)["minMember"] == member


def test_a_gang_asks_for_what_its_minimum_requests() -> None:
    (pod_group,) = of_kind(compile_serving(GANG), "PodGroup")
    assert spec_of(pod_group)["minResources"] == {"cpu": "600m"}
    assert [
        (item["name"], item["subGroupSize"], item["minSubGroups"])
        for item in spec_of(pod_group)["subGroupPolicy"]
    ] == [("prefill", 2, 2), ("decode", 2, 1)]


def test_limits_without_requests_count_in_a_gang() -> None:
    (pod_group,) = of_kind(compile_serving(GUIDE), "PodGroup")
    assert spec_of(pod_group)["minResources"] == {
        "cpu": "250",
        "ephemeral-storage": "1600Gi",
        "memory": "2248Gi",
        "nvidia.com/gpu": "16",
    }


def test_workers_are_numbered_from_one_by_their_label() -> None:
    workers = spec_of(manifests(ENGINE_RAY)["StatefulSet/chat-0-decode-0-w"])
    (container,) = workers["template"]["spec"]["containers"]
    assert (workers["replicas"], workers["ordinals"]) == (1, {"start": 1})
    assert container["env"][-1] == {
        "name": "WORKER_INDEX",
        "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['apps.kubernetes.io/pod-index']"}},
    }


def test_the_entry_address_is_the_name_of_the_entrys_service() -> None:
    made = manifests(ENGINE_RAY)
    for name in ("chat-1-decode-0", "chat-1-decode-0-w"):
        (container,) = spec_of(made[f"StatefulSet/{name}"])["template"]["spec"]["containers"]
        assert container["env"][-3:-1] == [
            {"name": "GROUP_SIZE", "value": "2"},
            {"name": "ENTRY_ADDRESS", "value": "chat-1-decode-0-0.serving"},
        ]
    assert "Service/chat-1-decode-0-0" in made


def test_variables_of_the_user_with_these_names_go() -> None:
    own = [{"name": "GROUP_SIZE", "value": "9"}, {"name": "TZ", "value": "UTC"}]
    changes = {"roles[0].entry_template.spec.containers[0].env": own}
    made = manifests(TEMPLATES_PLAIN, changes)["StatefulSet/sample-0-prefill-0"]
    (container,) = spec_of(made)["template"]["spec"]["containers"]
    assert [(e["name"], e.get("value")) for e in container["env"]] == [
        ("TZ", "UTC"),
        ("GROUP_SIZE", "4"),
        ("ENTRY_ADDRESS", "sample-0-prefill-0-0.default"),
        ("WORKER_INDEX", "0"),
    ]


def test_pods_carry_kthenas_labels_and_volcanos_annotations() -> None:
    entry = manifests(ENGINE_RAY)["StatefulSet/chat-0-decode-0"]
    metadata = spec_of(entry)["template"]["metadata"]
    prefix = "modelserving.volcano.sh/"
    hashes = [
        metadata["labels"].pop(f"{prefix}{key}") for key in ("revision", "role-template-hash")
    ]
    assert [len(each) for each in hashes] == [10, 10]
    assert metadata["labels"] == {
        "app.kubernetes.io/name": "vllm",
        "app.kubernetes.io/instance": "chat",
        "app.kubernetes.io/component": "decode",
        f"{prefix}name": "chat",
        f"{prefix}group-name": "chat-0",
        f"{prefix}role": "decode",
        f"{prefix}role-id": "decode-0",
        f"{prefix}entry": "true",
    }
    assert metadata["annotations"] == {
        "scheduling.k8s.io/group-name": "chat-0",
        "volcano.sh/task-spec": "decode-0",
    }


def test_another_scheduler_makes_no_gang() -> None:
    made = manifests(NATIVE_8B, {"scheduler_name": "default-scheduler"})
    template = spec_of(made["StatefulSet/small-0-server-0"])["template"]
    assert template["spec"]["schedulerName"] == "default-scheduler"
    assert "annotations" not in template["metadata"]
    assert not [key for key in made if key.startswith("PodGroup/")]


def test_a_batch_of_groups_waits_for_the_batch_before_it() -> None:
    update = {"rollout_strategy.rolling_update_configuration.max_unavailable": 2}
    made = manifests(ENGINE_RAY, {"replicas": 4, **update})
    assert [set(made[f"Service/chat-{group}-decode-0"].after) for group in range(4)] == [
        set(),
        set(),
        {"StatefulSet/chat-0-decode-0", "StatefulSet/chat-1-decode-0"},
        {"StatefulSet/chat-0-decode-0", "StatefulSet/chat-1-decode-0"},
    ]


def test_an_entry_is_made_after_all_workers_of_its_group() -> None:
    made = manifests(PREFILL_DECODE)
    workers = {key for key in made if key.endswith("-w")}
    for key in ("prefill-0", "prefill-1", "decode-0"):
        assert workers <= set(made[f"StatefulSet/split-0-{key}"].after)


@pytest.mark.parametrize(
    ("replicas", "awaited"), [(4, [0, 1, 2, 3]), (5, [4])], ids=["few", "many"]
)
def test_up_waits_for_few_entries_at_a_time(replicas: int, awaited: list[int]) -> None:
    made = manifests(NATIVE_8B, {"roles[0].replicas": replicas})
    waited_for = [key for key, manifest in made.items() if manifest.timeout_seconds is not None]
    assert waited_for == [f"StatefulSet/small-0-server-{instance}" for instance in awaited]


def test_the_entry_that_is_waited_for_is_made_last() -> None:
    five = {"roles[0].replicas": 5, "pod_disruption_budget": False}
    *others, last = manifests(NATIVE_8B, five).values()
    assert {other.key for other in others if other.kind == "StatefulSet"} <= set(last.after)


def test_what_is_not_waited_for_is_there_when_its_pods_exist() -> None:
    """Never skipAwait: a deletion that nobody waits for blocks the replacement's name."""
    for manifest in manifests(PREFILL_DECODE, {"roles[1].replicas": 4}).values():
        if manifest.kind == "StatefulSet":
            pods = manifest.body["spec"]["replicas"]
            until_made = {"pulumi.com/waitFor": f"jsonpath={{.status.replicas}}={pods}"}
            awaited = manifest.timeout_seconds is not None
            annotations = manifest.body["metadata"].get("annotations")
            assert annotations == (None if awaited else until_made)


def test_an_entry_is_deleted_before_its_workers() -> None:
    made = manifests(PREFILL_DECODE)
    assert made["StatefulSet/split-0-prefill-0"].replace_with == (
        "StatefulSet/split-0-prefill-0-w",
    )
    assert all(m.delete_first for m in made.values() if m.kind == "StatefulSet")


def test_a_group_below_the_partition_is_left_as_it_is() -> None:
    update = {"rollout_strategy.rolling_update_configuration.partition": 1}
    made = manifests(ENGINE_RAY, update)
    kept, changing = made["StatefulSet/chat-0-decode-0"], made["StatefulSet/chat-1-decode-0"]
    assert (kept.replace_on, kept.ignore) == ((), ("spec",))
    assert (changing.replace_on, changing.ignore) == (("spec.template",), ())


@pytest.mark.parametrize(
    ("rollout", "same"),
    [("ServingGroupRollingUpdate", False), ("RoleRollingUpdate", True)],
    ids=["by-group", "by-role"],
)
def test_a_change_in_one_role_reaches_the_other_only_by_group(rollout: str, same: bool) -> None:
    changes = {"rollout_strategy.type": rollout}
    key = "StatefulSet/split-0-decode-0"
    image = {"roles[0].engine.image": "vllm/vllm-openai:v0.10.2"}
    before = spec_of(manifests(PREFILL_DECODE, changes)[key])
    after = spec_of(manifests(PREFILL_DECODE, changes | image)[key])
    assert (before == after) is same


def test_a_change_of_the_entry_changes_the_workers_label() -> None:
    image = {"roles[0].entry_template.spec.containers[0].image": "nginx:1.30"}
    workers = [
        spec_of(manifests(TEMPLATES_PLAIN, c)["StatefulSet/sample-0-prefill-0-w"])["template"]
        for c in ({}, image)
    ]
    assert workers[0]["spec"] == workers[1]["spec"]
    assert workers[0] != workers[1]


LWS = "serve --nnodes $(LWS_GROUP_SIZE) --node-rank $(LWS_WORKER_INDEX) --at $(LWS_LEADER_ADDRESS)"


def env_of(args: Args, key: str) -> list[dict[str, Any]]:
    """Give the variables of the first container of a StatefulSet."""
    (container, *_) = manifests(args)[key].body["spec"]["template"]["spec"]["containers"]
    return list(container["env"])


def test_a_template_for_leader_worker_set_runs_unchanged() -> None:
    own = [{"name": "AT", "value": "$(LWS_LEADER_ADDRESS):20000"}]
    changes = {
        f"roles[0].{field}.spec.containers[0].{key}": value
        for field in ("entry_template", "worker_template")
        for key, value in (("command", ["sh", "-c", LWS]), ("env", own))
    }
    args = changed(TEMPLATES_PLAIN, changes)
    entry = env_of(args, "StatefulSet/sample-0-prefill-0")
    assert entry[:4] == [
        {"name": "LWS_GROUP_SIZE", "value": "4"},
        {"name": "LWS_LEADER_ADDRESS", "value": "sample-0-prefill-0-0.default"},
        {"name": "LWS_WORKER_INDEX", "value": "0"},
        *own,
    ]
    worker = {v["name"]: v for v in env_of(args, "StatefulSet/sample-0-prefill-0-w")}
    assert worker["LWS_WORKER_INDEX"]["valueFrom"] == worker["WORKER_INDEX"]["valueFrom"]


def test_other_templates_do_not_get_its_variables() -> None:
    names = {v["name"] for v in env_of(TEMPLATES_PLAIN, "StatefulSet/sample-0-decode-0")}
    assert names == set(naming.INJECTED_ENV)
