"""Checks what an engine needs to start: its own image, and how its pods connect."""

from collections.abc import Iterator

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.remedies import Remedy, either, set_option, without
from kthena_components.core.rules.support.messages import title, unjudged
from kthena_components.core.values.images import (
    Image,
    Version,
    read_image,
    shown_image,
    write_version,
)
from kthena_components.core.values.read import first_unknown
from kthena_components.core.values.unknown import Unknown

TITLES = {"vllm": "vLLM", "sglang": "SGLang", "trtllm": "TensorRT-LLM"}
STATED_SINCE: Version = (0, 11, 1)
"""The first vLLM that requires an executor for several pods, and that has --nnodes."""
UNI_SINCE: Version = (0, 12, 0)
"""The first vLLM that accepts the executor uni with --nnodes."""
LAUNCHER_SINCE: Version = (0, 13, 0)
"""The first vLLM that accepts the executor external_launcher with --nnodes."""
VLLM_INSIDE_UNTIL: Version = (0, 4, 9, 2)
"""The last SGLang that installs vLLM, in its images for AMD."""

_EXECUTOR = "--distributed-executor-backend"


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


def executor_stated(facts: ServingFacts) -> Iterator[Finding]:
    """A vLLM engine over several pods states how they connect: an executor, or --nnodes.

    With neither, vLLM only counts the GPUs of one pod, and fails to start if a copy of the model
    needs more; up to 0.11.0 it chose Ray by itself if it found Ray. With --nnodes above 1, the
    executor must be mp; uni is allowed since 0.12.0, external_launcher since 0.13.0, and Ray never.
    With --nnodes and no executor, 0.11.1 and 0.11.2 choose uni for a copy on one GPU, and then
    reject it. Copies that fit into one pod need none of this. For a single pod, see
    world-size-equals-gpus. On TPUs, TPU_MULTIHOST_BACKEND decides, whatever the command says, and
    on AWS Neuron vLLM sets the executor itself. Only CUDA counts the GPUs before the start.

    Pass: --distributed-executor-backend ray with a Ray cluster; --nnodes 2 in two pods.
    Fail: tensor 8 × pipeline 2 on pods of 8 GPUs with neither; --nnodes 2 with executor ray.
    Level: mandatory from vLLM 0.11.1 on NVIDIA; advisory before, on other accelerators, and when
    the image states no version. An executor that --nnodes does not support is mandatory.
    Source: vllm/config/parallel.py, __post_init__, of 0.11.0 to 0.33.0; tpu-inference
    tpu_inference/platforms/tpu_platform.py.
    """
    for engine in facts.engines:
        command = engine.entry.command
        if command is None or command.engine != "vllm" or engine.pods == 1:
            continue
        if engine.entry.one_process is True or engine.entry.on_cpus is True:
            continue
        if isinstance(command.nnodes, Unknown):
            yield from unjudged(engine, command.nnodes, "executor-stated")
        elif command.nnodes not in {None, 1}:
            yield from _beside_nodes(engine, command)
        elif command.executor is None:
            yield from _not_stated(engine, command)


def _not_stated(engine: EngineFacts, command: CommandFacts) -> Iterator[Finding]:
    copy, gpus, pod = command.per_rank_world, engine.entry.gpus, engine.entry
    unknown = first_unknown(pod.one_process, pod.on_cpus, copy, gpus)
    if unknown is not None:
        yield from unjudged(engine, unknown, "executor-stated")
        return
    if not (isinstance(copy, int) and isinstance(gpus, int)) or copy <= gpus:
        return
    version = release_of(engine)
    hard = version is not None and version >= STATED_SINCE and engine.entry.has_cuda
    ray = command.ray_role is not None or command.data_backend == "ray"
    if ray:
        seen = "connects its pods with Ray and does not state the executor"
        remedy = set_option(_EXECUTOR, "ray", f"add {_EXECUTOR} ray")
    else:
        seen = "states neither --nnodes nor an executor"
        remedy = Remedy(
            f"add --nnodes {_pods(engine)} with --node-rank and --master-addr, or start Ray and "
            f"add {_EXECUTOR} ray"
        )
    yield Finding(
        path=engine.entry.command_path,
        seen=f"{title(engine)} has {count_of(copy, 'rank')} in a copy and "
        f"{count_of(gpus, 'GPU')} in a pod, but {seen}, {_since(hard)}",
        remedy=remedy,
        rule="executor-stated",
        level=Level.MANDATORY if hard else Level.ADVISORY,
    )


def _since(hard: bool) -> str:
    first = write_version(STATED_SINCE)
    if hard:
        return f"and vLLM rejects more ranks than one pod has GPUs since {first}"
    return f"which vLLM rejects since {first}"


def _pods(engine: EngineFacts) -> object:
    return engine.pods if isinstance(engine.pods, int) else "N"


def _beside_nodes(engine: EngineFacts, command: CommandFacts) -> Iterator[Finding]:
    version, executor, nodes = release_of(engine), command.executor, command.nnodes
    allowed = _allowed(version)
    if executor is None:
        if version is not None and "uni" not in allowed:
            yield from _chooses_uni(engine, command, version)
        return
    unknown = first_unknown(executor, nodes)
    if executor in allowed:
        return
    if unknown is not None:
        yield from unjudged(engine, unknown, "executor-stated")
        return
    *others, last = allowed
    listed = f"{', '.join(others)} or {last}" if others else last
    newer = f"use vLLM {write_version(LAUNCHER_SINCE)} or later"
    alone = without("--nnodes", "--node-rank", "--master-addr")
    yield Finding(
        path=engine.entry.command_path,
        seen=f"{title(engine)} has --nnodes {nodes} with the executor {executor}, and vLLM"
        f"{_stated(version)} supports only {listed} there",
        remedy=either(set_option(_EXECUTOR, "mp"), newer if executor in _allowed(None) else alone),
        rule="executor-stated",
    )


def _allowed(version: Version | None) -> tuple[str, ...]:
    """Return the executors that --nnodes supports; without a release those of the newest.

    Also for a release without --nnodes: another rule reports that.
    """
    every = ("mp", "uni", "external_launcher")
    if version is None or not STATED_SINCE <= version < LAUNCHER_SINCE:
        return every
    return every[:1] if version < UNI_SINCE else every[:2]


def _chooses_uni(engine: EngineFacts, command: CommandFacts, version: Version) -> Iterator[Finding]:
    copy, nodes = command.per_rank_world, command.nnodes
    unknown = first_unknown(copy, nodes)
    if unknown is not None:
        yield from unjudged(engine, unknown, "executor-stated")
    elif copy == 1:
        yield Finding(
            path=engine.entry.command_path,
            seen=f"{title(engine)} has --nnodes {nodes} and states no executor, and vLLM"
            f"{_stated(version)} chooses uni for a copy of 1 rank, which it rejects over several "
            "nodes",
            remedy=either(
                set_option(_EXECUTOR, "mp", f"add {_EXECUTOR} mp"),
                f"use vLLM {write_version(UNI_SINCE)} or later",
            ),
            rule="executor-stated",
        )


def _stated(version: Version | None) -> str:
    return "" if version is None or version < STATED_SINCE else f" {write_version(version)}"


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
        worker = engine.worker if engine.pods != 1 else None
        pods = (engine.entry,) if worker is None else (engine.entry, worker)
        # In a component both have the same path: the one that the user wrote.
        yield from dict.fromkeys(found for pod in pods for found in _wrong_image(engine, pod))


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
        rule="engine-image",
    )


def _may_hold(image: Image, engine: str) -> bool:
    release = image.release_of("sglang")
    return engine == "vllm" and release is not None and release <= VLLM_INSIDE_UNTIL
