"""The encoder of images while vLLM measures its peak. Sizes in GiB.

vLLM runs the encoder once with the largest image that its processor allows, or with as many as a
batch holds, and keeps what it returns while the language model runs: profile_run in
vllm/v1/worker/gpu_model_runner.py, vllm/multimodal/encoder_budget.py. It needs the most in a
layer's attention, where queries and keys are in memory before and after they are rotated, or in its
feed-forward part, with the inner width before and after its function: Qwen2_5_VisionAttention in
vllm/model_executor/models/qwen2_5_vl.py, Qwen3_VisionMLP in qwen3_vl.py. A tower from transformers
has gate, up and product there, and no other rank has a part of it: gemma4_mm.py.
"""

import json
from collections.abc import Mapping
from typing import Any

from kthena_components.core.memory.sizes import GIB
from kthena_components.core.models import ModelShape
from kthena_components.core.values.images import Version

_PATCH = 3 * 2 * 16 * 16
"""Numbers of a patch: colours, images of a film, and the square of 16 pixels."""
_PATCHES = 4
"""Patches that become one token."""
_STATES = 3
"""Widths of a patch: its state, the norm, and its position, which is kept for all layers."""
_ATTENTION = (((0, 12), 3, 18), ((0, 15), 4, 6))
"""Widths of a patch in attention before a release: those of each rank (state, norm, position,
result) and those that ranks share. Before 0.12 queries and keys were rotated in 32 bits."""
_CONTIGUOUS = (4, 8)
"""The same since 0.15, which copies queries and keys before it rotates them (vllm#32687)."""
_GATHERING, _GATHERED_UNTIL = (9, 3), (0, 12)
"""The same while ranks gather queries, keys and values: all_gather_interleave before 0.12."""
_INNER = 4
"""Inner width of a feed-forward layer for the hidden size."""
_WIDTHS, _GATED = 2, 3
"""Inner widths that are in memory at once, and with a gate."""
_BYTES = 2
"""Bytes of a number in 16 bits."""
_OFF = ("--language-model-only", "--skip-mm-profiling")
"""Options without which the encoder runs."""


def encoder_peak(shape: ModelShape, tokens: int, ranks: int, release: Version | None) -> float:
    """Return the peak of the encoder; 0 if the table of models has no largest image.

    Args:
        shape: The model.
        tokens: Tokens of a batch.
        ranks: Ranks that share its layers.
        release: The release of vLLM. None: the newest.
    """
    hidden = shape.vision_hidden or 0
    if shape.image_tokens is None:
        widths = max(_STATES + _WIDTHS * _INNER / ranks, _in_attention(ranks, release))
    else:
        widths = _STATES + _GATED * _INNER
    numbers = _PATCH + widths * hidden
    return _images(shape, tokens) * (shape.image_patches or 0) * numbers * _BYTES / GIB


def _in_attention(ranks: int, release: Version | None) -> float:
    """Return the widths of a patch that are in memory at once in a layer's attention."""
    whole, shared = _CONTIGUOUS
    if release is not None:
        sizes = ((each, part) for until, each, part in _ATTENTION if release < until)
        whole, shared = next(sizes, _CONTIGUOUS)
    most = whole + shared / ranks
    if ranks == 1 or release is None or release >= _GATHERED_UNTIL:
        return most
    return max(most, _GATHERING[0] + _GATHERING[1] / ranks)


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
