"""Checks that the pods of an engine look for its first rank at the port where it listens."""

from collections.abc import Iterator

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding
from kthena_components.core.rules.support.engine_pods import (
    PORT_OPTIONS,
    RAY,
    meeting_of,
    meetings,
    port_of,
)
from kthena_components.core.rules.support.messages import title


def leader_ports_agree(facts: ServingFacts) -> Iterator[Finding]:
    """The entry and the workers of an engine state the same port of its first rank.

    SGLang's port is in --dist-init-addr, Ray's in `ray start --port` and --address, vLLM's in
    --master-port and --data-parallel-rpc-port.

    Pass: --dist-init-addr $(LWS_LEADER_ADDRESS):5000 in both; `ray start --head` and port 6379.
    Fail: port 20000 in the entry and 5000 in the worker.
    Level: mandatory.
    Source: pytorch torch/distributed/rendezvous.py (tcp); ray python/ray/scripts/scripts.py
    (start); vllm/config/parallel.py (master_port, data_parallel_rpc_port).
    """
    for engine in facts.engines:
        entry, worker = engine.entry.command, engine.worker
        if entry is None or worker is None or worker.command is None or engine.pods == 1:
            continue
        pairs = [*_ports(engine, entry), *_options(entry, worker.command)]
        for option, first, other in pairs:
            if first != other:
                yield Finding(
                    path=worker.command_path,
                    seen=f"{title(engine)} has its first rank at port {first}, and its workers "
                    f"look for it at port {other} ({option})",
                    remedy=f"write port {first} in the workers, too",
                )
                break


def _ports(engine: EngineFacts, entry: CommandFacts) -> Iterator[tuple[str, int, int]]:
    """Return the ports in the addresses of the entry and the workers."""
    for pod, meeting in meetings(engine):
        if pod is not engine.worker:
            continue
        if meeting.option == RAY:
            stated = entry.ray_port
            first = int(stated) if isinstance(stated, str) and stated.isdecimal() else None
        else:
            own = meeting_of(entry)
            first = port_of(own.shown) if own and own.option == meeting.option else None
        other = port_of(meeting.shown)
        if first is not None and other is not None:
            yield meeting.option, first, other


def _options(entry: CommandFacts, worker: CommandFacts) -> Iterator[tuple[str, int, int]]:
    """Return the ports of vLLM's options that both need."""
    if entry.engine != "vllm" or worker.engine != "vllm" or entry.hidden or worker.hidden:
        return
    meeting = meeting_of(worker)
    option, usual = PORT_OPTIONS.get(meeting.option if meeting else "", ("", 0))
    if option:
        first, other = (command.options.get(option, usual) for command in (entry, worker))
        if isinstance(first, int) and isinstance(other, int):
            yield option, first, other
