"""Paths in the values, of a container that a chart makes from them."""

from dataclasses import replace

from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.workload import relocated

_MADE = "spec.containers[0]"
"""Path of the engine's container in the pod that is read."""


def placed(pod: PodFacts, path: str, *, image: str) -> PodFacts:
    """Return the facts of a pod of one container, with its paths in the values.

    Args:
        pod: The facts, read from a pod with the container alone.
        path: The values from which the chart makes the container.
        image: The value of its image.
    """
    pod = relocated(pod, lambda at: at.replace(_MADE, path, 1))
    return replace(pod, own=pod.own and replace(pod.own, image_path=image))
