"""Checks that the parallel sizes of prefill and decode let the KV cache pass between them."""

from collections.abc import Iterator

from kthena_components.core.engines.facts import one_of_sizes, set_size
from kthena_components.core.engines.kv_transfer import NIXL_OVER_PODS
from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.memory.sharding import model_shape
from kthena_components.core.models import ModelShape
from kthena_components.core.remedies import either, together
from kthena_components.core.rules.support.fixes import give_gpus
from kthena_components.core.rules.support.kv_halves import (
    MOONCAKE,
    NIXL,
    NIXL_PUSH,
    P2P,
    Half,
    Pair,
    halves_of,
    pairs_of,
)
from kthena_components.core.values.images import write_version

RULE = "kv-halves-parallel"
_NIXL_DECODE_WIDER = (0, 9, 1), (0, 14, 0)
"""The first vLLM whose NIXL requires that decode TP is a multiple of prefill TP, and the first that
also connects a wider prefill engine."""
_NIXL_ONE_HEAD = (0, 20, 0)
"""The first vLLM whose NIXL connects a wider prefill engine with one KV head per rank."""
_MOONCAKE_UNEQUAL = (0, 20, 0)
"""The first vLLM whose Mooncake connects engines of different tensor parallelism."""
_NIXL_ONE_STAGE = (0, 23, 0), (0, 26, 0)
"""The first vLLM whose engine refuses the addresses of a second stage, and the first whose NIXL
accepts them."""
_SGLANG_STAGES = (0, 5, 6, 1)
"""The first SGLang that compares the pipeline stages of both sides."""


def kv_halves_parallel(facts: ServingFacts) -> Iterator[Finding]:
    """The tensor and pipeline sizes of prefill and decode let each rank find its part of the cache.

    vLLM with NIXL: decode TP is a multiple of prefill TP; since 0.14.0 one of them is a multiple of
    the other, and prefill is wider only if its ranks do not share KV heads. MooncakeConnector:
    equal TP, and since 0.20.0 a multiple. P2pNcclConnector: equal TP. A NIXL engine has one
    pipeline stage; since 0.26.0 prefill with NixlPushConnector may have several. SGLang: one
    attention TP is a multiple of the other, and decode has one stage or as many as prefill. This is
    also checked where the halves are objects of their own: those that one InferencePool selects, or
    whose labels differ in llm-d.ai/role only, if one of them has llm-d's routing sidecar.

    Pass: prefill TP 4, decode TP 8; since 0.14.0 also prefill TP 8, decode TP 4.
    Fail: NixlConnector in v0.13.0 with prefill TP 8 and decode TP 4; prefill TP 4 and decode TP 6;
    NixlConnector with pipeline 2; SGLang: prefill PP 2 and decode PP 4.
    Level: mandatory, because the handshake or the transfer fails; advisory if an image states no
    release, and for a pipeline with kv_both in releases that start it: it may work alone.
    Source: vllm/distributed/kv_transfer/kv_connector/utils.py tp_ratio, v1/nixl
    _validate_remote_agent_handshake and NixlBaseConnectorWorker, v1/base.py
    set_xfer_handshake_metadata_pp_aware, v1/mooncake _get_tp_ratio, v1/p2p/p2p_nccl_connector.py;
    sglang/srt/disaggregation/common/conn.py _resolve_rank_mapping.
    """
    halves = halves_of(facts)
    for half in halves:
        yield from _nixl_stages(half)
    for pair in pairs_of(halves):
        if pair.decode.command.engine == "sglang":
            yield from _sglang_tensor(pair)
            yield from _sglang_stages(pair)
        elif pair.decode.family == NIXL:
            yield from _nixl(pair)
        elif pair.decode.family in {MOONCAKE, P2P}:
            yield from _vllm_others(pair)


def _nixl_stages(half: Half) -> Iterator[Finding]:
    """Report an engine with NIXL and several stages: the other half finds only one of them."""
    stages, push = half.command.pipeline, half.family == NIXL_PUSH
    if half.family not in {NIXL, NIXL_PUSH} or not isinstance(stages, int) or stages < 2:  # noqa: PLR2004 - several
        return
    if "kv_connector_module_path" in half.config:
        return
    refuses, accepts = _NIXL_ONE_STAGE
    level = half.start.since(refuses, accepts)
    if push and half.sends:
        level = half.start.since((0, 0, 0), accepts)
    elif half.one_way:
        level = Level.MANDATORY
    elif level is None:
        level = Level.ADVISORY
    if level is None:
        return
    allowed = "one, and since vLLM 0.26.0 several in prefill" if push else "one"
    seen = f"has {stages} pipeline stages, and {half.connector} supports {allowed}"
    yield from half.start.refused(seen, _one_stage(half, stages), level)


def _one_stage(half: Half, stages: int) -> str:
    """Share each layer among the GPUs of all stages, or push the cache."""
    tensor = half.command.tensor
    text = "write pipeline 1"
    single = set_size(half.command, "pipeline", 1, text)
    flat: str = single
    if isinstance(tensor, int):
        text = f"write tensor {tensor * stages} and pipeline 1"
        wider = set_size(half.command, "tensor", tensor * stages, "")
        flat = together(wider, single, text=text)
        gpus = half.start.engine.entry.gpus
        spans = isinstance(gpus, int) and tensor * stages > gpus
        if spans and half.start.since((0, 0, 0), NIXL_OVER_PODS):
            # Before, the other half looks for all ranks in the first pod.
            first = write_version(NIXL_OVER_PODS)
            flat = f"{text} in vLLM {first} or later, or GPUs for all ranks in one pod"
    prefill = half.one_way and half.sends and half.family != NIXL_PUSH
    pushed = f"use {NIXL_PUSH} of vLLM 0.26 or later in both halves"
    return either(flat, pushed) if prefill else flat


def _nixl(pair: Pair) -> Iterator[Finding]:
    """Check tensor sizes of two vLLM halves that NIXL connects, by what the release requires."""
    sizes = _tensors(pair)
    if sizes is None:
        return
    prefill, decode = sizes
    first, both_ways = _NIXL_DECODE_WIDER
    narrow = pair.since(first, both_ways)
    level = pair.since(both_ways)
    if narrow is not None and decode % prefill:
        yield from _tensor(
            pair, sizes, "NIXL requires that decode has a multiple of prefill's", narrow
        )
    elif level is not None and max(sizes) % min(sizes):
        yield from _tensor(pair, sizes, "NIXL requires that one divides the other", level)
    elif level is not None and prefill > decode:
        yield from _shared_heads(pair, sizes)


def _shared_heads(pair: Pair, sizes: tuple[int, int]) -> Iterator[Finding]:
    """Report a wider prefill engine whose ranks share KV heads, except with latent attention."""
    prefill = pair.prefill
    shape = model_shape(prefill.command, prefill.start.engine.entry.shape)
    if not isinstance(shape, ModelShape) or shape.kv_heads is None or not shape.full_cache:
        return
    strict = pair.since((0, 14, 0), _NIXL_ONE_HEAD) if sizes[0] == shape.kv_heads else None
    level = pair.since((0, 14, 0)) if sizes[0] > shape.kv_heads else strict
    if level is not None and shape.latent is None:
        most = f"{shape.kv_heads - 1 if strict else shape.kv_heads}"
        because = f"{shape.kv_heads} KV heads allow prefill to be wider up to tensor {most}"
        yield from _tensor(pair, sizes, because, level)


def _vllm_others(pair: Pair) -> Iterator[Finding]:
    """Check tensor sizes of two vLLM halves with P2pNcclConnector or MooncakeConnector."""
    sizes = _tensors(pair)
    if sizes is None or sizes[0] == sizes[1]:
        return
    if pair.decode.family == P2P:
        yield from _tensor(pair, sizes, "P2pNcclConnector requires equal sizes", Level.MANDATORY)
        return
    equal, divided = pair.since((0, 13, 0), _MOONCAKE_UNEQUAL), pair.since(_MOONCAKE_UNEQUAL)
    if equal is not None:
        yield from _tensor(pair, sizes, "MooncakeConnector requires equal sizes", equal)
    elif divided is not None and max(sizes) % min(sizes):
        because = "MooncakeConnector requires that one divides the other"
        yield from _tensor(pair, sizes, because, divided)


def _tensors(pair: Pair) -> tuple[int, int] | None:
    """Return the tensor sizes of both; None if unknown, or if context parallelism shares them."""
    commands = pair.prefill.command, pair.decode.command
    if any(one.prefill_context != 1 or one.decode_context != 1 for one in commands):
        return None
    prefill, decode = (one.tensor for one in commands)
    if not isinstance(prefill, int) or not isinstance(decode, int) or min(prefill, decode) < 1:
        return None
    return prefill, decode


def _tensor(pair: Pair, sizes: tuple[int, int], because: str, level: Level) -> Iterator[Finding]:
    prefill, decode = sizes
    seen = f"has tensor {decode}, but {pair.prefill.name} has tensor {prefill}, and {because}"
    remedy = _widened(pair.decode, prefill, decode)
    yield from pair.decode.start.refused(seen, remedy, level)


def _widened(half: Half, tensor: int, was: int) -> str:
    """Write the tensor size of prefill in decode, and as many GPUs as that needs."""
    engine, said = half.start.engine, f"write tensor {tensor} in both halves"
    gpus = engine.entry.gpus
    size = set_size(half.command, "tensor", tensor, said)
    if not isinstance(gpus, int) or gpus * tensor % was:
        return said
    return together(size, give_gpus(engine, gpus * tensor // was, ""), text=said)


def _sglang_tensor(pair: Pair) -> Iterator[Finding]:
    """Check that one attention tensor size of two SGLang halves divides the other."""
    prefill, decode = _attention(pair.prefill), _attention(pair.decode)
    if prefill is None or decode is None or not max(prefill, decode) % min(prefill, decode):
        return
    seen = (
        f"has attention tensor {decode}, but {pair.prefill.name} has {prefill}, and SGLang "
        "requires that one divides the other"
    )
    yield from pair.decode.start.refused(seen, f"write attention tensor {prefill} in both halves")


def _attention(half: Half) -> int | None:
    """Return the ranks that share the attention of one copy; None if they are not known."""
    command = half.command
    sizes = command.tensor, command.attention_data, command.attention_context
    tensor, data, context = (size if isinstance(size, int) else 0 for size in sizes)
    if command.decode_context != 1 or tensor < 1 or data < 1 or context < 1:
        return None
    return tensor // (data * context) or None


def _sglang_stages(pair: Pair) -> Iterator[Finding]:
    """Check that SGLang's decode has one pipeline stage, or as many as its prefill."""
    prefill, decode = pair.prefill.command.pipeline, pair.decode.command.pipeline
    level = pair.since(_SGLANG_STAGES)
    if level is None or not isinstance(prefill, int) or not isinstance(decode, int):
        return
    if decode not in {1, prefill}:
        seen = (
            f"has pipeline {decode}, but {pair.prefill.name} has {prefill}, and SGLang requires "
            "the same number of stages in decode, or one"
        )
        remedy = one_of_sizes(
            pair.decode.command, "pipeline", sorted({1, prefill}), "write pipeline"
        )
        yield from pair.decode.start.refused(seen, remedy, level)
