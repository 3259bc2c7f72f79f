"""The sizes in a workerSpec from which KServe calculates exactly the pods of a plan."""

from dataclasses import dataclass

from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.plan.serving_plan import RolePlan
from kthena_components.core.templates import Template
from kthena_components.core.values.quantity import parse_quantity
from kthena_components.systems.kserve.nodes import RayNodes, Shortage, compute_ray_nodes
from kthena_components.systems.kserve.templates import main_container
from kthena_components.systems.kserve.view import GPU_TYPES


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """An engine's GPUs, and the parallel sizes that describe it to KServe."""

    head_gpus: int
    worker_gpus: int
    tensor: int
    pipeline: int

    @property
    def made(self) -> RayNodes | Shortage:
        """The pods that KServe creates for them."""
        total = self.tensor * self.pipeline
        return compute_ray_nodes(total, self.worker_gpus, self.head_gpus)

    def fit(self, pods: int) -> bool:
        """Return whether KServe creates this number of pods, with these GPUs."""
        wanted = RayNodes(pods=pods, worker_gpus=self.worker_gpus, head_gpus=self.head_gpus)
        return self.made == wanted


def gpus_of(template: Template) -> int | None:
    """Count the GPUs that the engine's container requests; None without a count of one type."""
    amounts = (main_container(template).get("resources") or {}).get("requests") or {}
    stated = [parse_quantity(amounts[name]) for name in GPU_TYPES if name in amounts]
    if len(stated) != 1 or stated[0] is None or stated[0] != stated[0].to_integral_value():
        return None
    return int(stated[0])


def read_sizes(role: RolePlan) -> Sizes | None:
    """Return the sizes of the engine's command, or some that fit if it does not state them.

    None without GPUs in both pods: KServe would give each pod one.
    """
    head, worker = gpus_of(role.entry), gpus_of(role.worker or {"spec": {"containers": [{}]}})
    if not head or not worker:
        return None
    command = read_pod(role.entry, "").command
    if command is not None and command.engine is not None:
        tensor, pipeline = command.tensor, command.pipeline
        if isinstance(tensor, int) and isinstance(pipeline, int):
            return Sizes(head_gpus=head, worker_gpus=worker, tensor=tensor, pipeline=pipeline)
    ranks = head + worker * role.worker_replicas
    tensor = worker if ranks % worker == 0 else 1
    return Sizes(head_gpus=head, worker_gpus=worker, tensor=tensor, pipeline=ranks // tensor)


def sizes_of(role: RolePlan) -> tuple[int, int] | None:
    """Return tensorParallelSize and pipelineParallelSize."""
    sizes = read_sizes(role)
    return None if sizes is None else (sizes.tensor, sizes.pipeline)
