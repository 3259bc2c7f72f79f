"""The shapes that are worth a look: how an engine's ranks can be spread over pods and GPUs."""

from collections.abc import Callable, Iterator

from kthena_components.core.memory.sharding import divisors
from kthena_components.core.models import ModelShape
from kthena_components.core.values.dataclass import dataclass

_NEIGHBOURS = 8
"""Up to this many pods each number is looked at, and from there on powers of two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One engine: its pods, and how it is split over their GPUs."""

    pods: int = 1
    gpus_per_pod: int = 1
    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    expert: bool = False
    """Whether whole experts are on GPUs, instead of slices of each."""
    decode_context: int = 1
    """Ranks of a tensor group that share the tokens of the cache."""

    @property
    def gpus(self) -> int:
        """All GPUs of the engine."""
        return self.pods * self.gpus_per_pod

    @property
    def expert_ranks(self) -> int:
        """Ranks that share the experts, each of them whole; 0 if every expert is sliced."""
        return self.tensor * self.data if self.expert else 0

    @property
    def spans_pods(self) -> bool:
        """Whether the ranks of one tensor group are on several pods."""
        return self.tensor > self.gpus_per_pod

    @property
    def sizes(self) -> str:
        """Write the parallelism as the table of `up` does."""
        return f"{self.tensor} × {self.pipeline} × {self.data}"

    @property
    def title(self) -> str:
        """Name the shape in a message."""
        words = ", experts whole" if self.expert else ""
        words += f", decode context {self.decode_context}" if self.decode_context > 1 else ""
        return f"{self.sizes} on {self.pods} × {self.gpus_per_pod}{words}"


def pod_counts(most: int) -> Iterator[int]:
    """Return numbers of pods, smallest first."""
    pods = 1
    while pods <= most:
        yield pods
        pods += 1 if pods < _NEIGHBOURS else pods


def shapes_on(
    pods: int,
    gpus_per_node: int,
    model: ModelShape,
    divides: Callable[[int], bool],
    *,
    has_data: bool,
    has_decode: bool,
) -> Iterator[Shape]:
    """Return the shapes on a number of pods: one pod has a part of a node, several have whole ones.

    Args:
        pods: Pods of one engine.
        gpus_per_node: GPUs of one node.
        model: The model.
        divides: Whether the model divides over so many ranks of a tensor group.
        has_data: Whether the engine spreads experts over copies of the other layers.
        has_decode: Whether the engine shares the tokens of the cache inside a tensor group.
    """
    parts = divisors(gpus_per_node) if pods == 1 else [gpus_per_node]
    for part in parts:
        for tensor, pipeline in _splits(pods, part, divides):
            one = Shape(pods=pods, gpus_per_pod=part, tensor=tensor, pipeline=pipeline)
            yield from _variants(one, model, has_decode=has_decode)
        if has_data and model.experts:
            yield from _copies(pods, part, divides)


def _splits(pods: int, part: int, divides: Callable[[int], bool]) -> Iterator[tuple[int, int]]:
    """Return tensor and pipeline sizes.

    Over several pods, a tensor group is as large as a pod allows, or has all ranks.
    """
    ranks = pods * part
    inside = divisors(part)
    if pods > 1:
        inside = [max((size for size in inside if divides(size)), default=1), ranks]
    for tensor in dict.fromkeys(inside[::-1]):
        yield tensor, ranks // tensor


def _variants(one: Shape, model: ModelShape, *, has_decode: bool) -> Iterator[Shape]:
    sizes = {"pods": one.pods, "gpus_per_pod": one.gpus_per_pod}
    sizes |= {"tensor": one.tensor, "pipeline": one.pipeline}
    yield one
    if model.experts and one.tensor > 1:
        yield Shape(**sizes, expert=True)
    copies = copies_of_a_token(model, one.tensor)
    shared = copies > 1 and one.tensor % copies == 0
    if has_decode and shared and one.pipeline == 1:
        yield Shape(**sizes, decode_context=copies, expert=bool(model.experts))


def copies_of_a_token(model: ModelShape, tensor: int) -> int:
    """Return on how many ranks of a tensor group the same part of a token is stored."""
    if model.latent is not None:
        return tensor
    return max(tensor // model.kv_heads, 1) if model.kv_heads else 1


def _copies(pods: int, part: int, divides: Callable[[int], bool]) -> Iterator[Shape]:
    """Return shapes with copies of all layers but the experts: one per pod, or one per GPU."""
    for tensor in dict.fromkeys((1, part if pods > 1 else 1)):
        data = pods * part // tensor
        if data > 1 and divides(tensor):
            yield Shape(pods=pods, gpus_per_pod=part, tensor=tensor, data=data, expert=True)
