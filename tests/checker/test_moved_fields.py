"""A finding that a misplaced field causes says which field to move, and not what else to write."""

from copy import deepcopy
from typing import Any

from kthena_components.checker.manifest import check_manifest
from kthena_components.core.findings import Finding, Level
from tests.support.for_each import for_each

Args = dict[str, Any]
Path = tuple[str | int, ...]
CONTAINER: Args = {
    "name": "engine",
    "image": "vllm/vllm-openai:v0.33.0",
    "command": ["vllm", "serve", "meta-llama/Llama-3.1-70B-Instruct", "-tp=8"],
    "resources": {"limits": {"nvidia.com/gpu": 8}},
    "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],  # noqa: S108 - NCCL's memory
}
SPEC: Args = {
    "restartPolicy": "Never",
    "containers": [CONTAINER],
    "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}],
}
JOB: Args = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "bench"},
    "spec": {"template": {"metadata": {"labels": {"app": "bench"}}, "spec": SPEC}},
}


def at(tree: Any, *steps: str | int) -> Any:
    for step in steps:
        tree = tree[step]
    return tree


TEMPLATE = ("spec", "template")
POD = (*TEMPLATE, "spec")
ENGINE = (*POD, "containers", 0)


def written(steps: Path) -> str:
    return ".".join(map(str, steps)).replace(".0", "[0]")


def told(body: Args) -> list[Finding]:
    return [each for each in check_manifest(body) if each.level is not Level.UNKNOWN]


MISPLACED = {
    "restartPolicy beside the pod's spec": (POD, "restartPolicy", TEMPLATE),
    "volumes beside the pod's spec": (POD, "volumes", TEMPLATE),
    "volumes in a container": (POD, "volumes", ENGINE),
    "limits beside resources": ((*ENGINE, "resources"), "limits", ENGINE),
}


@for_each(("right", "field", "wrong"), MISPLACED.values(), ids=MISPLACED)
def test_a_finding_names_the_field_to_move(right: Path, field: str, wrong: Path) -> None:
    body = deepcopy(JOB)
    assert not told(body)
    at(body, *wrong)[field] = at(body, *right).pop(field)
    if not at(body, *right):  # a map that is not there at all
        del at(body, *right[:-1])[right[-1]]
    caused = [each for each in told(body) if each.path != f"{written(wrong)}.{field}"]
    assert caused
    for finding in caused:
        moved = f"move {written(wrong)}.{field} to {written(right)}"
        assert finding.remedy == moved, finding


def test_each_finding_names_the_field_that_causes_it() -> None:
    body = deepcopy(JOB)
    pod, template = at(body, *POD), at(body, *TEMPLATE)
    for field in ("restartPolicy", "volumes"):
        template[field] = pod.pop(field)
    assert {each.remedy for each in told(body)} == {
        "move it to spec.template.spec",
        "move spec.template.restartPolicy to spec.template.spec",
        "move spec.template.volumes to spec.template.spec",
    }


def test_a_finding_with_another_cause_keeps_its_remedy() -> None:
    body = deepcopy(JOB)
    at(body, *TEMPLATE)["volumes"] = at(body, *POD).pop("volumes")
    at(body, *ENGINE)["resources"]["limits"]["nvidia.com/gpu"] = 4
    (sizes,) = (each for each in told(body) if each.rule == "world-size-equals-gpus")
    assert sizes.remedy.startswith("set tensor to 4")


def test_a_key_that_looks_like_a_path_is_no_fault() -> None:
    body = deepcopy(JOB)
    at(body, *TEMPLATE)["volumes"] = at(body, *POD).pop("volumes")
    at(body, *POD)["containers[9]"] = {"volumes": []}
    at(body, *TEMPLATE)["spec[7]"] = {"restartPolicy": "Never"}
    assert {each.rule for each in told(body)} == {"pod-schema", "pod-values", "shm-present"}
