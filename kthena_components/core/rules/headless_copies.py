"""Checks --headless in the pods of a vLLM engine with several copies of its model."""

from collections.abc import Iterator

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.remedies import set_option, without
from kthena_components.core.rules.support.engine_startup import Start, starts
from kthena_components.core.rules.support.messages import title
from kthena_components.core.values.images import Version

_COMPARED: Version = (0, 10)
"""The first vLLM whose first pod compares --headless of the others with its load balancing."""
_START_OF_NONE: Version = (0, 28)
"""The first vLLM in which a start rank of 0 means hybrid balancing, like other start ranks."""
_START = "--data-parallel-start-rank"
_REFUSED = ", and vLLM stops at the first message of a worker"


def headless_copies(facts: ServingFacts) -> Iterator[Finding]:
    """Workers of a vLLM engine with several copies have --headless, unless each pod has a server.

    The first pod balances the requests over all copies, and the others need --headless. With hybrid
    or external load balancing each pod has a server, and none may have it. Without --headless,
    --data-parallel-start-rank means hybrid balancing; a start rank of 0 only since 0.28.

    Pass: --data-parallel-size 2 --data-parallel-size-local 1 in both pods, and --headless in the
    worker.
    Fail: the same without --headless; the same with --data-parallel-start-rank 0 in the first pod.
    Level: mandatory from 0.10; advisory if the image states no release.
    Source: vllm/v1/engine/utils.py wait_for_engine_startup (remote_should_be_headless), of 0.10.0
    to 0.33.0; vllm/engine/arg_utils.py create_engine_config.
    """
    for start in starts(facts, "vllm"):
        worker = start.engine.worker
        other = None if worker is None else worker.command
        if worker is None or other is None or other.engine != "vllm" or start.engine.pods == 1:
            continue
        # A controller that adds the address adds --headless, too.
        meets = "--data-parallel-address" in other.options
        if meets and _is_compared(start.command) and _is_compared(other):
            yield from _check(start, other, worker.command_path)


def _is_compared(command: CommandFacts) -> bool:
    by_processes = command.data_backend in {None, "mp"} and command.nnodes in {None, 1}
    return command.hidden is None and by_processes and isinstance(command.headless, bool)


def _check(start: Start, other: CommandFacts, path: str) -> Iterator[Finding]:
    command = start.command
    data, local = command.data, command.data_local
    if not isinstance(data, int) or data <= 1 or command.headless or command.data_rank:
        return
    level = start.since(_COMPARED)
    if level is None or not isinstance(command.data_mode, str):
        return
    by_zero = command.data_mode == "hybrid" and command.data_start_rank == 0 and not _states(start)
    each = command.data_mode != "internal"
    if by_zero and start.since(_START_OF_NONE) is None:
        each = False
    if each and other.headless:
        stated = f"with {_START} 0" if by_zero else "as is stated"
        seen = f"has {command.data_mode} load balancing {stated}, in which each pod has a server, "
        seen += f"but --headless in its workers{_REFUSED}"
        remedy = without(_START) if by_zero else "remove --headless from the workers"
        yield _finding(start, start.engine.entry.command_path, seen, remedy, level)
    elif not each and not other.headless and isinstance(local, int) and local < data:
        seen = f"has {data} copies with {local} in its first pod, and no --headless in its workers"
        remedy = set_option("--headless", True, "add --headless to the workers")
        yield _finding(start, path, f"{seen}{_REFUSED}", remedy, level)


def _states(start: Start) -> bool:
    """Return whether an option of its own states hybrid balancing."""
    return bool(start.is_on("--data-parallel-hybrid-lb", "--data-parallel-external-lb"))


def _finding(start: Start, path: str, seen: str, remedy: str, level: Level) -> Finding:
    return Finding(
        path=path,
        seen=f"{title(start.engine)} {seen}",
        remedy=remedy,
        level=level,
    )
