"""How parallel sizes split a model's layers; shared by the rules about shapes."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache, wraps

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts, ranks_of
from kthena_components.core.findings import Finding, Level
from kthena_components.core.memory.sizes import Split
from kthena_components.core.models import ModelShape, find_model
from kthena_components.core.naming import NAME_LIMIT
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.images import Version
from kthena_components.core.values.read import first_unknown
from kthena_components.core.values.unknown import MaybeInt, NotKnownError, Unknown

VLLM = frozenset({"vllm", "huggingfaceserver"})
"""Engines whose expert parallelism uses all ranks or is off."""
ENGINES = frozenset({*VLLM, "sglang", "trtllm"})
"""Engines whose command line names the model."""
_GATHERING = (None, "allgather_reducescatter", "naive")
"""Transports between data-parallel copies that gather all tokens; the first one is the default."""
_TRANSPORTS = ("VLLM_ALL2ALL_BACKEND", "VLLM_FUSED_MOE_CHUNK_SIZE")
"""Variables for the transport, and for the tokens that experts run on at once."""
FLASHINFER = "VLLM_USE_FLASHINFER_SAMPLER"
"""Variable that chooses FlashInfer's sampler: vllm/envs.py of 0.10.2 to 0.33.0."""
_INSTALLED, _FOR_ARM, _ARM = ((0, 8), (0, 11, 1)), (0, 10), ("NVIDIA GH", "NVIDIA GB")
"""The releases of vLLM whose own image installs FlashInfer, in a version that its sampler takes
unless the variable is 0: the first, and the first without; the first that installs it for ARM; and
GPUs beside processors of ARM. docker/Dockerfile (before 0.8.3 Dockerfile) and TopKTopPSampler in
vllm/v1/sample/ops/topk_topp_sampler.py of 0.8.0, 0.8.2 to 0.8.5, 0.9.0 to 0.9.2, 0.10.0 to 0.10.2
and 0.11.0. 0.11.1 and later take it only if the variable is 1."""
_RESULTS, _PROCESSED = "--logprobs-mode", "processed"
"""The option, and the start of its values, with which FlashInfer does not sample since 0.10.2."""
_TOO_OLD = "V100"
"""A GPU that FlashInfer has no kernels for: TORCH_CUDA_ARCH_LIST in those files begins at 7.5."""

SWITCHED = ("NVIDIA H", "NVIDIA GH", "NVIDIA B", "NVIDIA GB200", "NVIDIA GB300")
BRIDGED = "NVL"
"""GPUs whose links are bridges between a few of them, without a switch: no multicast
(vllm/distributed/device_communicators/symm_mem.py)."""
LINKED = (*SWITCHED, "NVIDIA A100", "NVIDIA A800", "NVIDIA V100")
"""GPUs by the starts of their names: with a switch of NVLink, and with direct links."""


_MASKED_SINCE, _ROW = (0, 12), 8
"""The first release of vLLM that was read which installs no xformers, and of what PyTorch needs the
numbers of a mask's row to be a multiple: preprocess_mask in ATen/native/transformers/attention.cpp.
"""


@dataclass(frozen=True, slots=True)
class Part:
    """A dimension of a layer that several ranks share."""

    what: str
    size: int
    ranks: MaybeInt
    expert: bool = False
    """Whether it is a dimension of each expert."""

    @property
    def piece(self) -> int:
        """The size on each rank; the whole size if the ranks are unknown."""
        return self.size // self.ranks if isinstance(self.ranks, int) and self.ranks else self.size

    @property
    def rest(self) -> int:
        """The remainder if each rank gets the same whole number."""
        return self.size % self.ranks if isinstance(self.ranks, int) and self.ranks else 0


@dataclass(frozen=True, slots=True)
class Sharding:
    """One engine, the facts of its command line, and the shape of its model."""

    engine: EngineFacts
    command: CommandFacts
    shape: ModelShape

    @property
    def attention(self) -> MaybeInt:
        """Ranks that share the attention heads."""
        return attention_ranks(self.command)

    @property
    def feed_forward(self) -> list[Part]:
        """The inner widths of the dense layers and of the experts, if known."""
        command, shape, parts = self.command, self.shape, []
        if shape.ffn is not None:
            parts.append(Part("feed-forward layer", shape.ffn, _dense_ranks(command, shape)))
        if shape.expert_ffn is not None:
            what = "expert feed-forward layer"
            parts.append(Part(what, shape.expert_ffn, _expert_ranks(command), expert=True))
        return parts

    def at(self, tensor: int) -> "Sharding":
        """Return the same engine with another tensor size."""
        return replace(self, command=replace(self.command, tensor=tensor))

    def finding(self, seen: str, remedy: str, level: Level = Level.MANDATORY) -> Finding:
        """Return a finding about the engine's sizes."""
        return Finding(
            path=self.engine.entry.command_path,
            seen=f"engine {display(self.engine.name, NAME_LIMIT)} {seen}",
            remedy=remedy,
            level=level,
        )

    def cannot_check(self, because: str) -> Iterator[Finding]:
        """Report why a rule could not check; nothing if the command line itself has an error."""
        if because not in {problem.text for problem in self.command.problems if problem.hard}:
            yield self.finding(f"was not checked, because {because}", "", Level.UNKNOWN)


def each_sharding(
    check: Callable[[Sharding], Iterable[Finding]],
) -> Callable[[ServingFacts], Iterator[Finding]]:
    """Make a rule that checks each engine that splits a model of known shape."""

    @wraps(check)
    def rule(facts: ServingFacts) -> Iterator[Finding]:
        for sharding in shardings(facts):
            try:
                yield from check(sharding)
            except NotKnownError as late:
                yield from sharding.cannot_check(late.gap.because)

    return rule


def shardings(facts: ServingFacts) -> Iterator[Sharding]:
    """Return each engine that splits a model of known shape."""
    for engine, command in _splitting(facts):
        shape = model_shape(command, engine.entry.shape)
        if isinstance(shape, ModelShape):
            yield Sharding(engine, command, shape)


def shapeless(facts: ServingFacts) -> Iterator[tuple[EngineFacts, str]]:
    """Return each engine that splits a model of unknown shape, and why the shape is unknown.

    Engines whose model and ranks cannot be read are left out: other rules report their ranks.
    """
    for engine, command in _splitting(facts):
        shape = model_shape(command, engine.entry.shape)
        unread = isinstance(command.model, Unknown)
        if isinstance(shape, Unknown):
            if unread and isinstance(ranks_of(engine, command), Unknown):
                continue
            yield engine, shape.because


def _splitting(facts: ServingFacts) -> Iterator[tuple[EngineFacts, CommandFacts]]:
    """List the engines whose model is split in any way, or whose expert split is unknown."""
    for engine in facts.engines:
        command = engine.entry.command
        if command is None or command.engine not in ENGINES:
            continue
        sizes = (
            command.tensor, command.pipeline, command.data, command.prefill_context,
            command.attention_data, command.attention_context,
        )  # fmt: skip
        if _possible(sizes) and (command.expert is not False or sizes != _NOT_SPLIT):
            yield engine, command


_NOT_SPLIT = (1, 1, 1, 1, 1, 1)


@lru_cache(maxsize=256)
def _possible(sizes: tuple[MaybeInt, ...]) -> bool:
    return all(isinstance(size, Unknown) or size > 0 for size in sizes)


def attention_ranks(command: CommandFacts) -> MaybeInt:
    """Count the ranks that share the attention heads of one copy.

    Source: sglang/srt/runtime_context.py derive_attn_tp_size.
    """
    ranks = _share(command.tensor, "attention data", command.attention_data)
    return _share(ranks, "attention context", command.attention_context)


NO_MODEL = Unknown("its command line names no model")


def split_of(command: CommandFacts) -> Split | Unknown:
    """Return how many ranks share each part of the model.

    vLLM distributes the experts over its data parallel ranks, too, whole or sliced.
    """
    spread = command.engine in VLLM
    sizes = {
        "tensor": command.tensor,
        "pipeline": command.pipeline,
        "context": command.prefill_context if spread else 1,
        "data": command.data if spread else 1,
        "attention": attention_ranks(command),
        "decode": command.decode_context,
    }
    if (unknown := first_unknown(*sizes.values())) is not None:
        return unknown
    known = {name: size for name, size in sizes.items() if isinstance(size, int)}
    if min(known.values()) < 1:
        return Unknown("one of its sizes is below 1")
    return Split(
        tensor=known["tensor"],
        pipeline=known["pipeline"],
        experts=known["tensor"] * known["context"] * known["data"],
        attention=known["attention"],
        decode_context=known["decode"],
    )


def gathers_tokens(engine: EngineFacts, command: CommandFacts) -> bool:
    """Return whether each data-parallel copy's experts run on the tokens of all copies.

    Other transports send an expert its tokens only. A variable may choose one, or a smaller piece:
    VLLM_ALL2ALL_BACKEND and VLLM_FUSED_MOE_CHUNK_SIZE in vllm/envs.py.
    """
    gathers = command.options.get("--all2all-backend") in _GATHERING
    return gathers and engine.entry.stated.isdisjoint(_TRANSPORTS)


def switched(
    engine: EngineFacts, value: str, gpu: str = "", release: Version | None = None
) -> frozenset[str]:
    """Return the variables of the engine that are 1, or those that are 0.

    Args:
        engine: The engine.
        value: 1 or 0.
        gpu: Name of its GPU.
        release: The release of vLLM, whose own image may have FlashInfer's sampler unasked.
    """
    stated = engine.entry.engine_variables.items()
    found = frozenset(name for name, variable in stated if variable.value == value)
    samples = value == "1" and _has_sampler(engine, gpu, release)
    return found | {FLASHINFER} if samples else found


def _has_sampler(engine: EngineFacts, gpu: str, release: Version | None) -> bool:
    """Return whether vLLM's own image samples with FlashInfer as no variable forbids it."""
    image, command = engine.entry.image, engine.entry.command
    if image is None or not image.is_vllm or image.installs or command is None or release is None:
        return False
    since, until = _INSTALLED
    runs = since <= release < until and gpu.startswith("NVIDIA") and _TOO_OLD not in gpu
    if not runs or FLASHINFER in engine.entry.stated:
        return False
    arm = gpu.startswith(_ARM) and release < _FOR_ARM
    return not arm and not str(command.options.get(_RESULTS)).startswith(_PROCESSED)


def is_linked(gpu: str) -> bool:
    """Return whether GPUs of a name have links between them, rather than PCIe alone."""
    return gpu.startswith((*LINKED, "AMD"))


def model_shape(
    command: CommandFacts, stated: ModelShape | Unknown | None = None
) -> ModelShape | Unknown:
    """Return the stated shape, or the shape of the model in the command line."""
    if stated is not None:
        return stated
    if command.model is None:
        return NO_MODEL
    return command.model if isinstance(command.model, Unknown) else find_model(command.model)


def fits(sharding: Sharding, *, blocks: bool = False) -> bool:
    """Return whether no rule about tensor sizes reports a sharding; unknown sizes do not count.

    Args:
        sharding: The engine and its model.
        blocks: Whether FP8 blocks must stay whole, too.
    """
    ranks, shape = sharding.attention, sharding.shape
    if isinstance(ranks, int) and (
        ranks < 1 or shape.heads % ranks or not kv_heads_fit(shape, ranks)
    ):
        return False
    if any(part.rest for part in sharding.feed_forward):
        return False
    return not (blocks and cut_blocks(sharding))


def is_whole(tensor: int, gpus: int, pods: int) -> bool:
    """Return whether tensor groups do not share pods partially."""
    return pods == 1 or tensor % gpus == 0 or gpus % tensor == 0


def kv_heads_fit(shape: ModelShape, ranks: int) -> bool:
    """Return whether each rank gets as many KV heads, or each KV head as many ranks."""
    kv_heads = shape.kv_heads
    return kv_heads is None or kv_heads % ranks == 0 or ranks % kv_heads == 0


def cut_blocks(sharding: Sharding) -> list[Part]:
    """Return the dimensions that divide evenly, but not into whole FP8 blocks."""
    block = sharding.shape.fp8_block
    if block is None:
        return []
    return [
        part
        for part in sharding.feed_forward
        if isinstance(part.ranks, int)
        and (part.ranks > 1 or part.expert)
        and not part.rest
        and part.piece % block
    ]


def unknown_part(sharding: Sharding) -> Unknown | None:
    """Return why the ranks that share a dimension are unknown."""
    return next((p.ranks for p in sharding.feed_forward if isinstance(p.ranks, Unknown)), None)


def divisors(number: int) -> list[int]:
    """List the divisors of a number, smallest first."""
    small = [n for n in range(1, math.isqrt(number) + 1) if number % n == 0]
    return sorted({*small, *(number // n for n in small)})


def _dense_ranks(command: CommandFacts, shape: ModelShape) -> MaybeInt:
    """Count the ranks that share a dense layer; SGLang can keep it whole next to experts.

    Source: sglang/srt/layers/dp_attention.py, --moe-dense-tp-size.
    """
    whole = bool(shape.experts) and _integer_option(command, "--moe-dense-tp-size") == 1
    return 1 if whole else command.tensor


def _expert_ranks(command: CommandFacts) -> MaybeInt:
    """Count the ranks that share one expert.

    Without expert parallelism, vLLM splits an expert over all ranks. The others split it over the
    tensor group divided by expert and MoE data parallelism.

    Source: vllm/model_executor/layers/fused_moe/config.py; tensorrt_llm/mapping.py;
    sglang/srt/distributed/parallel_state.py moe_tp_size.
    """
    if isinstance(command.expert, Unknown):
        return command.expert
    if command.engine not in VLLM:
        ranks = _share(command.tensor, "expert parallel", command.expert_size)
        copies = _integer_option(command, "--moe-dp-size", "--moe-data-parallel-size")
        return ranks if copies is None else _share(ranks, "MoE data", copies)
    return 1 if command.expert else replace(command, expert=True).expert_size


def _integer_option(command: CommandFacts, *names: str) -> int | None:
    values = (command.options.get(name) for name in names)
    return next((value for value in values if type(value) is int), None)


def _share(tensor: MaybeInt, what: str, size: MaybeInt) -> MaybeInt:
    """Divide the ranks of a tensor group by a size."""
    if isinstance(tensor, Unknown) or isinstance(size, Unknown):
        return tensor if isinstance(tensor, Unknown) else size
    if size < 1 or tensor % size:
        return Unknown(f"tensor {tensor} is not a multiple of {what} {size}")
    return tensor // size


def masked_numbers(shape: ModelShape, patches: int, ranks: int, release: Version | None) -> float:
    """Count the numbers of a layer of Mistral's encoder of images while it runs, with its mask.

    Without xformers, the patches of all images of a batch have one mask, which is copied where rows
    need padding, beside state, norm, queries, keys, values, rotated queries and keys, and result.
    The feed-forward part has state, result of attention, their sum, norm, gate, up and product:
    VisionTransformer, Attention and FeedForward in vllm/model_executor/models/pixtral.py of 0.12.0
    to 0.33.0, and generate_block_attention_mask of transformers.

    Args:
        shape: The model.
        patches: Patches of a run.
        ranks: Ranks that share its layers.
        release: The release of vLLM. None: the newest.
    """
    hidden, older = shape.vision_hidden or 0, release is not None and release < _MASKED_SINCE
    mask = 0 if older else patches**2
    attention = patches * hidden * (2 + 6 / ranks) + (mask if patches % _ROW else 0)
    return mask + max(attention, patches * hidden * (4 + 12 / ranks))
