"""KAITO's names of models, and its calculation for one on an instance type: nodes and inputs.

Source: kaito-project/kaito pkg/utils/plugin/plugin.go IsValidPreset.

This is KAITO's own arithmetic, right or wrong, as of v0.12. Sources: kaito-project/kaito
pkg/workspace/estimator/nodesestimator/estimator.go, pkg/model/interface.go and
pkg/utils/config_parser.go.
"""

from collections.abc import Mapping

from kthena_components.core.engines.files import read_yaml
from kthena_components.core.facts.context import NO_CONTEXT
from kthena_components.core.hardware import Instance, find_instance, gpu_of_label
from kthena_components.core.memory import cache_per_token
from kthena_components.core.memory.sizes import GIB
from kthena_components.core.models import ModelShape, find_model
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.read import first_unknown, text
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import MaybeInt, MaybeText, Unknown
from kthena_components.systems.kaito.view import (
    CONFIG_KEY,
    GPU_COUNT,
    GPU_PRODUCT,
    Model,
    inference_config,
)

SHORT_NAMES = {
    **{
        f"phi-{name}-instruct": f"microsoft/Phi-{name}-instruct"
        for name in (
            "3-mini-4k", "3-mini-128k", "3-medium-4k", "3-medium-128k", "3.5-mini", "4-mini",
        )
    },
    **{
        f"ministral-3-{size}-instruct": f"mistralai/Ministral-3-{size}-Instruct-2512"
        for size in ("3b", "8b", "14b")
    },
    **{f"gemma-3-{size}-instruct": f"google/gemma-3-{size}-it" for size in ("4b", "27b")},
    **{f"gpt-oss-{size}": f"openai/gpt-oss-{size}" for size in ("20b", "120b")},
    **{
        f"qwen2.5-coder-{size}-instruct": f"Qwen/Qwen2.5-Coder-{size}-Instruct"
        for size in ("7b", "32b")
    },
    **{
        f"deepseek-{name}": f"deepseek-ai/DeepSeek-{name}"
        for name in ("r1-0528", "v3-0324", "r1-distill-llama-8b", "r1-distill-qwen-14b")
    },
    "phi-4": "microsoft/phi-4",
    "llama-3.1-8b-instruct": "meta-llama/Llama-3.1-8B-Instruct",
    "llama-3.3-70b-instruct": "meta-llama/Llama-3.3-70B-Instruct",
    "mistral-7b": "mistralai/Mistral-7B-v0.3",
    "mistral-7b-instruct": "mistralai/Mistral-7B-Instruct-v0.3",
    "mistral-large-3-675b-instruct": "mistralai/Mistral-Large-3-675B-Instruct-2512",
}  # fmt: skip
"""Short names of KAITO v0.12, which accepts no others."""
FORMER_NAMES = {
    **{f"falcon-{size}{use}": "0.10" for size in ("7b", "40b") for use in ("", "-instruct")},
    **{f"llama-2-{size}{use}": "0.4" for size in ("7b", "13b", "70b") for use in ("", "-chat")},
    "phi-2": "0.7",
}
"""Short names that KAITO no longer has, with the last release that registers each.

Source: kaito-project/kaito v0.4.0 to v0.12.0 presets/workspace/models, pkg/utils/plugin/plugin.go.
"""
_BY_TRANSFORMERS = frozenset(
    {
        "phi-4", "phi-3-mini-4k-instruct", "phi-3-mini-128k-instruct", "phi-3-medium-4k-instruct",
        "phi-3-medium-128k-instruct", "phi-3.5-mini-instruct", "mistral-7b-v0.3",
        "mistral-7b-instruct-v0.3", "mistral-large-3-675b-instruct", "gemma-3-4b-it",
        "gemma-3-27b-it", "qwen2.5-coder-7b-instruct", "qwen2.5-coder-32b-instruct",
        "llama-3.1-8b-instruct", "llama-3.3-70b-instruct", "gpt-oss-20b", "gpt-oss-120b",
        "deepseek-r1-distill-llama-8b", "deepseek-r1-distill-qwen-14b", "deepseek-r1-0528",
        "deepseek-v3-0324",
    }
)  # fmt: skip
"""Models with a command of the transformers runtime, by the last part of their name.

Source: kaito-project/kaito v0.12.0 presets/workspace/generator/generator.go NewGenerator;
presets/workspace/models/transformer_runtime_inference_parameters.go.
"""


def is_preset(name: str) -> bool:
    """Return whether KAITO accepts a name: a known short one, or `organisation/name`."""
    organisation, _, rest = name.partition("/")
    return name.casefold() in SHORT_NAMES or (organisation != "" and rest != "")


def has_transformers(name: str) -> bool:
    """Tell whether the transformers runtime has a command for the model that a name stands for."""
    whole = SHORT_NAMES.get(name.casefold(), name)
    return whole.rpartition("/")[2].casefold() in _BY_TRANSFORMERS


def find_preset(name: str) -> ModelShape | Unknown:
    """Find the shape of the model with a preset's name."""
    return find_model(SHORT_NAMES.get(name.casefold(), name))


CONTEXT = 2048
"""Tokens that it assumes if the ConfigMap of inference.config states no max-model-len."""
_UTILISATION, _EXPANSION, _BASE, _SHARE = 0.84, 1.02, 2.3, 0.05
_WHOLE = regex(r"[+-]?[0-9]{1,60}")
_INT64 = 2**63
_STEP = 2
"""Indentation of lines that KAITO counts as below `vllm:`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TooSmall:
    """A GPU has no memory left for weights."""

    available: float
    """GiB that vLLM may use of one GPU."""
    needed: float
    """GiB that are used before any weights are loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """What KAITO deploys."""

    gpus: int
    """GPUs that it considers necessary."""
    nodes: int
    tensor: int
    pipeline: int
    data: int


def minimum_gpus(
    instance: Instance, files_gib: float, bytes_per_token: int, tokens: int = CONTEXT
) -> int | TooSmall:
    """Count the GPUs that KAITO's estimator considers necessary.

    Args:
        instance: The instance type of a node.
        files_gib: Size of the model's weight files.
        bytes_per_token: Bytes of a token in the KV cache of the whole model.
        tokens: Length of the longest request.
    """
    available = _UTILISATION * instance.memory_gib
    fixed = _BASE + tokens * bytes_per_token / GIB / instance.gpus
    if available <= fixed:
        return TooSmall(available=available, needed=fixed)
    return int(_EXPANSION * files_gib / ((available - fixed) / (1 + _SHARE))) + 1


def derive(instance: Instance, gpus: int, files_gib: float) -> Deployment:
    """Derive nodes and parallelism: copies if half a GPU fits the model, else the whole node.

    Args:
        instance: The instance type of a node.
        gpus: The necessary GPUs.
        files_gib: Size of the model's weight files.
    """
    nodes = -(-gpus // instance.gpus)
    copies = nodes == 1 and instance.gpus > 1 and 2 * files_gib < instance.memory_gib
    return Deployment(
        gpus=gpus,
        nodes=nodes,
        tensor=1 if copies else instance.gpus,
        pipeline=nodes,
        data=instance.gpus if copies else 1,
    )


def stated_tokens(config: str) -> int | None:
    """Find max-model-len in an inference_config.yaml as KAITO does: by lines, not as YAML.

    A comment after the number, quotes or braces hide it. None: not found.
    """
    least: int | None = None
    for line in config.split("\n"):
        word, indent = line.strip(), len(line) - len(line.lstrip(" \t"))
        if least is None:
            least = indent + _STEP if word.startswith("vllm:") else None
        elif word and not word.startswith("#") and indent < least:
            return None
        elif word.startswith("max-model-len:"):
            stated = word.removeprefix("max-model-len:").strip()
            tokens = int(stated) if _WHOLE.fullmatch(stated) else 0
            return tokens if 0 < tokens < _INT64 else None
    return None


# Finds the inputs of KAITO's estimate of nodes: the model's sizes, and the GPUs of a node.


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


_FORMER_INSTANCES = {
    "0.8": regex(r"standard_(?:nc(?:6|12|24|24r)s_v3|nv(?:6|12|24))"),
    "0.10": regex(r"standard_nv32as_v4"),
    "0.11": regex(
        r"standard_(?:nc(?:4|8|16|64)as_t4|nv(?:12|24|48)s)_v3|g3s\.(?:4|8|16)?xlarge|"
        r"g4dn\.(?:(?:2|4|8|12|16)?xlarge|metal)|g5g\.(?:(?:2|4|8|16)?xlarge|metal)|"
        r"p2\.(?:8|16)?xlarge|p3\.(?:2|8|16)xlarge|p3dn\.24xlarge"
    ),
}
"""Instance types that KAITO no longer knows, by the last release with each.

Source: kaito-project/kaito v0.6.0 to v0.12.0 pkg/sku (kaito#2185).
"""


def last_with_instance(name: str) -> str | None:
    """Return the last release that knows an instance type; None if none has dropped it."""
    folded = name.casefold()
    return next((last for last, old in _FORMER_INSTANCES.items() if old.fullmatch(folded)), None)


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
    gpu, gpus = gpu_of_label(product), int(stated)
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
