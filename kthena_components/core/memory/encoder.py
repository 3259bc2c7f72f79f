"""The encoder of images while vLLM measures its peak. Sizes in GiB.

vLLM runs the encoder once with the largest image that its processor allows, or with as many as a
batch holds, and keeps what it returns while the language model runs: profile_run in
vllm/v1/worker/gpu_model_runner.py, vllm/multimodal/encoder_budget.py. It needs the most in a
feed-forward layer, where patches, positions, residual, norm, and the inner width before and after
its function are in memory: vllm/model_executor/models/qwen3_vl.py Qwen3_VisionMLP. A tower from
transformers has gate, up and product there, and no other rank has a part of it: gemma4_mm.py.
"""

import json
from collections.abc import Mapping
from typing import Any

from kthena_components.core.memory.sizes import GIB
from kthena_components.core.models import ModelShape

_PATCH = 3 * 2 * 16 * 16
"""Numbers of a patch: colours, images of a film, and the square of 16 pixels."""
_PATCHES = 4
"""Patches that become one token."""
_STATES = 3
"""Widths of a patch: its state, the norm, and its position, which is kept for all layers."""
_INNER = 4
"""Inner width of a feed-forward layer for the hidden size."""
_WIDTHS, _GATED = 2, 3
"""Inner widths that are in memory at once, and with a gate."""
_BYTES = 2
"""Bytes of a number in 16 bits."""
_OFF = ("--language-model-only", "--skip-mm-profiling")
"""Options without which the encoder runs."""


def encoder_peak(shape: ModelShape, tokens: int, ranks: int) -> float:
    """Return the peak of the encoder; 0 if the table of models has no largest image.

    Args:
        shape: The model.
        tokens: Tokens of a batch.
        ranks: Ranks that share its feed-forward layers.
    """
    hidden = shape.vision_hidden or 0
    inner = _WIDTHS / ranks if shape.image_tokens is None else _GATED
    width = _PATCH + _STATES * hidden + inner * _INNER * hidden
    return _images(shape, tokens) * (shape.image_patches or 0) * width * _BYTES / GIB


def kept_images(shape: ModelShape, tokens: int) -> float:
    """Return what the encoder returns, which is kept while the language model runs."""
    return _images(shape, tokens) * _tokens_of(shape) * (shape.hidden or 0) * _BYTES / GIB


def runs_encoder(options: Mapping[str, Any]) -> bool:
    """Return whether the options let vLLM run the encoder when it starts."""
    if any(options.get(name) is True for name in _OFF):
        return False
    try:
        limits = json.loads(str(options.get("--limit-mm-per-prompt", "{}")))
    except ValueError:
        return True
    return not isinstance(limits, dict) or any(limits.get(kind) != 0 for kind in ("image", "video"))


def is_whole(shape: ModelShape, options: Mapping[str, Any]) -> bool:
    """Return whether each rank has the whole encoder.

    With Mistral's config vLLM runs its own encoder, whose layers are plain ones: VisionTransformer
    in vllm/model_executor/models/pixtral.py. That of transformers' config is split.
    """
    stated = options.get("--mm-encoder-tp-mode") == "data"
    return stated or options.get("--config-format") == "mistral" or shape.image_tokens is not None


def _images(shape: ModelShape, tokens: int) -> int:
    """Count the images of a run."""
    if shape.image_patches is None or shape.vision_hidden is None:
        return 0
    return max(tokens // _tokens_of(shape), 1)


def _tokens_of(shape: ModelShape) -> int:
    """Count the tokens of the largest image."""
    return shape.image_tokens or (shape.image_patches or 0) // _PATCHES
