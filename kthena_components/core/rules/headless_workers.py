"""Checks that the pods of a vLLM engine but the first serve no HTTP."""

from collections.abc import Iterator

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding
from kthena_components.core.remedies import set_option, without
from kthena_components.core.rules.support.engine_pods import others
from kthena_components.core.rules.support.messages import title

RULE = "headless-workers"
_SERVERS = "--api-server-count"
_TWO = 2


def headless_workers(facts: ServingFacts) -> Iterator[Finding]:
    """Of a vLLM engine over several pods (--nnodes), only the first pod serves HTTP.

    The others need --headless. Without it they start a server with an engine of its own, which
    stops because it is not the first. With --headless in the first pod, no pod has a server.
    Engines with several copies are not checked.

    Pass: --nnodes 2 in both pods, --headless in the worker.
    Fail: --nnodes 2 --node-rank 1 without --headless; --nnodes 2 --node-rank 0 --headless.
    Level: mandatory.
    Source: vllm/entrypoints/cli/serve.py (run_headless); collective_rpc in
        vllm/v1/executor/multiproc_executor.py, which rejects calls on other nodes; both from 0.11.1
        to 0.33.0.
    """
    for engine in facts.engines:
        yield from _first(engine)
        for pod, command in others(engine):
            if _spans_nodes(command) and command.headless is False and _has_server(command):
                yield _finding(
                    pod.command_path,
                    f"{title(engine)} has --nnodes {command.nnodes} without --headless in a pod "
                    "that does not have the first rank: its own server stops",
                    _headless(engine, pod),
                )
                break


def _headless(engine: EngineFacts, pod: PodFacts) -> str:
    """Add the option to the other pods. If they share a template, its script has to tell."""
    said = "write --headless in every pod but the first"
    return said if pod is engine.entry else set_option("--headless", True, said)


def _first(engine: EngineFacts) -> Iterator[Finding]:
    """Report a first pod without a server, if the object has the engine's other pods."""
    siblings, command = engine.siblings, engine.entry.command
    if siblings is not None and siblings.commands:
        command = next((one for one in siblings.commands if one.node_rank in {None, 0}), None)
    elif engine.worker is None or engine.pods == 1:
        return
    if command is None or command.headless is not True or command.node_rank not in {None, 0}:
        return
    if _spans_nodes(command):
        yield _finding(
            engine.entry.command_path,
            f"{title(engine)} has --nnodes {command.nnodes} and --headless in the pod with the "
            "first rank, so nothing serves HTTP",
            without("--headless", text="remove --headless from the first pod"),
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


def _finding(path: str, seen: str, remedy: str) -> Finding:
    return Finding(path=path, seen=seen, remedy=remedy)
