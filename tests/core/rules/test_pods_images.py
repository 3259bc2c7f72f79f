"""Images of an engine's pods: pinned, and the same in all of them."""

import pytest

from kthena_components.core.facts.pod import read_pod
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.rules.pods import image_pinned
from tests.support.specs import changed, gpu_template
from tests.support.strategies import LATE

IMAGE = "spec.containers[0].image"


def alone(image: str) -> list[str]:
    """Judge an engine of one pod that runs this image."""
    return said(changed(gpu_template("vllm serve m -tp 8"), {IMAGE: image}))


def said(entry: object, worker: object = None) -> list[str]:
    engine = EngineFacts(
        path="e",
        name="e",
        pods=1 if worker is None else 2,
        replicas=1,
        entry=read_pod(entry, "t"),
        worker=None if worker is None else read_pod(worker, "w"),
    )
    return [str(f) for f in image_pinned(ServingFacts(path="", name="s", engines=(engine,)))]


@pytest.mark.parametrize(
    "image",
    ["a/b:v1", "localhost:5000/a/b:1", "b@sha256:0a", "b:latest@sha256:0a"],
    ids=["tag", "port", "digest", "latest-with-digest"],
)
def test_a_pinned_image_is_right(image: str) -> None:
    assert alone(image) == []


@pytest.mark.parametrize(
    ("image", "stated"),
    [
        ("vllm/vllm-openai:latest", "the tag latest"),
        ("localhost:5000/b", "no tag, which means latest"),
    ],
    ids=["latest", "port-is-no-tag"],
)
def test_an_image_that_moves_is_worth_a_look(image: str, stated: str) -> None:
    assert alone(image) == [
        (
            f"t.spec.containers[0].image: engine 'e' runs '{image}', which has {stated}, and a "
            "restarted pod may run another version. Write the tag of a release, or a digest. "
            "[image-pinned]"
        )
    ]


def pair(entry: str, worker: str) -> list[str]:
    """Judge an engine whose entry and worker run these images."""
    templates = (gpu_template("vllm serve m -tp 8 -pp 2"), gpu_template("ray start --address=x"))
    images = ({IMAGE: entry}, {IMAGE: worker})
    return said(*(changed(t, i) for t, i in zip(templates, images, strict=True)))


@pytest.mark.parametrize(
    ("entry", "worker"),
    [
        ("a:v1", "a:v1"),
        ("docker.io/a/b:v1", "a/b:v1"),
        ("a:v1@sha256:0a", "mirror/a@sha256:0a"),
    ],
    ids=["same", "docker-hub", "digest"],
)
def test_entry_and_workers_of_one_build_are_right(entry: str, worker: str) -> None:
    assert pair(entry, worker) == []


def test_entry_and_workers_of_two_versions_are_refused() -> None:
    assert pair("vllm/vllm-openai:v0.10.1", "vllm/vllm-openai:v0.10.2") == [
        (
            "w.spec.containers[0].image: engine 'e' runs 'vllm/vllm-openai:v0.10.2' in its workers "
            "and 'vllm/vllm-openai:v0.10.1' in its entry, and two versions never form one engine. "
            "Write 'vllm/vllm-openai:v0.10.1' in both. [image-pinned]"
        )
    ]


@pytest.mark.parametrize(("entry", "worker"), [(LATE, "a:v1"), ("a:v1", LATE), (LATE, LATE)])
def test_an_image_that_is_not_known_is_told_once(entry: str, worker: str) -> None:
    assert pair(entry, worker) == [
        (
            "t.spec.containers[0].image: engine 'e' was not checked, because the image is known "
            "only after the deployment. [image-pinned]"
        )
    ]
