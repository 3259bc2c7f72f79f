"""Rules of the pods of an engine: entry and workers have equally many GPUs and equal sizes."""

from collections.abc import Iterator, Mapping, Sequence

from kthena_components.core.engines import CommandFacts
from kthena_components.core.engines.facts import set_size
from kthena_components.core.facts.files import HUB_NAME
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts, ranks_of
from kthena_components.core.findings import Finding, count_of
from kthena_components.core.remedies import either, set_option, together
from kthena_components.core.rules.pods_joined_mpi_ranks import starts_alone
from kthena_components.core.rules.support.fixes import give_gpus
from kthena_components.core.rules.support.messages import (
    cannot_check,
    each_engine,
    part_of_engine,
    title,
)
from kthena_components.core.rules.support.own_rank_and_unset_variables import own_rank, workers_of
from kthena_components.core.values.display import display
from kthena_components.core.values.read import first_unknown, mapping, require_known
from kthena_components.core.values.unknown import Unknown, all_known

_NO_ENGINE = Unknown("no command line of a known engine was found")


@each_engine
def leader_worker_same_gpus(engine: EngineFacts) -> Iterator[Finding]:
    """Entry and workers of one engine have equally many GPUs: ranks are distributed evenly.

    This is true for the engines that are known here. Leaders of JetStream and Pathways run on CPUs.

    Pass: 8 GPUs in the entry pod, 8 in each worker.
    Fail: 4 GPUs in the entry pod, 8 in each worker.
    Level: mandatory.
    Source: vllm/config/parallel.py, local world size = world size / nodes.
    """
    if engine.worker is None or engine.pods == 1:
        return
    entry, worker = engine.entry.gpus, engine.worker.gpus
    if not _is_known(engine.entry) and not _is_known(engine.worker):
        # If the entry has GPUs, world-size-equals-gpus reports that the engine is unknown.
        if entry == 0 and worker != 0:
            gap = engine.entry.gap or _NO_ENGINE
            yield from cannot_check(engine, gap, path=engine.worker.gpus_path)
        return
    require_known(engine.worker.gpus_path, entry, worker)
    if isinstance(entry, int) and isinstance(worker, int) and entry != worker:
        yield Finding(
            path=engine.worker.gpus_path,
            seen=f"{title(engine)} gives its entry pod {count_of(entry, 'GPU')} and each "
            f"worker {worker}, "
            "and an engine distributes its ranks evenly",
            remedy=either(*_alike(engine, entry, worker)),
        )


def _alike(engine: EngineFacts, *stated: int) -> Iterator[str]:
    """Return the numbers that both may have: those with which the GPUs are as many as the ranks."""
    command, pods = engine.entry.command, engine.pods
    ranks = ranks_of(engine, command) if command is not None and command.engine else None
    some = [number for number in stated if number > 0]
    fit = [number for number in some if isinstance(pods, int) and number * pods == ranks]
    for place, number in enumerate(fit or some):
        text = f"{'write ' if place == 0 else ''}{number} in both"
        other = ranks // number if isinstance(ranks, int) and ranks % number == 0 else 0
        if not fit and isinstance(pods, int) and other > 1:
            yield f"{text} and give the engine {count_of(other, 'pod')}"
        else:
            yield give_gpus(engine, number, text)


def _is_known(pod: PodFacts) -> bool:
    """Return whether a pod starts a known engine."""
    return pod.command is not None and pod.command.engine is not None


_START = "--data-parallel-start-rank"
_TWO = 2
_EQUAL_SIZES = {
    "tensor": "tensor",
    "pipeline": "pipeline",
    "data": "data",
    "prefill_context": "context",
    "decode_context": "decode context",
    "nnodes": "--nnodes",
}
"""The fields that must be equal, with their names in messages."""
_SAME_SWITCHES = {
    "vllm": ("--enable-expert-parallel", "--enable-eplb", "--enable-dbo", "--enable-elastic-ep"),
    "sglang": ("--enable-dp-attention", "--enable-dp-lm-head", "--enable-eplb"),
}
"""Switches by which all ranks of an engine distribute their work; without one, it is off."""
_SAME_VALUES = {
    "vllm": ("--all2all-backend", "--expert-placement-strategy", "--quantization"),
    "sglang": ("--expert-parallel-size", "--ep-size", "--moe-a2a-backend", "--moe-dense-tp-size"),
}
"""Options with values for that. A default is not compared: it depends on the release."""
_BALANCE = "--eplb-config"
_OFF = {name for names in _SAME_SWITCHES.values() for name in names} | {
    *(f"{_BALANCE}.{key}" for key in ("num_redundant_experts", "log_balancedness"))
}
"""Options that are off, or 0, where they are not stated."""


def leader_worker_same_parallelism(facts: ServingFacts) -> Iterator[Finding]:
    """Workers that also start the engine state the entry's model and sizes, and another rank.

    This applies to native launches (--nnodes) and to copies in several pods; with Ray, workers
    state nothing. Each pod needs its own rank: the entry has 0, and one literal number for several
    workers is wrong. A rank from the pod's index is correct. The same applies to copies of vLLM:
    all pods together start --data-parallel-size of them (--data-parallel-size-local in each), and
    the copies of the workers (--headless) follow the entry's copies, at --data-parallel-start-rank.
    The workers have the entry's options for distributing experts and attention, too. Since 0.12 the
    entry of vLLM's copies refuses workers with other values; before, they wait for each other.

    Pass: -tp 8 -pp 2 --nnodes 2 in both, --node-rank $(WORKER_INDEX).
    Fail: -tp 8 in the entry and -tp 4 in the worker; --node-rank 0, or none, in the worker; two
    pods with --data-parallel-size 16 --data-parallel-size-local 4; no --data-parallel-start-rank;
    meta-llama/Llama-3.1-405B-Instruct in the entry, and Llama-3.1-405B-Instruct-FP8 in the worker;
    --enable-eplb in the entry only.
    Level: mandatory, because the ranks wait for each other forever, or compute with two models:
    each pod loads the model of its own command line.
    Source: vllm/engine/arg_utils.py, create_engine_config; vllm/v1/engine/utils.py,
    wait_for_engine_startup (parallel_config_hash), and the fields that compute_hash of
    vllm/config/parallel.py ignores; sglang/srt/server_args.py.
    """
    for engine in facts.engines:
        yield from _check(engine, facts)


@part_of_engine
def _check(engine: EngineFacts, facts: ServingFacts) -> Iterator[Finding]:
    """Compare the worker's command with the entry's: engine, sizes, ranks and data copies."""
    entry, worker = engine.entry.command, engine.worker
    if worker is None or engine.pods == 1 or worker.command is None or entry is None:
        return
    # What a worker of Ray starts instead of joining is a matter of pods-joined.
    if entry.ray_role == "head" and starts_alone(worker):
        return
    if entry.engine is not None and worker.command.engine is not None:
        yield from _unlike(engine, entry, worker.command, worker.command_path)
        yield from _other_options(engine, entry, worker.command, worker.command_path)
        yield from _other_model(engine, entry, worker.command, worker.command_path)
        yield from _rank(engine, worker, worker.command, facts)
        yield from _copies(engine, entry, worker, facts)


@part_of_engine
def _unlike(
    engine: EngineFacts, entry: CommandFacts, worker: CommandFacts, path: str
) -> Iterator[Finding]:
    """Report sizes that differ between the entry and the workers."""
    if entry.engine != worker.engine:
        yield Finding(
            path=path,
            seen=f"{title(engine)} starts {entry.engine} in its entry and {worker.engine} in its "
            "workers",
            remedy=f"start {entry.engine} in both",
        )
        return
    pairs = [(word, *_sizes(entry, worker, name)) for name, word in _EQUAL_SIZES.items()]
    unlike = [(w, a, b) for w, a, b in pairs if first_unknown(a, b) is None and a != b]
    if unlike:
        entries = ", ".join(f"{word} {mine}" for word, mine, _ in unlike)
        fields = {word: field for field, word in _EQUAL_SIZES.items()}
        stated = {fields[word]: mine for word, mine, _ in unlike if isinstance(mine, int)}
        workers = ", ".join(f"{word} {theirs}" for word, _, theirs in unlike)
        yield Finding(
            path=path,
            seen=f"{title(engine)} states {entries} in its entry and {workers} in its workers, and "
            "all pods of an engine must state the same",
            remedy=together(
                *(set_size(worker, field, mine) for field, mine in stated.items()),
                text=f"write {entries} in both",
            ),
        )
    else:
        require_known(path, *(size for _, mine, theirs in pairs for size in (mine, theirs)))


def _other_options(
    engine: EngineFacts, entry: CommandFacts, worker: CommandFacts, path: str
) -> Iterator[Finding]:
    """Report options by which the entry and the workers distribute their work differently."""
    hidden = any(command.hidden is not None for command in (entry, worker))
    if entry.engine != worker.engine or hidden:
        return
    mine, theirs = _distribution(entry), _distribution(worker)
    unlike = [
        name
        for name in dict.fromkeys((*mine, *theirs))
        if first_unknown(mine.get(name), theirs.get(name)) is None
        and mine.get(name) != theirs.get(name)
        and (name in _OFF or (name in mine and name in theirs))
    ]
    if not unlike:
        return
    first, second = (_in_words(unlike, stated) for stated in (mine, theirs))
    yield Finding(
        path=path,
        seen=f"{title(engine)} states {first} in its entry and {second} in its workers, and all "
        "pods of an engine must state the same",
        remedy=f"write {first if mine.keys() & set(unlike) else second} in both",
    )


def _distribution(command: CommandFacts) -> dict[str, object]:
    """Return the options that distribute an engine's work, without those that are off."""
    engine, options = command.engine or "", command.options
    switches = {name: options.get(name) for name in _SAME_SWITCHES.get(engine, ())}
    config = options.get(_BALANCE) if engine == "vllm" else None
    keys = {f"{_BALANCE}.{key}": value for key, value in mapping(config).items()}
    values = {name: options.get(name) for name in _SAME_VALUES.get(engine, ())}
    stated = {**switches, **keys, **values}
    return {name: value for name, value in stated.items() if value not in (None, False, 0)}


def _in_words(names: Sequence[str], stated: Mapping[str, object]) -> str:
    """Return which of some options are stated."""
    some = [f"{n}" if stated[n] is True else f"{n} {stated[n]}" for n in names if n in stated]
    return ", ".join(some) or ("none of them" if len(names) > 1 else f"no {names[0]}")


def _other_model(
    engine: EngineFacts, entry: CommandFacts, worker: CommandFacts, path: str
) -> Iterator[Finding]:
    """Report workers that load another model than the entry."""
    first, second = entry.model, worker.model
    if not isinstance(first, str) or not isinstance(second, str):
        return
    # Folders may be mounted at different paths, several owners may have the same model, and
    # Meta-Llama became Llama.
    of_hub = HUB_NAME.fullmatch(first) and HUB_NAME.fullmatch(second)
    names = {name.partition("/")[2].casefold().removeprefix("meta-") for name in (first, second)}
    if of_hub and len(names) > 1:
        yield Finding(
            path=path,
            seen=f"{title(engine)} loads {display(first)} in its entry and {display(second)} in "
            "its workers, and the ranks of an engine load parts of one model",
            remedy=f"write {first} in both",
        )


def _sizes(entry: CommandFacts, worker: CommandFacts, name: str) -> tuple[object, object]:
    """Return a size of the entry and of the worker; 1 where none is stated."""
    mine, theirs = getattr(entry, name), getattr(worker, name)
    return (1 if mine is None else mine), (1 if theirs is None else theirs)


def _rank(
    engine: EngineFacts, worker: PodFacts, command: CommandFacts, facts: ServingFacts
) -> Iterator[Finding]:
    """Report a --node-rank of the workers that at most one of them can have."""
    nodes, rank = command.nnodes, command.node_rank
    if nodes in {None, 1} or isinstance(nodes, Unknown) or isinstance(rank, Unknown):
        return
    workers = engine.pods - 1 if isinstance(engine.pods, int) else 1
    if not rank:
        stated = "no --node-rank, which means 0" if rank is None else "--node-rank 0"
        seen = f"gives its workers {stated}, the entry's rank"
    elif rank >= nodes:
        seen = f"gives its workers --node-rank {rank}, and with --nnodes {nodes} the last is "
        seen += str(nodes - 1)
    elif workers > 1:
        seen = f"gives each of its {count_of(workers, 'worker')} --node-rank {rank}"
    else:
        return
    yield Finding(
        path=worker.command_path,
        seen=f"{title(engine)} {seen}",
        remedy=own_rank(workers_of(engine, "--node-rank", command), facts),
    )


def _copies(
    engine: EngineFacts, entry: CommandFacts, pod: PodFacts, facts: ServingFacts
) -> Iterator[Finding]:
    """Check how many copies the pods start, and with which ranks."""
    worker, path = pod.command, pod.command_path
    if worker is None:
        return
    data, first, local, pods = entry.data, entry.data_local, worker.data_local, engine.pods
    if not (_counts_copies(entry) and _counts_copies(worker) and worker.headless is True):
        return
    sizes = all_known(data, worker.data, first or 0, local or 0, pods)
    if isinstance(sizes, Unknown) or None in {first, local} or data != worker.data:
        return
    data, _, first, local, pods = sizes
    started, start = first + (pods - 1) * local, worker.data_start_rank or 0
    if started != data:
        each = "its worker" if pods == _TWO else f"each of its {count_of(pods - 1, 'worker')}"
        seen = (
            f"starts {count_of(first, 'copy')} in its entry and {local} in {each}, "
            f"{started} in all, but "
        )
        seen += f"has --data-parallel-size {data}"
        both = (engine.entry.command_path, path)
        remedy: str = either(
            together(
                *(set_option("--data-parallel-size", started, at=at) for at in both),
                text=f"write --data-parallel-size {started}",
            ),
            "another --data-parallel-size-local",
        )
    elif isinstance(start, int) and (start != first or pods > _TWO):
        whose = "its worker" if pods == _TWO else f"each of its {count_of(pods - 1, 'worker')}"
        missing = "no --data-parallel-start-rank, which means 0"
        stated = missing if worker.data_start_rank is None else f"{_START} {start}"
        seen = f"gives {whose} {stated}, but the copies of the first worker begin at {first}"
        remedy = own_rank(workers_of(engine, _START, worker, first), facts)
    else:
        return
    yield Finding(path=path, seen=f"{title(engine)} {seen}", remedy=remedy)


def _counts_copies(command: CommandFacts) -> bool:
    """Return whether vLLM's copies find each other by the ranks that the pods state."""
    alone = command.nnodes in {None, 1} and command.hidden is None
    by_rank = command.data_mode == "internal" and command.data_backend in {None, "mp"}
    return command.engine == "vllm" and alone and by_rank and command.data != 1
