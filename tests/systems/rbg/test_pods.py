"""RoleBasedGroup: the pods that a stack has of it, and what its rules say of them."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kthena_components.checker.manifest import reduce_object
from kthena_components.core.objects.object import read_object
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.rbg.facts import pods_of_roles
from kthena_components.systems.rbg.view import read_rbg
from tests.rules.cases import documents
from tests.support import groups
from tests.support.for_each import for_each
from tests.support.groups import RBG, pod, rbg
from tests.support.peers import GONE, LATE, Manifest, changed, gpus
from tests.support.stacks import (
    CLAIM,
    MOUNTED,
    SECRET,
    TOKEN,
    gpus_by_facts,
    gpus_by_pods,
    pods_in,
    said_of,
    together,
)
from tests.support.strategies import damaged

LWP = "spec/roles/1/leaderWorkerPattern"
POD = f"{LWP}/template/spec"
AT = "spec.roles[1].leaderWorkerPattern.template.spec"
ENV = [{"name": "A", "value": "1"}, {"name": "HF_TOKEN", "valueFrom": TOKEN}]
NO_KEY = (
    "is 'HF_TOKEN', but the Secret 'hf' has no such key, and the container does "
    "not start without it"
)
SHARED = (
    "is 'weights', which is ReadWriteOnce and can be attached to one node at a time, but 2 pods "
    "mount it"
)
OTHER = "requests 'nvidia.com/gpu', but only amd.com/gpu may be requested here"
PATCH = "spec/roles/0/leaderWorkerPattern/templateRef/patch/spec"
PATCHED = "spec.roles[0].leaderWorkerPattern.templateRef.patch.spec"
BASE = "spec.roleTemplates[0].template.spec"
(BASE_RBG,), (BASE_SET,) = documents("rbg"), documents("rbg-set")


def volumes(more: Any = MOUNTED) -> list[Any]:
    return [{"name": "dshm", "emptyDir": {"medium": "Memory"}}, more]


def test_a_key_that_the_secret_lacks_is_told() -> None:
    group = changed(RBG, {f"{POD}/containers/0/env": ENV})
    found = together({"hf": SECRET, "qwen": group})
    at = f"qwen.{AT}.containers[0].env[1].valueFrom.secretKeyRef.key"
    assert said_of("secret-key-exists", found) == [(at, "mandatory", NO_KEY)]


def test_a_claim_of_one_node_is_refused_for_an_engine_of_two_pods() -> None:
    group = changed(RBG, {f"{POD}/volumes": volumes()})
    found = together({"weights": CLAIM, "qwen": group})
    at = f"qwen.{AT}.volumes[1].persistentVolumeClaim.claimName"
    assert said_of("rwx-for-shared-model", found) == [(at, "mandatory", SHARED)]


def test_a_set_of_groups_is_checked_as_a_group_is() -> None:
    inner = "spec/groupTemplate/spec/roles/1/leaderWorkerPattern/template/spec"
    changes = {f"{inner}/containers/0/env": ENV, f"{inner}/volumes": volumes()}
    found = together({"hf": SECRET, "weights": CLAIM, "s": changed(groups.RBG_SET, changes)})
    at = "s.spec.groupTemplate.spec.roles[1].leaderWorkerPattern.template.spec"
    assert said_of("secret-key-exists", found) == [
        (f"{at}.containers[0].env[1].valueFrom.secretKeyRef.key", "mandatory", NO_KEY)
    ]
    assert said_of("rwx-for-shared-model", found) == [
        (
            f"{at}.volumes[1].persistentVolumeClaim.claimName",
            "mandatory",
            SHARED.replace("2 pods", "4 pods"),
        )
    ]


def test_what_a_patch_adds_to_a_shared_template_is_checked() -> None:
    changes = {
        "spec/roleTemplates/0/template/spec/containers/0/env": [{"name": "A", "value": "1"}],
        "spec/roleTemplates/0/template/spec/volumes": [{"name": "dshm", "emptyDir": {}}],
        f"{PATCH}/containers/0/env": [*ENV],
        f"{PATCH}/volumes": [MOUNTED],
    }
    group = changed(groups.RBG_SHARED, changes)
    found = together({"hf": SECRET, "weights": CLAIM, "qwen": group}, budget=15)
    assert said_of("secret-key-exists", found) == [
        (f"qwen.{PATCHED}.containers[0].env[1].valueFrom.secretKeyRef.key", "mandatory", NO_KEY)
    ]
    at = f"qwen.{PATCHED}.volumes[0].persistentVolumeClaim.claimName"
    assert said_of("rwx-for-shared-model", found) == [(at, "mandatory", SHARED)]
    assert said_of("gpu-budget", found) == [
        ("", "mandatory", "these pods request 16 GPUs, but the budget is 15")
    ]


def test_what_a_patch_leaves_alone_is_told_where_it_is_written() -> None:
    changes = {
        "spec/roleTemplates/0/template/spec/containers/0/env": ENV,
        "spec/roleTemplates/0/template/spec/volumes": [MOUNTED],
        f"{PATCH}/containers/0/env": [{"name": "B", "value": "2"}],
        f"{PATCH}/volumes": [{"name": "dshm", "emptyDir": {}}],
    }
    group = changed(groups.RBG_SHARED, changes)
    found = together({"hf": SECRET, "weights": CLAIM, "qwen": group}, gpu_types=["amd.com/gpu"])
    assert sorted(f.path for f in found) == [
        f"qwen.{BASE}.containers[0].env[1].valueFrom.secretKeyRef.key",
        f"qwen.{BASE}.volumes[0].persistentVolumeClaim.claimName",
        f"qwen.{PATCHED}.containers[0].resources",
    ]


def test_the_last_patch_that_states_a_variable_is_named() -> None:
    env = [{"name": "HF_TOKEN", "value": "x"}]
    leader = {"spec": {"containers": [{"name": "helper"}, {"name": "sglang", "env": ENV[1:]}]}}
    changes = {
        "spec/roleTemplates/0/template/spec/containers/0/env": [{"name": "A"}, *env],
        f"{PATCH}/containers/0/env": env,
        "spec/roles/0/leaderWorkerPattern/leaderTemplatePatch": leader,
    }
    found = together({"hf": SECRET, "qwen": changed(groups.RBG_SHARED, changes)})
    at = "qwen.spec.roles[0].leaderWorkerPattern.leaderTemplatePatch.spec.containers[1].env[0]"
    assert [f.path for f in found] == [f"{at}.valueFrom.secretKeyRef.key"]


def test_what_a_patch_takes_away_is_not_asked_for() -> None:
    changes = {
        "spec/roleTemplates/0/template/spec/containers/0/env": ENV,
        "spec/roleTemplates/0/template/spec/volumes": volumes(),
        f"{PATCH}/containers/0/env": None,
        f"{PATCH}/volumes": None,
    }
    group = changed(groups.RBG_SHARED, changes)
    found = together({"hf": SECRET, "weights": CLAIM, "qwen": group})
    assert [str(finding) for finding in found] == []


def test_a_patch_that_cannot_be_merged_leaves_its_pods_open() -> None:
    changes = {f"{PATCH}/$patch": "replace"}
    found = together({"qwen": changed(groups.RBG_SHARED, changes)}, budget=15)
    assert [level for _, level, _ in said_of("gpu-budget", found)] == ["unknown"]


@pytest.mark.parametrize(
    ("changes", "counted"),
    [
        ({}, [("router", 1, False), ("sglang", 1, True), ("sglang", 1, True)]),
        ({f"{LWP}/size": 1}, [("router", 1, False), ("sglang", 1, False)]),
        (
            {"spec/roles/0/replicas": 3, "spec/roles/1/replicas": 2, f"{LWP}/size": 4},
            [("router", 3, False), ("sglang", 2, True), ("sglang", 6, True)],
        ),
        ({"spec/roles/0/standalonePattern/template": GONE}, [("sglang", 1, True)] * 2),
        (
            {"spec/roles/1/replicas": 0},
            [("router", 1, False), ("sglang", 0, True), ("sglang", 0, True)],
        ),
    ],
)
def test_pods_are_counted(changes: dict[str, Any], counted: list[tuple[str, object, bool]]) -> None:
    found = pods_in(changed(RBG, changes))
    assert [(p.spec["containers"][0]["name"], p.count, p.spread) for p in found] == counted
    assert all(p.by_controller for p in found)


def test_a_leader_and_its_workers_have_the_labels_of_their_patches() -> None:
    roles = [p.labels.get("role") for p in pods_in(RBG)]
    assert roles == [None, "leader", "worker"]


def test_components_that_make_one_engine_are_spread_and_others_are_not() -> None:
    found = pods_in(changed(groups.RBG_COMPONENTS, {"spec/roles/0/replicas": 3}))
    assert [(p.path.rpartition("components")[2], p.count, p.spread) for p in found] == [
        ("[0].template", 3, False),
        ("[1].template", 3, True),
        ("[2].template", 3, True),
    ]


@pytest.mark.parametrize(
    ("claims", "level"), [({0: MOUNTED}, "advisory"), ({1: MOUNTED, 2: MOUNTED}, "mandatory")]
)
def test_a_claim_of_components_weighs_by_whose_pods_they_are(
    claims: dict[int, Any], level: str
) -> None:
    at = "spec/roles/0/customComponentsPattern/components/{}/template/spec/volumes"
    changes = {at.format(index): [volume] for index, volume in claims.items()}
    group = changed(groups.RBG_COMPONENTS, {**changes, "spec/roles/0/replicas": 2})
    found = together({"weights": CLAIM, "qwen": group})
    assert [told for _, told, _ in said_of("rwx-for-shared-model", found)] == [level]


def test_single_pods_that_are_ranks_of_one_engine_are_spread() -> None:
    ranks = "vllm serve m -tp 8 -pp 2 --nnodes 2 --node-rank $RANK"
    for command, spread in ((ranks, True), ("vllm serve m -tp 8", False)):
        template = pod("e", ["sh", "-c", command], "8")
        group = rbg({"name": "a", "replicas": 2, "standalonePattern": {"template": template}})
        assert [p.spread for p in pods_in(group)] == [spread]


def test_accelerators_that_are_not_allowed_are_told_where_they_are_asked_for() -> None:
    found = together({"qwen": RBG}, gpu_types=["amd.com/gpu"])
    assert said_of("gpu-type-allowed", found) == [
        (f"qwen.{AT}.containers[0].resources", "mandatory", OTHER)
    ]


COUNTS: list[tuple[Manifest, dict[str, tuple[int, int]], str]] = [
    (RBG, {"spec/roles/0/replicas": (0, 4), "spec/roles/1/replicas": (0, 4), f"{LWP}/size": (1, 9)},
     f"{POD}/containers/0/resources"),
    (groups.RBG_SHARED, {"spec/roles/0/leaderWorkerPattern/size": (1, 9)},
     f"{PATCH}/containers/0/resources"),
    (groups.RBG_OLD, {"spec/roles/0/leaderWorkerSet/size": (1, 9)},
     "spec/roles/0/template/spec/containers/0/resources"),
    (groups.RBG_COMPONENTS,
     {"spec/roles/0/replicas": (0, 4),
      "spec/roles/0/customComponentsPattern/components/2/size": (0, 9)}, ""),
    (groups.RBG_SET, {"spec/replicas": (0, 4), "spec/groupTemplate/spec/roles/1/replicas": (0, 4)},
     "spec/groupTemplate/spec/roles/1/leaderWorkerPattern/template/spec/containers/0/resources"),
    (BASE_RBG, {"spec/roles/1/replicas": (1, 9), "spec/roles/1/leaderWorkerPattern/size": (1, 9)},
     "spec/roleTemplates/0/template/spec/containers/0/resources"),
    (BASE_SET, {"spec/replicas": (1, 9)}, ""),
]  # fmt: skip
"""Right manifests, their counts with the least and the most, and where GPUs are asked for."""


@pytest.mark.property
@settings(max_examples=150, deadline=None)
@given(st.sampled_from(COUNTS), st.data())
def test_pods_have_the_accelerators_that_the_engines_have(
    sample: tuple[Manifest, dict[str, tuple[int, int]], str], data: st.DataObject
) -> None:
    body, counts, resources = sample
    drawn: dict[str, Any] = {
        path: data.draw(st.integers(*bounds), label=path) for path, bounds in counts.items()
    }
    if resources and data.draw(st.booleans()):
        drawn[resources] = gpus(data.draw(st.integers(1, 16)))
    made = changed(body, drawn)
    assert isinstance(gpus_by_pods(made), int)
    assert gpus_by_pods(made) == gpus_by_facts(made)
    assert gpus_by_pods(reduce_object(made)) == gpus_by_facts(made)


@for_each(
    ("body", "path"),
    [
        *((body, path) for body, counts, _ in COUNTS for path in counts),
        (RBG, "spec"),
        (RBG, "spec/roles"),
        (RBG, "spec/roles/1"),
        (RBG, LWP),
        (RBG, f"{LWP}/template"),
        (RBG, f"{LWP}/workerTemplatePatch"),
        (RBG, f"{POD}/containers"),
        (groups.RBG_SHARED, "spec/roleTemplates"),
        (groups.RBG_SHARED, PATCH),
        (groups.RBG_SET, "spec/groupTemplate"),
    ],
)
def test_what_is_not_known_yet_is_not_counted(body: Manifest, path: str) -> None:
    late = changed(body, {path: LATE})
    open_ = [isinstance(count(late), Unknown) for count in (gpus_by_facts, gpus_by_pods)]
    assert open_ in ([True, True], [False, False])
    assert isinstance(gpus_by_pods(reduce_object(late)), Unknown) is open_[0]


@pytest.mark.property
@settings(max_examples=150, deadline=None)
@given(st.sampled_from([body for body, _, _ in COUNTS]), st.data())
def test_what_is_held_of_a_damaged_group_says_the_same(body: Manifest, data: st.DataObject) -> None:
    group = {**data.draw(damaged(body)), "apiVersion": body["apiVersion"], "kind": body["kind"]}
    named = {"hf": SECRET, "weights": CLAIM, "qwen": group}
    together(named, budget=1, gpu_types=["amd.com/gpu", "H100"])


@pytest.mark.parametrize("body", [groups.RBG_OLD, groups.RBG_COMPONENTS])
def test_command_lines_are_not_held_where_nothing_depends_on_them(body: Manifest) -> None:
    assert "command" in str(body)
    assert "command" not in str(reduce_object(body))


def test_the_pods_of_a_group_stand_where_their_templates_do() -> None:
    view = read_rbg(read_object(groups.RBG_SHARED))
    assert [p.path for p in pods_of_roles(view)] == ["spec.roleTemplates[0].template"] * 2
