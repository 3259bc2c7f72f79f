"""The images of engines: their releases, and those for AMD."""

from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts
from kthena_components.core.values.images import (
    Image,
    Version,
    read_image,
)


def image_of(pod: PodFacts) -> Image | None:
    """Return the image of the container that starts a pod's engine; None if unknown."""
    name = pod.own.image if pod.own else None
    return read_image(name) if isinstance(name, str) else None


def sglang_for_amd(pod: PodFacts) -> bool:
    """Return whether a pod has SGLang's own image for AMD.

    It sets SGLANG_USE_AITER and SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN (docker/rocm.Dockerfile).
    """
    image = image_of(pod)
    return image is not None and image.engine == "sglang" and "rocm" in (image.tag or "")


def release_of(engine: EngineFacts) -> Version | None:
    """Return the release of vLLM that an engine's image states."""
    image = image_of(engine.entry)
    return image.vllm_version if image else None
