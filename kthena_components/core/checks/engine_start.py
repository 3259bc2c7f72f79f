"""Whether the pods of an engine can find together when it starts: vLLM's executor, and Ray."""

from collections.abc import Iterator

from kthena_components.core.checks.wording import first_unknown, title, unjudged
from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.images import Image, read_image, shown_image
from kthena_components.core.known import Unknown

STATED_SINCE = (0, 12)
"""The first vLLM that wants the executor of several pods stated."""
WITHOUT_RAY_SINCE = (0, 18)
"""The first vLLM whose own image does not contain Ray."""
STAGES_BROKEN = (0, 12), (0, 21)
"""The first vLLM whose Ray executor mixes up more stages than it can, and the first whose default
executor does not."""
MOST_RAY_STAGES = 3


def executor_stated(facts: ServingFacts) -> Iterator[Finding]:
    """A vLLM engine over several pods states how they join: an executor, or --nnodes.

    With neither, vLLM counts the GPUs of one pod, and refuses to start when a copy of the model
    needs more; up to 0.11 it took Ray by itself where it found Ray. With --nnodes above 1 the
    executor cannot be Ray. Copies that lie within one pod need none of this. One pod alone is
    judged by world-size-equals-gpus.

    Pass: --distributed-executor-backend ray beside a Ray cluster; --nnodes 2 in two pods.
    Fail: tensor 8 × pipeline 2 on pods of 8 GPUs with neither; --nnodes 2 with executor ray.
    Level: mandatory from vLLM 0.12 on; advisory before, and when the image states no version. Ray
    with --nnodes is mandatory.
    Source: vllm/config/parallel.py, __post_init__.
    """
    for engine in facts.engines:
        command = engine.entry.command
        if command is None or command.engine != "vllm" or engine.pods == 1:
            continue
        if command.executor is None and command.nnodes in {None, 1}:
            yield from _not_stated(engine, command)
        else:
            yield from _ray_with_nodes(engine, command)


def _not_stated(engine: EngineFacts, command: CommandFacts) -> Iterator[Finding]:
    copy, gpus = command.per_rank_world, engine.entry.gpus
    unknown = first_unknown(copy, gpus)
    if unknown is not None:
        yield from unjudged(engine, unknown, "executor-stated")
        return
    if not (isinstance(copy, int) and isinstance(gpus, int)) or copy <= gpus:
        return
    image = _image(engine)
    version = image.vllm_version if image else None
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
    if hard:
        return "and vLLM refuses more ranks than one pod has GPUs since 0.12"
    return "which vLLM refuses since 0.12"


def _pods(engine: EngineFacts) -> object:
    return engine.pods if isinstance(engine.pods, int) else "N"


def _ray_with_nodes(engine: EngineFacts, command: CommandFacts) -> Iterator[Finding]:
    executor, nodes = command.executor, command.nnodes
    unknown = first_unknown(executor, nodes)
    if executor is not None and nodes in {None, 1}:
        unknown = None  # Whichever it is, it is stated.
    if nodes is not None and executor in {None, "mp", "uni", "external_launcher"}:
        unknown = None
    if unknown is not None:
        yield from unjudged(engine, unknown, "executor-stated")
    elif executor == "ray" and isinstance(nodes, int) and nodes > 1:
        yield Finding(
            path=engine.entry.command_path,
            seen=f"{title(engine)} has --nnodes {nodes} with the executor ray, and vLLM joins "
            "such nodes with mp, uni or external_launcher only",
            remedy="write --distributed-executor-backend mp, or remove --nnodes, --node-rank and "
            "--master-addr",
            rule="executor-stated",
        )


def ray_in_image(facts: ServingFacts) -> Iterator[Finding]:
    """An engine that Ray joins runs an image that contains Ray: vLLM's own does up to 0.17.

    Images of other builders are not judged: what they contain is not known. Advisory, because the
    command may install Ray before it starts it.

    Pass: vllm/vllm-openai:v0.10.1 with multi-node-serving.sh; any image of your own with Ray in it.
    Fail: vllm/vllm-openai:v0.18.0 with multi-node-serving.sh or the executor ray.
    Level: advisory.
    Source: vllm docker/Dockerfile and requirements/cuda.txt of 0.18.0.
    """
    for engine in facts.engines:
        command, image = engine.entry.command, _image(engine)
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
    return command.ray_role is not None or (command.engine == "vllm" and asked)


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
            seen=f"{title(engine)} joins its pods with Ray, but '{shown_image(name)}' does not "
            "contain it: vLLM's image has no Ray since 0.18",
            remedy="use an image with Ray in it, or join the pods with --nnodes and --node-rank",
            rule="ray-in-image",
            level=Level.ADVISORY,
        )


def pp_with_ray(facts: ServingFacts) -> Iterator[Finding]:
    """A vLLM of 0.12 to 0.20 that Ray joins has at most 3 pipeline stages.

    After Ray has sorted the workers, each takes the KV cache layout of another stage, and the
    engine ends with a KeyError. Ray's new executor, the default since 0.21, does not. An engine
    whose image states no version of vLLM is not judged. VLLM_USE_RAY_V2_EXECUTOR_BACKEND, which
    turns the new executor on before that, is not looked at.

    Pass: pipeline 3 with v0.19.1; pipeline 4 with v0.11.0 or v0.21.0; pipeline 8 with --nnodes.
    Fail: pipeline 4 with the executor ray and vllm/vllm-openai:v0.19.1.
    Level: advisory.
    Source: vllm-project/vllm#23691, #30128, #41287, fixed by #36836; kaito-project/kaito#2121,
    kaito-project/kaito#2279.
    """
    for engine in facts.engines:
        command, image = engine.entry.command, _image(engine)
        version = image.vllm_version if image else None
        if command is None or command.engine != "vllm" or version is None:
            continue
        first, fixed = STAGES_BROKEN
        ray = command.executor == "ray"
        stages = command.pipeline
        if not (ray and first <= version < fixed):
            continue
        if isinstance(stages, Unknown):
            yield from unjudged(engine, stages, "pp-with-ray")
        elif stages > MOST_RAY_STAGES:
            yield Finding(
                path=engine.entry.command_path,
                seen=f"{title(engine)} has {stages} pipeline stages that Ray joins, and vLLM "
                f"{version[0]}.{version[1]} mixes up the layers of more than {MOST_RAY_STAGES}",
                remedy="use vLLM 0.21 or later, or join the pods with --nnodes and --node-rank",
                rule="pp-with-ray",
                level=Level.ADVISORY,
            )


def _image(engine: EngineFacts) -> Image | None:
    name = engine.entry.own.image if engine.entry.own else None
    return read_image(name) if isinstance(name, str) else None
