"""The share of a GPU's memory that an engine may use, and of how much memory."""

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.serving import EngineFacts
from kthena_components.core.hardware import GpuFacts
from kthena_components.core.memory.sglang_reserve import (
    SglangStart,
    aiter_factor,
    default_share,
    vision_factor,
)
from kthena_components.core.memory.sharding import VLLM, attention_ranks
from kthena_components.core.models import ModelShape
from kthena_components.core.values.images import Version, read_image
from kthena_components.core.values.read import first_unknown
from kthena_components.core.values.unknown import Unknown

_SHARE, _OLD_SHARE, _SINCE = 0.92, 0.9, (0, 20)
"""vLLM's default of --gpu-memory-utilization, now and before 0.20."""
_CUDA, _KEPT, _KEPT_SHARE = ("NVIDIA", "a GPU"), 0.4, 0.0015
"""GPUs whose driver keeps memory, and how much: a base and a share, in GiB."""
_WHOLE, _WHOLE_SHARE = ("NVIDIA A100", "NVIDIA A800"), 0.0045
"""GPUs of which nvidia-smi states the whole memory, so CUDA's total is 79.1 to 79.3 of 80 GiB."""
_OF_HOST = 1.0
"""What firmware and host leave of GB10's memory: 119.7 to 121.69 GiB are seen, the middle here."""


def vllm_release(engine: EngineFacts, command: CommandFacts) -> Version | None:
    """Return the release of vLLM that the image states, None for another engine."""
    return _release(engine, "vllm") if command.engine in VLLM else None


def sglang_release(engine: EngineFacts) -> Version | None:
    """Return the release of SGLang that the image states."""
    return _release(engine, "sglang")


def _release(engine: EngineFacts, name: str) -> Version | None:
    image = engine.entry.own.image if engine.entry.own else None
    return read_image(image).release_of(name) if isinstance(image, str) else None


def usable_memory(gpu: GpuFacts) -> float:
    """Return the GiB that CUDA reports of a GPU: its driver keeps a part of them.

    Ten GPUs of 16 to 180 GiB are within 0.25 GiB of this. ROCm reports the whole memory.
    """
    if not gpu.name.startswith(_CUDA):
        return gpu.memory_gib
    if "GB10" in gpu.name:
        return gpu.memory_gib - _OF_HOST
    share = _WHOLE_SHARE if gpu.name.startswith(_WHOLE) else _KEPT_SHARE
    return gpu.memory_gib - _KEPT - share * gpu.memory_gib


def count_option(command: CommandFacts, option: str) -> int | None:
    """Return a count above zero that an option states."""
    value = command.options.get(option)
    return value if _is_count_option(value) else None


def _is_count_option(value: object) -> bool:
    return type(value) is int and value > 0


def share_of(
    engine: EngineFacts,
    command: CommandFacts,
    gpu: GpuFacts | Unknown | None,
    shape: ModelShape | Unknown,
) -> float | Unknown:
    """Return the share of a GPU that an engine may use: 1 for TensorRT-LLM's, of what is free."""
    stated = command.memory_fraction
    if command.engine == "trtllm":
        return 1.0
    if isinstance(stated, Unknown):
        return stated
    if stated is not None and not 0 < stated <= 1:
        return Unknown(f"{stated:g} is not a share of a GPU's memory")
    if command.engine == "sglang" and isinstance(gpu, GpuFacts) and isinstance(shape, ModelShape):
        share = _sglang_default(engine, command, gpu, shape) if stated is None else float(stated)
        return share if isinstance(share, Unknown) else share * _of_aiter(command, gpu, shape)
    if stated is not None:
        return float(stated)
    version = vllm_release(engine, command)
    return _OLD_SHARE if version is not None and version < _SINCE else _SHARE


def _sglang_default(
    engine: EngineFacts, command: CommandFacts, gpu: GpuFacts, shape: ModelShape
) -> float | Unknown:
    tensor, pipeline, copies = command.tensor, command.pipeline, command.attention_data
    unknown = first_unknown(tensor, pipeline, copies)
    if unknown is not None or not (
        isinstance(tensor, int) and isinstance(pipeline, int) and isinstance(copies, int)
    ):
        return unknown or Unknown("its sizes are not known")
    release = sglang_release(engine)
    share = default_share(
        SglangStart(
            memory_gib=gpu.memory_gib,
            ranks=tensor * pipeline,
            chunk=count_option(command, "--chunked-prefill-size"),
            graphs=command.options.get("--disable-cuda-graph") is not True,
            latent=shape.latent is not None,
            copies=copies if command.options.get("--enable-dp-attention") is True else 0,
            release=release,
        )
    )
    return share * vision_factor(shape, release) if _sees(command) else share


def _sees(command: CommandFacts) -> bool:
    """Return whether an engine of SGLang runs its model's vision encoder."""
    options = command.options
    decodes = options.get("--disaggregation-mode") == "decode"
    return not decodes and options.get("--language-only") is not True


def _of_aiter(command: CommandFacts, gpu: GpuFacts, shape: ModelShape) -> float:
    ranks, length = attention_ranks(command), command.max_model_len
    if not gpu.name.startswith("AMD") or not isinstance(ranks, int) or ranks < 1:
        return 1.0
    longest = shape.context if length is None else length
    return aiter_factor(
        shape,
        ranks,
        longest if isinstance(longest, int) else None,
        command.options.get("--attention-backend"),
    )
