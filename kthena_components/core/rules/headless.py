"""Rules of vLLM's --headless: which pods of an engine compute only, and which answer."""

from collections.abc import Iterator

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level, count_of, refuse
from kthena_components.core.remedies import set_option, without
from kthena_components.core.rules.support.engine_pods import LEADERS, Start, others
from kthena_components.core.rules.support.messages import title
from kthena_components.core.rules.support.own_rank_and_unset_variables import (
    first_and_other,
    number_in_shell,
)
from kthena_components.core.values.images import Version
from kthena_components.core.values.unknown import OfController, Unknown, may_be

_COMPARED: Version = (0, 10)
"""The first vLLM whose first pod compares --headless of the others with its load balancing."""
_START_OF_NONE: Version = (0, 28)
"""The first vLLM in which a start rank of 0 means hybrid balancing, like other start ranks."""
_START, _COPIES = "--data-parallel-start-rank", "--data-parallel-address"
_REFUSED = ", and vLLM stops at the first message of a worker"


def headless_copies(facts: ServingFacts) -> Iterator[Finding]:
    """Workers of a vLLM engine with several copies have --headless, unless each pod has a server.

    The first pod balances the requests over all copies, and the others need --headless. With hybrid
    or external load balancing each pod has a server, and none may have it. Without --headless,
    --data-parallel-start-rank means hybrid balancing; a start rank of 0 only since 0.28.

    Pass: --data-parallel-size 2 --data-parallel-size-local 1 in both pods, and --headless in the
    worker.
    Fail: the same without --headless; the same with --data-parallel-start-rank 0 in the first pod;
    --headless in both, which look for the copies' first pod at $(LWS_LEADER_ADDRESS), or at the
    name of the first pod of this JobSet.
    Level: mandatory from 0.10; advisory if the image states no release.
    Source: vllm/v1/engine/utils.py wait_for_engine_startup (remote_should_be_headless), of 0.10.0
    to 0.33.0; vllm/engine/arg_utils.py create_engine_config.
    """
    for engine in map(first_and_other, facts.engines):
        command, worker = engine.entry.command, engine.worker
        other = None if worker is None else worker.command
        if command is None or worker is None or other is None or engine.pods == 1:
            continue
        if command.engine != "vllm" or other.engine != "vllm":
            continue
        start = Start(engine, command)
        # A controller that adds the address adds --headless, too.
        meets = _COPIES in other.options
        if meets and _is_compared(start.command) and _is_compared(other):
            yield from _check(facts, start, other, worker.command_path)


def _is_compared(command: CommandFacts) -> bool:
    by_processes = command.data_backend in {None, "mp"} and command.nnodes in {None, 1}
    return command.hidden is None and by_processes and isinstance(command.headless, bool)


def _check(facts: ServingFacts, start: Start, other: CommandFacts, path: str) -> Iterator[Finding]:
    """Compare --headless of the workers with the way in which requests are balanced."""
    command = start.command
    data, local = command.data, command.data_local
    level = start.since(_COMPARED)
    if not isinstance(data, int) or data <= 1 or command.data_rank:
        return
    if command.headless:
        # With a later start rank, it is not a first pod: that one is in another object.
        is_first = command.data_start_rank in {0, None}
        shown = _own_address(facts, start.engine, command) if is_first else ""
        if other.headless and shown and level:
            seen = "has --headless in all its pods, so nothing waits for them at the address of "
            seen += f"the first one ({shown}), and nothing serves HTTP"
            alone = without("--headless", text="remove --headless from the first pod")
            yield _finding(start, start.engine.entry.command_path, seen, alone, level)
        return
    if level is None or not isinstance(command.data_mode, str):
        return
    by_zero = command.data_mode == "hybrid" and command.data_start_rank == 0 and not _states(start)
    each = command.data_mode != "internal"
    if by_zero and start.since(_START_OF_NONE) is None:
        each = False
    if each and other.headless:
        stated = f"with {_START} 0" if by_zero else "(as stated)"
        seen = f"has {command.data_mode} load balancing {stated}, in which each pod has a server, "
        seen += f"but --headless in its workers{_REFUSED}"
        remedy = without(_START) if by_zero else "remove --headless from the workers"
        yield _finding(start, start.engine.entry.command_path, seen, remedy, level)
    elif not each and not other.headless and isinstance(local, int) and local < data:
        seen = (
            f"has {count_of(data, 'copy')} with {local} in its first pod, and no "
            "--headless in its workers"
        )
        remedy = set_option("--headless", True, "add --headless to the workers")
        yield _finding(start, path, f"{seen}{_REFUSED}", remedy, level)


def _own_address(facts: ServingFacts, engine: EngineFacts, command: CommandFacts) -> str:
    """Return the address of the copies if it is the first pod's own; else nothing."""
    asked = command.options.get(_COPIES)
    if isinstance(asked, OfController) and asked.name in LEADERS:
        return asked.name
    written = command.written.get(_COPIES, "") or str(asked)
    if facts.hosts is None or isinstance(asked, Unknown) != ("$" in written):
        return ""
    first = next((each.first for each in facts.hosts.pods if each.path == engine.path), None)
    pod, _, rest = facts.hosts.resolve(written).partition(".")
    return written if pod == first and rest.partition(".")[0] == facts.hosts.domain else ""


def _states(start: Start) -> bool:
    """Return whether an option of its own states hybrid balancing."""
    return bool(start.is_on("--data-parallel-hybrid-lb", "--data-parallel-external-lb"))


def _finding(start: Start, path: str, seen: str, remedy: str, level: Level) -> Finding:
    return Finding(path=path, seen=f"{title(start.engine)} {seen}", remedy=remedy, level=level)


RULE = "headless-workers"
_SERVERS = "--api-server-count"
_MODULE = "python3 -m vllm.entrypoints.openai.api_server"
_SERVE = f"write `vllm serve MODEL` in place of `{_MODULE} --model MODEL`"
_TWO = 2


def headless_workers(facts: ServingFacts) -> Iterator[Finding]:
    """Of a vLLM engine over several pods (--nnodes), only the first pod serves HTTP.

    The others need --headless. Without it they start a server with another engine, which stops
    because its rank is not 0. With --headless in the first pod, no pod has a server, unless
    --data-parallel-address leads to one elsewhere. Only `vllm serve` reads --headless: the module
    api_server starts a server all the same. Engines with several copies are not checked.

    Pass: --nnodes 2 in both pods, --headless in the worker.
    Fail: --nnodes 2 --node-rank 1 without --headless; --nnodes 2 --node-rank 0 --headless;
    python3 -m vllm.entrypoints.openai.api_server --nnodes 2 --node-rank 1 --headless.
    Level: mandatory.
    Source: vllm/entrypoints/cli/serve.py (run_headless); collective_rpc in
        vllm/v1/executor/multiproc_executor.py, which rejects calls on other nodes; both from 0.11.1
        to 0.33.0; vllm/entrypoints/openai/api_server.py, later launchers/api_server/entry.py,
        which only call run_server, up to 0.33.0.
    """
    for engine in facts.engines:
        yield from _first(facts, engine)
        for pod, command in others(engine):
            if not _spans_nodes(command) or not _has_server(command):
                continue
            if command.headless is True and command.by_module:
                seen, remedy = "and --headless behind `api_server`, which ignores it,", _SERVE
            elif command.headless is False:
                seen, remedy = "without --headless", _headless(facts, engine, pod)
                remedy = f"{_SERVE}, and --headless" if command.by_module else remedy
            else:
                continue
            yield refuse(
                pod.command_path,
                f"{title(engine)} has --nnodes {command.nnodes} {seen} in a pod that does not have "
                "the first rank: its own server stops",
                remedy,
            )
            break


def _headless(facts: ServingFacts, engine: EngineFacts, pod: PodFacts) -> str:
    """Add the option to the other pods. If they share a template, its script has to tell."""
    said = "write --headless in every pod but the first"
    if pod.command_path != engine.entry.command_path:
        return set_option("--headless", True, said)
    script = _by_number(facts)
    return f"{said}: in a shell, {script}" if script else said


def _by_number(facts: ServingFacts) -> str:
    """Return what a script of all pods writes for --headless; empty if they have no numbers."""
    number = number_in_shell(facts)
    return f"`$([ {number} = 0 ] || echo --headless)`" if number else ""


def _not_in_first(facts: ServingFacts, engine: EngineFacts) -> str:
    """Remove the option from the first pod. If others share its template, its script has to."""
    siblings, worker = engine.siblings, engine.worker
    shared = worker is None or worker.command_path == engine.entry.command_path
    several = siblings is not None and siblings.count != 1
    script = _by_number(facts) if shared and several else ""
    if not script:
        return without("--headless", text="remove --headless from the first pod")
    here = f"start the engine in a shell with {script} in place of --headless"
    return f"{here}, or, if another object has the first rank, number these pods from --node-rank 1"


def _first(facts: ServingFacts, engine: EngineFacts) -> Iterator[Finding]:
    """Report a first pod without a server, unless its address of the copies leads elsewhere.

    A server there may have no copy itself: run_headless connects to it.
    """
    siblings, command = engine.siblings, engine.entry.command
    if siblings is not None and siblings.commands:
        command = next((one for one in siblings.commands if one.node_rank in {None, 0}), None)
    elif (engine.worker is None or may_be(engine.pods, 1)) and command and command.node_rank != 0:
        return  # The command line alone does not tell the first rank.
    if command is None or command.headless is not True or command.node_rank not in {None, 0}:
        return
    if _COPIES in command.options and not _own_address(facts, engine, command):
        return
    if _spans_nodes(command) and not command.by_module:
        yield refuse(
            engine.entry.command_path,
            f"{title(engine)} has --nnodes {command.nnodes} and --headless in the pod with the "
            "first rank, so nothing serves HTTP",
            _not_in_first(facts, engine),
        )


def _spans_nodes(command: CommandFacts) -> bool:
    """Return whether processes of one copy in several pods find each other without Ray."""
    nodes, executor = command.nnodes, command.executor
    found = command.engine == "vllm" and isinstance(nodes, int) and nodes >= _TWO
    return found and command.data == 1 and executor in {None, "mp"} and command.hidden is None


def _has_server(command: CommandFacts) -> bool:
    """Return whether no other option takes the server away; an unknown number may be 0."""
    servers = command.options.get(_SERVERS)
    return servers is None or (isinstance(servers, int) and servers > 0)
