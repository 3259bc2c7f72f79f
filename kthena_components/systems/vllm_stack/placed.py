"""Paths in the values, of a container that a chart makes from them."""

from dataclasses import replace

from kthena_components.core.facts.pod import PodFacts

_MADE = "spec.containers[0]"
"""Path of the engine's container in the pod that is read."""


def placed(pod: PodFacts, path: str, *, image: str) -> PodFacts:
    """Return the facts of a pod of one container, with its paths in the values.

    Args:
        pod: The facts, read from a pod with the container alone.
        path: The values from which the chart makes the container.
        image: The value of its image.
    """
    missing = tuple(replace(key, path=key.path.replace(_MADE, path, 1)) for key in pod.missing)
    if pod.own is None:
        return replace(pod, missing=missing)
    tokens = tuple(
        replace(token, path=token.path.replace(_MADE, path, 1)) for token in pod.own.tokens
    )
    own = replace(pod.own, path=path, image_path=image, tokens=tokens)
    return replace(pod, own=own, missing=missing)
