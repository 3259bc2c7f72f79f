"""The rule ray-in-image."""

from collections.abc import Iterator

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.rules.support.engine_images import image_of
from kthena_components.core.rules.support.messages import title, unjudged
from kthena_components.core.values.images import Image, Version, shown_image
from kthena_components.core.values.read import first_unknown

WITHOUT_RAY_SINCE: Version = (0, 18)
"""The first vLLM whose own image does not contain Ray."""


def ray_in_image(facts: ServingFacts) -> Iterator[Finding]:
    """An engine that uses Ray runs an image that contains Ray: vLLM's own does up to 0.17.

    Other images are not checked: their content is unknown. Advisory, because the command may
    install Ray before it starts it.

    Pass: vllm/vllm-openai:v0.17.1 with multi-node-serving.sh; any image of your own with Ray in it.
    Fail: vllm/vllm-openai:v0.18.0 with multi-node-serving.sh or the executor ray.
    Level: advisory.
    Source: vllm docker/Dockerfile and requirements/cuda.txt of 0.17.1 and 0.18.0.
    """
    for engine in facts.engines:
        command, image = engine.entry.command, image_of(engine.entry)
        if command is None or not _needs_ray(command):
            continue
        own = engine.entry.own
        name = own.image if own else None
        unknown = first_unknown(name)
        if unknown is not None and own is not None:
            yield from unjudged(engine, unknown, "ray-in-image", own.image_path)
        elif image is not None and image.is_vllm and own is not None and isinstance(name, str):
            yield from _without_ray(engine, image, name, own.image_path)


def _needs_ray(command: CommandFacts) -> bool:
    asked = "ray" in {command.executor, command.data_backend}
    joins = command.ray_role is not None and command.headless is not True
    return joins or (command.engine == "vllm" and asked)


def _without_ray(engine: EngineFacts, image: Image, name: str, path: str) -> Iterator[Finding]:
    version = image.vllm_version
    if version is None:
        stated = f"the tag {image.tag} states" if image.tag else "the image states"
        yield Finding(
            path=path,
            seen=f"{title(engine)} was not checked, because {stated} no version of vLLM, and its "
            "image has no Ray since 0.18",
            level=Level.UNKNOWN,
        )
    elif version >= WITHOUT_RAY_SINCE:
        yield Finding(
            path=path,
            seen=f"{title(engine)} connects its pods with Ray, but '{shown_image(name)}' does not "
            "contain it: vLLM's image has no Ray since 0.18",
            remedy="use an image with Ray in it, or connect the pods with --nnodes and --node-rank",
            level=Level.ADVISORY,
        )
