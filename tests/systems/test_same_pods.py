"""The same mistake in a pod is found by the same rules in whatever object the pod stands."""

import copy
import re
from typing import Any

from kthena_components.checker.cluster_rules import compare_objects
from kthena_components.checker.manifest import check_manifest, read_demand
from kthena_components.core.objects.object import PodSet, read_object
from kthena_components.core.values.read import group_kind
from kthena_components.systems import all_systems
from kthena_components.systems.system import Kind
from tests.support.for_each import for_each
from tests.systems.test_laws import BASES, name_of

KINDS = [k for system in all_systems() for k in system.kinds if k.facts is not None]
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "tokens", "namespace": "serving"},
    "data": {"token": "eA=="},
}
TAKEN = {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "tokens", "key": "missing"}}}
TOKEN = {"name": "HF_TOKEN", "value": "hf_abcdefghijklmnopqrstuvwxyz01234567"}
NUMBER = {"name": "A", "value": 8}
GPUS = {"nvidia.com/gpu": 8}
ENGINE = {
    "name": "engine",
    "image": "vllm/vllm-openai:v0.33.0",
    "command": ["vllm", "serve", "m", "-tp", "8"],
    "resources": {"limits": GPUS, "requests": GPUS},
}
CUSTOM = {"inference": {"template": {"spec": {"containers": [ENGINE]}}}}
KAITO = {"apiVersion": "kaito.sh/v1beta1", "metadata": {"name": "llama"}}
TEMPLATED: dict[tuple[str, str], dict[str, Any]] = {
    ("kaito.sh", "Workspace"): {**KAITO, "kind": "Workspace", **CUSTOM},
    ("kaito.sh", "InferenceSet"): {**KAITO, "kind": "InferenceSet", "spec": {"template": CUSTOM}},
}
"""Manifests with templates, of kinds whose base has a preset."""
RULES = {"hf-token-from-secret", "image-pinned", "secret-key-exists", "gpu-type-allowed"}
"""What is found in a pod that takes a missing key, holds a token and runs an image `latest`."""


def pods_of(kind: Kind[Any], body: dict[str, Any]) -> list[PodSet]:
    """Give the pods of an object that ask for GPUs, or all where no template says so."""
    found = list(kind.pods(kind.view(read_object(body)))) if kind.pods else []
    return [pods for pods in found if "nvidia.com/gpu" in str(pods.spec)] or found


def spoilt(body: dict[str, Any], pods: PodSet, kind: Kind[Any]) -> dict[str, Any]:
    """Write the mistakes into a pod's first container, where its template is written."""
    changed = copy.deepcopy(body)
    at: Any = changed
    for key in re.findall(r"[^.\[\]]+", pods.at("spec.containers[0]")):
        at = at[int(key)] if isinstance(at, list) else at[key]
    at["image"] = "vllm/vllm-openai:latest"
    at["resources"] = {"limits": GPUS, "requests": GPUS}
    at["env"] = [*at.get("env", []), TAKEN, TOKEN, *([NUMBER] if kind.templates else [])]
    return changed


@for_each("kind", KINDS, ids=name_of)
def test_the_same_pod_is_refused_by_the_same_rules(kind: Kind[Any]) -> None:
    body = copy.deepcopy(TEMPLATED.get(kind.group_kind, BASES[kind.group_kind]))
    body["metadata"] = {**body.get("metadata", {}), "namespace": "serving"}
    pods = pods_of(kind, body)
    assert pods or "pods" in kind.without
    for one in pods[:1]:
        wrong = spoilt(body, one, kind)
        objects = [wrong, SECRET]
        demand = read_demand(wrong)
        single = check_manifest(wrong)
        found = {finding.rule for finding in single}
        places = {finding.path for finding in single if finding.rule == "hf-token-from-secret"}
        assert all(path.startswith(f"{one.at('spec.containers[0]')}.") for path in places)
        found |= {
            finding.rule
            for finding in compare_objects(
                objects,
                held={0: demand} if demand else None,
                gpu_types=["amd.com/gpu"],
                complete=False,
            )
        }
        wanted = RULES | ({"pod-schema"} if kind.templates else set())
        assert wanted - found == {rule for rule in wanted if rule in kind.without}


def test_the_kinds_are_those_that_serve() -> None:
    assert {group_kind(BASES[kind.group_kind]) for kind in KINDS} == {k.group_kind for k in KINDS}
