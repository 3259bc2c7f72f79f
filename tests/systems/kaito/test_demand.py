"""The pods and the GPUs that KAITO makes, as the rules over all objects of a cluster see them."""

from typing import Any

import pytest

from kthena_components.checker.cluster_rules import compare_objects
from kthena_components.checker.manifest import check_manifest, read_demand, reduce_object
from kthena_components.core.facts.serving import GpuDemand
from kthena_components.core.objects.object import PodSet, read_object
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems import find_kind
from tests.support.for_each import for_each
from tests.support.peers import GONE, GPU, LATE, Manifest, changed, gpus

A10, A100, TWO_A100 = (
    "Standard_NV36ads_A10_v5",
    "Standard_NC24ads_A100_v4",
    "Standard_NC48ads_A100_v4",
)
TAKEN = {"name": "HF", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "HF_TOKEN"}}}
TEMPLATE: Manifest = {
    "metadata": {"labels": {"app": "qwen"}},
    "spec": {
        "containers": [{"name": "engine", "env": [TAKEN], "resources": gpus(2)}],
        "volumes": [{"name": "m", "persistentVolumeClaim": {"claimName": "weights"}}],
    },
}
PRESET = {"name": "llama-3.3-70b-instruct", "presetOptions": {"modelAccessSecret": "hf-token"}}
WORKSPACE: Manifest = {
    "apiVersion": "kaito.sh/v1beta1",
    "kind": "Workspace",
    "metadata": {"name": "qwen"},
    "resource": {"instanceType": TWO_A100, "labelSelector": {"matchLabels": {"apps": "qwen"}}},
    "inference": {"template": TEMPLATE},
}
SET: Manifest = {
    "apiVersion": "kaito.sh/v1beta1",
    "kind": "InferenceSet",
    "metadata": {"name": "qwen"},
    "spec": {
        "replicas": 3,
        "labelSelector": {"matchLabels": {"apps": "qwen"}},
        "template": {"resource": {"instanceType": TWO_A100}, "inference": {"template": TEMPLATE}},
    },
}
ROLES: Manifest = {
    "apiVersion": "kaito.sh/v1alpha1",
    "kind": "MultiRoleInference",
    "metadata": {"name": "phi"},
    "spec": {
        "labelSelector": {"matchLabels": {"apps": "phi"}},
        "model": {"name": "phi-4-mini-instruct"},
        "roles": [
            {"type": "prefill", "replicas": 1, "instanceType": A100},
            {"type": "decode", "replicas": 2, "instanceType": TWO_A100},
        ],
    },
}
PRESET_WORKSPACE = changed(WORKSPACE, {"inference": {"preset": PRESET}})
PRESET_SET = changed(SET, {"spec/template/inference": {"preset": PRESET}})
TUNING = changed(WORKSPACE, {"inference": GONE, "tuning": {"preset": {"name": "phi-4"}}})
SLOW = {"metadata/annotations": {"kaito.sh/runtime": "transformers"}}
SECRET: Manifest = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "hf"},
    "stringData": {"token": "x"},
}
CLAIM: Manifest = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "weights"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "500Gi"}}},
}
SERVICE: Manifest = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "front"},
    "spec": {"selector": {"app": "qwen"}, "ports": [{"port": 80}]},
}


def said(*bodies: Manifest, **asked: Any) -> list[str]:
    """Check objects together, as they are and as the command line holds them."""
    held = {i: demand for i, body in enumerate(bodies) if (demand := read_demand(body))}
    paths = [body["kind"] for body in bodies]
    asked.setdefault("complete", False)
    found = compare_objects(bodies, paths, held=held, **asked)
    kept = compare_objects(list(map(reduce_object, bodies)), paths, held=held, **asked)
    assert kept == found
    return [f"{finding.level}: {finding}" for finding in found]


def pods_of(body: Manifest) -> list[PodSet]:
    kind = find_kind(("kaito.sh", body["kind"]))
    assert kind is not None
    assert kind.pods is not None
    return list(kind.pods(kind.view(read_object(body))))


ASKED: dict[str, tuple[Manifest, int]] = {
    "a set of a template": (SET, 6),
    "a set of one, as nothing is stated": (changed(SET, {"spec/replicas": GONE}), 2),
    "a set of none": (changed(SET, {"spec/replicas": 0}), 0),
    "a template": (WORKSPACE, 2),
    "a template on several nodes": (changed(WORKSPACE, {"resource/count": 3}), 6),
    "a template on no node, which KAITO takes for one": (
        changed(WORKSPACE, {"resource/count": 0}),
        2,
    ),
    "a set has no count": (changed(SET, {"spec/template/resource/count": 4}), 6),
    "a preset on 2 nodes": (PRESET_WORKSPACE, 4),
    "a preset, whatever count says": (changed(PRESET_WORKSPACE, {"resource/count": 5}), 4),
    "a set of a preset": (PRESET_SET, 12),
    "a set of none of a preset": (changed(PRESET_SET, {"spec/replicas": 0}), 0),
    "roles": (ROLES, 1 + 2 * 2),
    "a role without replicas": (changed(ROLES, {"spec/roles/1/replicas": GONE}), 1 + 2),
    "transformers, by the count": (changed(PRESET_WORKSPACE, {**SLOW, "resource/count": 3}), 6),
    "transformers on one node": (changed(PRESET_WORKSPACE, SLOW), 2),
    "transformers, a model of any size": (
        changed(PRESET_WORKSPACE, {**SLOW, "inference/preset/name": "m/m"}),
        2,
    ),
    "tuning on one node": (TUNING, 2),
    "a template and a preset, counted once": (
        changed(WORKSPACE, {"inference/preset": PRESET, "resource/count": 2}),
        4,
    ),
    "neither": (changed(WORKSPACE, {"inference": {"config": "c"}}), 0),
    "a partition of nodes that are there, for a template": (
        changed(
            WORKSPACE,
            {
                "resource/instanceType": GONE,
                "resource/partition": {"mode": "accelerator", "count": 2},
            },
        ),
        2,
    ),
}


@for_each(("body", "number"), ASKED.values(), ids=ASKED)
def test_a_budget_counts_all_that_kaito_makes(body: Manifest, number: int) -> None:
    assert said(body, budget=number) == []
    if number:
        (told,) = said(body, budget=number - 1)
        says = f"these pods request {number} GPUs, but the budget is {number - 1}"
        assert told.startswith(f"mandatory: {says}. Request 1 fewer")
        assert told.endswith("[gpu-budget]")


UNKNOWN: dict[str, tuple[Manifest, str]] = {
    "nodes that are there": (
        changed(PRESET_WORKSPACE, {"resource/instanceType": GONE}),
        "no instance type states the GPUs of the nodes",
    ),
    "an instance type that is not known": (
        changed(PRESET_WORKSPACE, {"resource/instanceType": "p9.48xlarge"}),
        "'p9.48xlarge' is not in the table of instance types",
    ),
    "a model that is not known": (
        changed(PRESET_SET, {"spec/template/inference/preset/name": "m/m"}),
        "'m/m' is not in the table of models",
    ),
    "a ConfigMap that is not here": (
        changed(PRESET_WORKSPACE, {"inference/config": "params"}),
        "the ConfigMap 'params' may state max-model-len, and is not available",
    ),
    "a late instance type": (
        changed(ROLES, {"spec/roles/0/instanceType": LATE}),
        "the value is known only after the deployment",
    ),
    "late replicas": (
        changed(PRESET_SET, {"spec/replicas": LATE}),
        "the value is known only after the deployment",
    ),
    "a late template": (
        changed(WORKSPACE, {"inference/template": LATE}),
        "the value is known only after the deployment",
    ),
    "replicas that are none": (
        changed(PRESET_SET, {"spec/replicas": "many"}),
        "the number of pods is not a count",
    ),
    "a runtime that is not known": (
        changed(PRESET_WORKSPACE, {"metadata/annotations": {"kaito.sh/runtime": LATE}}),
        "the value is known only after the deployment",
    ),
}


@pytest.mark.parametrize(("body", "because"), UNKNOWN.values(), ids=UNKNOWN)
def test_what_the_estimator_cannot_say_is_not_guessed(body: Manifest, because: str) -> None:
    told = [line for line in said(body, budget=100) if line.endswith("[gpu-budget]")]
    assert told == [f"unknown: not checked, because {because}. [gpu-budget]"]


def test_a_set_adds_to_what_others_ask_for() -> None:
    late = changed(PRESET_WORKSPACE, {"resource/instanceType": LATE, "metadata/name": "b"})
    (told,) = said(SET, changed(PRESET_SET, {"metadata/name": "c"}), late, budget=10)
    assert "request at least 18 GPUs, but the budget is 10" in told


def test_a_preset_asks_for_gpus_of_nvidia() -> None:
    """KAITO asks for nvidia.com/gpu whatever the nodes have (GenerateInferencePodSpec)."""
    assert read_demand(PRESET_WORKSPACE) == GpuDemand(gpus=4, resources=frozenset({GPU}))
    assert said(PRESET_WORKSPACE, gpu_types=[GPU]) == []
    (told,) = said(PRESET_WORKSPACE, gpu_types=["amd.com/gpu"])
    assert "requests 'nvidia.com/gpu', but only amd.com/gpu may be requested here" in told


def test_a_partition_may_be_of_another_resource() -> None:
    mig = {"mode": "mig", "profile": "1g.10gb"}
    byo = {"resource/instanceType": GONE, "resource/partition": mig}
    held = read_demand(changed(PRESET_WORKSPACE, byo))
    assert held is not None
    assert isinstance(held.gpus, Unknown)
    assert held.resources == frozenset()


def test_a_template_is_looked_at_for_its_kinds_of_gpus() -> None:
    at = "spec.template.inference.template.spec.containers[0].resources"
    (told,) = said(SET, gpu_types=["amd.com/gpu"])
    assert told.startswith(f"mandatory: InferenceSet.{at}: requests 'nvidia.com/gpu'")
    product = {"nvidia.com/gpu.product": "Tesla-T4"}
    selector = changed(WORKSPACE, {"inference/template/spec/nodeSelector": product})
    (told,) = said(selector, gpu_types=["NVIDIA-H100-80GB-HBM3"])
    assert "inference.template.spec.nodeSelector.nvidia.com/gpu.product: requests" in told


@pytest.mark.parametrize(
    ("body", "at"),
    [(WORKSPACE, "inference.template"), (SET, "spec.template.inference.template")],
    ids=["workspace", "set"],
)
def test_a_key_that_a_secret_lacks_is_refused(body: Manifest, at: str) -> None:
    (told,) = said(body, SECRET)
    place = f"{at}.spec.containers[0].env[0].valueFrom.secretKeyRef.key"
    assert told.startswith(f"mandatory: {body['kind']}.{place}: is 'HF_TOKEN', but the Secret 'hf'")
    assert said(body, changed(SECRET, {"stringData": {"HF_TOKEN": "x"}})) == []


@pytest.mark.parametrize(
    ("body", "number"),
    [(SET, 3), (changed(WORKSPACE, {"resource/count": 2}), 2)],
    ids=["set", "workspace"],
)
def test_a_claim_for_one_node_is_refused_where_pods_have_nodes_of_their_own(
    body: Manifest, number: int
) -> None:
    (told,) = said(body, CLAIM)
    assert told.startswith("mandatory")
    assert "spec.volumes[0].persistentVolumeClaim.claimName: is 'weights', which is" in told
    assert f"but {number} pods mount it" in told
    assert said(body, changed(CLAIM, {"spec/accessModes": ["ReadWriteMany"]})) == []


def test_workspaces_on_nodes_that_are_there_may_share_one() -> None:
    (told,) = said(changed(SET, {"spec/template/resource": {}}), CLAIM)
    assert told.startswith("advisory")
    assert said(WORKSPACE, CLAIM) == []


def test_a_service_may_select_pods_by_the_labels_that_kaito_adds() -> None:
    """Source: kaito pkg/workspace/manifests/manifests.go GenerateManifestWithPodTemplate."""

    def selects(body: Manifest, **labels: str) -> list[str]:
        return said(body, changed(SERVICE, {"spec/selector": labels}), complete=True)

    assert selects(WORKSPACE, app="qwen", **{"kaito.sh/workspace": "qwen"}) == []
    (told,) = selects(WORKSPACE, **{"kaito.sh/workspace": "other"})
    assert told.startswith("advisory: Service.spec.selector")
    (told,) = selects(
        changed(WORKSPACE, {"metadata": {"generateName": "q-"}}), **{"kaito.sh/workspace": "q"}
    )
    assert told.startswith("unknown: Service.spec.selector")
    assert selects(SET, **{"inferenceset.kaito.sh/created-by": "qwen"}) == []
    (told,) = selects(SET, **{"kaito.sh/workspace": "qwen-x7k2p"})
    assert "not checked, because KAITO sets this name when it creates the object" in told


def test_nothing_is_said_of_services_beside_a_preset() -> None:
    assert (
        said(PRESET_WORKSPACE, changed(SERVICE, {"spec/selector": {"a": "b"}}), complete=True) == []
    )


def test_pods_are_those_of_the_template() -> None:
    (pods,) = pods_of(SET)
    assert (pods.path, pods.count) == ("spec.template.inference.template", 3)
    assert pods.spec == TEMPLATE["spec"]
    (pods,) = pods_of(changed(WORKSPACE, {"resource/count": LATE}))
    assert isinstance(pods.count, Unknown)
    assert pods_of(PRESET_SET) == pods_of(TUNING) == []


@pytest.mark.parametrize(
    ("body", "at"),
    [(WORKSPACE, "inference/template"), (SET, "spec/template/inference/template")],
    ids=["workspace", "set"],
)
def test_a_template_has_the_types_of_a_pod_template(body: Manifest, at: str) -> None:
    wrong = changed(body, {f"{at}/spec/containers/0/env": [{"name": "N", "value": 8}]})
    (told,) = [f for f in check_manifest(wrong) if f.rule == "pod-schema"]
    assert told.path == f"{at.replace('/', '.')}.spec.containers[0].env[0].value"
    assert [f for f in check_manifest(body) if f.rule == "pod-schema"] == []
