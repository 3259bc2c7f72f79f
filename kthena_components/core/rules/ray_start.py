"""Checks that Ray can connect the pods of vLLM: Ray and its script in the image, ranks, stages."""

from collections.abc import Iterator
from typing import NamedTuple

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.rules.engine_start import image_of, release_of
from kthena_components.core.rules.support.messages import title, unjudged
from kthena_components.core.values.images import Image, Version, shown_image, write_version
from kthena_components.core.values.read import first_unknown
from kthena_components.core.values.unknown import Unknown, all_known

WITHOUT_RAY_SINCE: Version = (0, 18)
"""The first vLLM whose own image does not contain Ray."""
SCRIPT_SINCE: Version = (0, 8, 0)
SCRIPT_MOVED: Version = (0, 21, 0)
"""The first vLLM whose image has multi-node-serving.sh, and the first that has it elsewhere."""
EXAMPLES = "/vllm-workspace/examples/"
BEFORE, AFTER = f"{EXAMPLES}online_serving/", f"{EXAMPLES}ray_serving/"
RANKS_COUNTED: Version = (0, 11, 1)
"""The only vLLM whose workers count the ranks of all pods as their own pod's."""
RANKS_COUNTED_UNTIL: Version = (0, 11, 2)
STALE_RANKS: tuple[Version, Version] = (0, 11, 2), (0, 21, 0)
"""The first vLLM whose workers look up their cache by the rank from before renumbering, and the
first whose default executor numbers them only once. 0.11.1 exits before that.
"""
LEAST_THAT_MOVE = 3
"""Of 2 ranks, the first is bound to the entry's pod, so neither can move."""


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
            rule="ray-in-image",
            level=Level.UNKNOWN,
        )
    elif version >= WITHOUT_RAY_SINCE:
        yield Finding(
            path=path,
            seen=f"{title(engine)} connects its pods with Ray, but '{shown_image(name)}' does not "
            "contain it: vLLM's image has no Ray since 0.18",
            remedy="use an image with Ray in it, or connect the pods with --nnodes and --node-rank",
            rule="ray-in-image",
            level=Level.ADVISORY,
        )


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
        worker = engine.worker if engine.pods != 1 else None
        for pod in filter(None, (engine.entry, worker)):
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
        rule="ray-script-in-image",
        level=Level.ADVISORY if version is None else Level.MANDATORY,
    )


def ray_over_pods(facts: ServingFacts) -> Iterator[Finding]:
    """A copy of a model that spans pods with Ray does not run vLLM 0.11.1.

    In this release, each worker compares the ranks of the whole copy with the GPUs of its own pod,
    and exits. Engines whose image states no version of vLLM are not checked.

    Pass: tensor 8 × pipeline 2 over 2 pods, with Ray in v0.11.0 or v0.11.2, or with --nnodes.
    Fail: tensor 8 × pipeline 2 over 2 pods of 8 GPUs with the executor ray in v0.11.1.
    Level: mandatory.
    Source: vllm/v1/worker/gpu_worker.py init_device of 0.11.1 (local_world_size) and 0.11.2.
    """
    for engine in facts.engines:
        spread = _spread(engine, RANKS_COUNTED, RANKS_COUNTED_UNTIL)
        if isinstance(spread, Unknown):
            yield from unjudged(engine, spread, "ray-over-pods")
        elif spread is not None:
            yield Finding(
                path=engine.entry.command_path,
                seen=f"{title(engine)} has a copy of {spread.copy} ranks, which Ray spreads over "
                f"pods of {count_of(spread.gpus, 'GPU')}, and every worker of vLLM "
                f"{write_version(spread.version)} exits when its pod has fewer GPUs than the copy "
                "has ranks",
                remedy="use vLLM 0.11.0, or 0.11.2 or later, or connect the pods with --nnodes and "
                "--node-rank",
                rule="ray-over-pods",
            )


def pp_with_ray(facts: ServingFacts) -> Iterator[Finding]:
    """A pipeline that spans pods with Ray does not run vLLM 0.11.2 to 0.20.2.

    Ray chooses a pod for each rank; only the first is bound to the entry's pod. vLLM then renumbers
    the workers pod by pod, but each looks up its KV cache layout by its old number. If the two
    numbers belong to different stages, the engine exits with a KeyError. Whether that happens
    depends on Ray's placement. It cannot happen with 2 stages of 1 GPU in 2 pods, nor if a copy
    fits into one pod. Engines whose image states no version of vLLM are not checked.
    VLLM_USE_RAY_V2_EXECUTOR_BACKEND, which selects the old or the new executor, is ignored.

    Pass: tensor 1 × pipeline 2 on 2 pods of 1 GPU; pipeline 4 with v0.11.0 or v0.21.0, or --nnodes.
    Fail: pipeline 3 on 3 pods, or tensor 8 × pipeline 2 on 2 pods of 8 GPUs, with v0.17.1 and Ray.
    Level: advisory.
    Source: vllm/v1/executor/ray_executor.py and vllm/v1/worker/worker_base.py (adjust_rank,
    initialize_from_config) of 0.11.1 to 0.20.2; vllm-project/vllm#23691, #30128, #41287, #36836.
    """
    for engine in facts.engines:
        spread = _spread(engine, *STALE_RANKS)
        if isinstance(spread, Unknown):
            yield from unjudged(engine, spread, "pp-with-ray")
        elif spread is not None and spread.stages > 1 and spread.copy >= LEAST_THAT_MOVE:
            yield Finding(
                path=engine.entry.command_path,
                seen=f"{title(engine)} has {spread.stages} pipeline stages in a copy of "
                f"{spread.copy} ranks, which Ray spreads over pods of "
                f"{count_of(spread.gpus, 'GPU')}, and in vLLM {write_version(spread.version)} a "
                "rank that Ray places out of order can get the KV cache layout of another stage",
                remedy="connect the pods with --nnodes and --node-rank, or use vLLM 0.21.0 or "
                "later",
                rule="pp-with-ray",
                level=Level.ADVISORY,
            )


class _Spread(NamedTuple):
    """A copy of a model that spans pods with Ray."""

    version: Version
    copy: int
    stages: int
    gpus: int


def _spread(engine: EngineFacts, first: Version, until: Version) -> _Spread | Unknown | None:
    """Return how a copy spans pods with Ray; None if it does not, or for another release."""
    command, version = engine.entry.command, release_of(engine)
    if command is None or version is None or not first <= version < until:
        return None
    if command.engine != "vllm" or command.executor != "ray" or engine.pods == 1:
        return None
    sizes = all_known(command.per_rank_world, command.pipeline, engine.entry.gpus)
    if isinstance(sizes, Unknown):
        return sizes
    copy, stages, gpus = sizes
    return _Spread(version, copy, stages, gpus) if copy > gpus else None
