"""The label of nodes that names their GPU, to require it in a node selector."""

from kthena_components.core.hardware.table import Gpu

_PRODUCTS = {
    "NVIDIA-": "nvidia.com/gpu.product",
    "Tesla-": "nvidia.com/gpu.product",
    "AMD_": "amd.com/gpu.product-name",
}
_OF_GKE = {"nvidia-": "cloud.google.com/gke-accelerator"}
_KEYS = {"product": _PRODUCTS, "gke": _OF_GKE}


def node_label(gpu: Gpu, by: str) -> tuple[str, str] | None:
    """Return the key and the value of the label; None if the nodes have none.

    Of several products, the first one in the table of GPUs is the most common one.

    Args:
        gpu: A GPU of the table.
        by: Who labels the nodes: `product` for GPU feature discovery or AMD's node labeller, `gke`.
    """
    for label in gpu.labels:
        for start, key in _KEYS[by].items():
            if label.startswith(start):
                return key, label
    return None
