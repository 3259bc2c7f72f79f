"""Layers that draft tokens, and what SGLang leaves beside states of fixed size. Sizes in GiB.

Which layers draft: SpeculativeConfig in vllm/config/speculative.py of 0.9.2 to 0.33.0, and
handle_speculative_decoding in sglang/srt/server_args.py of 0.5.9. A head of EAGLE-3 is a layer
whose queries, keys and values come from two states, a projection of three states to one that each
rank has whole, and a small vocabulary; embeddings are those of the model: llama_eagle3.py in
vllm/model_executor/models of 0.9.2 to 0.33.0, and in sglang/srt/models of 0.5.9.

Source: handle_max_mamba_cache in sglang/srt/model_executor/model_runner.py, later in
model_runner_kv_cache_mixin.py, and in sglang/srt/mem_cache/kv_cache_configurator.py of the wheels
of 0.5.3, 0.5.4, 0.5.5, 0.5.8, 0.5.9, 0.5.10, 0.5.12, 0.5.13, 0.5.14, 0.5.15, 0.5.16, 0.5.20 and
0.5.23; sglang/srt/arg_groups/speculative_hook.py for the defaults of drafts.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.engines import CommandFacts
from kthena_components.core.memory.held_weights import (
    PACKED,
    attention_bytes,
    compressing_numbers,
    head_numbers,
)
from kthena_components.core.memory.sharding import VLLM
from kthena_components.core.memory.sizes import GIB, Split, bytes_of
from kthena_components.core.memory.sparse_attention import with_loaded_indexers
from kthena_components.core.models import ModelShape
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.images import Version
from kthena_components.core.values.read import is_map

_RATIO = 0.9
"""Default of --mamba-full-memory-ratio: memory for states to that for the cache."""
_RATIO_SINCE, _REQUESTS_SINCE, _JOINT_SINCE = (0, 5, 4), (0, 5, 9), (0, 5, 13)
"""The first releases with a ratio; whose drafts take the memory of requests beside the ratio, and
where only a stated number of requests replaces it; and whose drafts are in the ratio's part."""
_DRAFTS_SINCE = (0, 5, 14)
"""The first release whose tokens take memory in the layers for drafts, too: DefaultPoolConfigurator
in sglang/srt/model_executor/pool_configurator.py, not in 0.5.13."""
_PADDED_SINCE = (0, 5, 20)
"""The first release that was read which adds a request to each number."""
_REQUESTS, _OF_DRAFTS, _DRAFTED = 512, 48, 4
"""Requests that have states where none are stated, with drafts, and the tokens of a draft."""
_SLOTS, _BUFFERED = 3, 2
"""States of a running request with the radix cache, and how many more with its extra buffer, which
is the default with drafts in the same part: _calculate_mamba_ratio."""

_SPECULATIVE, _CONFIG = ("speculative", "spec-", "spec_"), "--speculative-config"
_OTHER = "--speculative-model"
_TOKENS, _COUNT = "num_speculative_tokens", "--num-speculative-tokens"
"""How the options of speculative decoding begin, the one of vLLM, and its older one for a model;
and how both state the tokens of a draft."""
_ALGORITHM, _DRAFT_MODEL = "--speculative-algorithm", "--speculative-draft-model-path"
"""Those of SGLang."""
_OWN_OF_SGLANG = ("eagle", "nextn")
"""Algorithms of SGLang that take the model's own layers if no other model is stated."""
_OWN, _HEAD = ("mtp", "dspark"), "eagle3"
"""Parts of vLLM's methods with the model's own layers, and the method with a head of EAGLE-3."""
_MATRICES, _STATES, _WORDS, _BYTES = 3, 3, 32000, 2
"""Of a head: matrices of its feed-forward layer, states that it gets of the model, words that it
drafts (draft_vocab_size in the heads' config.json), and bytes of a number."""
_HEAD_WIDTH = 128
"""Width of its heads where the table of models has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class States:
    """What decides how much memory states take."""

    state_gib: float | None
    """GiB of one request's states on a rank. None: not known."""
    options: Mapping[str, Any]
    """The options of the command line."""
    release: Version | None
    """The release. None: the newest."""
    copies: int
    """Copies of the attention that share the requests."""
    drafts: bool
    """Whether drafts are verified."""

    def before(self, release: Version) -> bool:
        """Return whether the release is older; an unknown one is the newest."""
        return self.release is not None and self.release < release

    def count(self, option: str) -> int | None:
        """Return a count above zero that an option states."""
        value = self.options.get(option)
        return value if type(value) is int and value > 0 else None


def left_in_sglang(
    left: float,
    shape: ModelShape,
    split: Split,
    options: Mapping[str, Any],
    release: Version | None,
) -> float:
    """Return what is left for the KV cache beside states, and beside the cache of drafts.

    Args:
        left: GiB for all of them.
        shape: The part of the model that is loaded.
        split: Its ranks.
        options: The options of the command line.
        release: The release. None: the newest.
    """
    if shape.state_layers:
        ranks = split.attention or split.tensor
        each = shape.state_bytes
        states = States(
            state_gib=None if each is None else each / ranks / split.pipeline / GIB,
            options=options,
            release=release,
            copies=max(split.tensor // ranks, 1),
            drafts=bool(options.get(_ALGORITHM)),
        )
        left = cache_beside_states(left, states)
    layers = shape.layers if shape.full_cache else shape.full_layers
    if not layers or (release is not None and release < _DRAFTS_SINCE):
        return left
    return left * layers / (layers + shape.draft_layers)


def cache_beside_states(left: float, states: States) -> float:
    """Return what is left for the KV cache.

    Args:
        left: GiB for cache and states together.
        states: What decides about the states.
    """
    each, drafted = states.state_gib, _drafted(states)
    slots = _slots(states)
    if each is None or (slots is None and not drafted):
        return left / (1 + _ratio(states))
    padding = 0 if states.before(_PADDED_SINCE) else 1
    requests = _requests(states)
    if slots is not None:
        running = min(requests, slots) if states.count("--max-mamba-cache-size") else slots
        kept = slots if states.before(_REQUESTS_SINCE) else running + padding
        return left - each * (slots + padding + drafted * kept)
    if states.before(_REQUESTS_SINCE):
        return left / (1 + _ratio(states))
    if states.before(_JOINT_SINCE):
        return (left - each * requests * drafted) / (1 + _ratio(states))
    return _jointly(left, states, padding)


def _jointly(left: float, states: States, padding: int) -> float:
    """Return the same where drafts and states share the ratio's part."""
    each, drafted, of_request = states.state_gib or 0.0, _drafted(states), _of_request(states)
    part = left * _ratio(states) / (1 + _ratio(states)) - padding * each * (1 + drafted)
    slots = part / (each * (1 + drafted / of_request))
    running = min(_requests(states), slots // of_request)
    return left - each * (slots + padding + (running + padding) * drafted)


def _ratio(states: States) -> float:
    stated = states.options.get("--mamba-full-memory-ratio")
    if isinstance(stated, bool) or not isinstance(stated, int | float):
        return _RATIO
    return float(stated) if stated > 0 else _RATIO


def _slots(states: States) -> int | None:
    """Return the number of requests that have states; None if the ratio decides it."""
    stated = states.count("--max-mamba-cache-size")
    old = states.before(_RATIO_SINCE)
    if stated is None and (old or states.options.get("--disable-radix-cache") is True):
        stated = states.count("--max-running-requests")
        if stated is None and states.before(_REQUESTS_SINCE):
            stated = _REQUESTS
    return None if stated is None else max(stated // states.copies, 1)


def _requests(states: States) -> int:
    return max((states.count("--max-running-requests") or _OF_DRAFTS) // states.copies, 1)


def _drafted(states: States) -> int:
    """Return the tokens of a draft, which each have separate states; 0 without drafts."""
    stated = states.count("--speculative-num-draft-tokens") or _DRAFTED
    return stated if states.drafts and not states.before(_RATIO_SINCE) else 0


def _of_request(states: States) -> int:
    """Return how many states a running request has."""
    if states.options.get("--disable-radix-cache") is True:
        return 1
    named = ("--mamba-radix-cache-strategy", "--mamba-scheduler-strategy")
    plain = any(states.options.get(name) == "no_buffer" for name in named)
    return _SLOTS if plain else _SLOTS + _BUFFERED


def loaded_part(command: CommandFacts, shape: ModelShape, release: Version | None) -> ModelShape:
    """Return the shape of what an engine loads: the model without layers for drafts, or with some.

    Args:
        command: The engine's command line.
        shape: The model.
        release: The release of vLLM. None: the newest, or another engine.
    """
    method, own = _method_of(command)
    if not own:
        shape = without_draft(shape)
    if method == _HEAD and shape.weights_gib is not None:
        ranks = command.tensor if isinstance(command.tensor, int) else 1
        shape = replace(shape, weights_gib=shape.weights_gib + head_weights(shape, ranks))
    return with_loaded_indexers(shape, command.engine in VLLM, release)


def has_drafts(command: CommandFacts) -> bool:
    """Return whether an engine verifies drafts of tokens."""
    named = [option for option in command.options if "spec" in option]
    return any(option.lstrip("-").startswith(_SPECULATIVE) for option in named)


def drafted_tokens(command: CommandFacts) -> int:
    """Return the tokens of a draft that vLLM verifies at once; 0 without drafts, 1 if unknown."""
    config = command.options.get(_CONFIG)
    stated = config.get(_TOKENS) if isinstance(config, Mapping) else command.options.get(_COUNT)
    if not has_drafts(command):
        return 0
    return stated if isinstance(stated, int) and stated > 0 else 1


def _method_of(command: CommandFacts) -> tuple[str, bool]:
    """Return the method of drafts, and whether the model's own layers draft; "" if none is stated.

    Options that state neither a method nor a model take the model's own layers.
    """
    options = command.options
    config = options.get(_CONFIG)
    if command.engine == "sglang":
        algorithm = str(options.get(_ALGORITHM) or "").lower()
        other = options.get(_DRAFT_MODEL) not in (None, command.model)
        return algorithm, algorithm in _OWN_OF_SGLANG and not other
    if not is_map(config):
        return "", has_drafts(command) and _OTHER not in options
    method, model = (str(config.get(key) or "").lower() for key in ("method", "model"))
    if not method and _HEAD in model:
        return _HEAD, False
    if method:
        return method, any(name in method for name in _OWN)
    return "", model in ("", str(command.model or "").lower())


def without_draft(shape: ModelShape) -> ModelShape:
    """Return the shape of a model whose layers for drafts are not loaded.

    Engines load them with speculative decoding only. Such a layer has attention, a feed-forward
    layer, and a projection of two states to one: vllm/model_executor/models/qwen3_5_mtp.py and
    deepseek_mtp.py. Checkpoints in 4 bits have it in 16: the modules that their quantization_config
    leaves out are those of `mtp`.
    """
    if not shape.draft_layers or shape.weights_gib is None:
        return shape
    draft = shape.draft_layers * _draft_layer(shape)
    return replace(shape, draft_layers=0, weights_gib=shape.weights_gib - draft)


def _draft_layer(shape: ModelShape) -> float:
    """Return the GiB of a layer for drafts; 0 if a size is not given."""
    wide = replace(shape, dtype="bf16") if shape.dtype in PACKED else shape
    hidden, width = wide.hidden, (wide.expert_ffn if wide.experts else wide.ffn)
    if hidden is None or width is None or wide.dtype is None:
        return 0.0
    numbers = _MATRICES * (wide.experts or 1) * hidden * width
    attention = compressing_numbers(wide, hidden) + head_numbers(wide, hidden) + 2 * hidden**2
    return (numbers * bytes_of(wide.dtype) + attention * attention_bytes(wide)) / GIB


def head_weights(shape: ModelShape, ranks: int) -> float:
    """Return the GiB of a head of EAGLE-3 on all ranks; 0 if a size is not given.

    It has the model's widths. That of its feed-forward layer is not known of models with experts
    only, nor are the heads of latent attention, so that both count nothing.
    """
    hidden, heads = shape.hidden, 0 if shape.latent is not None else shape.heads
    if hidden is None:
        return 0.0
    width = shape.head_dim or _HEAD_WIDTH
    attention = width * heads * 3 * hidden
    attention += 4 * hidden * width * (shape.kv_heads or 0) if heads else 0
    layer = attention + _MATRICES * hidden * (shape.ffn or 0) + _WORDS * hidden
    return (layer + _STATES * hidden**2 * ranks) * _BYTES / GIB
