"""The question of `size` about a model, and the shapes to try."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kthena_components.core.engines.option_table import release_for
from kthena_components.core.engines.sglang import IMAGE as SGLANG_IMAGE
from kthena_components.core.engines.vllm_launch import IMAGE as VLLM_IMAGE
from kthena_components.core.hardware import GpuFacts
from kthena_components.core.memory.sharding import divisors
from kthena_components.core.memory.states_and_drafts import without_draft
from kthena_components.core.models import ModelShape
from kthena_components.core.spec.enums import EngineKind
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.images import read_image

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
    """List a shape with its variants: expert parallelism and decode context parallelism."""
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


DEFAULT_RESOURCE = "nvidia.com/gpu"
_LONGEST_NAME = 32
_IMAGES = {
    EngineKind.VLLM: f"{VLLM_IMAGE}:v",
    EngineKind.SGLANG: f"{SGLANG_IMAGE}:v",
    EngineKind.TRTLLM: "nvcr.io/nvidia/tensorrt-llm/release:",
}
_ROCM = f"{VLLM_IMAGE}-rocm:v"
_LENGTH_FLAGS = {
    EngineKind.VLLM: "--max-model-len",
    EngineKind.SGLANG: "--context-length",
    EngineKind.TRTLLM: "--max_seq_len",
}
CACHE_FLAGS = {
    EngineKind.VLLM: "--kv-cache-dtype",
    EngineKind.SGLANG: "--kv-cache-dtype",
    EngineKind.TRTLLM: "--kv_cache_dtype",
}
"""The option for the type of the KV cache."""
_DECODE_FLAGS = {EngineKind.VLLM: "--decode-context-parallel-size", EngineKind.SGLANG: "--dcp-size"}
"""The option that shares the tokens of the cache inside a tensor group, where an engine has one."""


def newest_image(engine: EngineKind, resource: str = DEFAULT_RESOURCE) -> str:
    """Return the image of an engine's newest known release, of vLLM also for GPUs of AMD."""
    start = _ROCM if (engine, resource) == (EngineKind.VLLM, "amd.com/gpu") else _IMAGES[engine]
    return f"{start}{release_for(engine, None).text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question. Everything in it was read and is valid."""

    model: ModelShape
    gpu: GpuFacts
    resource: str = DEFAULT_RESOURCE
    """The extended resource by which pods request the GPU."""
    gpu_word: str = ""
    """The GPU as `resources.gpu` names it. Empty: the serving names none."""
    nodes: int = 4
    gpus_per_node: int = 8
    context: int | None = None
    """Tokens of each request. None: the model's maximum."""
    cache_type: str | None = None
    """The type of the KV cache, as the engine calls it. None: the engine's default."""
    requests: int | None = None
    """Requests of that length that must fit at once, over all engines. None: one per engine."""
    engine: EngineKind = EngineKind.VLLM
    image: str
    hf_config: Mapping[str, Any] | None = None
    """The model's config.json, if it is not in the table of models."""
    price: float | None = None
    """Price of one GPU for an hour."""

    @property
    def loaded_gib(self) -> float:
        """GiB of weights that the shapes load: without layers that only draft tokens."""
        return without_draft(self.model).weights_gib or 0.0

    @property
    def lacks_image(self) -> str:
        """Why the image does not run on the GPU. Empty: it does, or that is not known."""
        image = read_image(self.image)
        on_sglang = image.engine == "sglang" and not (image.tag or "").count("-")
        if self.resource == DEFAULT_RESOURCE or not (image.is_vllm or on_sglang):
            return ""
        return f"{self.image} is for GPUs of NVIDIA: name an image for {self.gpu.name} with --image"

    @property
    def decode_flag(self) -> str | None:
        """The option for decode context parallelism; None if the engine has none."""
        return _DECODE_FLAGS.get(self.engine)

    def args(self, shape: Shape, *, engines: int = 1, backend: str = "native") -> dict[str, Any]:
        """Return the arguments of a ModelServing with engines of this shape."""
        args: dict[str, Any] = {"name": _name_of(self.model.name), "backend": backend}
        if engines > 1:
            args["replicas"] = engines
        return {**args, "roles": [self._role(shape)]}

    def _role(self, shape: Shape) -> dict[str, Any]:
        """Write the role of a shape for the compiler."""
        resources: dict[str, Any] = {"gpus_per_pod": shape.gpus_per_pod}
        if self.resource != DEFAULT_RESOURCE:
            resources["gpu_resource"] = self.resource
        if self.gpu_word:
            resources["gpu"] = self.gpu_word
        role: dict[str, Any] = {
            "name": "serve", "engine": self._engine(shape), "resources": resources,
        }  # fmt: skip
        return role if shape.pods == 1 else {**role, "worker_replicas": shape.pods - 1}

    def _engine(self, shape: Shape) -> dict[str, Any]:
        """Write the engine of a shape for the compiler; sizes of 1 are left out."""
        sizes = {"tensor": shape.tensor, "pipeline": shape.pipeline, "data": shape.data}
        parallelism = {name: size for name, size in sizes.items() if size > 1}
        parallelism |= {"expert": True} if shape.expert else {}
        more = {
            "parallelism": parallelism,
            "extra_args": self._words(shape),
            "hf_config": self.hf_config,
        }
        kept = {name: value for name, value in more.items() if value}
        return {
            "kind": self.engine.value, "image": self.image, "model": self.model.name, **kept,
        }  # fmt: skip

    def _words(self, shape: Shape) -> list[str]:
        words = [] if self.context is None else [_LENGTH_FLAGS[self.engine], str(self.context)]
        if self.cache_type is not None:
            words += [CACHE_FLAGS[self.engine], self.cache_type]
        if shape.decode_context > 1 and self.decode_flag is not None:
            words += [self.decode_flag, str(shape.decode_context)]
        return words


def _name_of(model: str) -> str:
    """Return a name for a serving, from the last part of the model's name."""
    words = re.sub(r"[^a-z0-9]+", "-", model.rpartition("/")[2].casefold()).strip("-")
    plain = words[:_LONGEST_NAME].strip("-")
    return plain if plain[:1].isalpha() else f"model-{plain}".strip("-")
