"""A claim that only one pod may mount, in the pods of every kind."""

import copy
from typing import Any

import pytest

from kthena_components.checker.cluster_rules import compare_objects
from kthena_components.core.findings import Level
from kthena_components.core.objects.object import read_object
from kthena_components.core.values.read import group_kind, mapping
from kthena_components.core.values.unknown import total
from kthena_components.systems import find_kind
from tests.rules.cases import bases, documents

CLAIM, RULE = "weights", "rwx-for-shared-model"
VOLUME = {"name": "own-weights", "persistentVolumeClaim": {"claimName": CLAIM}}


def mount(value: Any) -> int:
    """Mount the claim in every pod spec of an object; return how many there are."""
    if isinstance(value, list):
        return sum(map(mount, value))
    if not isinstance(value, dict):
        return 0
    own = isinstance(value.get("containers"), list)
    if own:
        value["volumes"] = [*(value.get("volumes") or []), VOLUME]
    return own + sum(map(mount, value.values()))


def served() -> dict[str, dict[str, Any]]:
    """Give an object of each kind that shows its pods, with the claim in all of them."""
    found: dict[str, dict[str, Any]] = {}
    for body in (body for base in sorted(bases()) for body in documents(base)):
        kind = find_kind(group_kind(body)) if "apiVersion" in body else None
        if kind is None or kind.pods is None or ".".join(group_kind(body)) in found:
            continue
        changed = copy.deepcopy(body)
        sets = list(kind.pods(kind.view(read_object(body))))
        number = total([pods.count for pods in sets])
        # Not all pods of an InferenceService have a spec of their own.
        if mount(changed) >= len(sets) and isinstance(number, int) and number > 1:
            found[".".join(group_kind(body))] = changed
    return found


SERVED = served()


@pytest.mark.parametrize("kind", SERVED)
@pytest.mark.parametrize("mode", ["ReadWriteOncePod", "ReadWriteMany"])
def test_a_claim_for_one_pod_is_refused_in_several(kind: str, mode: str) -> None:
    body = SERVED[kind]
    space = mapping(body.get("metadata")).get("namespace")
    metadata = {"name": CLAIM, **({"namespace": space} if space else {})}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata,
             "spec": {"accessModes": [mode]}}  # fmt: skip
    found = [f for f in compare_objects([body, claim], ["it", "claim"]) if f.rule == RULE]
    assert [f.level for f in found] == [Level.MANDATORY] * (mode == "ReadWriteOncePod")


@pytest.mark.parametrize(
    ("started", "level"), [("vllm serve", Level.MANDATORY), ("python train.py", Level.ADVISORY)]
)
def test_pods_of_a_ray_cluster_without_an_engine_may_share_a_node(
    started: str, level: Level
) -> None:
    body = copy.deepcopy(SERVED["ray.io.RayCluster"])
    head = body["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]
    head["args"] = [head["args"][0].replace("vllm serve", started)]
    for group in (body["spec"]["headGroupSpec"], *body["spec"]["workerGroupSpecs"]):
        for container in group["template"]["spec"]["containers"]:
            container["resources"] = {"limits": {"nvidia.com/gpu": 1}}
    metadata = {"name": CLAIM, "namespace": body["metadata"]["namespace"]}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata,
             "spec": {"accessModes": ["ReadWriteOnce"]}}  # fmt: skip
    found = [f for f in compare_objects([body, claim], ["it", "claim"]) if f.rule == RULE]
    assert [f.level for f in found] == [level]


def test_every_sort_of_kind_was_tried() -> None:
    assert len(SERVED) > 20
