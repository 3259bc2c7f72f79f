"""Whether an engine is told what it needs to start: its own image, and how its pods join."""

from collections.abc import Iterator

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.rules.wording import title, unjudged
from kthena_components.core.values.images import (
    Image,
    Version,
    read_image,
    shown_image,
    write_version,
)
from kthena_components.core.values.read import first_unknown

TITLES = {"vllm": "vLLM", "sglang": "SGLang", "trtllm": "TensorRT-LLM"}
STATED_SINCE: Version = (0, 11, 1)
"""The first vLLM that wants the executor of several pods stated, and that has --nnodes."""
UNI_SINCE: Version = (0, 12, 0)
"""The first vLLM that takes the executor uni with --nnodes."""
LAUNCHER_SINCE: Version = (0, 13, 0)
"""The first vLLM that takes the executor external_launcher with --nnodes."""
VLLM_INSIDE_UNTIL: Version = (0, 4, 9, 2)
"""The last SGLang that installs vLLM, in its images for AMD."""


def image_of(pod: PodFacts) -> Image | None:
    """Return the image of the container that starts a pod's engine; None where it is not known."""
    name = pod.own.image if pod.own else None
    return read_image(name) if isinstance(name, str) else None


def release_of(engine: EngineFacts) -> Version | None:
    """Return the release of vLLM that an engine's image states."""
    image = image_of(engine.entry)
    return image.vllm_version if image else None


def executor_stated(facts: ServingFacts) -> Iterator[Finding]:
    """A vLLM engine over several pods states how they join: an executor, or --nnodes.

    With neither, vLLM counts the GPUs of one pod, and refuses to start when a copy of the model
    needs more; up to 0.11.0 it took Ray by itself where it found Ray. With --nnodes above 1 the
    executor is mp; from 0.12.0 on it may be uni as well, from 0.13.0 on external_launcher, and
    never Ray. Where none is stated beside --nnodes, 0.11.1 and 0.11.2 take uni for a copy on one
    GPU, and then refuse it. Copies that lie within one pod need none of this. One pod alone is
    judged by world-size-equals-gpus.

    Pass: --distributed-executor-backend ray beside a Ray cluster; --nnodes 2 in two pods.
    Fail: tensor 8 × pipeline 2 on pods of 8 GPUs with neither; --nnodes 2 with executor ray.
    Level: mandatory from vLLM 0.11.1 on; advisory before, and when the image states no version. An
    executor that does not go with --nnodes is mandatory.
    Source: vllm/config/parallel.py, __post_init__, of 0.11.0 to 0.33.0.
    """
    for engine in facts.engines:
        command = engine.entry.command
        if command is None or command.engine != "vllm" or engine.pods == 1:
            continue
        if command.nnodes not in {None, 1}:
            yield from _beside_nodes(engine, command)
        elif command.executor is None:
            yield from _not_stated(engine, command)


def _not_stated(engine: EngineFacts, command: CommandFacts) -> Iterator[Finding]:
    copy, gpus = command.per_rank_world, engine.entry.gpus
    unknown = first_unknown(copy, gpus)
    if unknown is not None:
        yield from unjudged(engine, unknown, "executor-stated")
        return
    if not (isinstance(copy, int) and isinstance(gpus, int)) or copy <= gpus:
        return
    version = release_of(engine)
    hard = version is not None and version >= STATED_SINCE
    ray = command.ray_role is not None or command.data_backend == "ray"
    if ray:
        seen = "joins its pods with Ray and does not state the executor"
        remedy = "add --distributed-executor-backend ray"
    else:
        seen = "states neither --nnodes nor an executor"
        remedy = (
            f"add --nnodes {_pods(engine)} with --node-rank and --master-addr, or start Ray and "
            "add --distributed-executor-backend ray"
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
        return f"and vLLM refuses more ranks than one pod has GPUs since {first}"
    return f"which vLLM refuses since {first}"


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
    newer = f", or use vLLM {write_version(LAUNCHER_SINCE)} or later"
    without = ", or remove --nnodes, --node-rank and --master-addr"
    yield Finding(
        path=engine.entry.command_path,
        seen=f"{title(engine)} has --nnodes {nodes} with the executor {executor}, and vLLM"
        f"{_stated(version)} joins such nodes with {listed} only",
        remedy="write --distributed-executor-backend mp"
        + (newer if executor in _allowed(None) else without),
        rule="executor-stated",
    )


def _allowed(version: Version | None) -> tuple[str, ...]:
    """Return the executors that go with --nnodes; with no release those of the newest.

    So for a release that has no --nnodes yet: that is told by itself.
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
            f"{_stated(version)} takes uni for a copy of 1 rank, which it refuses over several "
            "nodes",
            remedy="add --distributed-executor-backend mp, or use vLLM "
            f"{write_version(UNI_SINCE)} or later",
            rule="executor-stated",
        )


def _stated(version: Version | None) -> str:
    return "" if version is None or version < STATED_SINCE else f" {write_version(version)}"


def engine_image(facts: ServingFacts) -> Iterator[Finding]:
    """An engine runs in an image that contains it: vLLM's own holds no SGLang, nor the reverse.

    Judged are the images that the projects of vLLM and SGLang build, from whatever registry. What
    an image of another builder contains is not known. SGLang's own for AMD contained vLLM up to
    0.4.9.post2, so those releases are not judged.

    Pass: sglang.launch_server in lmsysorg/sglang:v0.5.23; any image of your own.
    Fail: kind vllm, or `vllm serve`, in lmsysorg/sglang:v0.5.23.
    Level: mandatory.
    Source: vllm docker/Dockerfile and requirements of 0.33.0; what the wheels of sglang 0.4.6 to
    0.5.23 require.
    """
    for engine in facts.engines:
        worker = engine.worker if engine.pods != 1 else None
        pods = (engine.entry,) if worker is None else (engine.entry, worker)
        # Of a component both have the one place that the user wrote.
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
