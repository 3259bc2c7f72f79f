"""PodCliqueSet: the pods that a stack has of it, and what the rules over a stack say of them."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kthena_components.checker.manifest import check_manifest, reduce_object
from kthena_components.core.facts.context import Context, gather
from kthena_components.core.values.unknown import Unknown
from tests.rules.cases import documents
from tests.support import groups
from tests.support.groups import GROVE, clique
from tests.support.peers import LATE, Manifest, changed, gpus
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

WORKER = "spec/template/cliques/2/spec"
AT = "spec.template.cliques[2].spec.podSpec"
ENV = [{"name": "A", "value": "1"}, {"name": "HF_TOKEN", "valueFrom": TOKEN}]
NO_KEY = (
    "is 'HF_TOKEN', but the Secret 'hf' has no such key, and the container does "
    "not start without it"
)
SHARED = (
    "is 'weights', which is ReadWriteOnce and can be attached to one node at a time, but {} pods "
    "mount it"
)
(BASE,) = documents("grove")


def mounting(*cliques: int, of: Manifest = GROVE, **changes: Any) -> Manifest:
    volumes = [{"name": "dshm", "emptyDir": {"medium": "Memory"}}, MOUNTED]
    at = "spec/template/cliques/{}/spec/podSpec/volumes"
    return changed(of, {**{at.format(index): volumes for index in cliques}, **changes})


def test_a_key_that_the_secret_lacks_is_told() -> None:
    cliques = changed(GROVE, {f"{WORKER}/podSpec/containers/0/env": ENV})
    found = together({"hf": SECRET, "llama": cliques})
    at = f"llama.{AT}.containers[0].env[1].valueFrom.secretKeyRef.key"
    assert said_of("secret-key-exists", found) == [(at, "mandatory", NO_KEY)]


def test_a_claim_of_one_node_is_refused_for_an_engine_of_several_pods() -> None:
    found = together({"weights": CLAIM, "llama": mounting(1, 2)})
    at = "llama.spec.template.cliques[1].spec.podSpec.volumes[1].persistentVolumeClaim.claimName"
    assert said_of("rwx-for-shared-model", found) == [(at, "mandatory", SHARED.format(8))]


@pytest.mark.parametrize(
    ("cliques", "pods", "level"),
    [((0,), 2, "advisory"), ((1,), 2, "mandatory"), ((2,), 6, "mandatory")],
)
def test_a_claim_weighs_by_whose_pods_share_it(
    cliques: tuple[int, ...], pods: int, level: str
) -> None:
    found = together({"weights": CLAIM, "llama": mounting(*cliques)})
    told = [(level, seen) for _, level, seen in said_of("rwx-for-shared-model", found)]
    assert told == [(level, SHARED.format(pods))]


def test_replicas_of_one_pod_may_be_on_one_node() -> None:
    """Two cliques of a scaling group that each start an engine are not one engine."""
    alone = ["sh", "-c", "vllm serve m -tp 2"]
    at = "spec/template/cliques/{}/spec/podSpec/containers/0"
    changes: dict[str, Any] = {f"{at.format(one)}/command": alone for one in (1, 2)}
    changes |= {f"{at.format(one)}/resources": {"limits": {"nvidia.com/gpu": 2}} for one in (1, 2)}
    cliques = mounting(1, 2, **changes)
    found = together({"weights": CLAIM, "llama": cliques})
    assert [level for _, level, _ in said_of("rwx-for-shared-model", found)] == ["advisory"]


def test_ranks_of_one_clique_are_one_engine() -> None:
    found = together({"weights": CLAIM, "rich": mounting(0, 1, of=groups.GROVE_RICH)})
    assert [level for _, level, _ in said_of("rwx-for-shared-model", found)] == ["mandatory"]
    assert [p.spread for p in pods_in(groups.GROVE_RICH)] == [False, True]


def test_pods_are_counted_by_set_group_and_clique() -> None:
    changes = {"spec/replicas": 3, f"{WORKER}/replicas": 5}
    found = pods_in(changed(GROVE, changes))
    assert [(p.path, p.count, p.spread) for p in found] == [
        ("spec.template.cliques[0].spec.podSpec", 6, False),
        ("spec.template.cliques[1].spec.podSpec", 6, True),
        ("spec.template.cliques[2].spec.podSpec", 30, True),
    ]
    assert all(p.by_controller for p in found)


def test_the_labels_of_a_clique_are_those_of_its_pods() -> None:
    changes = {
        "spec/template/cliques/0/labels": {"app": "front"},
        "spec/template/cliques/0/annotations": {"a": "b"},
    }
    first = pods_in(changed(GROVE, changes))[0]
    assert (dict(first.labels), dict(first.annotations)) == ({"app": "front"}, {"a": "b"})


def test_a_service_finds_the_pods_of_a_clique_by_its_labels() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "front"}}
    cliques = changed(
        GROVE, {f"spec/template/cliques/{i}/labels": {"app": app} for i, app in enumerate("abc")}
    )
    for app, told in (("a", 0), ("d", 1)):
        named = {"front": {**service, "spec": {"selector": {"app": app}}}, "llama": cliques}
        assert len(said_of("service-selects-pods", together(named))) == told


def test_accelerators_that_are_not_allowed_are_told_where_they_are_asked_for() -> None:
    found = together({"llama": GROVE}, gpu_types=["amd.com/gpu"])
    at = "llama.spec.template.cliques[{}].spec.podSpec.containers[0].resources"
    assert [path for path, _, _ in said_of("gpu-type-allowed", found)] == [
        at.format(1),
        at.format(2),
    ]


def test_products_that_are_not_allowed_are_told_too() -> None:
    cliques = changed(GROVE, {f"{WORKER}/podSpec/nodeSelector": {"nvidia.com/gpu.product": "T4"}})
    found = together({"llama": cliques}, gpu_types=["H100"])
    assert [path for path, _, _ in said_of("gpu-type-allowed", found)] == [
        f"llama.{AT}.nodeSelector.nvidia.com/gpu.product"
    ]


COUNTS: list[tuple[Manifest, dict[str, tuple[int, int]], tuple[int, ...]]] = [
    (GROVE, {"spec/replicas": (0, 3), f"{WORKER}/replicas": (1, 9),
             "spec/template/cliques/0/spec/replicas": (0, 4),
             "spec/template/podCliqueScalingGroups/0/replicas": (0, 4)}, (1, 2)),
    (groups.GROVE_RICH, {"spec/replicas": (0, 3), "spec/template/cliques/0/spec/replicas": (0, 4),
                         "spec/template/podCliqueScalingGroups/0/replicas": (0, 4)}, (0, 1)),
    (BASE, {"spec/replicas": (1, 3), f"{WORKER}/replicas": (1, 9)}, (1, 2)),
]  # fmt: skip
"""Right manifests, their counts with the least and the most, and which cliques have GPUs."""


@pytest.mark.property
@settings(max_examples=150, deadline=None)
@given(st.sampled_from(COUNTS), st.data())
def test_pods_have_the_accelerators_that_the_engines_have(
    sample: tuple[Manifest, dict[str, tuple[int, int]], tuple[int, ...]], data: st.DataObject
) -> None:
    body, counts, served = sample
    drawn: dict[str, Any] = {
        path: data.draw(st.integers(*bounds), label=path) for path, bounds in counts.items()
    }
    each = gpus(data.draw(st.integers(1, 16)))
    for index in served:
        drawn[f"spec/template/cliques/{index}/spec/podSpec/containers/0/resources"] = each
    made = changed(body, drawn)
    assert isinstance(gpus_by_pods(made), int)
    assert gpus_by_pods(made) == gpus_by_facts(made)
    assert gpus_by_pods(reduce_object(made)) == gpus_by_facts(made)


@pytest.mark.parametrize(
    "path",
    [
        "spec",
        "spec/replicas",
        "spec/template",
        "spec/template/cliques",
        "spec/template/cliques/2",
        "spec/template/cliques/2/name",
        f"{WORKER}",
        f"{WORKER}/replicas",
        f"{WORKER}/podSpec",
        f"{WORKER}/podSpec/containers",
        f"{WORKER}/podSpec/containers/0/resources",
        "spec/template/podCliqueScalingGroups",
        "spec/template/podCliqueScalingGroups/0/cliqueNames",
        "spec/template/podCliqueScalingGroups/0/cliqueNames/1",
        "spec/template/podCliqueScalingGroups/0/replicas",
    ],
)
def test_what_is_not_known_yet_is_not_counted(path: str) -> None:
    late = changed(GROVE, {path: LATE})
    assert isinstance(gpus_by_facts(late), Unknown)
    assert isinstance(gpus_by_pods(late), Unknown)
    assert isinstance(gpus_by_pods(reduce_object(late)), Unknown)


def test_a_key_is_checked_in_a_clique_whose_name_is_not_known_yet() -> None:
    env = f"{WORKER}/podSpec/containers/0/env"
    cliques = changed(GROVE, {env: ENV, "spec/template/cliques/2/name": LATE})
    found = together({"hf": SECRET, "llama": cliques})
    assert [level for _, level, _ in said_of("secret-key-exists", found)] == ["mandatory"]


@pytest.mark.property
@settings(max_examples=150, deadline=None)
@given(st.sampled_from([mounting(0, 1, 2), groups.GROVE_RICH, BASE]), st.data())
def test_what_is_held_of_damaged_cliques_says_the_same(body: Manifest, data: st.DataObject) -> None:
    cliques = {**data.draw(damaged(body)), "apiVersion": body["apiVersion"], "kind": body["kind"]}
    named = {"hf": SECRET, "weights": CLAIM, "llama": cliques}
    together(named, budget=1, gpu_types=["amd.com/gpu", "H100"])


def test_command_lines_are_not_held_where_nothing_depends_on_them() -> None:
    assert "command" in str(GROVE)
    assert "command" not in str(reduce_object(GROVE))


def test_whether_pods_join_is_read_with_the_variables_of_a_config_map() -> None:
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "nodes"},
        "data": {"NODES": "1"},
    }
    alone = clique("alone", "vllm serve m -tp 8 --nnodes $NODES", 2, 8, minAvailable=1)
    container = alone["spec"]["podSpec"]["containers"][0]
    container["envFrom"] = [{"configMapRef": {"name": "nodes"}}]
    cliques = {**GROVE, "spec": {"template": {"cliques": [alone]}}}
    found = check_manifest(cliques, context=Context(config_maps=gather([config])))
    assert [str(f) for f in found if f.rule == "grove-gang"] == []
