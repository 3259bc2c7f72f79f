"""Reads kinds whose spec is one container (image, args, env)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kthena_components.core.facts.container import SHM_PATH
from kthena_components.core.facts.context import NO_CONTEXT, Context
from kthena_components.core.facts.pod import PodFacts, read_pod
from kthena_components.core.facts.relocation import relocated
from kthena_components.core.facts.workload import fill_requests

_CONTAINER = "spec.containers[0]"
SHARED_MEMORY: Mapping[str, Any] = {"name": "dshm", "emptyDir": {"medium": "Memory"}}
"""The volume that some controllers always add, mounted at /dev/shm (MOUNTED)."""
MOUNTED: Mapping[str, Any] = {"name": "dshm", "mountPath": SHM_PATH}


def read_single(
    container: Mapping[str, Any],
    places: Mapping[str, str],
    at: Callable[[str], str],
    *,
    volumes: Sequence[object] = (),
    context: Context = NO_CONTEXT,
) -> PodFacts:
    """Read the pod that a controller makes of one container.

    Args:
        container: The container as the controller writes it.
        places: Path of each of its fields in the object, and of the rest under an empty key.
        at: Returns the path in the caller's input for a path in the object.
        volumes: The volumes of the pod.
        context: The context of the object.
    """

    def place(path: str) -> str:
        inner = path.removeprefix(_CONTAINER).removeprefix(".")
        field = next((f for f in places if f and inner.startswith(f)), "")
        rest = inner.removeprefix(field)
        to = places.get(field, "")
        joined = f"{to}.{rest}" if to and rest and not rest.startswith((".", "[")) else to + rest
        return at(joined)

    template = {"spec": {"containers": [container], "volumes": list(volumes)}}
    return fill_requests(relocated(read_pod(template, "", context=context), place))
