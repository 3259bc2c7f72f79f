"""Whether the sizes on a command line fit each other, whatever GPUs stand behind them."""

from collections.abc import Iterator

from kthena_components.core.checks.gpus import gpus_of, ranks_of
from kthena_components.core.checks.wording import all_known, title, unjudged
from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding
from kthena_components.core.known import MaybeInt, Unknown

DATA = "data-parallel-layout"
SGLANG = "sglang-layout"
_TRIES = 4096
"""Divisors that are tried, so that no number takes long."""


def data_parallel_layout(facts: ServingFacts) -> Iterator[Finding]:
    """The copies of a vLLM engine lie whole in its nodes, and its context groups in its tensor one.

    Copies in a pod are at most the copies in all; balancing from outside needs several copies;
    --nnodes divides all ranks, and a copy covers a whole number of nodes evenly; decode context
    parallel divides tensor. What depends on the model's shape is not judged here.

    Pass: --data-parallel-size 8 --data-parallel-size-local 4; -tp 8 -dcp 4.
    Fail: local 8 of 4 copies; --data-parallel-external-lb with one copy; -tp 8 -dcp 3; -tp 2 -pp 3
    with --nnodes 4.
    Level: mandatory, because vLLM refuses each of them when it starts.
    Source: vllm/config/parallel.py; vllm/engine/arg_utils.py, create_engine_config.
    """
    for engine in facts.engines:
        command = engine.entry.command
        if command is not None and command.engine == "vllm":
            found = [
                *_local_copies(engine, command),
                *_outside_balance(engine, command),
                *_decode_context(engine, command),
                *_copies_on_nodes(engine, command),
            ]
            # One line is enough for one thing that is not known.
            yield from dict.fromkeys(found)


def _local_copies(engine: EngineFacts, command: CommandFacts) -> Iterator[Finding]:
    if command.data_local is None or command.data_mode == "external":
        return
    sizes = all_known(command.data, command.data_local)
    if isinstance(sizes, Unknown):
        yield from unjudged(engine, sizes, DATA)
        return
    data, local = sizes
    if local > data:
        yield _refused(
            engine,
            DATA,
            f"has data {data} in all, but {local} in this pod (--data-parallel-size-local)",
            f"write --data-parallel-size-local {data} or less, or --data-parallel-size {local} or "
            "more",
        )


def _outside_balance(engine: EngineFacts, command: CommandFacts) -> Iterator[Finding]:
    if command.data_mode == "external" and command.data == 1:
        yield _refused(
            engine,
            DATA,
            "is balanced from outside with data 1, and vLLM wants several copies for that",
            "write --data-parallel-size, or remove --data-parallel-external-lb and "
            "--data-parallel-rank",
        )


def _decode_context(engine: EngineFacts, command: CommandFacts) -> Iterator[Finding]:
    if command.decode_context == 1:
        return
    sizes = all_known(command.tensor, command.decode_context)
    if isinstance(sizes, Unknown):
        yield from unjudged(engine, sizes, DATA)
        return
    tensor, context = sizes
    if context and tensor % context:
        yield _refused(
            engine,
            DATA,
            f"has decode context {context}, which does not divide tensor {tensor}",
            f"write --decode-context-parallel-size {_divisor(tensor, context)}",
        )


def _copies_on_nodes(engine: EngineFacts, command: CommandFacts) -> Iterator[Finding]:
    """Judge nodes ÷ (copies ÷ copies in a node), and the ranks of each, which must be whole."""
    if command.nnodes in {None, 0, 1}:
        return
    sizes = all_known(command.nnodes or 0, command.tensor, command.pipeline, command.data)
    if isinstance(sizes, Unknown):
        yield from unjudged(engine, sizes, DATA)
        return
    nodes, tensor, pipeline, data = sizes
    copy, product = tensor * pipeline, _product(tensor, pipeline, data)
    if not copy * data:
        return
    if copy * data % nodes:
        if _counted_elsewhere(engine, command):
            return
        seen = f"has {product} ranks, which do not spread evenly over --nnodes {nodes}"
        yield _refused(engine, DATA, seen, f"make the ranks a multiple of {nodes}, or change it")
        return
    local = _local(command, copy * data // nodes // copy)
    if isinstance(local, Unknown):
        yield from unjudged(engine, local, DATA)
    elif local and local <= data and not _lies_evenly(nodes, copy, data, local):
        yield _refused(
            engine,
            DATA,
            f"has {product} ranks on --nnodes {nodes} with data {local} in a node, and a copy of "
            f"the model needs a whole number of nodes with equally many of its {copy} ranks",
            "change --data-parallel-size-local or --nnodes",
        )


def _lies_evenly(nodes: int, copy: int, data: int, local: int) -> bool:
    groups = data // local
    return data % local == 0 and nodes % groups == 0 and copy % (nodes // groups) == 0


def _counted_elsewhere(engine: EngineFacts, command: CommandFacts) -> bool:
    """Tell whether world-size-equals-gpus refuses the ranks already: one reason is enough."""
    ranks, held = ranks_of(engine, command), gpus_of(engine)
    return isinstance(ranks, int) and isinstance(held, int) and ranks != held


def _local(command: CommandFacts, inferred: int) -> MaybeInt:
    """Give the copies in a node, as vLLM infers them where they are not stated."""
    if isinstance(command.data_mode, Unknown):
        return command.data_mode
    if command.data_mode == "external":
        return 1
    return max(inferred, 1) if command.data_local is None else command.data_local


def _product(tensor: int, pipeline: int, data: int) -> str:
    copies = f" × data {data}" if data > 1 else ""
    return f"tensor {tensor} × pipeline {pipeline}{copies} = {tensor * pipeline * data}"


def _divisor(number: int, near: int) -> int:
    """Give the largest divisor of a number that is not larger than another number."""
    if near >= number:
        return number
    return next((n for n in range(near, max(near - _TRIES, 0), -1) if number % n == 0), 1)


def sglang_layout(facts: ServingFacts) -> Iterator[Finding]:
    """The ranks of an SGLang engine lie evenly in its nodes, and its copies in one node.

    (TP × PP) is a multiple of --nnodes; data parallel over several nodes does not exist;
    attention data parallel divides tensor, and does not go with ordinary data parallel.

    Pass: --tp-size 16 --nnodes 2; --tp-size 8 --attn-dp-size 4.
    Fail: --tp-size 6 --nnodes 4; --dp-size 2 --nnodes 2; --tp-size 8 --attn-dp-size 3; --dp-size 2
    with --attn-dp-size 2.
    Level: mandatory, because SGLang refuses each of them when it starts.
    Source: sglang/srt/server_args.py (0.5.23) and sglang/srt/arg_groups/parallel_hook.py.
    """
    for engine in facts.engines:
        command = engine.entry.command
        if command is not None and command.engine == "sglang":
            yield from dict.fromkeys(_sglang(engine, command))


def _sglang(engine: EngineFacts, command: CommandFacts) -> Iterator[Finding]:
    if command.nnodes not in {None, 0, 1}:
        yield from _sglang_nodes(engine, command)
    if command.attention_data == 1:
        return
    sizes = all_known(command.tensor, command.data, command.attention_data)
    if isinstance(sizes, Unknown):
        yield from unjudged(engine, sizes, SGLANG)
        return
    tensor, data, attention = sizes
    if attention and tensor % attention:
        yield _refused(
            engine,
            SGLANG,
            f"has attention data {attention}, which does not divide tensor {tensor}",
            f"write --attn-dp-size {_divisor(tensor, attention)}",
        )
    if data > 1:
        seen = f"has both data {data} and attention data {attention}, and SGLang takes one of them"
        yield _refused(engine, SGLANG, seen, "remove --dp-size or --attn-dp-size")


def _sglang_nodes(engine: EngineFacts, command: CommandFacts) -> Iterator[Finding]:
    nodes_and = all_known(command.nnodes or 0, command.tensor, command.pipeline, command.data)
    if isinstance(nodes_and, Unknown):
        yield from unjudged(engine, nodes_and, SGLANG)
        return
    nodes, tensor, pipeline, data = nodes_and
    if tensor * pipeline % nodes and not _counted_elsewhere(engine, command):
        seen = (
            f"has {_product(tensor, pipeline, 1)} ranks, which do not spread evenly over --nnodes"
        )
        remedy = f"make tensor × pipeline a multiple of {nodes}, or change --nnodes"
        yield _refused(engine, SGLANG, f"{seen} {nodes}", remedy)
    if data > 1:
        seen = f"has data {data} over --nnodes {nodes}, and SGLang has copies within one node only"
        remedy = "write --dp-size 1 and run more engines, or use --attn-dp-size"
        yield _refused(engine, SGLANG, seen, remedy)


def _refused(engine: EngineFacts, rule: str, seen: str, remedy: str) -> Finding:
    path, name = engine.entry.command_path, title(engine)
    return Finding(path=path, seen=f"{name} {seen}", remedy=remedy, rule=rule)
