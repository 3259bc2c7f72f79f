"""KServe's distribution of an engine's GPUs to pods.

Source: kserve pkg/controller/v1beta1/inferenceservice/components/predictor.go.
"""

from kthena_components.core.values.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RayNodes:
    """The pods that KServe creates for one engine, and their GPUs."""

    pods: int
    worker_gpus: int
    head_gpus: int

    @property
    def held(self) -> int:
        """GPUs of all pods together."""
        return self.head_gpus + self.worker_gpus * (self.pods - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """Requests that KServe does not deploy: fewer GPUs than ranks."""

    nodes: RayNodes


def compute_ray_nodes(
    total: int, worker_gpus: int | None, head_gpus: int | None
) -> RayNodes | Shortage:
    """Distribute the GPUs as KServe does with Ray: computeRayNodeAndGPUs.

    Args:
        total: tensor × pipeline, 1 or more.
        worker_gpus: GPUs that the worker container requests; 0 and None are equal.
        head_gpus: GPUs that the head container requests.
    """
    worker, head = worker_gpus or 0, head_gpus or 0
    if worker > 0:
        pods = -(-total // worker)
        if head <= 0:
            head = total - worker * (pods - 1)
        elif head >= total:
            pods = 1
        if pods == 1:
            worker, head = 0, total
    elif head > 0:
        worker, pods = 1, 1 + max(0, total - head)
    else:
        pods, worker, head = total, 1, 1
    nodes = RayNodes(pods=pods, worker_gpus=worker, head_gpus=head)
    return Shortage(nodes=nodes) if total > nodes.held else nodes


def compute_mp_nodes(tensor: int, pipeline: int) -> RayNodes:
    """Distribute the GPUs as KServe does without Ray: a pod per stage, whatever is requested."""
    return RayNodes(pods=pipeline, worker_gpus=tensor, head_gpus=tensor)
