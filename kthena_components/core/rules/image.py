"""Rules of images: each is pinned, and contains the engine."""

from collections.abc import Iterator

from kthena_components.core.facts.container import (
    ContainerFacts,
)
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.remedies import write
from kthena_components.core.rules.support.engine_pods import pods_of
from kthena_components.core.rules.support.engine_startup import image_of
from kthena_components.core.rules.support.messages import each_engine, title
from kthena_components.core.values.images import (
    Image,
    Version,
    read_image,
    shown_image,
)
from kthena_components.core.values.read import require_known
from kthena_components.core.values.unknown import Unknown

TITLES = {"vllm": "vLLM", "sglang": "SGLang", "trtllm": "TensorRT-LLM"}
VLLM_INSIDE_UNTIL: Version = (0, 4, 9, 2)
"""The last SGLang that installs vLLM, in its images for AMD."""


def engine_image(facts: ServingFacts) -> Iterator[Finding]:
    """An engine runs in an image that contains it: vLLM's own image has no SGLang, nor the reverse.

    The rule checks the images that the vLLM and SGLang projects build, from any registry. The
    content of other images is unknown. SGLang's own images for AMD contained vLLM up to
    0.4.9.post2, so those releases are not checked.

    Pass: sglang.launch_server in lmsysorg/sglang:v0.5.23; any image of your own.
    Fail: kind vllm, or `vllm serve`, in lmsysorg/sglang:v0.5.23.
    Level: mandatory.
    Source: vllm docker/Dockerfile and requirements of 0.33.0; what the wheels of sglang 0.4.6 to
    0.5.23 require.
    """
    for engine in facts.engines:
        every = (found for pod in pods_of(engine) for found in _wrong_image(engine, pod))
        # In a component both have the same path: the one that the user wrote.
        yield from dict.fromkeys(every)


def _wrong_image(engine: EngineFacts, pod: PodFacts) -> Iterator[Finding]:
    own, image = pod.own, image_of(pod)
    kind = pod.command.engine if pod.command else None
    if own is None or image is None or image.engine in {None, kind}:
        return
    if kind not in TITLES or _may_hold(image, kind):
        return
    builder = str(image.engine)
    started, holds = TITLES[kind], TITLES[builder]
    yield Finding(
        path=own.image_path,
        seen=f"{title(engine)} starts {started}, but '{shown_image(str(own.image))}' is {holds}'s "
        "own image, which does not contain it",
        remedy=f"use an image of {started}, or start {holds} (kind: {builder} in a component)",
    )


def _may_hold(image: Image, engine: str) -> bool:
    release = image.release_of("sglang")
    return engine == "vllm" and release is not None and release <= VLLM_INSIDE_UNTIL


@each_engine
def image_pinned(engine: EngineFacts) -> Iterator[Finding]:
    """An engine's image is pinned, and its entry and workers run the same one.

    With a moving tag, a restarted pod may run another version: advisory. Two versions in one engine
    never connect: mandatory. Registries are compared, except that Docker Hub's host may be left
    out.

    Pass: vllm/vllm-openai:v0.33.0 in both templates, or the same digest in both.
    Fail: no tag or :latest (advisory); v0.33.0 in the entry and v0.32.0 in the worker (mandatory).
    Level: advisory; mandatory for different images.
    Source: Kubernetes documentation, Images; vLLM docs/serving/parallelism_scaling.md (identical
    environments on all nodes).
    """
    command, entry = engine.entry.command, engine.entry.own
    worker = engine.worker.own if engine.worker and engine.pods != 1 else None
    if entry is None or command is None or (command.engine is None and command.ray_role is None):
        return
    images = [own.image for own in (entry, worker) if own is not None]
    yield from _unpinned(engine, entry)
    require_known(entry.image_path, *images)
    if worker is not None:
        yield from _unlike(engine, entry, worker)


def _unpinned(engine: EngineFacts, container: ContainerFacts) -> Iterator[Finding]:
    name = container.image
    if name is None or isinstance(name, Unknown) or read_image(name).pinned:
        return
    tag = read_image(name).tag
    stated = f"the tag {tag}" if tag else "no tag, which means latest"
    yield Finding(
        path=container.image_path,
        seen=f"{title(engine)} runs '{shown_image(name)}', which has {stated}, and a restarted pod "
        "may run another version",
        remedy="write the tag of a release, or a digest",
        level=Level.ADVISORY,
    )


def _unlike(
    engine: EngineFacts, entry: ContainerFacts, worker: ContainerFacts
) -> Iterator[Finding]:
    if not isinstance(entry.image, str) or not isinstance(worker.image, str):
        return
    if read_image(entry.image).same_build(read_image(worker.image)):
        return
    yield Finding(
        path=worker.image_path,
        seen=f"{title(engine)} runs '{shown_image(worker.image)}' in its workers and "
        f"'{shown_image(entry.image)}' in its entry, and two versions never form one engine",
        remedy=_same_image(entry.image, worker.image),
    )


def _same_image(entry: str, worker: str) -> str:
    """Write the image of the entry in both, as a change only if both are of one product."""
    said = f"write '{shown_image(entry)}' in both"
    return (
        write(entry, said)
        if read_image(entry).repository == read_image(worker).repository
        else said
    )
