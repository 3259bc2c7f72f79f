"""What KAITO makes of a model and an instance type: nodes, and the parallelism of its command.

This is KAITO's own arithmetic, right or wrong, as of v0.12. Sources: kaito-project/kaito
pkg/workspace/estimator/nodesestimator/estimator.go, pkg/model/interface.go and
pkg/utils/config_parser.go.
"""

import re
from dataclasses import dataclass

from kthena_components.core.hardware import Instance
from kthena_components.core.memory.sizes import GIB

CONTEXT = 2048
"""Tokens that it reckons with where the ConfigMap of inference.config states no max-model-len."""
_UTILISATION, _EXPANSION, _BASE, _SHARE = 0.84, 1.02, 2.3, 0.05
_WHOLE = re.compile(r"[+-]?[0-9]{1,60}")
_INT64 = 2**63
_STEP = 2
"""Blanks by which KAITO takes a line to stand below `vllm:`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TooSmall:
    """Nothing is left of a GPU for weights."""

    available: float
    """GiB that vLLM may take of one GPU."""
    needed: float
    """GiB that are taken before the first weight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """What KAITO deploys."""

    gpus: int
    """GPUs that it holds to be needed."""
    nodes: int
    tensor: int
    pipeline: int
    data: int


def minimum_gpus(
    instance: Instance, files_gib: float, bytes_per_token: int, tokens: int = CONTEXT
) -> int | TooSmall:
    """Count the GPUs that KAITO's estimator holds to be needed.

    Args:
        instance: what a node is.
        files_gib: size of the model's weight files.
        bytes_per_token: what a token takes in the KV cache of the whole model.
        tokens: length of the longest request.
    """
    available = _UTILISATION * instance.memory_gib
    fixed = _BASE + tokens * bytes_per_token / GIB / instance.gpus
    if available <= fixed:
        return TooSmall(available=available, needed=fixed)
    return int(_EXPANSION * files_gib / ((available - fixed) / (1 + _SHARE))) + 1


def derive(instance: Instance, gpus: int, files_gib: float) -> Deployment:
    """Derive nodes and parallelism: copies where half a GPU holds the model, else the whole node.

    Args:
        instance: what a node is.
        gpus: the GPUs that are needed.
        files_gib: size of the model's weight files.
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
    """Find max-model-len in an inference_config.yaml as KAITO does: by its lines, not as YAML.

    A comment behind the number, quotes or braces hide it. None: there is none to be found.
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
