"""The rule engine-image."""

from collections.abc import Iterator

from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding
from kthena_components.core.rules.support.engine_pods import pods_of
from kthena_components.core.rules.support.engine_startup import image_of
from kthena_components.core.rules.support.messages import title
from kthena_components.core.values.images import (
    Image,
    Version,
    shown_image,
)

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
