"""Checks external load balancing over a vLLM engine's copies: a part of data-parallel-layout."""

from collections.abc import Iterator

from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.memory.sharding import model_shape
from kthena_components.core.models import ModelShape
from kthena_components.core.remedies import either, set_option, without
from kthena_components.core.rules.support.engine_pods import ALWAYS, Start
from kthena_components.core.rules.support.messages import part_of_engine
from kthena_components.core.values.read import require_known
from kthena_components.core.values.unknown import Unknown, may_be

_EXTERNAL, _HYBRID = "--data-parallel-external-lb", "--data-parallel-hybrid-lb"
PORTS = "--data-parallel-multi-port-external-lb"
"""The option with which a pod serves each of its copies at its own port."""
_ONE_WAY = (0, 15)
"""The first vLLM that rejects two kinds of balancing, including a rank with a start rank."""
_START_REFUSED = (0, 9, 2)
"""The first vLLM that rejects a start rank without --headless."""
_START_COUNTS = (0, 10)
"""The first vLLM that reads it as a rank without --headless."""
_START_OF_NONE = (0, 28)
"""The first vLLM in which a start rank of 0 means hybrid balancing, like other start ranks."""
_DENSE_REFUSED = (0, 21)
"""The first vLLM without external balancing for copies of a dense model."""
_AMBIGUOUS = (0, 31)
"""The first vLLM that rejects node ranks that do not identify copies."""
_VARIABLES = (0, 8)
"""The first vLLM that reads VLLM_DP_SIZE."""
_FEWEST = 2


@part_of_engine
def outside_balance(start: Start) -> Iterator[Finding]:
    """Check each kind of balancing that is stated; two of them together are an error."""
    ways = _ways(start)
    if not ways:
        require_known("", _unclear(start))
    external, hybrid, ports = (way in ways for way in (_EXTERNAL, _HYBRID, PORTS))
    together = [*_together(start, ways)]
    if together:
        yield from together
    elif ports:
        yield from _each_port(start)
    elif external:
        yield from _external(start)
    elif hybrid:
        yield from _hybrid(start)
    else:
        yield from _from_a_rank_on(start)
    yield from _ranks(start)


def process_alone(start: Start) -> Iterator[Finding]:
    """Report an engine that is alone in its pod, and waits for other processes there."""
    command, data = start.command, start.command.data
    by_variable = command.where.get("data", "").startswith("VLLM_DP_SIZE")
    address = command.options.get("--data-parallel-address")
    own = isinstance(address, str) and address.startswith(("127.", "localhost"))
    level = start.since(_VARIABLES) if by_variable and own else None
    if level is not None and isinstance(data, int) and not start.engine.entry.others:
        seen = (
            f"has VLLM_DP_SIZE={data}, with which its process is one of "
            f"{count_of(data, 'copy')}, and waits "
            "at 127.0.0.1 for the others, which nothing in its pod starts"
        )
        remedy = either(
            set_option("--data-parallel-size", data, f"write --data-parallel-size {data} instead"),
            "state VLLM_DP_MASTER_IP",
        )
        yield from start.refused(seen, remedy, level)


def _ways(start: Start) -> dict[str, str]:
    """Return each stated kind of balancing with the option that states it."""
    ways = {way: way for way in (_HYBRID, PORTS) if start.is_on(way) is True}
    if start.is_on(_EXTERNAL) is True:
        ways[_EXTERNAL] = _EXTERNAL
    elif start.states("data_rank"):
        ways[_EXTERNAL] = "--data-parallel-rank"
    elif start.command.data_mode == "external":
        ways[_EXTERNAL] = _EXTERNAL
    return ways


def _unclear(start: Start) -> Unknown | None:
    """Explain why a kind of balancing may be stated where it is not read; None if none is."""
    rank = start.command.data_rank
    stated = (start.is_on(_EXTERNAL), start.is_on(_HYBRID), start.is_on(PORTS), rank)
    return next((value for value in stated if isinstance(value, Unknown)), None)


def _together(start: Start, ways: dict[str, str]) -> Iterator[Finding]:
    """Reject two kinds of balancing. Before 0.15 a rank alone makes a hybrid engine external."""
    if len(ways) < _FEWEST:
        return
    named = " and ".join(ways.values())
    hybrid_and_rank = set(ways.values()) == {_HYBRID, "--data-parallel-rank"}
    level = start.since(_ONE_WAY) if hybrid_and_rank else start.since((0, 11, 1))
    if level is not None:
        seen = f"is balanced by {named}, and vLLM accepts only one of them"
        yield from start.refused(seen, "keep one of them", level)


def _external(start: Start) -> Iterator[Finding]:
    """Check an engine whose copies an external load balancer addresses."""
    command, data, local = start.command, start.command.data, start.command.data_local
    if data == 1:
        yield from _alone(start, f"{_EXTERNAL} and --data-parallel-rank")
        return
    if isinstance(local, int) and local != 1:
        seen = (
            f"is balanced externally with {count_of(local, 'copy')} in this pod, and "
            "vLLM requires one"
        )
        yield from start.refused(
            seen,
            either(
                set_option("--data-parallel-size-local", 1),
                without("--data-parallel-size-local", text="remove it"),
            ),
        )
    if command.data_rank is None and not start.hidden:
        yield from _no_rank(start)
    elif (
        start.states("data_rank")
        and (level := start.since(_ONE_WAY)) is not None
        and isinstance(command.data_start_rank, int)
    ):
        seen = (
            "has both --data-parallel-rank and --data-parallel-start-rank, and vLLM accepts "
            "only one"
        )
        yield from start.refused(seen, without("--data-parallel-start-rank"), level)
    yield from _dense(start)


def _alone(start: Start, options: str) -> Iterator[Finding]:
    seen = "is balanced externally with data 1, and vLLM requires several copies for that"
    yield from start.refused(seen, f"write --data-parallel-size, or remove {options}")


def _no_rank(start: Start) -> Iterator[Finding]:
    """Refuse copies that nothing tells apart: no rank is stated, and no node implies one."""
    nodes, data = start.command.nnodes, start.command.data
    level = start.since(_AMBIGUOUS)
    if nodes in {None, 1}:
        seen = "is balanced externally and has no rank among its copies"
        yield from start.refused(seen, "write --data-parallel-rank, from 0 on")
        return
    if level is None or not isinstance(nodes, int) or not isinstance(data, int):
        return
    if data and nodes % data:
        seen = f"has data {data} on --nnodes {nodes}, and a node's rank does not identify"
        remedy = "write --data-parallel-rank for each"
        yield from start.refused(f"{seen} its copy", remedy, level)


def _dense(start: Start) -> Iterator[Finding]:
    """Refuse external balancing of a model without experts, where the release allows none."""
    level, data = start.since(_DENSE_REFUSED), start.command.data
    shape = model_shape(start.command, start.engine.entry.shape)
    dense = isinstance(shape, ModelShape) and shape.experts == 0
    if level is not None and dense and isinstance(data, int) and data > 1:
        yield from start.refused(
            f"is balanced externally with data {data}, and {start.product} requires a model with "
            "experts for that",
            "run separate engines, without --data-parallel-size",
            level,
        )


def _hybrid(start: Start) -> Iterator[Finding]:
    """Check hybrid balancing, where each pod serves its own copies: it serves, and has several."""
    command = start.command
    if start.is_on("--headless") is True:
        seen = "is balanced for each pod (hybrid), and serves nothing (--headless)"
        yield from start.refused(
            seen,
            either(
                without("--data-parallel-hybrid-lb"),
                without("--headless", text="--headless"),
                word=" or ",
            ),
        )
    elif command.data == 1:
        yield from _alone(start, _HYBRID)
    elif command.data_local is None and command.nnodes in {None, 1} and not start.hidden:
        seen = "is balanced for each pod (hybrid), and does not state the copies in a pod"
        yield from start.refused(seen, "add --data-parallel-size-local")


def _from_a_rank_on(start: Start) -> Iterator[Finding]:
    """Check a start rank: it means hybrid balancing, or external balancing for one copy."""
    command, first = start.command, start.command.data_start_rank
    zero = first == 0 and start.since(_START_OF_NONE) is None
    if command.headless is not False or not isinstance(first, int) or zero:
        return
    level = start.since(_START_REFUSED, _START_COUNTS)
    if level is not None:
        seen = f"has --data-parallel-start-rank {first}, and {start.product} accepts it with"
        yield from start.refused(
            f"{seen} --headless only", either(set_option("--headless", True), "remove it"), level
        )
    level = start.since(_START_COUNTS)
    if level is not None and command.data == 1 and _has_local(start):
        seen = (
            f"has --data-parallel-start-rank {first} with data 1, and vLLM requires several copies"
        )
        remedy = either("write --data-parallel-size", without("--data-parallel-start-rank"))
        yield from start.refused(f"{seen} for that", remedy, level)


def _has_local(start: Start) -> bool:
    """Return whether the copies in a pod are stated, or follow from --nnodes."""
    nodes = start.command.nnodes
    return start.states("data_local") or not may_be(nodes, None, 1)


def _ranks(start: Start) -> Iterator[Finding]:
    """Reject a rank above the rank of the last copy."""
    command, data = start.command, start.command.data
    rank, flag, level = command.data_rank, "--data-parallel-rank", ALWAYS
    external, ports = start.is_on(_EXTERNAL), start.is_on(PORTS)
    if rank is None and external is False and ports is False and _has_local(start):
        rank, flag = command.data_start_rank, "--data-parallel-start-rank"
        level = start.since(_START_COUNTS) or Level.ADVISORY
    inferred = external is True and not may_be(command.nnodes, None, 1)
    if inferred and start.since(_AMBIGUOUS) is None:
        return
    if isinstance(rank, int) and isinstance(data, int) and data > 1 and rank >= data:
        seen = (
            f"has {flag} {rank}, and its {count_of(data, 'copy')} are counted from 0 to {data - 1}"
        )
        yield from start.refused(seen, f"write a rank below {data}", level)


def _each_port(start: Start) -> Iterator[Finding]:
    """Check one pod that serves each of its copies at its own port."""
    command, local, data = start.command, start.command.data_local, start.command.data
    if not isinstance(data, int) or not isinstance(local, int | None) or start.hidden:
        return
    first = command.data_start_rank
    if first is None and isinstance(command.node_rank, int | None) and local:
        first = (command.node_rank or 0) * local
    seen, remedy = "", "change --data-parallel-size-local"
    if data < _FEWEST:
        seen, remedy = (f"with data {data}", set_option("--data-parallel-size", 2, then=" or more"))
    elif local is None or local < _FEWEST:
        seen = "with no copies in a pod stated" if local is None else f"with {local} in a pod"
        remedy = set_option("--data-parallel-size-local", 2, then=" or more")
    elif local <= data and data % local:
        seen = f"with data {data}, of which {local} are in each pod"
    elif local <= data and isinstance(first, int) and first + local > data:
        seen = f"with {count_of(local, 'copy')} from rank {first} on, of {data}"
        remedy = "write a smaller --data-parallel-start-rank or --node-rank"
    if seen:
        yield from start.refused(f"serves each copy at its own port {seen}", remedy)
    else:
        yield from _dense(start)
