"""The pods of an MPIJob."""

from collections.abc import Iterator

from kthena_components.core.objects.engine_sketch import Sketch
from kthena_components.core.objects.object import PodSet, pod_set
from kthena_components.systems.kubeflow.view import SPECS, MpiJob


def pods(view: MpiJob) -> Iterator[PodSet]:
    """Yield the launcher and the workers."""
    for part in (view.launcher, view.workers):
        if part.count != 0:
            yield pod_set(view.object, part.path, part.template, part.count, by_controller=True)


def sketch(view: MpiJob) -> Sketch:
    """Return the engine that the launcher starts on the workers."""
    known = ("spec.slotsPerWorker", f"{SPECS}.Launcher.replicas")  # the launcher of the package
    return Sketch(sets=tuple(pods(view)), known=known)
