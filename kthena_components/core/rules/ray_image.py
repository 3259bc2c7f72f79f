"""Rules of images with Ray: Ray, and the script that starts it, are in the image."""

from collections.abc import Iterator

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.rules.support.engine_pods import pods_of
from kthena_components.core.rules.support.engine_startup import image_of
from kthena_components.core.rules.support.messages import each_engine, title
from kthena_components.core.values.images import Image, Version, shown_image, write_version
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


SCRIPT_SINCE: Version = (0, 8, 0)
SCRIPT_MOVED: Version = (0, 21, 0)
"""The first vLLM whose image has multi-node-serving.sh, and the first that has it elsewhere."""
EXAMPLES = "/vllm-workspace/examples/"
BEFORE, AFTER = f"{EXAMPLES}online_serving/", f"{EXAMPLES}ray_serving/"


def ray_script_in_image(facts: ServingFacts) -> Iterator[Finding]:
    """A command that runs multi-node-serving.sh of vLLM's own image uses its path in that image.

    The image has it since 0.8.0: in examples/online_serving/ up to 0.20.2, in examples/ray_serving/
    since 0.21.0. Computed paths, other folders, files from mounted ConfigMaps and other images are
    not checked. An image without a tag, or with the tag latest, counts as the newest release.

    Pass: examples/online_serving/multi-node-serving.sh in v0.20.2.
    Fail: examples/online_serving/multi-node-serving.sh in v0.21.0; either in v0.7.3.
    Level: mandatory if the image states its release; advisory for latest.
    Source: vllm docker/Dockerfile (COPY examples); vllm examples/ of 0.7.3 to 0.33.0.
    """
    for engine in facts.engines:
        for pod in pods_of(engine):
            yield from _elsewhere(engine, pod)


def _elsewhere(engine: EngineFacts, pod: PodFacts) -> Iterator[Finding]:
    image = image_of(pod)
    script = pod.command.ray_script if pod.command else None
    if script is None or not script.startswith((BEFORE, AFTER)) or not (image and image.is_vllm):
        return
    version = image.vllm_version
    if version is None and image.pinned:
        return  # A build of unknown release.
    folder = AFTER if version is None or version >= SCRIPT_MOVED else BEFORE
    missing = version is not None and version < SCRIPT_SINCE
    if script.startswith(folder) and not missing:
        return
    stated = "the newest vLLM" if version is None else f"vLLM {write_version(version)}"
    if missing:
        where = f"has no such script, which came with {write_version(SCRIPT_SINCE)}"
        remedy = f"use vLLM {write_version(SCRIPT_SINCE)} or later"
    else:
        since = "since" if folder == AFTER else "before"
        where = f"has it in {folder} ({since} {write_version(SCRIPT_MOVED)})"
        remedy = f"write {folder}{script.rpartition('/')[2]}"
    yield Finding(
        path=pod.command_path,
        seen=f"{title(engine)} runs {script}, and the image of {stated} {where}",
        remedy=remedy,
        level=Level.ADVISORY if version is None else Level.MANDATORY,
    )
