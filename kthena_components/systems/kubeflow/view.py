"""Reads an MPIJob: a launcher that starts processes on workers, and possibly on itself.

Source: kubeflow/mpi-operator v0.8 pkg/apis/kubeflow/v2beta1/{types,default}.go and
pkg/controller/mpi_job_controller.go (newConfigMap: the host file); kubeflow/training-operator v1.5
pkg/apis/kubeflow.org/v1/mpi_types.go for v1.
"""

from dataclasses import dataclass

from kthena_components.core.objects.object import Object, copies_in
from kthena_components.core.values.read import inside, mapping
from kthena_components.core.values.unknown import MaybeInt

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
