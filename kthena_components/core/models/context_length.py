"""The longest request of a model, as vLLM derives it from config.json."""

from collections.abc import Mapping
from typing import Any

from kthena_components.core.models.counts import size_of
from kthena_components.core.values.read import mapping

_MOST = 2**31 - 1
LENGTHS = (
    "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length",
    "max_target_positions", "max_sequence_length", "max_seq_length", "seq_len",
)  # fmt: skip
"""Keys for the length. vLLM takes the smallest."""
_UNSCALED = ("su", "longrope", "llama3")
"""RoPE scaling types by which vLLM does not multiply the length."""
_YARN = ("yarn", "deepseek_yarn", "deepseek_llama_scaling")
"""RoPE scaling types by which it multiplies up to 0.29.0."""


def longest_request(text: Mapping[str, Any]) -> int | None:
    """Return the longest request that vLLM derives; None if its releases disagree.

    Source: vllm/transformers_utils/model_arch_config_convertor.py derive_max_model_len_and_key;
    vllm/config/model.py _get_and_verify_max_len, of 0.29.0 and of 0.33.0.
    """
    lengths = [size for key in LENGTHS if (size := size_of(text.get(key))) is not None]
    length = size_of(text.get("model_max_length")) or min(lengths, default=None)
    # The length that Gemma 3 states is already multiplied.
    if length is None or _is_gemma3(text):
        return length
    derived = {_scaled(length, text, by_yarn=by_yarn) for by_yarn in (False, True)}
    return size_of(derived.pop()) if len(derived) == 1 else None


def _is_gemma3(text: Mapping[str, Any]) -> bool:
    kind = text.get("model_type")
    return isinstance(kind, str) and "gemma3" in kind


def _scaled(length: int, text: Mapping[str, Any], *, by_yarn: bool) -> int:
    factor = 1.0
    for rope in _ropes(text):
        kind, by = rope.get("rope_type", rope.get("type")), rope.get("factor")
        if kind in _UNSCALED or (kind in _YARN and not by_yarn):
            continue
        if isinstance(by, int | float) and 0 < by <= _MOST:
            factor = float(by)
        if kind == "yarn":
            length = size_of(rope.get("original_max_position_embeddings")) or length
    return int(length * factor)


def _ropes(text: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the RoPE scaling, one for each type of layers if they differ."""
    stated = mapping(text.get("rope_parameters")) or mapping(text.get("rope_scaling"))
    by_type = [mapping(rope) for rope in stated.values() if isinstance(rope, Mapping)]
    return by_type if by_type and len(by_type) == len(stated) else [stated]
