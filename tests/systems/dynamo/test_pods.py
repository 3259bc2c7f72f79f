"""Dynamo: the pods that a stack has of a graph, and what its rules say of them."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kthena_components.checker.manifest import reduce_object
from tests.support.groups import DYNAMO, DYNAMO_BETA, DYNAMO_ONE
from tests.support.peers import GONE, Manifest, changed, gpus
from tests.support.stacks import CLAIM, MOUNTED, SECRET, TOKEN, pods_in, said_of, together
from tests.support.strategies import damaged
from tests.systems.dynamo.samples import ONE_BETA, SAMPLES

AT = "spec/services/decode"
EXTRA = f"{AT}/extraPodSpec"
DECODE = "graph.spec.services.decode"
BETA_POD = "spec/components/1/podTemplate/spec"
ENV = [{"name": "A", "value": "1"}, {"name": "HF_TOKEN", "valueFrom": TOKEN}]
KEY = "valueFrom.secretKeyRef.key"
NO_KEY = (
    "is 'HF_TOKEN', but the Secret 'hf' has no such key, and the container does "
    "not start without it"
)
SIDECAR = {"name": "sidecar", "env": ENV}


def missing_keys(graph: Manifest) -> list[tuple[str, str, str]]:
    return said_of("secret-key-exists", together({"hf": SECRET, "graph": graph}))


def shared_claims(graph: Manifest) -> list[tuple[str, str, str]]:
    return said_of("rwx-for-shared-model", together({"weights": CLAIM, "graph": graph}))


@pytest.mark.parametrize(
    ("graph", "changes", "at"),
    [
        (DYNAMO, {f"{EXTRA}/mainContainer/env": ENV},
         f"{DECODE}.extraPodSpec.mainContainer.env[1]"),
        (DYNAMO, {f"{AT}/envs": ENV}, f"{DECODE}.envs[1]"),
        (DYNAMO, {f"{EXTRA}/mainContainer/env": ENV[:1], f"{AT}/envs": ENV[1:]},
         f"{DECODE}.envs[0]"),
        (DYNAMO, {f"{EXTRA}/containers": [{"name": "a"}, SIDECAR]},
         f"{DECODE}.extraPodSpec.containers[1].env[1]"),
        (DYNAMO, {f"{EXTRA}/containers": [{"name": "a"}], f"{EXTRA}/mainContainer/env": ENV},
         f"{DECODE}.extraPodSpec.mainContainer.env[1]"),
        (DYNAMO, {f"{EXTRA}/initContainers": [SIDECAR]},
         f"{DECODE}.extraPodSpec.initContainers[0].env[1]"),
        (DYNAMO_ONE, {"spec/extraPodSpec/mainContainer/env": ENV},
         "graph.spec.extraPodSpec.mainContainer.env[1]"),
        (DYNAMO_BETA, {f"{BETA_POD}/containers/0/env": ENV},
         "graph.spec.components[1].podTemplate.spec.containers[0].env[1]"),
        (ONE_BETA, {"spec/podTemplate/spec/containers/0/env": ENV},
         "graph.spec.podTemplate.spec.containers[0].env[1]"),
    ],
)  # fmt: skip
def test_a_key_that_the_secret_lacks_is_told(
    graph: Manifest, changes: dict[str, Any], at: str
) -> None:
    assert missing_keys(changed(graph, changes)) == [(f"{at}.{KEY}", "mandatory", NO_KEY)]


def test_a_variable_of_the_graph_is_told_where_it_is_written_once() -> None:
    found = missing_keys(changed(DYNAMO, {"spec/envs": ENV}))
    assert found == [(f"graph.spec.envs[1].{KEY}", "mandatory", NO_KEY)]


@pytest.mark.parametrize(
    "changes",
    [
        {f"{EXTRA}/mainContainer/env": ENV, f"{AT}/envs": [{"name": "HF_TOKEN", "value": "x"}]},
        {f"{EXTRA}/mainContainer/env": ENV, "spec/envs": [{"name": "HF_TOKEN", "value": "x"}]},
        {
            f"{AT}/envs": [{"name": "HF_TOKEN", "value": "x"}],
            "spec/services/prefill": GONE,
            "spec/services/Frontend": GONE,
            "spec/envs": ENV,
        },
    ],
)
def test_a_variable_that_another_one_replaces_needs_no_key(changes: dict[str, Any]) -> None:
    assert missing_keys(changed(DYNAMO, changes)) == []


@pytest.mark.parametrize(
    ("volumes", "at"),
    [([MOUNTED], "volumes[0]"), ([{"name": "cache", "emptyDir": {}}, MOUNTED], "volumes[1]")],
)
@pytest.mark.parametrize("others", [{}, {f"{EXTRA}/containers": [{"name": "a"}]}])
def test_a_claim_of_one_node_is_refused_for_a_component_of_two_pods(
    volumes: list[Any], at: str, others: dict[str, Any]
) -> None:
    graph = changed(DYNAMO, {f"{EXTRA}/volumes": volumes, **others})
    ((path, level, seen),) = shared_claims(graph)
    assert path == f"{DECODE}.extraPodSpec.{at}.persistentVolumeClaim.claimName"
    assert level == "mandatory"
    assert seen.endswith("but 2 pods mount it")


def test_replicas_of_one_pod_may_share_a_node() -> None:
    changes = {f"{AT}/multinode": GONE, f"{AT}/replicas": 2, f"{EXTRA}/volumes": [MOUNTED]}
    ((_, level, seen),) = shared_claims(changed(DYNAMO, changes))
    assert (level, seen.endswith("but 2 pods mount it")) == ("advisory", True)
    ((_, level, seen),) = shared_claims(changed(DYNAMO, {**changes, f"{AT}/replicas": 3}))
    assert (level, seen.endswith("they request 24 GPUs, more than one node has")) == (
        "mandatory",
        True,
    )
    assert shared_claims(changed(DYNAMO, {**changes, f"{AT}/replicas": 1})) == []


def test_components_that_share_a_claim_are_counted_together() -> None:
    graph = changed(
        DYNAMO_BETA,
        {f"{BETA_POD}/volumes": [MOUNTED], "spec/components/0/podTemplate/spec/volumes": [MOUNTED]},
    )
    ((path, level, seen),) = shared_claims(graph)
    at = "graph.spec.components[0].podTemplate.spec.volumes[0]"
    assert path == f"{at}.persistentVolumeClaim.claimName"
    assert (level, seen.endswith("but 3 pods mount it")) == ("mandatory", True)


def test_a_claim_that_the_operator_mounts_is_a_volume_of_the_pod() -> None:
    mounts = [{"name": "other", "mountPoint": "/o"}, {"name": "weights", "mountPoint": "/m"}]
    ((path, level, _),) = shared_claims(changed(DYNAMO, {f"{AT}/volumeMounts": mounts}))
    assert (path, level) == (f"{DECODE}.volumeMounts[1].name", "mandatory")


def test_a_secret_that_gives_its_keys_to_a_component_has_some() -> None:
    empty = {**SECRET, "data": {}}
    changes = {
        f"{EXTRA}/mainContainer/envFrom": [{"configMapRef": {"name": "c"}}],
        f"{AT}/envFromSecret": "hf",
    }
    found = together({"hf": empty, "graph": changed(DYNAMO, changes)})
    ((path, level, _),) = said_of("secret-key-exists", found)
    assert (path, level) == (f"{DECODE}.envFromSecret", "advisory")
    assert missing_keys(changed(DYNAMO, changes)) == []


@pytest.mark.parametrize(
    ("graph", "changes", "at"),
    [
        (DYNAMO, {}, f"{DECODE}.resources"),
        (
            DYNAMO,
            {f"{AT}/resources": GONE, f"{EXTRA}/mainContainer/resources": gpus("8")},
            f"{DECODE}.extraPodSpec.mainContainer.resources",
        ),
        (DYNAMO_BETA, {}, "graph.spec.components[1].podTemplate.spec.containers[0].resources"),
    ],
)
def test_accelerators_that_are_not_allowed_are_told_where_they_are_asked_for(
    graph: Manifest, changes: dict[str, Any], at: str
) -> None:
    found = together({"graph": changed(graph, changes)}, gpu_types=["amd.com/gpu"])
    assert (at, "mandatory") in [told[:2] for told in said_of("gpu-type-allowed", found)]


def test_products_that_are_not_allowed_are_told() -> None:
    selector = {"nvidia.com/gpu.product": "Tesla-T4"}
    graph = changed(DYNAMO, {f"{EXTRA}/nodeSelector": selector})
    found = together({"graph": graph}, gpu_types=["NVIDIA-H100-80GB-HBM3"])
    ((path, _, _),) = said_of("gpu-type-allowed", found)
    assert path == f"{DECODE}.extraPodSpec.nodeSelector.nvidia.com/gpu.product"


@pytest.mark.parametrize(
    ("graph", "counted"),
    [
        (DYNAMO, [(1, False), (2, True), (4, True)]),
        (changed(DYNAMO, {f"{AT}/replicas": 3}), [(1, False), (6, True), (4, True)]),
        (changed(DYNAMO, {f"{AT}/replicas": 0}), [(1, False), (0, True), (4, True)]),
        (DYNAMO_BETA, [(1, False), (2, True)]),
        (DYNAMO_ONE, [(1, False)]),
        (ONE_BETA, [(3, False)]),
    ],
)
def test_pods_are_counted(graph: Manifest, counted: list[tuple[int, bool]]) -> None:
    found = pods_in(graph)
    assert [(pods.count, pods.spread) for pods in found] == counted
    assert all(pods.by_controller for pods in found)


def test_labels_and_annotations_of_pods_are_read() -> None:
    metadata = {"labels": {"app": "a"}, "annotations": {"b": "c"}}
    (pods,) = pods_in(changed(DYNAMO_ONE, {"spec/extraPodMetadata": metadata}))
    assert (pods.labels, pods.annotations) == (metadata["labels"], metadata["annotations"])
    (pods,) = pods_in(changed(ONE_BETA, {"spec/podTemplate/metadata": metadata}))
    assert (pods.labels, pods.annotations) == (metadata["labels"], metadata["annotations"])


def test_a_gang_that_an_annotation_names_is_not_of_these_pods() -> None:
    names = {"annotations": {"scheduling.k8s.io/group-name": "chat"}}
    graph = changed(DYNAMO_ONE, {"spec/extraPodMetadata": names})
    assert [str(finding) for finding in together({"graph": graph})] == []


@pytest.mark.property
@settings(max_examples=200, deadline=None)
@given(st.sampled_from(SAMPLES), st.data())
def test_what_is_held_of_a_graph_says_the_same(graph: Manifest, data: st.DataObject) -> None:
    known = changed(graph, {"spec/envs": ENV})
    together({"hf": SECRET, "weights": CLAIM, "graph": data.draw(damaged(known))}, budget=8)


def test_command_lines_and_values_are_not_held() -> None:
    secret = [{"name": "A", "value": "hidden"}]
    changes = {f"{EXTRA}/mainContainer/env": secret, f"{AT}/envs": secret, "spec/envs": secret}
    for graph in (changed(DYNAMO, changes), DYNAMO_BETA, DYNAMO_ONE, ONE_BETA):
        held = str(reduce_object(graph))
        assert not [word for word in ("command", "args", "hidden") if word in held]
