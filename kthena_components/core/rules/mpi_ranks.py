"""Checks the ranks that an MPI launcher starts for an engine, and on which hosts."""

from collections.abc import Iterator

from kthena_components.core.engines import CommandFacts
from kthena_components.core.engines.programs import RANK_LAUNCHER
from kthena_components.core.facts.serving import EngineFacts, gpus_of
from kthena_components.core.findings import Finding, count_of
from kthena_components.core.rules.support.messages import each_engine, part_of_engine, title
from kthena_components.core.values.read import require_known

RULE = "mpi-ranks"


@each_engine
def mpi_ranks(engine: EngineFacts) -> Iterator[Finding]:
    """An MPI launcher starts tensor × pipeline × context ranks, one per GPU, on the engine's pods.

    trtllm-llmapi-launch makes one session of all ranks, and the engine rejects a session of another
    size. mpirun rejects more ranks than its hosts have slots, and rank and GPU of a pod have the
    same number, so a pod cannot have more ranks than GPUs. Without trtllm-llmapi-launch, each rank
    starts a server of its own, and only rank 0 may start the others.

    Pass: mpirun -n 16 -H a:8,b:8 trtllm-llmapi-launch trtllm-serve M --tp_size 8 --pp_size 2, on 2
    pods of 8 GPUs.
    Fail: mpirun -n 8 with tensor 16; -n 16 with -H a:8; -H a:8,b:8 on 4 pods; --map-by ppr:8:node
    on pods of 4 GPUs; mpirun -n 16 trtllm-serve M --tp_size 16.
    Level: mandatory.
    Source: tensorrt_llm/llmapi/mpi_session.py validate_session_world_size and MpiCommSession, and
    tensorrt_llm/mapping.py local_rank; mpirun(1) of Open MPI, -H and --map-by.
    """
    command = engine.entry.command
    if command is None or command.engine is None:
        return
    if command.engine == "trtllm":
        if command.mpi_session is True:
            yield from _session(engine, command)
        elif command.mpi_session is False:
            yield from _servers(engine, command)
    yield from _slots(engine, command)
    yield from _per_host(engine, command)


@part_of_engine
def _session(engine: EngineFacts, command: CommandFacts) -> Iterator[Finding]:
    ranks, world = command.mpi_ranks, command.per_rank_world
    if ranks is None:
        return
    require_known("", ranks, world)
    if isinstance(ranks, int) and isinstance(world, int) and ranks != world:
        yield _wrong(
            engine,
            f"needs {count_of(world, 'rank')} (tensor {command.tensor} × pipeline "
            f"{command.pipeline} × context {command.prefill_context}), but mpirun starts {ranks}",
            _fitting(engine, ranks, world),
        )


@part_of_engine
def _servers(engine: EngineFacts, command: CommandFacts) -> Iterator[Finding]:
    """Report ranks that are servers: their number is that of the engine's ranks."""
    ranks, world = command.mpi_ranks, command.per_rank_world
    if ranks is None:
        return
    require_known("", ranks, world, command.hidden)
    if isinstance(ranks, int) and ranks == world and ranks > 1:
        yield _wrong(
            engine,
            f"is started {ranks} times by mpirun, and each of these ranks is a server, of which "
            "only rank 0 may start a session",
            f"write {RANK_LAUNCHER} in front of it",
        )


def _fitting(engine: EngineFacts, ranks: int, world: int) -> str:
    """Say which of the two numbers is wrong: the other one is that of the GPUs."""
    held = gpus_of(engine)
    sizes = f"state sizes with tensor × pipeline × context = {ranks}"
    if held == ranks:
        return sizes
    return f"write -n {world}" if held == world else f"write -n {world}, or {sizes}"


def _slots(engine: EngineFacts, command: CommandFacts) -> Iterator[Finding]:
    slots, ranks, pods = command.mpi_slots, command.mpi_ranks, engine.pods
    if not isinstance(slots, tuple):
        return
    hosts = count_of(len(slots), "host")
    if isinstance(ranks, int) and ranks > sum(slots):
        yield _wrong(
            engine,
            f"starts {count_of(ranks, 'rank')}, but {hosts} of -H "
            f"{'has' if len(slots) == 1 else 'have'} {count_of(sum(slots), 'slot')}",
            "write host:slots for each host, with as many slots as its pod has GPUs",
        )
    elif isinstance(pods, int) and pods != len(slots):
        yield _wrong(
            engine,
            f"has {count_of(pods, 'pod')}, but mpirun starts ranks on {hosts} of -H",
            "name each pod of the engine once",
        )


def _per_host(engine: EngineFacts, command: CommandFacts) -> Iterator[Finding]:
    slots, stated = command.mpi_slots, command.mpi_per_host
    slots = slots if isinstance(slots, tuple) else ()
    most = stated if isinstance(stated, int) else max(slots, default=0)
    gpus = engine.entry.gpus
    if isinstance(gpus, int) and 0 < gpus < most:
        yield _wrong(
            engine,
            f"starts up to {count_of(most, 'rank')} on a host, but a pod has "
            f"{count_of(gpus, 'GPU')}",
            f"start {count_of(gpus, 'rank')} on each",
        )


def _wrong(engine: EngineFacts, seen: str, remedy: str) -> Finding:
    path = engine.entry.command_path
    return Finding(path=path, seen=f"{title(engine)} {seen}", remedy=remedy)
