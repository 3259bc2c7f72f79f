"""The rule ray-in-image."""

from collections.abc import Iterator

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.serving import EngineFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.rules.support.engine_startup import image_of
from kthena_components.core.rules.support.messages import each_engine, title
from kthena_components.core.values.images import Image, Version, shown_image
from kthena_components.core.values.unknown import known

WITHOUT_RAY_SINCE: Version = (0, 18)
"""The first vLLM whose own image does not contain Ray."""


@each_engine
def ray_in_image(engine: EngineFacts) -> Iterator[Finding]:
    """An engine that uses Ray runs an image that contains Ray: vLLM's own does up to 0.17.

    Other images are not checked: their content is unknown. Advisory, because the command may
    install Ray before it starts it.

    Pass: vllm/vllm-openai:v0.17.1 with multi-node-serving.sh; any image of your own with Ray in it.
    Fail: vllm/vllm-openai:v0.18.0 with multi-node-serving.sh or the executor ray.
    Level: advisory.
    Source: vllm docker/Dockerfile and requirements/cuda.txt of 0.17.1 and 0.18.0.
    """
    command, image = engine.entry.command, image_of(engine.entry)
    if command is None or not _needs_ray(command):
        return
    own = engine.entry.own
    name = known(own.image, own.image_path) if own else None
    if image is not None and image.is_vllm and own is not None and name is not None:
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
