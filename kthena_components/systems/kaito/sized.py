"""Finds the inputs of KAITO's estimate of nodes: the model's sizes, and the GPUs of a node."""

from collections.abc import Mapping
from dataclasses import dataclass

from kthena_components.core.engines.files import read_yaml
from kthena_components.core.facts.context import NO_CONTEXT
from kthena_components.core.hardware import Instance, find_gpu, find_instance
from kthena_components.core.memory import cache_per_token
from kthena_components.core.models import ModelShape
from kthena_components.core.values.display import display
from kthena_components.core.values.read import first_unknown, text
from kthena_components.core.values.unknown import MaybeInt, MaybeText, Unknown
from kthena_components.systems.kaito.estimator import (
    CONTEXT,
    Deployment,
    TooSmall,
    derive,
    minimum_gpus,
    stated_tokens,
)
from kthena_components.systems.kaito.presets import find_preset
from kthena_components.systems.kaito.view import (
    CONFIG_KEY,
    GPU_COUNT,
    GPU_PRODUCT,
    Model,
    inference_config,
)

NO_INSTANCE = Unknown("no instance type states the GPUs of the nodes")
_LONGEST_COUNT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """A model of known size, on a known instance type."""

    model: Model
    instance: Instance
    shape: ModelShape
    files: float
    """GiB of its weight files."""
    each: int
    """Bytes of a token in the KV cache of the whole model."""
    tokens: MaybeInt
    """Longest request: as the ConfigMap states, or KAITO's default."""

    @property
    def gpus(self) -> int | TooSmall:
        """The GPUs that KAITO calculates; the minimum if the longest request is unknown."""
        tokens = self.tokens if isinstance(self.tokens, int) else 0
        return minimum_gpus(self.instance, self.files, self.each, tokens)

    @property
    def deployment(self) -> Deployment | None:
        """What KAITO deploys for it; None if nothing fits."""
        gpus = self.gpus
        return None if isinstance(gpus, TooSmall) else derive(self.instance, gpus, self.files)


def size_of(model: Model) -> Sized | Unknown | None:
    """Find the inputs of KAITO's estimate; None if another rule reports what is missing."""
    gap = first_unknown(model.instance, model.preset)
    if gap is not None:
        return gap
    if not isinstance(model.preset, str) or model.tuned:
        return None
    instance, shape = node_of(model.instance, model.labels), find_preset(model.preset)
    if isinstance(instance, Unknown) and not model.instance:
        return instance
    if isinstance(instance, Unknown) or isinstance(shape, Unknown):
        return None if isinstance(instance, Unknown) else first_unknown(shape)
    return _sized(model, instance, shape)


def node_of(kind: MaybeText | None, labels: Mapping[str, object]) -> Instance | Unknown:
    """Find the GPUs of a node by its instance type, or by the labels of existing nodes.

    KAITO rounds the memory of a GPU of an existing node to GiB. Source: kaito-project/kaito v0.11.0
    pkg/sku/helpers.go GetGPUConfigFromNodeLabels.

    Args:
        kind: The instance type; empty or None for existing nodes.
        labels: Labels that KAITO selects nodes by.
    """
    if kind:
        return kind if isinstance(kind, Unknown) else find_instance(kind)
    product, stated = (text(labels.get(key)) for key in (GPU_PRODUCT, GPU_COUNT))
    if gap := first_unknown(product, stated):
        return gap
    if not isinstance(product, str) or not isinstance(stated, str) or not _is_count(stated):
        return NO_INSTANCE
    gpu, gpus = find_gpu(product), int(stated)
    if isinstance(gpu, Unknown):
        return gpu
    whole = int(gpu.memory_gib + 0.5) * gpus
    return Instance(
        name=product, cloud="", gpu=gpu.name, gpus=gpus, total_gib=whole, source=gpu.source
    )


def _is_count(stated: str) -> bool:
    short = stated.isascii() and stated.isdecimal() and len(stated) <= _LONGEST_COUNT
    return short and int(stated) > 0


def _sized(model: Model, instance: Instance, shape: ModelShape) -> Sized | Unknown:
    files, each = shape.files_gib or shape.weights_gib, cache_per_token(shape)
    if files is None or each is None:
        return Unknown(f"the table of models has no size of {shape.name}")
    tokens = _tokens(model)
    return Sized(model=model, instance=instance, shape=shape, files=files, each=each, tokens=tokens)


def _tokens(model: Model) -> MaybeInt:
    """Read the longest request for which KAITO calculates nodes, if its ConfigMap is readable."""
    stated, shown = model.config_text, display(model.config)
    if stated is None:
        return CONTEXT
    if isinstance(model.config, Unknown):
        return model.config
    if stated == inference_config(model.config, NO_CONTEXT):
        return Unknown(f"the ConfigMap {shown} may state max-model-len, and is not available")
    if isinstance(stated, Unknown):
        return stated
    found = read_yaml(stated)
    flags = found if isinstance(found, Unknown) else found.get("vllm")
    if flags is not None and not isinstance(flags, Mapping):
        because = flags.because if isinstance(flags, Unknown) else "vllm is not a map in it"
        return Unknown(f"key '{CONFIG_KEY}' of the ConfigMap {shown} cannot be read: {because}")
    return stated_tokens(stated) or CONTEXT


def where(model: Model) -> str:
    """Return the path of an unknown input of a size."""
    known = isinstance(node_of(model.instance, model.labels), Instance)
    return model.preset_path if known else model.node_path
