"""The facts of an MPIJob, whose launcher starts an engine on the workers."""

from collections.abc import Iterator
from dataclasses import replace

from kthena_components.core.facts.engine_grouping import engines_among, templates_of
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.workload import admitted_together, pods_of_template
from kthena_components.core.values.arithmetic import total
from kthena_components.core.values.read import mapping, name_of
from kthena_components.core.values.unknown import MaybeBool, Unknown
from kthena_components.systems.kubeflow.view import MpiJob, Part

_OPERATOR = Unknown("an option of the MPI operator decides whether pods are a gang")


def facts(view: MpiJob) -> ServingFacts:
    """Read the facts of an MPIJob."""
    found = view.object
    started = list(_launched(view))
    parts = [
        part
        for one, name in ((view.launcher, "launcher"), (view.workers, "worker"))
        for part in templates_of(one.template, found.at(one.path), name, one.count, found.context)
    ]
    return ServingFacts(
        path=found.at("spec"),
        name=name_of(found.body),
        engines=tuple(started) or engines_among(parts, found.context),
        gang_expected=_placed_together(view),
    )


def _launched(view: MpiJob) -> Iterator[EngineFacts]:
    """Return the engine that mpirun starts on all hosts; nothing if the launcher starts none.

    A launcher that is no host has no GPUs for it.
    """
    (launcher, *_), (worker, *_) = (_pods(view, one) for one in (view.launcher, view.workers))
    command = launcher.command
    if command is None or command.engine is None or command.mpi_ranks is None:
        return
    ours = view.launches_on_itself
    entry = replace(
        launcher if ours else worker,
        command=command,
        command_path=launcher.command_path,
        container=(launcher if ours else worker).container or _name(launcher if ours else worker),
    )
    yield EngineFacts(
        path=view.object.at("spec"),
        name=name_of(view.object.body),
        pods=total((view.workers.count, int(ours))),
        replicas=1,
        entry=entry,
        worker=worker if ours and view.workers.count != 0 else None,
    )


def _pods(view: MpiJob, part: Part) -> list[PodFacts]:
    found = view.object
    return pods_of_template(part.template, found.at(part.path), found.context)


def _name(pod: PodFacts) -> str | None:
    """Return the only container that asks for GPUs. With several, all GPUs count."""
    names = {device.container for device in pod.devices}
    return names.pop() if len(names) == 1 else None


def _placed_together(view: MpiJob) -> MaybeBool:
    policy = mapping(view.object.spec.get("runPolicy")).get("schedulingPolicy")
    return True if policy is not None or admitted_together(view.object.metadata) else _OPERATOR
