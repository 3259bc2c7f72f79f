"""Which kustomizations may build a serving: only those are built."""

from pathlib import Path

import pytest

from kthena_components.reading.kustomization import Kustomization
from kthena_components.rendering.servings import may_serve

WEB = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 1}\n"
CRD = (
    "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {x: gpu of vllm}\n"
)


def made(folder: Path, text: str, *, is_part: bool = False) -> Kustomization:
    file = folder / "a.yaml"
    file.write_text(text)
    paths = [str(file)]
    found = Kustomization(file=str(folder / "kustomization.yaml"), boundary=str(folder))
    found.objects, found.parts = ([], paths) if is_part else (paths, [])
    return found


@pytest.mark.parametrize(
    "text",
    [
        WEB.replace("replicas: 1", "image: vllm/vllm-openai"),
        f"{CRD}---\n{WEB}# nvidia.com/gpu\n",
        "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\n",
        "apiVersion: v1\nkind: List\nitems: []\n# GPU\n",
        f"{WEB}---\na: [\n",
    ],
    ids=["engine", "accelerator", "kind", "list", "unreadable"],
)
def test_what_may_serve_is_built(tmp_path: Path, text: str) -> None:
    assert may_serve([made(tmp_path, text)], {})


@pytest.mark.parametrize(
    "text",
    [WEB, CRD, f"{CRD}---\n{WEB.replace('web', 'output-input')}".replace("gpu of vllm", ""), ""],
    ids=["web", "definition", "words", "nothing"],
)
def test_what_serves_no_model_is_not(tmp_path: Path, text: str) -> None:
    assert not may_serve([made(tmp_path, text)], {})


def test_a_patch_may_make_a_serving(tmp_path: Path) -> None:
    assert may_serve([made(tmp_path, "limits: {nvidia.com/gpu: 8}", is_part=True)], {})
    assert not may_serve([made(tmp_path, "nodeSelector: {a: b}", is_part=True)], {})
    text = "- path: /spec/openAPIV3Schema/vllm"
    assert not may_serve([made(tmp_path, text, is_part=True)], {})


def test_what_is_not_there_serves_nothing(tmp_path: Path) -> None:
    gone = made(tmp_path, "vllm")
    Path(gone.objects[0]).unlink()
    assert not may_serve([gone], {})
    gone.problem = "remote base x"
    assert may_serve([gone], {})
