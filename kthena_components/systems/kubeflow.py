"""Kubeflow: MPIJob, of the training operator (v1) and of the MPI operator (v2beta1).

A launcher starts an engine on workers, and possibly on itself.
Source: kubeflow/mpi-operator v0.8 pkg/apis/kubeflow/v2beta1/{types,default}.go and
pkg/controller/mpi_job_controller.go (newConfigMap: the host file); kubeflow/training-operator v1.5
pkg/apis/kubeflow.org/v1/mpi_types.go for v1.
"""

import json
from collections.abc import Iterator
from dataclasses import replace

from kthena_components.core.facts.engine_grouping import engines_among, templates_of
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.workload import admitted_together, pods_of_template
from kthena_components.core.findings import Finding, advise, count_of, refuse
from kthena_components.core.objects.engine_containers import Sketch
from kthena_components.core.objects.object import Object, PodSet, copies_in, pod_set
from kthena_components.core.objects.retained_fields import kept_pods
from kthena_components.core.remedies import either, write
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import inside, mapping, name_of, require_known, whole
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import MaybeBool, MaybeInt, Unknown, total
from kthena_components.systems.system import PRODUCTION, Kind, System

SPECS = "spec.mpiReplicaSpecs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The launcher, or the workers."""

    path: str
    """Path of the template, in the object."""
    template: object
    count: MaybeInt


@dataclass(frozen=True, slots=True, kw_only=True)
class MpiJob:
    """An MPIJob."""

    object: Object
    launcher: Part
    workers: Part
    launches_on_itself: bool
    """Whether the launcher is also in the host file."""


def read_mpi_job(found: Object) -> MpiJob:
    """Read the launcher and the workers, whatever the object contains."""
    specs = inside(found.body.get("spec"), "mpiReplicaSpecs")
    launcher, workers = (inside(specs, name) for name in ("Launcher", "Worker"))
    return MpiJob(
        object=found,
        launcher=_part("Launcher", launcher, 0 if launcher is None else 1),
        workers=_part("Worker", workers, copies_in(mapping(workers).get("replicas"), 0)),
        launches_on_itself=found.spec.get("runLauncherAsWorker") is True,
    )


def _part(name: str, stated: object, count: MaybeInt) -> Part:
    return Part(path=f"{SPECS}.{name}.template", template=inside(stated, "template"), count=count)


def pods(view: MpiJob) -> Iterator[PodSet]:
    """Yield the launcher and the workers."""
    for part in (view.launcher, view.workers):
        if part.count != 0:
            yield pod_set(view.object, part.path, part.template, part.count, by_controller=True)


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

    A launcher that is not a host has no GPUs for it. If it runs TensorRT-LLM's server without
    mpirun, that engine is returned, too, although no worker joins it.
    """
    (launcher, *_), (worker, *_) = (_pod_facts(view, one) for one in (view.launcher, view.workers))
    command = launcher.command
    if command is None or command.engine is None:
        return
    alone = command.engine == "trtllm" and command.mpi_session is False and not command.hidden
    if command.mpi_ranks is None and not (alone and launcher.gpus == 0):
        return
    ours = view.launches_on_itself
    first = launcher if ours else worker
    entry = replace(
        first,
        command=command,
        command_path=launcher.command_path,
        container=first.container or _container_of_gpus(first),
    )
    yield EngineFacts(
        path=view.object.at("spec"),
        name=name_of(view.object.body),
        pods=total((view.workers.count, int(ours))),
        replicas=1,
        entry=entry,
        worker=worker if ours and view.workers.count != 0 else None,
    )


def _pod_facts(view: MpiJob, part: Part) -> list[PodFacts]:
    found = view.object
    return pods_of_template(part.template, found.at(part.path), found.context)


def _container_of_gpus(pod: PodFacts) -> str | None:
    """Return the only container that asks for GPUs. With several, all GPUs count."""
    names = {device.container for device in pod.devices}
    return names.pop() if len(names) == 1 else None


def _placed_together(view: MpiJob) -> MaybeBool:
    policy = mapping(view.object.spec.get("runPolicy")).get("schedulingPolicy")
    return True if policy is not None or admitted_together(view.object.metadata) else _OPERATOR


def mpi_slots(view: MpiJob) -> Iterator[Finding]:
    """The workers of an MPIJob have a slot for each rank that mpirun starts.

    The operator writes each worker into the host file of Open MPI, with slotsPerWorker slots, 1 if
    it is left out. mpirun rejects more ranks than slots. The rule does not check a launcher that
    names its own hosts, or allows more ranks than slots.

    Pass: slotsPerWorker 8, 2 workers, mpirun -n 16.
    Fail: slotsPerWorker 4, or none, with the same workers and ranks.
    Level: mandatory.
    Source: kubeflow/mpi-operator pkg/apis/kubeflow/v2beta1/default.go and
    pkg/controller/mpi_job_controller.go newConfigMap; mpirun(1) of Open MPI.
    """
    at, spec = "spec.slotsPerWorker", view.object.spec
    stated = 1 if spec.get("slotsPerWorker") is None else whole(spec["slotsPerWorker"])
    hosts = total((view.workers.count, int(view.launches_on_itself)))
    words = json.dumps(view.launcher.template, default=str)
    if spec.get("mpiImplementation", "OpenMPI") != "OpenMPI" or _OWN_HOSTS.search(words):
        return
    for engine in _launched(view):
        ranks = None if engine.entry.command is None else engine.entry.command.mpi_ranks
        require_known(at, ranks, stated, hosts, spec.get("runLauncherAsWorker"))
        if not isinstance(ranks, int) or not isinstance(stated, int) or not isinstance(hosts, int):
            return
        if 0 < stated * hosts < ranks:
            yield Finding(
                path=at,
                seen=f"is {stated}, so {count_of(hosts, 'host')} of mpirun have "
                f"{count_of(stated * hosts, 'slot')}, but it starts {count_of(ranks, 'rank')}",
                remedy=write(-(-ranks // hosts)),
            )


def mpi_launcher_gang(view: MpiJob) -> Iterator[Finding]:
    """The gang of an MPIJob does not wait for a launcher that is created when workers are ready.

    With launcherCreationPolicy WaitForWorkersReady the operator creates the launcher when all
    workers are ready. The gang scheduler places no worker before minAvailable pods exist; left out,
    the operator counts the workers and the launcher.

    Pass: WaitForWorkersReady, 2 workers and schedulingPolicy.minAvailable 2; minAvailable 3 without
    WaitForWorkersReady.
    Fail: WaitForWorkersReady, 2 workers and minAvailable 3, or a schedulingPolicy without it.
    Level: mandatory with a schedulingPolicy; otherwise advice for pods with a scheduler of gangs,
    because an option of the operator decides whether they are one.
    Source: kubeflow/mpi-operator v0.5 to v0.8 pkg/controller/mpi_job_controller.go (syncHandler)
    and pkg/controller/podgroup.go (calculateMinAvailable); Volcano v1.14
    pkg/scheduler/plugins/gang/gang.go validJobFn.
    """
    found, at = view.object, "spec.launcherCreationPolicy"
    stated = mapping(found.spec.get("runPolicy")).get("schedulingPolicy")
    policy, workers = found.spec.get("launcherCreationPolicy"), view.workers.count
    require_known(at, policy)
    if found.body.get("apiVersion") != "kubeflow.org/v2beta1" or policy != _WAITS:
        return
    require_known(at, stated, workers, mapping(stated).get("minAvailable"))
    least = whole(mapping(stated).get("minAvailable"))
    spec = mapping(mapping(view.workers.template).get("spec"))
    gang = bool(stated) or spec.get("schedulerName") in _GANG_SCHEDULERS
    if not gang or not isinstance(workers, int) or not workers:
        return
    number = workers + 1 if least is None else least
    if not isinstance(number, int) or number <= workers:
        return
    usual = " by default" if least is None else ""
    seen = f"is {_WAITS}, with which the launcher is created only after the workers are ready, but "
    seen += f"the gang waits for {count_of(number, 'pod')}{usual}, and at first {workers} exist, "
    minimum = "spec.runPolicy.schedulingPolicy.minAvailable"
    fewer = write(workers, f"write minAvailable {workers} in schedulingPolicy", at=minimum)
    report = refuse if stated else advise
    yield report(at, f"{seen}so none of them ever starts", either(write("AtStartup"), fewer))


_WAITS = "WaitForWorkersReady"
_GANG_SCHEDULERS = ("volcano", "scheduler-plugins-scheduler")


_OF_SERVER = r"(?![\s=\",]*(?:0\.0\.0\.0|127\.0\.0\.1|localhost|::))"
"""No host that mpirun could reach, but an address at which trtllm-serve listens."""
_OWN_HOSTS = regex(
    rf"oversubscribe|hostfile|rankfile|machinefile|(?<![\w-])(?:-H|--?hosts?\b{_OF_SERVER})"
)
"""What names other hosts, or allows more ranks than slots."""


def sketch(view: MpiJob) -> Sketch:
    """Return the engine that the launcher starts on the workers."""
    known = ("spec.slotsPerWorker", f"{SPECS}.Launcher.replicas")  # the launcher of the package
    return Sketch(sets=tuple(pods(view)), known=known)


SYSTEM = System(
    name="kubeflow",
    title="Kubeflow MPIJob",
    kinds=(
        Kind(
            group="kubeflow.org",
            name="MPIJob",
            view=read_mpi_job,
            facts=facts,
            pods=pods,
            sketch=sketch,
            rules=(mpi_slots, mpi_launcher_gang),
            templates=tuple(f"{SPECS}.{name}.template" for name in ("Launcher", "Worker")),
            # pkg/controller/mpi_job_controller.go of the MPI operator, and
            # pkg/controller.v1/mpi/mpijob.go of the training operator.
            adds_volumes=("mpi-job-config", "ssh-auth", "mpi-job-kubectl"),
            kept=kept_pods,
            without={
                "restarts": "the operator leaves running pods as they are",
                PRODUCTION: "its launcher starts the engine in other pods",
            },
        ),
    ),
)
