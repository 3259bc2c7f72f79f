"""KAITO's calculation for a model and an instance type: nodes and parallelism.

This is KAITO's own arithmetic, right or wrong, as of v0.12. Sources: kaito-project/kaito
pkg/workspace/estimator/nodesestimator/estimator.go, pkg/model/interface.go and
pkg/utils/config_parser.go.
"""

import re
from dataclasses import dataclass

from kthena_components.core.hardware import Instance
from kthena_components.core.memory.sizes import GIB

CONTEXT = 2048
"""Tokens that it assumes if the ConfigMap of inference.config states no max-model-len."""
_UTILISATION, _EXPANSION, _BASE, _SHARE = 0.84, 1.02, 2.3, 0.05
_WHOLE = re.compile(r"[+-]?[0-9]{1,60}")
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
