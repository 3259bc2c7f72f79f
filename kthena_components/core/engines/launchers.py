"""Who joins the pods of an engine when nobody says so: decided by what its release can do."""

from kthena_components.core.engines.vllm_launch import NNODES_SINCE
from kthena_components.core.values.images import Version, read_image
from kthena_components.core.values.unknown import is_unresolved


def stated_release(kind: str, image: str) -> Version | None:
    """Give the release of an engine that an image states.

    None where it states none: the image of somebody else, a tag that moves, or an output, of
    which only the deployment knows the rest.
    """
    return None if is_unresolved(image) else read_image(image).release_of(kind)


def default_launcher(kind: str, release: Version | None, data: int) -> str:
    """Choose a launcher: native wherever the engine can join its pods by itself, else ray.

    Args:
        kind: vllm or sglang.
        release: the engine's release; None is taken for the newest.
        data: copies of the model in the engine. vLLM joins copies that lie within pods without
            --nnodes, and could do that before it had --nnodes.
    """
    old = release is not None and release < NNODES_SINCE
    return "ray" if kind == "vllm" and data == 1 and old else "native"
