"""What is asked: a model, a GPU, the nodes, and the requests that must fit at once."""

import re
from collections.abc import Mapping
from typing import Any

from kthena_components.core.engines.option_table import release_for
from kthena_components.core.engines.sglang import IMAGE as SGLANG_IMAGE
from kthena_components.core.engines.vllm_launch import IMAGE as VLLM_IMAGE
from kthena_components.core.hardware import GpuFacts
from kthena_components.core.models import ModelShape
from kthena_components.core.spec.enums import EngineKind
from kthena_components.core.values.dataclass import dataclass
from kthena_components.sizing.shapes import Shape

DEFAULT_RESOURCE = "nvidia.com/gpu"
_LONGEST_NAME = 32
_IMAGES = {
    EngineKind.VLLM: f"{VLLM_IMAGE}:v",
    EngineKind.SGLANG: f"{SGLANG_IMAGE}:v",
    EngineKind.TRTLLM: "nvcr.io/nvidia/tensorrt-llm/release:",
}
_LENGTH_FLAGS = {
    EngineKind.VLLM: "--max-model-len",
    EngineKind.SGLANG: "--context-length",
    EngineKind.TRTLLM: "--max_seq_len",
}
_DECODE_FLAGS = {
    EngineKind.VLLM: "--decode-context-parallel-size",
    EngineKind.SGLANG: "--dcp-size",
}
"""The option that shares the tokens of the cache inside a tensor group, where an engine has one."""


def newest_image(engine: EngineKind) -> str:
    """Return the image of an engine's newest known release."""
    return f"{_IMAGES[engine]}{release_for(engine, None).text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question. Everything in it was read and is valid."""

    model: ModelShape
    gpu: GpuFacts
    resource: str = DEFAULT_RESOURCE
    """The extended resource by which pods request the GPU."""
    nodes: int = 4
    gpus_per_node: int = 8
    context: int | None = None
    """Tokens of each request. None: the model's maximum."""
    requests: int | None = None
    """Requests of that length that must fit at once, over all engines. None: one per engine."""
    engine: EngineKind = EngineKind.VLLM
    image: str
    hf_config: Mapping[str, Any] | None = None
    """The model's config.json, if it is not in the table of models."""
    price: float | None = None
    """Price of one GPU for an hour."""

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
        resources: dict[str, Any] = {"gpus_per_pod": shape.gpus_per_pod}
        if self.resource != DEFAULT_RESOURCE:
            resources["gpu_resource"] = self.resource
        role: dict[str, Any] = {
            "name": "serve", "engine": self._engine(shape), "resources": resources,
        }  # fmt: skip
        return role if shape.pods == 1 else {**role, "worker_replicas": shape.pods - 1}

    def _engine(self, shape: Shape) -> dict[str, Any]:
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
        if shape.decode_context > 1 and self.decode_flag is not None:
            words += [self.decode_flag, str(shape.decode_context)]
        return words


def _name_of(model: str) -> str:
    """Return a name for a serving, from the last part of the model's name."""
    words = re.sub(r"[^a-z0-9]+", "-", model.rpartition("/")[2].casefold()).strip("-")
    plain = words[:_LONGEST_NAME].strip("-")
    return plain if plain[:1].isalpha() else f"model-{plain}".strip("-")
