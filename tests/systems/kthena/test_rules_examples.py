"""Kthena's own examples, and the manifest that the other tests change."""

import copy
from typing import Any

import pytest

from kthena_components.core.findings import Finding, Level
from kthena_components.core.objects.object import MODEL_SERVING
from kthena_components.core.schema.versions import KTHENA_VERSIONS
from tests.support.admission import own_findings

Manifest = dict[str, Any]
GONE: Any = object()
"""As a change: take the field away."""


def pod(name: str = "engine", **fields: Any) -> Manifest:
    """Write a pod template of one container."""
    return {"spec": {"containers": [{"name": name, "image": "nginx:1.27", **fields}]}}


def role(name: str, replicas: int = 1, workers: int = 0, **fields: Any) -> Manifest:
    """Write a role, with a worker template where there are workers."""
    counts = {"name": name, "replicas": replicas, "workerReplicas": workers}
    template = {"workerTemplate": pod("worker")} if workers else {}
    return {**counts, "entryTemplate": pod(), **template, **fields}


def serving(*roles: Manifest, name: str = "sample", **spec: Any) -> Manifest:
    """Write a ModelServing as Kthena's examples do. `template` adds to the template."""
    template = {"roles": list(roles), **spec.pop("template", {})}
    return {
        "apiVersion": "workload.serving.volcano.sh/v1alpha1",
        "kind": "ModelServing",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulerName": "volcano", "replicas": 1, **spec, "template": template},
    }


def chat(changes: dict[str, Any] | None = None) -> Manifest:
    """Write a valid ModelServing with two roles, and change fields by their dotted paths."""
    gang = {"minRoleReplicas": {"prefill": 1}}
    roles = (role("prefill", 2, 1), role("decode"))
    manifest = serving(*roles, name="chat", replicas=2, template={"gangPolicy": gang})
    for path, value in (changes or {}).items():
        put(manifest, path.split("."), value)
    return manifest


def put(manifest: Manifest, path: list[str], value: Any) -> None:
    """Set the field at a path, or take it away; maps on the way are made."""
    place: Any = manifest
    for step in path[:-1]:
        place = place[int(step)] if isinstance(place, list) else place.setdefault(step, {})
    key: Any = int(path[-1]) if isinstance(place, list) else path[-1]
    if value is GONE:
        del place[key]
    else:
        place[key] = copy.deepcopy(value)


def check_serving(manifest: Any, version: str = "1.0", path: str = "") -> list[Finding]:
    """Judge as a ModelServing, whatever stands there, by Kthena's rules and no others."""
    found = own_findings(manifest, path, of=MODEL_SERVING, version=version)
    return [finding for finding in found if not finding.rule.startswith("topology-")]


def told(manifest: Any, version: str = "1.0") -> list[str]:
    """Give all findings as text."""
    return [str(finding) for finding in check_serving(manifest, version)]


def said_by(rule: str, changes: dict[str, Any], version: str = "1.0") -> list[str]:
    """Give what one rule says of the changed manifest."""
    found = check_serving(chat(changes), version)
    return [str(finding) for finding in found if finding.rule == f"kthena-{rule}"]


CPU: Manifest = {"resources": {"limits": {"cpu": "0.1"}, "requests": {"cpu": "0.1"}}}
TIER_1 = {"mode": "hard", "highestTierAllowed": 1}
LLAMA: Manifest = {
    "resources": {
        "limits": {"nvidia.com/gpu": "8", "memory": "1124Gi"},
        "requests": {"ephemeral-storage": "800Gi", "cpu": 125},
    },
    "ports": [{"containerPort": 8080}],
    "env": [{"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}}],
    "volumeMounts": [{"mountPath": "/dev/shm", "name": "dshm"}],  # noqa: S108 - a pod's path
}
ASCEND: Manifest = {"resources": {"limits": {"huawei.com/ascend-1980": "4"}}}
BY_GROUPS = {
    "type": "ServingGroupRollingUpdate",
    "rollingUpdateConfiguration": {"maxUnavailable": 2},
}


def multi_node(name: str) -> Manifest:
    """Write Kthena's multi-node example with its role named so."""
    volumes = [{"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": "15Gi"}}]
    big = role(name, 2, 1, entryTemplate=pod("leader", **LLAMA), workerTemplate=pod(**LLAMA))
    for template in ("entryTemplate", "workerTemplate"):
        big[template]["spec"]["volumes"] = volumes
    gang = {"restartGracePeriodSeconds": 60, "gangPolicy": {"minRoleReplicas": {name: 1}}}
    return serving(
        big, name="llama-multinode", recoveryPolicy="ServingGroupRecreate", template=gang
    )


EXAMPLES = {
    "sample": serving(
        role("prefill", 1, 3), role("decode", 1, 3), template={"restartGracePeriodSeconds": 60}
    ),
    "gang-policy": serving(
        role("prefill", 2, 1, entryTemplate=pod(**CPU)),
        role("decode", 2, 1, entryTemplate=pod(**CPU)),
        template={"gangPolicy": {"minRoleReplicas": {"prefill": 2, "decode": 1}}},
    ),
    "network-topology": serving(
        role("prefill", 1, 1),
        role("decode", 1, 1),
        template={"networkTopology": {"groupPolicy": TIER_1, "rolePolicy": TIER_1}},
    ),
    "rolling-update": serving(
        role("prefill", 1, 1), role("decode", 1, 1), replicas=4, rolloutStrategy=BY_GROUPS
    ),
    "role-rolling-update": serving(
        role("prefill", 1, 1),
        role("decode", 1, 1),
        replicas=2,
        rolloutStrategy={"type": "RoleRollingUpdate"},
    ),
    "multi-node-with-a-legal-name": multi_node("llama-405b"),
    "data-parallel": serving(
        role("leader", 1, 1, workerTemplate=pod("example-vllm-worker")), name="my-model"
    ),
    "gpu-disaggregation": serving(
        role("prefill"), role("decode"), name="vllm-qwen-06b", recoveryPolicy="ServingGroupRecreate"
    ),
    "ascend-disaggregation": serving(
        role("prefill", entryTemplate=pod(**ASCEND), workerTemplate={"spec": {"containers": []}}),
        role("decode", entryTemplate=pod(**ASCEND), workerTemplate={"spec": {"containers": []}}),
        name="deepseek-v2-lite",
        recoveryPolicy="ServingGroupRecreate",
    ),
    "sglang-disaggregation": serving(role("prefill"), role("decode"), name="sglang-qwen-06b"),
    "kv-cache-aware": serving(
        role("server"), name="vllm-qwen-06b", recoveryPolicy="ServingGroupRecreate"
    ),
    "kv-cache-aware-sglang": serving(role("server"), name="sglang-qwen-06b"),
    "multi-node-disaggregation": serving(
        role("prefill", 1, 1),
        role("decode", 1, 1),
        template={"gangPolicy": {"minRoleReplicas": {"prefill": 1, "decode": 1}}},
    ),
    "no-defaults-written": serving(
        {"name": "server", "entryTemplate": pod(), "workerReplicas": 0},
        replicas=None,
        schedulerName=None,
    ),
}
OLD = ("sample", "gpu-disaggregation", "ascend-disaggregation")
REFUSED_405B = (
    "spec.template.roles[0].name: is '405b', which is not a DNS-1035 label: lower-case letters, "
    "digits and dashes, a letter first, no dash last. Write, for example, "
    "'r405b'. [kthena-role-name]"
)


@pytest.mark.parametrize("name", EXAMPLES)
def test_kthenas_examples_pass(name: str) -> None:
    assert told(EXAMPLES[name]) == []


@pytest.mark.parametrize("version", KTHENA_VERSIONS)
@pytest.mark.parametrize("name", OLD)
def test_the_oldest_examples_pass_in_every_version(name: str, version: str) -> None:
    assert told(EXAMPLES[name], version) == []


@pytest.mark.parametrize("version", ["0.3", "0.4", "1.0"])
def test_the_multi_node_example_is_refused_for_its_role_name_alone(version: str) -> None:
    assert told(multi_node("405b"), version) == [REFUSED_405B]


@pytest.mark.parametrize("version", ["0.1", "0.2"])
def test_the_multi_node_example_passed_before_0_3(version: str) -> None:
    assert told(multi_node("405b"), version) == []


@pytest.mark.parametrize("version", KTHENA_VERSIONS)
def test_the_manifest_of_these_tests_passes_in_every_version(version: str) -> None:
    assert told(chat(), version) == []


def test_numbers_may_come_as_floats() -> None:
    path = "spec.template.roles.0"
    changes = {"spec.replicas": 2.0, f"{path}.replicas": 2.0, f"{path}.workerReplicas": 1.0}
    assert told(chat(changes)) == []


def test_a_null_is_an_absent_field() -> None:
    changes = dict.fromkeys(("spec.replicas", "spec.plugins", "spec.template.gangPolicy"))
    assert told(chat(changes)) == []


def test_findings_are_given_in_the_callers_coordinates() -> None:
    found = check_serving(chat({"spec.replicas": -1}), path="objects[3]")
    assert [f.path for f in found] == ["objects[3].spec.replicas"]


def test_all_findings_come_at_once() -> None:
    changes = {"spec.replicas": -1, "spec.template.roles.1.name": "prefill", "spec.rolls": 1}
    rules = [finding.rule for finding in check_serving(chat(changes))]
    assert rules == ["kthena-schema", "kthena-role-names-unique", "kthena-replicas"]


def test_a_field_too_many_is_mandatory_and_what_crashes_the_controller_is_advisory() -> None:
    path = "spec.template.roles.0.entryTemplate.metadata.annotations"
    found = check_serving(chat({"spec.rolls": 1, path: {"a": "b"}}), "0.3")
    assert [f.level for f in found] == [Level.MANDATORY, Level.ADVISORY]
