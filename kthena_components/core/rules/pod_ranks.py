"""Checks that the pods of an engine have the ranks that its command line counts."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts, SiblingFacts
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.remedies import Remedy, fixes_of, placed_at, set_option, together
from kthena_components.core.rules.support.messages import title
from kthena_components.core.rules.support.own_rank_and_unset_variables import (
    Ranked,
    number_in_engine,
    number_in_shell,
    numbers_pods,
    own_rank,
    set_by,
)
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import NameSuffix, Unknown

RULE = "pod-ranks"
_START = "--data-parallel-start-rank"
_ADDRESSES = {
    "--node-rank": ("--master-addr", "--dist-init-addr"),
    "--data-parallel-rank": ("--data-parallel-address",),
    _START: ("--data-parallel-address",),
}
"""Options with the address at which the ranks of an engine meet."""
_PORTS = {
    "--node-rank": "--master-port",
    "--data-parallel-rank": "--data-parallel-rpc-port",
    _START: "--data-parallel-rpc-port",
}
_OWN = ("127.", "localhost", "0.0.0.0", "::")  # noqa: S104 - compared, not bound
_TWO = 2
_LISTED = 8
_HOST = regex(r"[A-Za-z0-9.:-]+")


def pod_ranks(facts: ServingFacts) -> Iterator[Finding]:
    """The pods of an engine have different ranks, and as many as the engine counts.

    --nnodes counts the pods of an engine, and --data-parallel-size its copies: one in each pod with
    --data-parallel-rank, --data-parallel-size-local in each with --data-parallel-start-rank. A
    StatefulSet has one pod for each rank if they take it from their ordinal: from HOSTNAME, their
    name, or the label apps.kubernetes.io/pod-index. The entry and the workers of a ModelServing or
    a LeaderWorkerSet take it from WORKER_INDEX or LWS_WORKER_INDEX, and the pods of a Job from
    JOB_COMPLETION_INDEX; other controllers have such variables, too. A rank that is not stated is
    0, but with Ray the first pod starts the copies of all. Ranks that start above 0 continue an
    engine of another object, and ranks that repeat evenly are several engines. Two templates of one
    object that meet at one address do not both have the first rank, and one of them has it if the
    object has all pods that are counted. Of an engine whose head and workers are objects of their
    own, no two pods have one rank or start one copy, and all ranks and copies are started; so it is
    with objects whose pods each answer for their own copies and meet at one address.

    Pass: a StatefulSet with replicas 2 and --nnodes 2 --node-rank $(POD_INDEX).
    Fail: replicas 3 with --nnodes 2; replicas 2 with --data-parallel-size 4
    --data-parallel-rank $(POD_INDEX); a LeaderWorkerSet of size 3 with --data-parallel-size 4
    --data-parallel-rank $(LWS_WORKER_INDEX); a Deployment with replicas 2 and --node-rank 0, or
    --nnodes 2 without a --node-rank, or --data-parallel-size 4 --data-parallel-size-local 2
    without a --data-parallel-start-rank, or with --node-rank ${HOSTNAME##*-}; a Job whose two tasks
    have --node-rank 0 and one --dist-init-addr; a LeaderWorkerSet of size 2 with --nnodes 2
    --node-rank 1 in both templates; a Job with completions 2, parallelism 1, --nnodes 2.
    Level: mandatory; advisory for a single pod of rank 0, and for pods or copies of a first pod and
    its workers that are too few, unless these are all objects of the cluster: others may be in
    another object.
    Source: vllm/config/parallel.py, __post_init__; vllm/v1/engine/utils.py;
        vllm/engine/arg_utils.py create_engine_config; vllm/entrypoints/cli/serve.py run_headless;
        sglang/srt/server_args.py; kubernetes pkg/controller/statefulset/stateful_set_utils.go and
        pkg/controller/job/job_controller.go (parallelism); k8s.io/apimachinery
        pkg/util/rand/rand.go (alphanums, without 0).
    """
    yield from _twice_stated(facts)
    for engine in facts.engines:
        yield from _without_first(engine)
        yield from _by_random_name(engine, facts)
        siblings, command = engine.siblings, _command(engine)
        if siblings is not None and siblings.commands:
            yield from _by_ordinal(engine, siblings.commands, facts)
            yield from _not_at_once(engine, siblings)
            if engine.worker is None and len(siblings.commands) >= _TWO:
                yield from _alike(engine, siblings.commands, len(siblings.commands), facts)
        elif siblings is not None and command is not None and siblings.count >= _TWO:
            yield from _alike(engine, [command], siblings.count, facts)


@dataclass(frozen=True, slots=True)
class _Ranks:
    """The rank of a command line: which it is, and how many there are."""

    option: str
    rank: int
    total: int
    counted: str
    """The options that say how many there are."""
    step: int = 1
    """Ranks in a pod."""


def _command(engine: EngineFacts) -> CommandFacts | None:
    """Return the command line of a first pod, which may only join an engine."""
    return engine.entry.joined or engine.entry.command


def _twice_stated(facts: ServingFacts) -> Iterator[Finding]:
    """Report templates that state the same rank of one engine."""
    stated: dict[object, dict[int, EngineFacts]] = {}
    for engine in facts.engines:
        command = _command(engine)
        if command is None or (engine.siblings is not None and engine.siblings.count >= _TWO):
            continue  # Several pods of one template are compared with each other.
        for one in _ranks(command):
            address = _address(command, one.option) or _host(facts, command, one.option)
            if not address or not _is_stated(command, one.option):
                continue
            port = command.options.get(_PORTS[one.option])
            same = stated.setdefault((command.engine, address, str(port), one.option), {})
            first = same.setdefault(one.rank, engine)
            if first is not engine:
                rank = f"{one.option} {one.rank}" if one.option in command.options else ""
                yield Finding(
                    path=engine.entry.command_path,
                    seen=f"{title(engine)} has {rank or f'no {one.option}'} with {one.counted}, "
                    f"and so has {title(first)}, which meets at the same address {address}",
                    remedy=_other_rank(one, same),
                )


def _other_rank(one: _Ranks, taken: Collection[int]) -> str:
    free = next((rank for rank in range(0, one.total, one.step) if rank not in taken), None)
    if free is None:
        return "remove one of the two templates, because all ranks are taken"
    return f"write {one.option} {free} in one of the two templates"


def _address(command: CommandFacts, option: str) -> str:
    """Return where the ranks of an engine meet; empty if that is not known, or in each pod."""
    values = [command.options.get(name) for name in _ADDRESSES[option]]
    address = next((v for v in values if isinstance(v, str) and v), "")
    return "" if address.startswith(_OWN) else address


def _host(facts: ServingFacts, command: CommandFacts, option: str) -> str:
    """Return an address with the controller's variables replaced; empty if one is not known."""
    written = [command.written.get(name, "") for name in _ADDRESSES[option]]
    found = facts.hosts.resolve(next(filter(None, written), "")) if facts.hosts is not None else ""
    return found if _HOST.fullmatch(found) else ""


def _without_first(engine: EngineFacts) -> Iterator[Finding]:
    """Report an engine whose templates state its ranks, and not the first one."""
    first = engine.entry.command
    other = engine.worker.command if engine.worker is not None else None
    if first is None or other is None or first.nnodes != engine.pods or engine.pods == 1:
        return
    ranks = first.node_rank, other.node_rank
    if all(isinstance(rank, int) and rank > 0 for rank in ranks):
        yield Finding(
            path=engine.entry.command_path,
            seen=f"{title(engine)} has --node-rank {ranks[0]} in its first pod and {ranks[1]} in "
            f"the others, and no pod of --nnodes {first.nnodes} has rank 0",
            remedy=set_option("--node-rank", 0, "write --node-rank 0 in the first pod"),
        )


def _by_random_name(engine: EngineFacts, facts: ServingFacts) -> Iterator[Finding]:
    """Report ranks from names that end in random letters: none of these is 0."""
    command = _command(engine)
    for option in _PORTS if command is not None and facts.has_random_names else ():
        if command is not None and isinstance(command.options.get(option), NameSuffix):
            seen = f"{title(engine)} takes {option} from the end of the names of its pods, which "
            seen += "is random letters and digits, and never the first rank 0"
            remedy = own_rank(Ranked(option=option, first=0, count=None), facts)
            yield Finding(path=engine.entry.command_path, seen=seen, remedy=remedy)


def _ranks(command: CommandFacts) -> Iterator[_Ranks]:
    """Return each rank of a command line, if it is known of how many; 0 if it states none."""
    nodes, rank = command.nnodes, command.node_rank or 0
    if isinstance(nodes, int) and nodes >= _TWO and isinstance(rank, int):
        yield _Ranks("--node-rank", rank, nodes, f"--nnodes {nodes}")
    data, local = command.data, command.data_local
    if not isinstance(data, int) or data < _TWO:
        return
    size, first = f"--data-parallel-size {data}", command.data_start_rank or 0
    if isinstance(command.data_rank, int):
        yield _Ranks("--data-parallel-rank", command.data_rank, data, size)
    elif isinstance(first, int) and isinstance(local, int) and 0 < local < data:
        counted = f"{size} --data-parallel-size-local {local}"
        yield _Ranks(_START, first, data, counted, local)


def _by_ordinal(
    engine: EngineFacts, commands: Sequence[CommandFacts], facts: ServingFacts
) -> Iterator[Finding]:
    """Compare the ranks that pods derive from their ordinals with the number of ranks."""
    every = [{one.option: one for one in _ranks(command)} for command in commands]
    for option, first in every[0].items():
        column = [ranks[option] for ranks in every if option in ranks]
        alike = {(one.total, one.step) for one in column}
        ranks = [one.rank for one in column]
        differ = len(set(ranks)) > 1 or len(ranks) == 1 or engine.worker is not None
        if _reported_elsewhere(engine, option, enough=len(ranks) * first.step == first.total):
            continue
        stated = differ and any(option in command.options for command in commands)
        if stated and len(ranks) == len(every) and len(alike) == 1 and not first.total % first.step:
            yield from _uneven(engine, ranks, first, facts)


def _not_at_once(engine: EngineFacts, siblings: SiblingFacts) -> Iterator[Finding]:
    """Report a Job that runs the ranks of an engine one after the other."""
    count, at_once, nodes = len(siblings.commands), siblings.at_once, siblings.commands[0].nnodes
    if isinstance(at_once, int) and isinstance(nodes, int) and 0 < at_once < nodes <= count:
        yield Finding(
            path=engine.entry.command_path,
            seen=f"{title(engine)} has {count_of(count, 'pod')}, of which its Job runs {at_once} "
            f"at a time (parallelism), but those of --nnodes {nodes} wait for each other",
            remedy=f"write parallelism: {nodes}",
        )


def _reported_elsewhere(engine: EngineFacts, option: str, *, enough: bool) -> bool:
    """Return whether a rule that compares an entry with its workers also checks the rank.

    nnodes-equals-group and leader-worker-same-parallelism count the pods, and report a rank that
    all workers state in the same words. They check no copies that are balanced from outside.
    """
    worker = engine.worker
    if worker is None or worker.command is None:
        return False
    command = worker.command
    if command.data_mode != "internal":
        return False
    rank = command.node_rank if option == "--node-rank" else command.data_start_rank
    return not enough or not isinstance(rank, Unknown)


def _uneven(
    engine: EngineFacts, ranks: list[int], one: _Ranks, facts: ServingFacts
) -> Iterator[Finding]:
    """Report ranks with gaps, repetitions or a surplus; a part that others continue passes."""
    wanted = one.total // one.step
    times = Counter(ranks)
    expected = set(range(0, one.total, one.step))
    whole = set(times) == expected and len(set(times.values())) == 1
    continues = min(ranks) > 0 and max(ranks) < one.total and len(times) == len(ranks)
    if whole or continues:
        return
    yield Finding(
        path=engine.entry.command_path,
        seen=f"{title(engine)} has {count_of(len(ranks), 'pod')} with {one.option} "
        f"{_listed(ranks)}, but {one.counted} needs {count_of(wanted, 'pod')} with "
        f"{_listed(sorted(expected))}",
        remedy=_remedy(engine, ranks, one, facts),
        level=Level.ADVISORY if ranks == [0] else Level.MANDATORY,
    )


def _remedy(engine: EngineFacts, ranks: list[int], one: _Ranks, facts: ServingFacts) -> str:
    """Say how to number the pods: subtract the first rank, count pods, or take it from the name."""
    wanted, command = one.total // one.step, _command(engine)
    if command is not None and command.headless is True and engine.worker is None:
        return _behind(engine, ranks, one, facts)
    first = min(ranks)
    if first > 0 and sorted(ranks) == [*range(first, first + one.total, one.step)]:
        return f"subtract {first} from {one.option}, or number the pods from 0 (ordinals.start)"
    if len(ranks) == wanted:
        ranked = Ranked(option=one.option, first=0, count=wanted, step=one.step)
        worker = engine.worker
        return (
            own_rank(ranked, facts) if worker is None else _in_both(ranked, worker, engine, facts)
        )
    pods, field = count_of(wanted, "pod"), _number(engine, facts)
    more = f"write {field}: {wanted}" if field else f"give the engine {pods}"
    if sorted(ranks) == [*range(0, len(ranks) * one.step, one.step)]:
        return f"{more}, or write {one.counted.split()[0]} {len(ranks) * one.step}"
    every = Ranked(option=one.option, first=0, count=wanted, step=one.step)
    return more if engine.worker is not None else f"{more}, and {own_rank(every, facts)}"


def _number(engine: EngineFacts, facts: ServingFacts) -> str:
    """Return the field with the number of pods of one template; empty if groups have sizes."""
    if engine.worker is not None or number_in_engine(facts):
        return ""
    of_job = engine.siblings is not None and engine.siblings.at_once is not None
    of_job = of_job or bool(set_by(facts.controller_env, ("JOB_COMPLETION_INDEX",)))
    return "completions and parallelism" if of_job else "replicas"


def _behind(engine: EngineFacts, ranks: list[int], one: _Ranks, facts: ServingFacts) -> str:
    """Number the pods of an engine whose first pod belongs to another object."""
    wanted, fields = one.total // one.step, _number(engine, facts) or "replicas"
    fit = sum(rank < one.total for rank in ranks)
    if min(ranks) > 0 and fit and len(set(ranks)) == len(ranks):
        return f"write {fields}: {fit}"
    number = min(len(ranks), wanted - 1)
    if number == 1 < len(ranks):
        return f"write {fields}: 1 with {one.option} {one.step}"
    ranked = Ranked(option=one.option, first=one.step, count=number, step=one.step, alone=True)
    own = own_rank(ranked, facts)
    return own if number == len(ranks) else f"write {fields}: {number}, and {own}"


def _in_both(ranked: Ranked, worker: PodFacts, engine: EngineFacts, facts: ServingFacts) -> str:
    """Give the pods of both templates of an engine their ranks."""
    paths, own = (engine.entry.command_path, worker.command_path), own_rank(ranked, facts)
    if not number_in_engine(facts):  # The pods of each template are numbered from 0.
        rest = replace(ranked, first=ranked.step, count=(ranked.count or 1) - 1, alone=True)
        first, others = set_option(ranked.option, 0), own_rank(rest, facts)
        both = (
            Remedy(text, fixes_of(placed_at(text, at)))
            for text, at in zip((first, others), paths, strict=True)
        )
        return together(*both, text=f"{first} in the first pod, and in the others {others}")
    every = [Remedy(own, fixes_of(placed_at(own, path))) for path in paths]
    return together(*every, text=f"{own} in both templates")


def _listed(ranks: Sequence[int]) -> str:
    more = ", …" if len(ranks) > _LISTED else ""
    return ", ".join(map(str, ranks[:_LISTED])) + more


def _alike(
    engine: EngineFacts, commands: Sequence[CommandFacts], count: int, facts: ServingFacts
) -> Iterator[Finding]:
    """Report a rank that all pods of a template have, where they meet at one address."""
    others = [set(_stated_alike(command)) for command in commands[1:]]
    for one in _stated_alike(commands[0]):
        if not all(one in ranks for ranks in others):
            continue
        has = f"each states {one.option} {one.rank}"
        if not any(one.option in command.options for command in commands):
            has = f"none states {one.option}, whose default is {one.rank}"
        yield Finding(
            path=engine.entry.command_path,
            seen=f"{title(engine)} has {count_of(count, 'pod')}, and {has}, but "
            "the ranks of an engine differ",
            remedy=_behind_server(commands, one, facts) or _in_order(engine, one, count, facts),
        )


def _behind_server(commands: Sequence[CommandFacts], one: _Ranks, facts: ServingFacts) -> str:
    """Number the pods with --headless only, if they have one script and another pod a server.

    vLLM since 0.28 balances a pod that has a server and any start rank by itself (hybrid).
    """
    number, has_server = number_in_shell(facts), commands[0].headless is False
    behind = number and has_server and any(each.headless for each in commands[1:])
    if one.option != _START or not behind:
        return ""
    rank = number if one.step == 1 else f"$(({number} * {one.step}))"
    return f"start the engine with `$([ {number} = 0 ] || echo {one.option} {rank})` in the script"


def _stated_alike(command: CommandFacts) -> Iterator[_Ranks]:
    for one in _ranks(command):
        if _address(command, one.option) and _is_stated(command, one.option):
            yield one


def _is_stated(command: CommandFacts, option: str) -> bool:
    """Return whether a rank is stated, or is surely the default.

    With Ray the first pod starts all copies, and --nnodes numbers them by the nodes.
    """
    by_nodes = command.nnodes not in {None, 1} or command.data_backend not in {None, "mp"}
    outside = command.data_mode not in {"internal", "hybrid"}
    hidden = command.hidden is not None or (option != "--node-rank" and (by_nodes or outside))
    return option in command.options or not hidden


def repeats_rank(command: CommandFacts) -> bool:
    """Return whether this rule reports several pods with a command line."""
    return any(True for _ in _stated_alike(command))


def _in_order(engine: EngineFacts, one: _Ranks, count: int, facts: ServingFacts) -> str:
    """Say how to number pods that all state one rank, in an engine or behind its head."""
    wanted, command = one.total // one.step, _command(engine)
    fields = _number(engine, facts) or "replicas"
    if count > wanted:
        return f"write {fields}: {wanted}, and give each pod its own {one.option}"
    # The ranks before theirs are those of other objects.
    before = max(one.rank, one.step) if count < wanted else 0
    if before + count * one.step > one.total:
        before = (wanted - count) * one.step
    if command is not None and command.headless is True and not before:
        return _behind(engine, [one.rank] * count, one, facts)
    ranked = Ranked(option=one.option, first=before, count=count, step=one.step, alone=True)
    own = own_rank(ranked, facts)
    return (
        own if numbers_pods(facts) else f"{own}, or write an object with {fields}: 1 for each rank"
    )
