"""Checks that Ray counts the GPUs that a pod has."""

from collections.abc import Iterator

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ranks_of
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.remedies import either, set_option, without
from kthena_components.core.rules.support.engine_pods import pods_of
from kthena_components.core.rules.support.messages import (
    cannot_check,
    each_engine,
    part_of_engine,
    title,
)
from kthena_components.core.values.unknown import known

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
            yield from _stated(engine, pod, pod.command)


@part_of_engine
def _stated(engine: EngineFacts, pod: PodFacts, command: CommandFacts) -> Iterator[Finding]:
    stated, held = command.ray_gpus, pod.gpus
    own = [device for device in pod.devices if device.container in {None, pod.container}]
    if not isinstance(held, int) or not all(d.resource.endswith(_GPU) for d in own):
        return
    stated = known(stated, pod.command_path)
    if isinstance(stated, int) and isinstance(command.devices, str):
        named = len([item for item in command.devices.split(",") if item.strip()])
        if stated > named:
            told = f"CUDA_VISIBLE_DEVICES names {named}, so Ray exits"
            yield _wrong(engine, pod, stated, told, most=min(named, held))
    elif isinstance(stated, int) and stated > held and pod.sees_more is not None:
        yield from cannot_check(engine, pod.sees_more, path=pod.command_path)
    elif isinstance(stated, int) and stated != held:
        few = held == 0 or (stated < held and not _needs_more(engine))
        what = (
            "the rest stays idle" if stated < held else "Ray places ranks on GPUs that do not exist"
        )
        told = f"its container has {count_of(held, 'GPU')}: {what}"
        yield _wrong(engine, pod, stated, told, Level.ADVISORY if few else Level.MANDATORY)


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


def _wrong(
    engine: EngineFacts,
    pod: PodFacts,
    stated: int,
    told: str,
    level: Level = Level.MANDATORY,
    *,
    most: int | None = None,
) -> Finding:
    shown = pod.gpus if most is None else most
    return Finding(
        path=pod.command_path,
        seen=f"{title(engine)} starts Ray with --num-gpus {stated}, but {told}",
        remedy=either(without("--num-gpus"), set_option("--num-gpus", shown, f"write {shown}")),
        level=level,
    )
