"""The scores by which the scheduler prefers nodes and HyperNodes.

Source: Volcano v1.14.1 pkg/scheduler/plugins/{nodeorder,binpack,network-topology-aware}, and
Kubernetes 1.34 pkg/scheduler/framework/plugins/noderesources/{least_allocated,
balanced_allocation}.go. Preferred affinities, soft taints, images and the spread of Services are
not modelled: they are equal for most nodes, and change no verdict of a single group.
"""

import math
from collections.abc import Mapping

from kthena_components.core.values.dataclass import dataclass
from kthena_components.placement.model import Scheduler
from kthena_components.placement.volcano.amounts_and_shapes import CPU, MEMORY, Dimensions, Vector

_FULL = 100.0
_GPU = "nvidia.com/gpu"
_TOPOLOGY = "network-topology-aware"
_USUAL = {CPU: 100, MEMORY: 200 * 1024 * 1024}
"""What a container without requests counts for (GetNonzeroRequests)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """The weights of a scheduler's config, by position in a vector."""

    least: float
    balanced: float
    cpu: int
    memory: int
    gpu: int | None
    usual: tuple[int, int]
    packing: float
    packed: Mapping[int, float]
    topology: float
    in_hyper_nodes: Mapping[int, float]
    plain_pods: bool
    """Whether pods without a topology prefer full HyperNodes, too."""
    fading: float

    def of_node(self, request: Vector, used: Vector, allocatable: Vector) -> float:
        """Score a node for a pod, without its HyperNodes."""
        score = 0.0
        if self.least:
            score += self.least * self._least_allocated(request, used, allocatable)
        if self.balanced:
            score += self.balanced * self._balanced(request, used, allocatable)
        if self.packing:
            score += self.packing * _FULL * packed(self.packed, request, used, allocatable)
        return score

    def _least_allocated(self, request: Vector, used: Vector, allocatable: Vector) -> int:
        """Score a node for spreading: the mean free share of CPU and memory, from 0 to 100."""
        found, number = 0, 0
        for at, usual in zip((self.cpu, self.memory), self.usual, strict=True):
            capacity = allocatable[at]
            if capacity:
                wanted = used[at] + (request[at] or usual)
                found += (capacity - wanted) * 100 // capacity if wanted <= capacity else 0
                number += 1
        return found // number if number else 0

    def _balanced(self, request: Vector, used: Vector, allocatable: Vector) -> int:
        """Score a node for balance: 100 less the deviation of its shares (CPU, memory, GPU)."""
        asked = [self.cpu, self.memory]
        if self.gpu is not None and request[self.gpu]:
            asked.append(self.gpu)
        if not any(request[at] for at in asked):
            return 0
        parts = [
            min(1.0, (used[at] + request[at]) / allocatable[at]) for at in asked if allocatable[at]
        ]
        if len(parts) < 2:  # noqa: PLR2004 - one part has no deviation
            return 100
        mean = sum(parts) / len(parts)
        deviation = math.sqrt(sum((part - mean) ** 2 for part in parts) / len(parts))
        return int((1 - deviation) * 100)

    def of_hyper_node(self, request: Vector, used: Vector, allocatable: Vector) -> float:
        """Score a HyperNode by how full it would be: from 0 to 1."""
        return packed(self.in_hyper_nodes, request, used, allocatable)


def packed(
    weights: Mapping[int, float], request: Vector, used: Vector, allocatable: Vector
) -> float:
    """Score by the share that would be used. 0 if a resource does not suffice."""
    score, weight = 0.0, 0.0
    for at, each in weights.items():
        if not request[at]:
            continue
        wanted, capacity = used[at] + request[at], allocatable[at]
        if wanted > capacity:
            return 0.0
        score += each * wanted / capacity
        weight += each
    return score / weight if weight else 0.0


def read_scores(scheduler: Scheduler, dimensions: Dimensions) -> Scores:
    """Read the weights of a scheduler's plugins, with their defaults."""
    names = dimensions.names
    order = _Arguments(scheduler, "nodeorder")
    topology = _Arguments(scheduler, _TOPOLOGY)
    packing = _Arguments(scheduler, "binpack")
    return Scores(
        least=order.number("leastrequested.weight"),
        balanced=order.number("balancedresource.weight"),
        cpu=names.index(CPU), memory=names.index(MEMORY),
        gpu=names.index(_GPU) if _GPU in names else None,
        usual=(_USUAL[CPU], _USUAL[MEMORY]),
        packing=packing.number("binpack.weight"),
        packed=packing.weights("binpack", names),
        topology=topology.number("weight") * _FULL,
        in_hyper_nodes=topology.weights("hypernode.binpack", names),
        plain_pods=topology.text("hypernode.binpack.normal-pod.enable", "true") == "true",
        fading=topology.number("hypernode.binpack.normal-pod.fading", 0.8),
    )  # fmt: skip


class _Arguments:
    """Reads the arguments of one plugin. A plugin that does not run has no weight."""

    def __init__(self, scheduler: Scheduler, plugin: str) -> None:
        self._runs = plugin in scheduler.plugins
        self._stated = scheduler.arguments.get(plugin, {})

    def text(self, name: str, default: str) -> str:
        return str(self._stated.get(name, default)).lower()

    def number(self, name: str, default: float = 1.0) -> float:
        if not self._runs:
            return 0.0
        try:
            found = float(self._stated.get(name, default))
        except ValueError:
            return default
        return found if found >= 0 and math.isfinite(found) else default

    def weights(self, prefix: str, names: tuple[str, ...]) -> dict[int, float]:
        """Read the weight of each resource; CPU and memory have one, others must be listed."""
        listed = str(self._stated.get(f"{prefix}.resources", "")).split(",")
        others = {name.strip(): f"{prefix}.resources.{name.strip()}" for name in listed}
        stated = {CPU: f"{prefix}.cpu", MEMORY: f"{prefix}.memory", **others}
        return {at: self.number(stated[name]) for at, name in enumerate(names) if name in stated}
