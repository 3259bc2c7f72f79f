"""Kubeflow: MPIJob, of the training operator (v1) and of the MPI operator (v2beta1)."""

from kthena_components.core.objects.retained_fields import kept_pods
from kthena_components.systems.contract import PRODUCTION, Kind, System
from kthena_components.systems.kubeflow.facts import facts
from kthena_components.systems.kubeflow.pods import pods, sketch
from kthena_components.systems.kubeflow.view import read_mpi_job

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
            templates=tuple(
                f"spec.mpiReplicaSpecs.{name}.template" for name in ("Launcher", "Worker")
            ),
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
