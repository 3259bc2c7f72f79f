"""Counts the accelerators of servings whose pods are not in the manifest."""

from dataclasses import dataclass

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.values.arithmetic import product, total
from kthena_components.core.values.unknown import MaybeInt, Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuDemand:
    """The accelerators of an object without pod templates."""

    gpus: MaybeInt
    """Accelerators of all its pods."""
    resources: frozenset[str] = frozenset()
    """Their resource names."""


def gpu_demand(facts: ServingFacts) -> GpuDemand:
    """Add up the accelerators of all engines of a serving, with all their replicas."""
    one: MaybeInt = 0
    for engine in facts.engines:
        one = total((one, product(engine.replicas, all_gpus_of(engine))))
    pods = [pod for e in facts.engines for pod in (e.entry, e.worker) if pod is not None]
    return GpuDemand(gpus=product(facts.copies, one), resources=frozenset(_resources(pods)))


def all_gpus_of(engine: EngineFacts) -> MaybeInt:
    """Count the accelerators of all pods of one engine, over all their containers."""
    entry = engine.entry.all_gpus
    if engine.worker is None:
        return product(engine.pods, entry)
    workers = engine.pods if isinstance(engine.pods, Unknown) else max(engine.pods - 1, 0)
    return total((entry, product(workers, engine.worker.all_gpus)))


def _resources(pods: list[PodFacts]) -> list[str]:
    return [d.resource for pod in pods for d in pod.devices if "/" in d.resource]


def ranks_of(engine: EngineFacts, command: CommandFacts) -> MaybeInt:
    """Count the ranks of all pods of an engine."""
    per_rank, pods = command.per_rank_world, engine.pods
    if isinstance(command.data_mode, Unknown):
        return command.data_mode
    if command.data_mode == "internal":
        return command.world
    here = command.data_local if command.data_mode == "hybrid" else 1
    for value in (per_rank, pods, here):
        if isinstance(value, Unknown):
            return value
    if not (isinstance(per_rank, int) and isinstance(pods, int) and isinstance(here, int)):
        return Unknown("--data-parallel-size-local is not stated")
    return per_rank * here * pods


def gpus_of(engine: EngineFacts) -> MaybeInt:
    """Count the GPUs of all pods of an engine."""
    pods, entry = engine.pods, engine.entry.gpus
    if isinstance(pods, Unknown) or isinstance(entry, Unknown):
        return pods if isinstance(pods, Unknown) else entry
    worker = engine.worker.gpus if engine.worker else entry
    if isinstance(worker, Unknown) and pods > 1:
        return worker
    return entry + (pods - 1) * worker if isinstance(worker, int) else entry
