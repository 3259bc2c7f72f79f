"""Facts of a pod in the coordinates of the object that its parts were written in."""

from collections.abc import Callable
from dataclasses import replace

from kthena_components.core.facts.container import ContainerFacts
from kthena_components.core.facts.pod import PodFacts


def relocated(pod: PodFacts, place: Callable[[str], str]) -> PodFacts:
    """Give the same facts with every path replaced.

    Args:
        pod: Facts with paths in a pod template.
        place: Gives the path in the object for a path in the template.
    """

    def container(own: ContainerFacts) -> ContainerFacts:
        return replace(
            own,
            path=place(own.path),
            image_path=place(own.image_path),
            tokens=tuple(replace(token, path=place(token.path)) for token in own.tokens),
        )

    return replace(
        pod,
        gpus_path=place(pod.gpus_path),
        command_path=place(pod.command_path),
        devices=tuple(replace(device, path=place(device.path)) for device in pod.devices),
        missing=tuple(replace(key, path=place(key.path)) for key in pod.missing),
        own=container(pod.own) if pod.own is not None else None,
        others=tuple(map(container, pod.others)),
    )
