"""The encoder of images while vLLM measures its peak. Sizes in GiB.

vLLM runs the encoder once with the largest image that its processor allows, or with as many as a
batch holds, and keeps what it returns while the language model runs: profile_run in
vllm/v1/worker/gpu_model_runner.py, vllm/multimodal/encoder_budget.py. It needs the most in a
feed-forward layer, where patches, residual, norm, and the inner width before and after its function
are in memory: vllm/model_executor/models/qwen3_vl.py Qwen3_VisionMLP.
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
_INNER = 4
"""Inner width of a feed-forward layer for the hidden size."""
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
    width = _PATCH + 2 * hidden + 2 * _INNER * hidden // ranks
    return _patches(shape, tokens) * width * _BYTES / GIB


def kept_images(shape: ModelShape, tokens: int) -> float:
    """Return what the encoder returns, which is kept while the language model runs."""
    return _patches(shape, tokens) // _PATCHES * (shape.hidden or 0) * _BYTES / GIB


def runs_encoder(options: Mapping[str, Any]) -> bool:
    """Return whether the options let vLLM run the encoder when it starts."""
    if any(options.get(name) is True for name in _OFF):
        return False
    try:
        limits = json.loads(str(options.get("--limit-mm-per-prompt", "{}")))
    except ValueError:
        return True
    return not isinstance(limits, dict) or any(limits.get(kind) != 0 for kind in ("image", "video"))


def _patches(shape: ModelShape, tokens: int) -> int:
    """Count the patches of the images of a run."""
    image = shape.image_patches
    if image is None or shape.vision_hidden is None:
        return 0
    return max(tokens // (image // _PATCHES), 1) * image
