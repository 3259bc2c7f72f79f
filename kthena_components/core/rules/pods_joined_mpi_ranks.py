"""Rules of what connects the pods of an engine, and of the ranks that MPI starts in them."""

from collections.abc import Iterator

from kthena_components.core.engines import CommandFacts
from kthena_components.core.engines.programs import RANK_LAUNCHER
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts, gpus_of
from kthena_components.core.findings import Finding, count_of
from kthena_components.core.rules.executor_and_ray_over_pods import STATED_SINCE
from kthena_components.core.rules.support.engine_pods import (
    LEADERS,
    address_of_first,
    is_itself,
    release_of,
)
from kthena_components.core.rules.support.messages import (
    cannot_check,
    each_engine,
    part_of_engine,
    title,
)
from kthena_components.core.values.display import display
from kthena_components.core.values.read import first_unknown, require_known
from kthena_components.core.values.unknown import MaybeInt, OfController, Unknown, may_be

_REMEDIES = {
    "sglang": "add --nnodes {pods} with --node-rank and --dist-init-addr to all pods",
    "trtllm": "start it by mpirun and trtllm-llmapi-launch with {ranks} processes",
    "vllm": "run `ray start --address={head}:6379 --block` in the other pods",
}
_ONE_HEAD = (
    "write replicas: 1 here, and run `ray start --address=HEAD:6379 --block` in the pods of "
    "another object, where HEAD is the name of a Service that selects this pod"
)

_HEAD = "run `ray start --head --port=6379` before the engine in the first pod"
_MOST_GPUS = 8
_TWO = 2
_RAY = "RAY_ADDRESS"
"""The variable that names a cluster of Ray elsewhere."""
_HEADS = "{} run `ray start --head`, so each is a Ray cluster of its own"
_ITSELF = "its workers start vLLM themselves, so they never join the entry's Ray cluster"
_RUN = "start the engine in the workers, too, with the same options and a --node-rank from 1"


def pods_joined(facts: ServingFacts) -> Iterator[Finding]:
    """Something connects the pods of an engine whose copy of the model needs several of them.

    SGLang connects pods by --nnodes, or by Ray; TensorRT-LLM by an MPI launcher; vLLM with Ray by
    `ray start` in each pod, with --head in the first one. Without, the entry starts all ranks in
    its own pod and finds too few GPUs, or waits for GPUs that no pod adds. Where an operator, a
    hook, another container or a program that is not read may start Ray, nothing is reported. For
    vLLM without an executor, see executor-stated.

    Pass: tensor 16 with --nnodes 2 in 2 pods of 8 GPUs; tensor 8 in each of 2 such pods.
    Fail: SGLang's --tp-size 16 without --nnodes; trtllm-serve --tp_size 16 without mpirun; vLLM's
    executor mp for tensor 16 without --nnodes; a worker of Ray, or one beside --nnodes 2, that runs
    `sleep infinity`; a worker of Ray that runs `vllm serve`; one that runs `ray start --head`, or
    `ray start --block` in the background and nothing behind it; a first pod that runs `ray start
    --address=$LWS_LEADER_ADDRESS:6379`, because a test on its number is the wrong way round, while
    the others start the head; executor ray in pods of which none
    runs `ray start --head`, also with RAY_ADDRESS=auto; no executor in vLLM up to 0.11.0, which
    then chooses Ray.
    Level: mandatory.
    Source: sglang/srt/entrypoints/engine.py _launch_scheduler_processes; tensorrt_llm/llmapi/llm.py
    (MpiPoolSession); vllm/v1/executor/ray_utils.py initialize_ray_cluster; vllm/v1/executor/
    multiproc_executor.py _init_executor (local_world_size).
    """
    for engine in facts.engines:
        command = engine.entry.command
        yield from _swapped(facts, engine)
        if command is None or command.engine not in _REMEDIES or engine.pods == 1:
            continue
        seen = _idle(engine, command) or _ALONE[command.engine](engine, command)
        if not seen or engine.entry.one_process is True or engine.entry.on_cpus is True:
            continue
        yield from _check(facts, engine, command, seen)


def _swapped(facts: ServingFacts, engine: EngineFacts) -> Iterator[Finding]:
    """Report a first pod that joins a Ray cluster at its own address, while others start heads."""
    worker, siblings = engine.worker, engine.siblings
    read = () if siblings is None else siblings.commands
    if not read and worker is not None and worker.command_path != engine.entry.command_path:
        read = tuple(filter(None, (engine.entry.command, worker.command)))
    if len(read) < _TWO or any(each.hidden is not None for each in read):
        return
    first, *others = read
    joins = first.engine is None and first.ray_role == "worker" and not first.runs_others
    heads = all(each.engine is not None and each.ray_role == "head" for each in others)
    if joins and heads and _is_first_pod(facts, engine, first):
        yield Finding(
            path=engine.entry.command_path,
            seen=f"{title(engine)} has {count_of(len(read), 'pod')}: the first pod only joins a "
            f"Ray cluster at {display(first.ray_written)}, which is its own address, and each "
            "other pod starts a head and the engine, so they never meet",
            remedy="let the first pod run `ray start --head` and the engine, and the other pods "
            f"`ray start --address={first.ray_written} --block`",
        )


def _is_first_pod(facts: ServingFacts, engine: EngineFacts, command: CommandFacts) -> bool:
    """Return whether a command joins a Ray cluster at the address of the engine's first pod."""
    address, written = command.ray_address, command.ray_written
    if isinstance(address, OfController):
        return address.name in LEADERS
    name = f"{facts.name}-0" if facts.name else ""
    if facts.hosts is not None:
        at, listed = engine.entry.command_path, facts.hosts.pods
        name = next((each.first for each in listed if at.startswith(f"{each.path}.")), "")
        written = facts.hosts.resolve(written)
    host = written.partition(":")[0].partition(".")[0]
    return is_itself(address) or (bool(name) and host == name)


def _check(
    facts: ServingFacts, engine: EngineFacts, command: CommandFacts, seen: str
) -> Iterator[Finding]:
    """Report an engine whose ranks exceed the GPUs of one pod though nothing joins its pods."""
    pod = engine.entry
    copy, gpus = command.per_rank_world, pod.gpus
    if isinstance(copy, int) and isinstance(command.data, int) and command.engine == "sglang":
        copy *= command.data if may_be(command.executor, None) else 1
    unknown = first_unknown(pod.one_process, pod.on_cpus, copy, gpus, pod.gap)
    if unknown is not None:
        yield from cannot_check(engine, unknown)
    elif isinstance(copy, int) and isinstance(gpus, int) and copy > gpus > 0:
        yield Finding(
            path=pod.command_path,
            seen=f"{title(engine)} has {count_of(copy, 'rank')} in each replica and "
            f"{count_of(gpus, 'GPU')} in each pod, but {seen}",
            remedy=_remedy(facts, engine, command, copy),
        )


def _remedy(facts: ServingFacts, engine: EngineFacts, command: CommandFacts, copy: int) -> str:
    """Say how to connect the pods, or that one pod may do."""
    if _idle(engine, command):
        return _RUN
    pods = engine.pods if isinstance(engine.pods, int) else "N"
    if command.executor == "mp":
        return f"add --nnodes {pods} with --node-rank and --master-addr to all pods"
    if command.ray_role == "head" and engine.worker is None and command.engine == "vllm":
        return _ONE_HEAD
    head = address_of_first(facts, engine) or "HEAD"
    remedy = _REMEDIES[str(command.engine)].format(pods=pods, ranks=copy, head=head)
    if command.executor not in {"ray", None} or command.ray_role is not None:
        return remedy
    larger = f"request {count_of(copy, 'GPU')}, or " if pods == "N" and copy <= _MOST_GPUS else ""
    return f"{larger}{_HEAD}, and {remedy}"


def _idle(engine: EngineFacts, command: CommandFacts) -> str:
    """Explain that the workers of an engine with --nnodes do nothing."""
    worker = engine.worker
    if worker is None or not worker.idle or _is_one(command.nnodes) or command.hidden is not None:
        return ""
    return f"its workers run `{worker.idle}`, so the ranks of --nnodes never meet"


def _sglang(_engine: EngineFacts, command: CommandFacts) -> str:
    alone = _is_one(command.nnodes) and command.executor is None and command.hidden is None
    return "states no --nnodes, so it starts all ranks in one pod" if alone else ""


def _trtllm(_engine: EngineFacts, command: CommandFacts) -> str:
    launched = command.mpi_ranks is not None or command.mpi_session is not False
    if launched or command.hidden is not None:
        return ""
    return "no MPI launcher starts it, so it starts all ranks in one pod"


def _ray(engine: EngineFacts, command: CommandFacts) -> str:
    """Explain why vLLM's executor does not connect the pods, as its own Ray cluster does."""
    worker = engine.worker
    if command.executor == "mp" and _is_one(command.nnodes):
        return "the executor mp without --nnodes starts all of them in one pod"
    if command.executor in {"ray", None} and command.ray_role is None:
        takes_ray = command.executor == "ray" or _chooses_ray(engine, command)
        return _no_cluster(engine) if takes_ray else ""
    if command.executor not in {"ray", None} or command.ray_role != "head":
        return ""
    if worker is None:
        heads = command.ray_heads and command.ray_address is None and not command.runs_others
        # Otherwise, the workers may be in another object.
        several = engine.siblings is not None and engine.siblings.count > 1
        return _HEADS.format("its pods all") if heads and several and not command.hidden else ""
    found = () if engine.siblings is None else engine.siblings.commands[1:]
    return _ENDS if any(map(_ends, found)) else _not_joined(worker)


def _chooses_ray(engine: EngineFacts, command: CommandFacts) -> bool:
    """Return whether vLLM takes Ray because nothing else is stated (vllm/config/parallel.py)."""
    version = release_of(engine)
    old = version is not None and version < STATED_SINCE and engine.entry.has_cuda
    return old and _is_one(command.nnodes) and command.data_backend != "ray"


def _not_joined(worker: PodFacts) -> str:
    """Explain why a worker does not join the Ray cluster of its entry."""
    if worker.idle:
        return f"its workers run `{worker.idle}`, so they never join the entry's Ray cluster"
    other = worker.command
    if other is None or other.hidden is not None:
        return ""
    alone = other.ray_role == "head" and other.ray_address is None
    if alone and (other.engine is None or (other.ray_heads and not other.runs_others)):
        return _HEADS.format("its workers")
    if other.engine is not None:
        return _ITSELF if starts_alone(worker) else ""
    return _ENDS if _ends(other) else ""


_ENDS = (
    "its workers end when they have joined: nothing follows `ray start`, which runs in the "
    "background"
)


def _ends(command: CommandFacts) -> bool:
    return command.ray_ends and command.engine is None and command.hidden is None


def starts_alone(worker: PodFacts) -> bool:
    """Return whether a worker starts the engine, and nothing lets it join a Ray cluster."""
    other = worker.command
    if other is None or other.engine is None or other.hidden is not None:
        return False
    return other.ray_role is None and _is_one(other.nnodes) and not _may_start_ray(worker)


def _no_cluster(engine: EngineFacts) -> str:
    """Explain that no pod starts a Ray cluster which the engine could find."""
    others = () if engine.worker is None or engine.worker.idle else (engine.worker,)
    templates = (engine.entry, *others)
    commands = [pod.command for pod in templates if pod.command is not None]
    if engine.ray_started or len(commands) < len(templates) or any(map(_may_start_ray, templates)):
        return ""
    if not all(each.hidden is None and each.ray_role in {None, "worker"} for each in commands):
        return ""
    if any(_RAY in pod.stated for pod in templates):
        so = f"nothing listens at {_RAY}, and vLLM exits"
    else:
        so = "vLLM starts Ray in its own pod and waits for GPUs that never come"
    return f"no pod of it runs `ray start --head`, so {so}"


def _may_start_ray(pod: PodFacts) -> bool:
    """Return whether something else than a pod's command may start Ray, or name a cluster."""
    own, command = pod.own, pod.command
    by_image = command is not None and (command.ray_script is not None or command.runs_others)
    others = own is None or own.has_other_inputs or bool(pod.others)
    return others or by_image or pod.gap is not None or _names_cluster(pod)


def _names_cluster(pod: PodFacts) -> bool:
    """Return whether RAY_ADDRESS may name a cluster outside of the engine's own pods.

    `auto` is a cluster of the same pod. Source: ray/_private/services.py canonicalize_bootstrap_
    address and find_bootstrap_address.
    """
    stated = pod.engine_variables.get(_RAY)
    value = None if stated is None else stated.value
    if isinstance(value, OfController):
        return value.name not in LEADERS
    if not isinstance(value, str):
        return _RAY in pod.stated
    return value != "auto" and (pod.on_host or not is_itself(value.rpartition(":")[0] or value))


def _is_one(nodes: MaybeInt | None) -> bool:
    return not isinstance(nodes, Unknown) and nodes in {None, 1}


_ALONE = {"sglang": _sglang, "trtllm": _trtllm, "vllm": _ray}


RULE = "mpi-ranks"


@each_engine
def mpi_ranks(engine: EngineFacts) -> Iterator[Finding]:
    """An MPI launcher starts tensor × pipeline × context ranks, one per GPU, on the engine's pods.

    trtllm-llmapi-launch makes one session of all ranks, and the engine rejects a session of another
    size. mpirun rejects more ranks than its hosts have slots, and rank and GPU of a pod have the
    same number, so a pod cannot have more ranks than GPUs. Without trtllm-llmapi-launch, each rank
    starts its own server, but only rank 0 may do so.

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
    """Check that mpirun starts one process for each rank of TensorRT-LLM's session."""
    ranks, world = command.mpi_ranks, command.per_rank_world
    if ranks is None:
        return
    require_known("", ranks, world)
    if isinstance(ranks, int) and isinstance(world, int) and ranks != world:
        yield _engine_finding(
            engine,
            f"needs {count_of(world, 'rank')} (tensor {command.tensor} × pipeline "
            f"{command.pipeline} × context {command.prefill_context}), but mpirun starts {ranks}",
            _fitting(engine, ranks, world),
        )


@part_of_engine
def _servers(engine: EngineFacts, command: CommandFacts) -> Iterator[Finding]:
    """Report ranks that are servers: mpirun starts as many as the engine has ranks."""
    ranks, world = command.mpi_ranks, command.per_rank_world
    if ranks is None:
        return
    require_known("", ranks, world, command.hidden)
    if isinstance(ranks, int) and ranks == world and ranks > 1:
        yield _engine_finding(
            engine,
            f"is started {ranks} times by mpirun, and each of these ranks is a server, of which "
            "only rank 0 may start a session",
            f"write {RANK_LAUNCHER} in front of it",
        )


def _fitting(engine: EngineFacts, ranks: int, world: int) -> str:
    """Say which of the two numbers is wrong: the other one equals the number of GPUs."""
    held = gpus_of(engine)
    sizes = f"state sizes with tensor × pipeline × context = {ranks}"
    if held == ranks:
        return sizes
    return f"write -n {world}" if held == world else f"write -n {world}, or {sizes}"


def _slots(engine: EngineFacts, command: CommandFacts) -> Iterator[Finding]:
    """Check the hosts and slots of mpirun's -H against its processes and the engine's pods."""
    slots, ranks, pods = command.mpi_slots, command.mpi_ranks, engine.pods
    if not isinstance(slots, tuple):
        return
    hosts = count_of(len(slots), "host")
    if isinstance(ranks, int) and ranks > sum(slots):
        yield _engine_finding(
            engine,
            f"starts {count_of(ranks, 'rank')}, but {hosts} of -H "
            f"{'has' if len(slots) == 1 else 'have'} {count_of(sum(slots), 'slot')}",
            "write host:slots for each host, with as many slots as its pod has GPUs",
        )
    elif isinstance(pods, int) and pods != len(slots):
        yield _engine_finding(
            engine,
            f"has {count_of(pods, 'pod')}, but mpirun starts ranks on {hosts} of -H",
            "name each pod of the engine once",
        )


def _per_host(engine: EngineFacts, command: CommandFacts) -> Iterator[Finding]:
    """Check that mpirun starts no more processes on a host than its pod has GPUs."""
    slots, stated = command.mpi_slots, command.mpi_per_host
    slots = slots if isinstance(slots, tuple) else ()
    most = stated if isinstance(stated, int) else max(slots, default=0)
    gpus = engine.entry.gpus
    if isinstance(gpus, int) and 0 < gpus < most:
        yield _engine_finding(
            engine,
            f"starts up to {count_of(most, 'rank')} on a host, but a pod has "
            f"{count_of(gpus, 'GPU')}",
            f"start {count_of(gpus, 'rank')} on each",
        )


def _engine_finding(engine: EngineFacts, seen: str, remedy: str) -> Finding:
    path = engine.entry.command_path
    return Finding(path=path, seen=f"{title(engine)} {seen}", remedy=remedy)
