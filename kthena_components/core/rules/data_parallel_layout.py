"""Checks that the copies in a vLLM command line fit each other and the nodes."""

from collections import Counter
from collections.abc import Iterator

from kthena_components.core.facts.serving import ServingFacts, gpus_of, ranks_of
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.remedies import either, set_option, without
from kthena_components.core.rules.data_parallel_layout_external import (
    PORTS,
    outside_balance,
    process_alone,
)
from kthena_components.core.rules.support.engine_pods import ALWAYS, Start, starts
from kthena_components.core.rules.support.messages import part_of_engine
from kthena_components.core.values.display import listing
from kthena_components.core.values.unknown import MaybeInt, Unknown, known, known_sizes

DATA = "data-parallel-layout"
_TRIES = 4096
"""Maximum number of divisors to try."""
_LEFT_OVER_SEEN = (0, 31)
"""The first vLLM that rejects unused nodes (ParallelConfig.nnodes_within_dp)."""
_PREFILL_COUNTED = (0, 30)
"""The first vLLM that counts prefill context when it distributes ranks over nodes."""


def data_parallel_layout(facts: ServingFacts) -> Iterator[Finding]:
    """The copies of a vLLM engine fill its nodes evenly, with one kind of load balancing.

    --data-parallel-size-local is at most --data-parallel-size; --nnodes divides all ranks, and a
    copy covers a whole number of nodes evenly. Up to vLLM 0.29 prefill context does not count among
    those ranks. External load balancing needs several copies, a rank among them and one copy per
    pod; since 0.21 it also needs a model with experts. With VLLM_DP_SIZE instead of the option,
    each process is one copy, and others must be started.

    Pass: --data-parallel-size 8 --data-parallel-size-local 4.
    Fail: local 8 of 4 copies; --data-parallel-external-lb with one copy; rank 8 of 8;
    --data-parallel-hybrid-lb without a local size; -tp 2 -pp 3 with --nnodes 4; VLLM_DP_SIZE=2 for
    the only engine of a pod, without VLLM_DP_MASTER_IP.
    Level: mandatory, because vLLM rejects each of them at startup; advisory if releases differ and
    the image states none.
    Source: vllm/config/parallel.py; vllm/engine/arg_utils.py, create_engine_config;
    vllm/entrypoints/cli/serve.py.
    """
    beside = Counter(engine.path for engine in facts.engines)
    for start in starts(facts, "vllm"):
        found = [*_local_copies(start), *outside_balance(start), *_copies_on_nodes(start)]
        if beside[start.engine.path] == 1:
            found += process_alone(start)
        # One line per unknown value is enough.
        yield from dict.fromkeys(found)


@part_of_engine
def _local_copies(start: Start) -> Iterator[Finding]:
    """Refuse more data-parallel copies in one pod than the engine has in all."""
    command = start.command
    if command.data_local is None or command.data_mode == "external":
        return
    data, local = known_sizes(command.data, command.data_local)
    if local > data:
        yield from start.refused(
            f"has data {data} in all, but {local} in this pod (--data-parallel-size-local)",
            either(
                set_option("--data-parallel-size-local", data, then=" or less"),
                set_option("--data-parallel-size", local, f"--data-parallel-size {local} or more"),
            ),
        )


@part_of_engine
def _copies_on_nodes(start: Start) -> Iterator[Finding]:
    """Check that nodes ÷ (copies ÷ copies in a node), and the ranks of each, are whole numbers."""
    command = start.command
    if command.nnodes in {None, 0, 1}:
        return
    sizes = known_sizes(
        command.nnodes or 0, command.tensor, command.pipeline, command.data, command.prefill_context
    )
    nodes, tensor, pipeline, data, prefill = sizes
    if tensor * pipeline * data * prefill:
        if command.data_backend == "ray":
            seen = f"has --nnodes {nodes} with --data-parallel-backend ray, and vLLM connects such"
            nodes_too = ("--nnodes", "--node-rank", "--master-addr")
            remedy = either(
                without("--data-parallel-backend"), without(*nodes_too, text=listing(nodes_too))
            )
            yield from start.refused(f"{count_of(seen, 'node')} without Ray", remedy)
        rank = command.node_rank
        if isinstance(rank, int) and rank >= nodes:
            seen = (
                f"has --node-rank {rank}, and counts its {count_of(nodes, 'node')} from "
                f"0 to {nodes - 1}"
            )
            yield from start.refused(seen, f"write a rank below {nodes}")
        yield from _spread(start, *sizes)


def _spread(start: Start, nodes: int, *sizes: int) -> Iterator[Finding]:
    """Check that the ranks spread evenly over the nodes of --nnodes."""
    tensor, pipeline, data, prefill = sizes
    level = ALWAYS if prefill == 1 else _counted(start)
    if level is None:
        counted, context = tensor * pipeline, 1
        level = start.since((0, 11, 1), _PREFILL_COUNTED) or Level.ADVISORY
    else:
        counted, context = tensor * pipeline * prefill, prefill
    ranks = product(tensor, pipeline, data, context)
    if counted * data % nodes:
        if not (counted_elsewhere(start) and context == prefill):
            left_out = (
                "" if context == prefill else f" ({start.product} leaves prefill context out)"
            )
            seen = f"has {ranks}{left_out}, which do not spread evenly over --nnodes {nodes}"
            yield from start.refused(
                seen, f"make the ranks a multiple of {nodes}, or change it", level
            )
        return
    copy = tensor * pipeline * prefill
    local = known(_local(start, counted * data // nodes // counted))
    if local and local <= data and (uneven := _uneven(start, nodes, copy, data, local)):
        yield from start.refused(
            f"has {ranks} on --nnodes {nodes} with data {local} in a node, and a copy of "
            "the model needs a whole number of nodes with equally many of its "
            f"{count_of(copy, 'rank')}",
            "change --data-parallel-size-local or --nnodes",
            uneven,
        )


def _counted(start: Start) -> Level | None:
    """Return the level if prefill context counts; it does for a program of unknown release."""
    if start.command.release is None:
        return Level.ADVISORY
    return start.since(_PREFILL_COUNTED)


def _uneven(start: Start, nodes: int, copy: int, data: int, local: int) -> Level | None:
    """Check the nodes of a copy; groups of nodes have whole copies.

    Up to 0.30 vLLM ignores unused nodes, which then do not know their copy. With external load
    balancing and a rank for each copy, a node may have several groups since 0.31.
    """
    groups, level = data // local, start.since(_LEFT_OVER_SEEN)
    within = nodes // groups
    outside = start.command.data_mode == "external" or (
        start.command.data_mode == "hybrid" and local == 1
    )
    if outside and level is not None:
        within = max(within, 1)
    if within == 0 or copy % within:
        return ALWAYS
    if nodes % groups == 0 or (outside and level is not None):
        return None
    return level or Level.ADVISORY


def counted_elsewhere(start: Start) -> bool:
    """Return whether world-size-equals-gpus already reports the ranks: one reason is enough."""
    ranks, held = ranks_of(start.engine, start.command), gpus_of(start.engine)
    return isinstance(ranks, int) and isinstance(held, int) and ranks != held


def _local(start: Start, inferred: int) -> MaybeInt:
    """Return the copies in a node, as vLLM infers them if not stated."""
    command = start.command
    if isinstance(command.data_mode, Unknown):
        return command.data_mode
    if command.data_mode == "external" or start.is_on(PORTS) is True:
        return 1
    return max(inferred, 1) if command.data_local is None else command.data_local


def product(tensor: int, pipeline: int, data: int = 1, context: int = 1) -> str:
    """Write the product of some sizes: `tensor 2 × pipeline 3 = 6 ranks`."""
    more = f" × context {context}" if context > 1 else ""
    more += f" × data {data}" if data > 1 else ""
    ranks = count_of(tensor * pipeline * context * data, "rank")
    return f"tensor {tensor} × pipeline {pipeline}{more} = {ranks}"


def divisor(number: int, near: int) -> int:
    """Return the largest divisor of a number up to another number."""
    if near >= number:
        return number
    return next((n for n in range(near, max(near - _TRIES, 0), -1) if number % n == 0), 1)
