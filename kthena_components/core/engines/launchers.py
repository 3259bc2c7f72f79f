"""Chooses what connects the pods of an engine if the user does not, by its release."""

from kthena_components.core.engines.vllm_launch import NNODES_SINCE
from kthena_components.core.values.images import Version, read_image
from kthena_components.core.values.unknown import is_unresolved


def stated_release(kind: str, image: str) -> Version | None:
    """Return the engine's release that an image states.

    None if it states none: a third-party image, a moving tag, or an output that only the deployment
    knows.
    """
    return None if is_unresolved(image) else read_image(image).release_of(kind)


def default_launcher(kind: str, release: Version | None, data: int) -> str:
    """Choose a launcher: native if the engine can connect its pods by itself, else ray or mpi.

    Args:
        kind: vllm, sglang or trtllm.
        release: The engine's release; None means the newest.
        data: Copies of the model in the engine. vLLM connects copies that fit into pods without
            --nnodes, and could do so before it had --nnodes.
    """
    if kind == "trtllm":
        return "mpi"
    old = release is not None and release < NNODES_SINCE
    return "ray" if kind == "vllm" and data == 1 and old else "native"
