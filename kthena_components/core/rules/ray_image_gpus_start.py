"""Rules of Ray: its image, the GPUs that it counts, and the order of a script that starts it."""

from collections.abc import Iterator

from kthena_components.core.engines import CommandFacts
from kthena_components.core.engines.facts import Blocked
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts, ranks_of
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.remedies import either, set_option, without
from kthena_components.core.rules.support.engine_pods import pods_of
from kthena_components.core.rules.support.messages import (
    cannot_check,
    each_engine,
    part_of_engine,
    title,
)
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
    command, image = engine.entry.command, engine.entry.image
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
    """Report Ray in an official vLLM image since 0.18, which no longer contains it."""
    version = image.vllm_version
    if version is None or image.installs:
        stated = f"the tag {image.tag} states" if image.tag else "the image states"
        because = f"{stated} no version of vLLM, and its image"
        if image.installs:
            because = "its container installs packages before it starts, and vLLM's image"
        yield Finding(
            path=path,
            seen=f"{title(engine)} was not checked, because {because} has no Ray since 0.18",
            level=Level.UNKNOWN,
        )
    elif version >= WITHOUT_RAY_SINCE and not image.installs:
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
    """Report a script of vLLM's image that its release does not have at this path."""
    image = pod.image
    script = pod.command.ray_script if pod.command else None
    if script is None or not script.startswith((BEFORE, AFTER)) or not (image and image.is_vllm):
        return
    version = image.built_release_of("vllm")
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


RULE = "ray-num-gpus"
_GPU = "/gpu"


@each_engine
def ray_num_gpus(engine: EngineFacts) -> Iterator[Finding]:
    """Ray counts as many GPUs as its container has: `ray start --num-gpus` equals them.

    Without the option Ray counts what it finds. It does not compare a stated number with the
    devices: with a larger number it places ranks on GPUs that do not exist, and with a smaller one
    the rest stays idle. With a larger number than CUDA_VISIBLE_DEVICES names, Ray exits.

    Pass: 8 GPUs, ray start --head --num-gpus=8, or without the option.
    Fail: 4 GPUs, --num-gpus=8; 8 GPUs, --num-gpus=4 for tensor 8.
    Level: mandatory; advisory for a smaller number, if the ranks may fit in it, and for a container
    without GPUs: they then exist only for Ray's scheduler, as in tests.
    Source: ray/_private/resource_and_label_spec.py _resolve_accelerator_resources; ray docs,
        "Accelerator support".
    """
    for pod in pods_of(engine):
        if pod.command is not None and pod.command.ray_gpus is not None:
            yield from _num_gpus(engine, pod, pod.command)


@part_of_engine
def _num_gpus(engine: EngineFacts, pod: PodFacts, command: CommandFacts) -> Iterator[Finding]:
    """Compare --num-gpus of Ray with the visible GPUs of its container."""
    stated, held = command.ray_gpus, pod.gpus
    own = [device for device in pod.devices if device.container in {None, pod.container}]
    if not isinstance(held, int) or not all(d.resource.endswith(_GPU) for d in own):
        return
    stated = known(stated, pod.command_path)
    if isinstance(stated, int) and isinstance(command.devices, str):
        named = len([item for item in command.devices.split(",") if item.strip()])
        if stated > named:
            written = f"CUDA_VISIBLE_DEVICES names {named}, so Ray exits"
            yield _wrong_num_gpus(engine, pod, stated, written, most=min(named, held))
    elif isinstance(stated, int) and stated > held and pod.sees_more is not None:
        yield from cannot_check(engine, pod.sees_more, path=pod.command_path)
    elif isinstance(stated, int) and stated != held:
        few = held == 0 or (stated < held and not _needs_more(engine))
        what = (
            "the rest stays idle" if stated < held else "Ray places ranks on GPUs that do not exist"
        )
        written = f"its container has {count_of(held, 'GPU')}: {what}"
        yield _wrong_num_gpus(
            engine, pod, stated, written, Level.ADVISORY if few else Level.MANDATORY
        )


def _needs_more(engine: EngineFacts) -> bool:
    """Return whether the engine starts more ranks than Ray counts GPUs in all of its pods."""
    command, pods = engine.entry.command, engine.pods
    ranks = ranks_of(engine, command) if command is not None and command.engine else None
    counts = [_counted(engine.entry), _counted(engine.worker or engine.entry)]
    if not isinstance(pods, int) or not isinstance(ranks, int) or None in counts:
        return False
    entry, worker = (count or 0 for count in counts)
    return ranks > entry + (pods - 1) * worker


def _counted(pod: PodFacts) -> int | None:
    stated = pod.command.ray_gpus if pod.command else None
    count = pod.gpus if stated is None else stated
    return count if isinstance(count, int) else None


def _wrong_num_gpus(
    engine: EngineFacts,
    pod: PodFacts,
    stated: int,
    message: str,
    level: Level = Level.MANDATORY,
    *,
    most: int | None = None,
) -> Finding:
    """Write the finding of a wrong --num-gpus; `most` limits the number to write."""
    shown = pod.gpus if most is None else most
    return Finding(
        path=pod.command_path,
        seen=f"{title(engine)} starts Ray with --num-gpus {stated}, but {message}",
        remedy=either(without("--num-gpus"), set_option("--num-gpus", shown)),
        level=level,
    )


_HOW = {
    Blocked.BLOCK: (
        "`ray start --block`, which runs until Ray stops",
        "remove --block from that `ray start`",
    ),
    Blocked.EXEC: (
        "`exec ray start`, which takes the place of its script",
        "remove exec and --block from that `ray start`",
    ),
}


@each_engine
def ray_start_order(engine: EngineFacts) -> Iterator[Finding]:
    """A script that starts Ray and then an engine gets to the engine.

    `ray start --block` runs until Ray stops. Without --block, Ray runs in the background, and the
    script goes on. `exec ray start` takes the place of the script's shell, with --block or without.
    A `ray start --address` behind a test is taken for the workers' own part of the script.

    Pass: `ray start --head --port=6379` and then vllm serve; the same with `--block &`.
    Fail: `ray start --head --port=6379 --block` and then vllm serve; the same behind `exec`.
    Level: mandatory.
    Source: ray python/ray/scripts/scripts.py (start, --block); POSIX.1-2024, exec.
    """
    command = engine.entry.command
    how = known(None if command is None else command.ray_blocks, engine.entry.command_path)
    if how is not None:
        started, remedy = _HOW[how]
        yield Finding(
            path=engine.entry.command_path,
            seen=f"{title(engine)} is started after {started}, so it never starts",
            remedy=remedy,
        )
