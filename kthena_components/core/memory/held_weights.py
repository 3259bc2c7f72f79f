"""Weights that ranks hold beside their part of the checkpoint, or in larger matrices. In GiB.

The projections that compress queries, keys and values in latent attention are whole on each rank:
vllm/model_executor/models/deepseek_v2.py and sglang/srt/models/deepseek_v2.py. So is all of the
attention with SGLang's --enable-dp-attention (sglang/srt/layers/dp_attention.py), and the words'
embeddings are as whole as the attention: VocabParallelEmbedding in sglang/srt/models/deepseek_v2.py
of 0.4.6 to 0.5.9. The gates of experts are whole, too: ReplicatedLinear in
vllm/model_executor/models, or GateLinear. So are the projections to a narrower state of experts and
back: routed_expert_down_proj in vllm/models/kimi_k3/amd/linear.py and nvidia/model.py of 0.27.0 to
0.33.0, fc1_latent_proj in nemotron_h.py of 0.19.1 to 0.33.0 and of SGLang 0.5.9.

Both engines add the projections that expand keys and values, in 16 bits, for queries that attend
to latents: process_weights_after_loading in vllm/model_executor/layers/attention/mla_attention.py
if the checkpoint has others, and post_load_weights in sglang/srt/models/deepseek_v2.py always.

Kernels may need larger matrices: vllm/model_executor/layers/fused_moe/oracle/mxfp4.py
mxfp4_round_up_hidden_size_and_intermediate_size, and sglang/srt/layers/quantization/mxfp4.py: with
Marlin, which both take on most GPUs, widths are filled up to 128 and hidden sizes to 256. vLLM runs
FlashInfer's TRT-LLM kernels on Blackwell's servers since 0.11, which need widths of 256 till 0.26:
get_mxfp4_backend in vllm/model_executor/layers/quantization/mxfp4.py of 0.11.0 to 0.18.1, and the
function above in 0.20.2 to 0.28.0.

vllm/model_executor/layers/fused_moe/unquantized_fused_moe_method.py _maybe_pad_weight: with ROCm,
rows of experts in 16 bits get 256 bytes more if they are multiples of 512 bytes. Each matrix of a
layer is copied: gate and up first. The copy of down then lies in the memory of the old gate and up,
whose rest stays unused: c10/cuda/CUDACachingAllocator.cpp splits a freed block, and a block that is
used in part cannot be returned. Experts in FP8 are copied layer by layer in the order that AITER
needs: process_weights_after_loading in vllm/model_executor/layers/quantization/fp8.py. The last
layer's old weights stay reserved, and count as weights before 0.22: all that is not free does.
"""

from collections.abc import Mapping
from typing import Any

from kthena_components.core.engines import CommandFacts
from kthena_components.core.engines.vllm import may_see
from kthena_components.core.memory import largest_batch
from kthena_components.core.memory.largest_batch import SERVER, StartUp, batch_of, images_of
from kthena_components.core.memory.sizes import (
    GIB,
    Split,
    bytes_of,
    expert_weights,
    fullest_weights,
    part_left,
)
from kthena_components.core.memory.sparse_attention import (
    compressed_copies,
    compressed_rotations,
    indexer_numbers,
    indexers_of,
    latent_widths,
)
from kthena_components.core.models import ModelShape
from kthena_components.core.values.images import Version
from kthena_components.core.values.read import first_unknown
from kthena_components.core.values.unknown import Unknown

_ROPE, _HEAD = 64, 128
"""Width of the part of a head that has the position, in latent attention (qk_rope_head_dim), and of
a head where the table of models has none."""
_OF_ENCODER, _GATED = 12, 16
"""Numbers of an encoder's layer for the square of its hidden size, and with a gate."""
_BYTES, _LEAVES_OUT_SINCE = 2, (0, 19)
"""Bytes of a number in 16 bits, and the first release that was read whose encoder is not loaded if
all limits are 0."""
_POSITIONS, _ROTATED, _LEVELS, _EDGE = 4, 4, 3, 16
"""In the kinds of Qwen3-VL: rows of the table of rotations for each position, the share of a head
that is rotated where layers have states, the layers of the encoder whose results are added to those
of the language model, where they have none, and the edge of a patch: Qwen2.5-VL has smaller ones,
and no such layers."""
_DRAFTED_UNTIL = (0, 27)
"""The first release that keeps streams for drafts with speculative decoding only: 0.26.0 does not
ask for it, 0.27.0, 0.28.0 and 0.31.0 do."""
_WHOLE = ("fp8", "int8", "mxfp8")
"""Formats that attention has in every model."""
PACKED = ("int4", "nvfp4", "mxfp4")
"""Formats that attention has in dense models. Latent attention has 16 bits, as beside experts."""


def copied_weights(shape: ModelShape, split: Split) -> float:
    """Return the GiB on a rank that other ranks hold as well, beyond its share of the model."""
    if shape.hidden is None:
        return 0.0
    ranks = split.attention or split.tensor
    compressed = compressing_numbers(shape, shape.hidden)
    attention = compressed + head_numbers(shape, shape.hidden)
    whole = shape.layers * attention * (1 / ranks - 1 / split.tensor)
    whole += shape.latent_layers * compressed * (1 - 1 / ranks)
    whole += indexers_of(shape) * indexer_numbers(shape) * (1 - 1 / split.tensor)
    sparse = max(shape.layers - shape.dense_layers, 0) * shape.hidden
    whole += 2 * sparse * (shape.expert_hidden or 0) * (1 - 1 / split.tensor)
    chosen = sparse * (shape.experts or 0)
    gates = (chosen * _BYTES + compressed_copies(shape)) * (1 - 1 / split.tensor)
    words = (shape.vocab or 0) * shape.hidden * (1 / ranks - 1 / split.tensor) * _BYTES
    return ((whole * attention_bytes(shape) + gates) / split.pipeline + words) / GIB


def expanding_copies(shape: ModelShape, split: Split, *, always: bool) -> float:
    """Return the GiB on a rank of the copies that expand keys and values of latents.

    Args:
        shape: The model.
        split: Its ranks.
        always: Whether the engine copies numbers of 16 bits, too.
    """
    if shape.latent is None or not (always or attention_bytes(shape) < _BYTES):
        return 0.0
    numbers = shape.latent_layers * _expanding(shape) / (split.attention or split.tensor)
    return numbers * _BYTES / GIB / split.pipeline


def encoder_copies(shape: ModelShape, split: Split) -> float:
    """Return the GiB on a rank of a vision encoder that is not split, beyond its share.

    A layer of it has about 12 times the square of its hidden size, with a gate 16 times. 0 if a
    size is not given.
    """
    squares = (shape.vision_layers or 0) * (shape.vision_hidden or 0) ** 2
    numbers = squares * (_GATED if shape.image_masked else _OF_ENCODER)
    return numbers * _BYTES / GIB * (1 - 1 / split.tensor)


def encoder_left_out(
    shape: ModelShape, split: Split, options: Mapping[str, Any], release: Version | None
) -> float:
    """Return the GiB on a rank of a vision encoder that vLLM does not load, since all limits are 0.

    _mark_tower_model in vllm/model_executor/models/interfaces.py: not in 0.13.0, but in 0.19.1.
    """
    if may_see(options) or (release is not None and release < _LEAVES_OUT_SINCE):
        return 0.0
    layers, hidden = shape.encoder_layers, shape.vision_hidden or 0
    joined = (
        4 * hidden * (4 * hidden + (shape.hidden or 0))
        if shape.image_patches and not shape.image_tokens
        else 0
    )
    numbers = layers * (_GATED if shape.image_masked else _OF_ENCODER) * hidden**2 + joined
    return numbers * _BYTES / GIB / split.tensor / split.pipeline if layers else 0.0


def kept_levels(shape: ModelShape) -> int:
    """Count the layers of Qwen3-VL's encoder whose results the language model gets as well."""
    images = shape.image_patches is not None and shape.image_tokens is None
    return _LEVELS if images and shape.full_cache and shape.image_edge == _EDGE else 0


def kept_buffers(shape: ModelShape, tokens: int, release: Version | None) -> float:
    """Return the GiB that vLLM allocates with the weights, and that no checkpoint has.

    The table of rotations has a row for each position that the model knows, and four where images
    rotate, too: vllm/model_executor/layers/rotary_embedding, base.py and mrope.py. Heads of two
    widths have a table each, gemma4_rope.py, and others may rotate in part. Results of the
    encoder's layers have a buffer for a batch: deepstack_input_embeds in qwen3_vl.py. So do the
    streams of DeepSeek-V4: _mtp_hidden_buffer in vllm/models/deepseek_v4/nvidia/model.py.
    """
    width = (shape.rotated or shape.head_dim or _HEAD) if shape.latent is None else _ROPE
    images = (
        shape.image_patches is not None and shape.image_tokens is None and not shape.image_masked
    )
    rotated = _POSITIONS * width if images else width + (shape.full_head_dim or 0)
    if shape.state_layers and shape.latent is None:
        whole = shape.state_layers + (shape.full_layers or 0) == shape.layers
        share = 1 if shape.rotated else _ROTATED
        rotated = rotated // share if whole else 0  # nemotron_h.py rotates nothing
    positions = shape.context or 0 if shape.rotates else 0
    numbers = compressed_rotations(shape) or positions * rotated
    numbers += kept_levels(shape) * tokens * (shape.hidden or 0)
    always = release is not None and release < _DRAFTED_UNTIL
    if shape.compresses and (always or shape.draft_layers):
        numbers += tokens * shape.streams * (shape.hidden or 0)
    return numbers * _BYTES / GIB


def compressing_numbers(shape: ModelShape, hidden: int) -> int:
    """Count the numbers of a layer that compress queries, and keys with values."""
    return 0 if shape.latent is None else hidden * (shape.latent + (shape.query_latent or 0))


def head_numbers(shape: ModelShape, hidden: int) -> int:
    """Count the numbers of a layer's other projections of attention, which are split by heads."""
    if shape.latent is None:
        width = shape.head_dim or _HEAD
        return 2 * hidden * width * (shape.heads + (shape.kv_heads or 0))
    keys, values = latent_widths(shape)
    queries = (shape.query_latent or hidden) * (keys + _ROPE)
    return shape.heads * (queries + values * hidden) + _expanding(shape)


def _expanding(shape: ModelShape) -> int:
    """Count the numbers of a layer that expand a latent to keys and values."""
    return shape.heads * ((shape.latent or 0) - _ROPE) * sum(latent_widths(shape))


def attention_bytes(shape: ModelShape) -> float:
    """Return the bytes of a number of the attention."""
    dense = shape.latent is None and not shape.experts
    formats = (*_WHOLE, *PACKED) if dense else _WHOLE
    return bytes_of(shape.dtype) if shape.dtype is not None and shape.dtype in formats else _BYTES


_INNER, _HIDDEN = 128, 256
"""Multiples of an expert's inner width on one rank, and of the hidden size."""
_WIDER, _WIDER_RELEASES = 256, ((0, 11), (0, 27))
"""The former of FlashInfer's TRT-LLM kernels, their first release, and the first without."""
_ROW, _MORE, _GATE_AND_UP, _DOWN = 256, 128, 2 / 3, 1 / 3
"""With ROCm: the multiple of a row that is lengthened, and by how many numbers of 16 bits; shares
of an expert's weights."""
_UNQUANTISED, _SHUFFLED = "bf16", "fp8"
_RESERVED = ((0, 22), (0, 27))
"""Releases of vLLM that do not count what PyTorch keeps of them with ROCm: get_current_memory_usage
in vllm/platforms/rocm.py of 0.22.1, not of 0.20.2; since 0.27 total_consumed in mem_utils.py."""


def inner_multiple(gpu: str, release: Version | None) -> int:
    """Return the multiple to which vLLM fills up the inner width of an expert in MXFP4."""
    since, until = _WIDER_RELEASES
    wider = release is not None and since <= release < until and gpu.startswith(SERVER)
    return _WIDER if wider else _INNER


def loaded_weights(
    shape: ModelShape,
    split: Split,
    gib: float,
    rocm_width: int | None = None,
    multiple: int = _INNER,
    *,
    release: Version | None = None,
) -> float:
    """Return the GiB of weights on a GPU of the fullest stage as the engine holds them.

    Args:
        shape: The model.
        split: Its ranks.
        gib: All weights.
        rocm_width: The inner width of an expert on one rank, if vLLM runs on a GPU of AMD.
        multiple: To what the inner width of an expert in MXFP4 is filled up.
        release: The release of vLLM. None: the newest, or another engine.
    """
    since, until = _RESERVED
    whole = fullest_weights(shape, split, gib) + _embeddings_kept(shape, split, gib)
    whole += copied_weights(shape, split)
    hidden = shape.expert_state
    if not hidden or not shape.expert_ffn:
        return whole
    ranks = split.experts or split.tensor
    experts = min(expert_weights(shape), gib) / ranks / split.pipeline
    if shape.dtype == "mxfp4":
        inner = -(-shape.expert_ffn // ranks)
        larger = _filled(inner, multiple) * _filled(hidden, _HIDDEN) / (inner * hidden)
        return whole + experts * (larger - 1)
    if rocm_width and shape.dtype == _UNQUANTISED and gib == shape.weights_gib:
        gaps = release is None or not since <= release < until
        return whole + experts * _lengthened(hidden, rocm_width, gaps=gaps)
    if rocm_width and shape.dtype == _SHUFFLED and release is not None and release < since:
        layers = max(shape.layers - shape.dense_layers + shape.draft_layers, 1)
        return whole + experts * split.pipeline / layers
    return whole


def _lengthened(hidden: int, inner: int, *, gaps: bool) -> float:
    """Return by which share lengthened rows make experts grow, and gaps between them if they count.

    Rows of gate and up are as long as the hidden size, those of down as the inner width.
    """
    gate_and_up = _GATE_AND_UP * (_MORE / hidden if hidden % _ROW == 0 else 0)
    if inner % _ROW:
        return gate_and_up
    down = _DOWN * _MORE / inner
    unused = max(_GATE_AND_UP - _DOWN - down, 0.0) if gate_and_up else 0.0
    return gate_and_up + down + unused * gaps


def _embeddings_kept(shape: ModelShape, split: Split, gib: float) -> float:
    """Return by how much embeddings exceed their share of weights quantised while loading."""
    if not shape.weights_gib or not shape.vocab or not shape.hidden:
        return 0.0
    kept = 2 * shape.vocab * shape.hidden * 2 / GIB
    return max(1 - gib / shape.weights_gib, 0.0) * kept / split.tensor


def _filled(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def weights_of(
    command: CommandFacts, shape: ModelShape, release: Version | None
) -> float | Unknown:
    """Return the size of the weights in the format that the engine loads."""
    if shape.weights_gib is None:
        return Unknown(f"the table of models has no size of the weights of {shape.name}")
    offloaded, fetched = command.cpu_offload_gib, command.host_offload
    method = command.quantization
    unknown = first_unknown(offloaded, fetched, method)
    if unknown is not None:
        return unknown
    if offloaded or fetched:
        return Unknown("a part of its weights stays in the memory of the host")
    if not isinstance(method, str):
        return shape.weights_gib
    part = part_left(method, shape, release)
    return part if isinstance(part, Unknown) else shape.weights_gib * part


_QUANTISED, _HOLDS_BOTH_SINCE, _QUANTISES_EACH_SINCE = "fp8", (0, 13), (0, 16)
"""What vLLM quantises to after it has allocated all weights in 16 bits, the first release that does
so layer by layer, and the first that allocates each one when it is loaded: Fp8OnlineLinearMethod
and Fp8OnlineMoEMethod in vllm/model_executor/layers/quantization/fp8.py, patched_weight_loader in
0.13.0 and not in 0.12.0, `meta` in 0.16.0 and not in 0.15.1. `params_dict` in load_weights of each
model keeps those of 16 bits meanwhile, so that both are in memory before 0.16."""


def while_quantising(
    command: CommandFacts, shape: ModelShape, gib: float, release: Version | None
) -> float:
    """Return the GiB that weights take while vLLM quantises them as it loads them; else 0.

    Before 0.13 these are all weights in 16 bits; before 0.16 all quantised ones (`gib`) as well.
    """
    plain = shape.weights_gib or 0.0
    online = command.quantization == _QUANTISED and shape.dtype == _UNQUANTISED
    if release is None or release >= _QUANTISES_EACH_SINCE or not online:
        return 0.0
    return plain if release < _HOLDS_BOTH_SINCE else plain + gib


_COUNTED_SINCE = (0, 27)
"""The first release that counts what its allocator keeps; 0.26 does not."""
# fastsafetensors reads whole files into the memory of a GPU, and the next one while the weights of
# one are copied: fastsafetensors_weights_iterator in model_executor/model_loader/weight_utils.py of
# vLLM, and PipelineParallel in fastsafetensors/parallel_loader.py, whose queue has no place for
# more by default. PyTorch's allocator keeps them if weights that are packed again lie in them
# afterwards (vllm#57440; c10/cuda/CUDACachingAllocator.cpp). vLLM counts what it keeps since 0.27,
# where `total_consumed` in vllm/utils/mem_utils.py is what is free before less what is free after.
_FILES, _OF_A_FILE = 2, 10 * 10**9 / GIB
"""Files at once, and the most of a file that ModelOpt writes by default: max_shard_size in
modelopt/torch/export/unified_export_hf.py of 0.47. Files of others may be larger."""
_COPIED = ((0, 22), (0, 29))
"""Releases whose images have fastsafetensors 0.3.1 to 0.3.3, by their days: before 0.4.0."""


def staged_files(
    options: Mapping[str, Any], weights: float, release: Version | None, gpu: str = ""
) -> float:
    """Return what files keep at most, beside the weights; it may be nothing.

    On GB10 each file is copied to pinned memory of the host first, of 2^n bytes, which PyTorch
    keeps for files of the same size: mmap_file_pinned in fastsafetensors/frameworks/_torch.py, and
    copier/unified.py, of 0.3.1 to 0.3.3; ATen/core/CachingHostAllocator.h.

    Args:
        options: The options of the command line.
        weights: GiB of weights on a GPU, which its files have together.
        release: The release of vLLM. None: the newest.
        gpu: Name of the GPU.
    """
    since, until = _COPIED
    if options.get("--load-format") != "fastsafetensors":
        return 0.0
    if largest_batch.UNIFIED in gpu and release is not None and since <= release < until:
        whole = _OF_A_FILE if weights >= _OF_A_FILE else 0.0
        sizes = {_pinned(round(size * GIB)) for size in (whole, weights % _OF_A_FILE)}
        return sum(sizes) / GIB
    counted = release is None or release >= _COUNTED_SINCE
    return min(weights, _FILES * _OF_A_FILE) if counted else 0.0


_PROCESSED = 5
"""How much host memory an image takes after its processor ran, in multiples of its pixels in 16
bits: the mean of two given start-ups, s3 and s5. Which library keeps it is not known."""
_OF_TOKENS = 5
"""Bytes of the host for each request and token of the longest one: a number of 32 bits, and whether
it is one (vllm/v1/worker/gpu_input_batch.py)."""


def copies_of_host(start: StartUp) -> float:
    """Return the host memory that vLLM keeps for a batch. It counts if GPU and host share memory.

    A copy of the batch's embeddings, the tokens of all requests, the pixels of an image, and those
    of all images of a batch if they are more than one: CpuGpuBuffer in vllm/v1/utils.py, _reduce_
    data in vllm/multimodal/inputs.py, of 0.11.0 to 0.28.0. PyTorch rounds pinned memory up to
    powers of two: ATen/core/CachingHostAllocator.h.
    """
    sequences, tokens = batch_of(start)
    found = (
        _pinned(tokens * (start.shape.hidden or 0) * _BYTES)
        + sequences * (start.length or 0) * _OF_TOKENS
    )
    if start.encoder_ranks:
        number, pixels = images_of(start.shape, tokens)
        found += (1 if start.shape.film_tokens else 1 + _PROCESSED) * pixels * _BYTES
        found += _pinned(number * pixels * _BYTES) if number > 1 else 0
    return found / GIB


def _pinned(size: int) -> int:
    return 1 << (size - 1).bit_length() if size else 0
