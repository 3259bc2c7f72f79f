"""Layers that draft tokens, and what SGLang keeps beside weights and states. Sizes in GiB.

Which layers draft: SpeculativeConfig in vllm/config/speculative.py of 0.9.2 to 0.33.0, and
handle_speculative_decoding in sglang/srt/server_args.py of 0.5.9. A head of EAGLE-3 is a layer
whose queries, keys and values come from two states, a projection of three states to one that each
rank has whole, and a small vocabulary; embeddings are those of the model: llama_eagle3.py in
vllm/model_executor/models of 0.9.2 to 0.33.0, and in sglang/srt/models of 0.5.9.

Source: handle_max_mamba_cache in sglang/srt/model_executor/model_runner.py, later in
model_runner_kv_cache_mixin.py, and in sglang/srt/mem_cache/kv_cache_configurator.py of the wheels
of 0.5.3, 0.5.4, 0.5.5, 0.5.8, 0.5.9, 0.5.10, 0.5.12, 0.5.13, 0.5.14, 0.5.15, 0.5.16, 0.5.20 and
0.5.23; sglang/srt/arg_groups/speculative_hook.py for the defaults of drafts.

What SGLang keeps beside weights, in the wheels of 0.4.6 to 0.5.23:

- Scales of NVFP4 (sglang/srt/layers/quantization/modelopt_quant.py). Kernels take them in another
  order. ModelOptFp4LinearMethod keeps both copies before 0.5.12, and ModelOptNvFp4FusedMoEMethod
  keeps both of experts in 0.4.9 and 0.5.10. From 0.5.2 to 0.5.9 it deletes the first copies after
  all layers have both. Those of the second matrix of each layer then stay reserved: they lie in
  half of the block in which the other scales, which are twice as large, were arranged, weights of
  the next layer lie in the rest, and a block that is used in part cannot be returned
  (c10/cuda/CUDACachingAllocator.cpp). A simulation of that allocator with the shapes of GLM-5,
  DeepSeek-V3 and MiniMax-M2 over 1 to 8 ranks gives 0.97 to 1.46 times their size, with those of
  Qwen3-235B 0.66 to 1.7. Since 0.5.12 both names are of one copy.
- Indexes of experts in 4-bit integers on ROCm: CompressedTensorsWNA16MoE creates two arrays of 32
  bits for each width, which its form for Marlin replaces, and CompressedTensorsWNA16TritonMoE does
  not (compressed_tensors_wNa16_moe.py of 0.5.9 to 0.5.23).
- Feed-forward layers of Kimi's encoder, which are whole on each rank: MLP2 in sglang/srt/models/
  kimi_k25.py and kimi_vl_moonvit.py of 0.5.9 to 0.5.23.
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
from kthena_components.core.memory.sizes import GIB, Split, bytes_of, expert_weights, is_of_modelopt
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
_OF_STATES, _HALVES = "--mamba-ssm-dtype", ("bfloat16", "float16")
"""The option that has states in half of the 32 bits that models state, and its types of 16 bits:
mamba2_state_dtype in sglang/srt/configs/mamba_utils.py of 0.5.17. A convolution's, 2 % of them in
Qwen3.5, have 16 bits anyhow and count as halved, too."""
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
_WARMED, _OF_A_PROCESSOR = ((0, 18), (0, 19, 2)), 22 / 1024
"""The first release of vLLM that runs the kernels of gated delta nets while it measures, and the
first whose kernels build no descriptors of tensors: _warmup_prefill_kernels in qwen3_next.py of
0.18.0 and gdn_linear_attn.py of 0.19.0 and 0.19.1, is_tma_supported in fla/ops/utils.py of 0.17.1
to 0.20.2; and the GiB that CUDA's driver keeps for each multiprocessor from the first such kernel
on: vllm#37088 measured 3,728 MiB on an RTX 5090 and 1,077 on a GB10, and none without them."""
_PROCESSORS = {
    "NVIDIA GB10": 48,
    "NVIDIA GeForce RTX 5070 Ti": 70,
    "NVIDIA GeForce RTX 5080": 84,
    "NVIDIA GeForce RTX 5090": 170,
    "NVIDIA RTX PRO 4000": 70,
    "NVIDIA RTX PRO 4500": 82,
    "NVIDIA RTX PRO 5000": 110,
    "NVIDIA RTX PRO 6000": 188,
}
"""Multiprocessors of the GPUs of the kinds that it was measured on, as NVIDIA states them. Not on
Hopper, which runs FlashInfer's kernels; B200 and B300 were not measured."""
_SCALES, _SECOND = 1 / 9, 1 / 3
"""Share of scales in NVFP4, 0.5 of 4.5 bits, and of the second matrix in those of an expert."""
_BOTH, _ONE, _BOTH_AGAIN = (0, 5, 2), (0, 5, 10), (0, 5, 12)
"""The first releases that delete the first scales of experts, keep both, and keep one copy."""
_SMALLER = "mxfp4"
"""The format of experts that have fewer bits than the rest: those of DeepSeek-V4, `expert_dtype` in
vllm/models/deepseek_v4/nvidia/model.py."""
_INDEXES, _OF_INDEX = 2, 4
"""Arrays of indexes for each width, and bytes of an index."""
_FEED_FORWARD = 8
"""Numbers of an encoder's feed-forward layer for the square of its hidden size."""


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
    """Return what is left of these GiB for the KV cache beside states and the cache of drafts."""
    if shape.state_layers:
        ranks = split.attention or split.tensor
        each = shape.state_bytes
        if each is not None and options.get(_OF_STATES) in _HALVES:
            each //= 2
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


def kept_in_sglang(
    shape: ModelShape, split: Split, gib: float, gpu: str, release: Version | None
) -> float:
    """Return the GiB on a rank that SGLang keeps with all weights (`gib`), beside them."""
    experts = min(expert_weights(shape), gib)
    ranks = split.experts or split.tensor
    found = 0.0
    if is_of_modelopt(shape) and shape.dtype == "nvfp4":
        found += experts * _SCALES * _scales_kept(release) / ranks
        found += (
            _dense_in_fp4(shape, gib) * _SCALES * _is_before(release, _BOTH_AGAIN) / split.tensor
        )
    if gpu.startswith("AMD") and shape.dtype == "int4" and experts:
        layers = max(shape.layers - shape.dense_layers, 0)
        width = (shape.hidden or 0) + (shape.expert_ffn or 0) // ranks
        found += layers * (shape.experts or 0) * width * _INDEXES * _OF_INDEX / GIB
    if shape.latent is not None and shape.vision_layers and shape.vision_hidden:
        numbers = shape.vision_layers * _FEED_FORWARD * shape.vision_hidden**2
        found += numbers * _BYTES / GIB * (1 - 1 / split.tensor) * split.pipeline
    return (found + _drafts_in_sglang(shape, release) / split.tensor) / split.pipeline


def _drafts_in_sglang(shape: ModelShape, release: Version | None) -> float:
    """Return what layers for drafts that are loaded add to the GiB of all weights.

    They have embeddings and a head of their own, which give way to the model's when the cache of
    drafts is allocated. That of the model is sized before it, and before 0.5.14 even before these
    layers are loaded: init_model_worker in sglang/srt/managers/scheduler.py, alloc_memory_pool and
    init_lm_head in sglang/srt/speculative/eagle_worker_v2.py of 0.5.14 and 0.5.17; initialize in
    sglang/srt/model_executor/model_runner.py of 0.5.5 to 0.5.13; set_embed_and_head in qwen3_5_mtp.
    """
    if not shape.draft_layers:
        return 0.0
    own = 2 * (shape.vocab or 0) * (shape.hidden or 0) * _BYTES / GIB
    if _is_before(release, _DRAFTS_SINCE):
        own = -shape.draft_layers * _draft_layer(shape)
    return own


def _scales_kept(release: Version | None) -> float:
    """Return which share of the first scales of experts stays."""
    if not _is_before(release, _BOTH_AGAIN):
        return 0.0
    deletes = not _is_before(release, _BOTH) and _is_before(release, _ONE)
    return _SECOND if deletes else 1.0


def _is_before(release: Version | None, other: Version) -> bool:
    return release is not None and release < other


def _dense_in_fp4(shape: ModelShape, gib: float) -> float:
    """Return the GiB of a dense model beside its embeddings; 0 with experts, whose rest is wide."""
    if shape.experts:
        return 0.0
    return max(gib - 2 * (shape.vocab or 0) * (shape.hidden or 0) * _BYTES / GIB, 0.0)


def cache_beside_states(left: float, states: States) -> float:
    """Return what is left for the KV cache of the GiB for cache and states together."""
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


def of_descriptors(shape: ModelShape, gpu: str, release: Version | None) -> float:
    """Return the GiB that CUDA's driver keeps for descriptors of tensors in gated delta nets.

    Every layer of such a model has attention or states: layers of Nemotron-H may have neither, and
    its states are those of Mamba 2.
    """
    since, until = _WARMED
    full, states = shape.full_layers or 0, shape.state_layers
    delta = full and states and full + states == shape.layers
    if not delta or release is None or not since <= release < until:
        return 0.0
    return _PROCESSORS.get(gpu, 0) * _OF_A_PROCESSOR


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
    smaller = wide is shape and expert_weights(wide) > (wide.weights_gib or 0.0)
    each = bytes_of(_SMALLER if smaller else wide.dtype)
    attention = compressing_numbers(wide, hidden) + head_numbers(wide, hidden) + 2 * hidden**2
    return (numbers * each + attention * attention_bytes(wide)) / GIB


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
