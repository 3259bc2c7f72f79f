"""Rules of ports: servers of one pod have different ones, and pods of one engine name the same."""

from collections.abc import Iterator
from typing import NamedTuple

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.listening import server_port
from kthena_components.core.facts.network import PORT_OPTIONS
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.rules.support.engine_pods import RAY, meeting_of, meetings, port_of
from kthena_components.core.rules.support.messages import title
from kthena_components.core.rules.support.own_rank_and_unset_variables import first_and_other
from kthena_components.core.values.display import display
from kthena_components.core.values.read import digits, mapping

_SERVER = "its HTTP server"
_SIDE_CHANNEL = "VLLM_NIXL_SIDE_CHANNEL_PORT"
_RPC_PORT, _USUAL_RPC_PORT = PORT_OPTIONS["--data-parallel-address"]


class _Listener(NamedTuple):
    """Something in a pod that listens on a port."""

    engine: EngineFacts
    port: int
    what: str


def ports_distinct(facts: ServingFacts) -> Iterator[Finding]:
    """The servers in one pod listen on different ports.

    The containers of a pod share its network. The first pod of an engine over several pods also
    listens where its ranks meet: SGLang on the port of --dist-init-addr, vLLM on --master-port or
    --data-parallel-rpc-port, Ray on the port of `ray start --head`. The routing sidecar of llm-d
    listens on its --port, and vLLM with NixlConnector on VLLM_NIXL_SIDE_CHANNEL_PORT. The second
    server on a port ends with "address already in use". Two servers of vLLM share it, and each gets
    some of the requests.

    Pass: SGLang with --port 30000 and --dist-init-addr $(LWS_LEADER_ADDRESS):20000.
    Fail: the same with port 30000 in both, which is the default --port; two containers with vLLM in
    one pod without --port; vLLM with --port 8000 and --data-parallel-rpc-port 8000; a routing
    sidecar with --port=8000, and vLLM without --port.
    Level: mandatory; advisory for two servers of vLLM with the same model.
    Source: Kubernetes documentation, Pods (Pod networking); sglang/srt/server_args.py (port,
    dist_init_addr); pytorch torch/csrc/distributed/c10d/TCPStore.cpp; vllm/config/parallel.py
    (master_port, data_parallel_rpc_port); vllm/v1/engine/utils.py (launch_core_engines);
    vllm/entrypoints/openai/api_server.py (create_server_socket, SO_REUSEPORT);
    llm-d-inference-scheduler pkg/sidecar/proxy/options.go.
    """
    taken: dict[tuple[str, int], _Listener] = {}
    for engine in facts.engines:
        for one in _listeners(engine):
            other = taken.setdefault((engine.entry.template, one.port), one)
            if other is not one:
                yield _finding(other, one)


def _listeners(engine: EngineFacts) -> Iterator[_Listener]:
    """Yield what surely listens in the first pod of an engine."""
    command = engine.entry.command
    if command is None or command.hidden is not None or engine.entry.gap is not None:
        return
    answers = server_port(command)
    if answers is not None:
        yield _Listener(engine, answers, _SERVER)
    if (side_channel := _side_channel(engine)) is not None:
        yield _Listener(engine, side_channel, f"its side channel of NIXL ({_SIDE_CHANNEL})")
    if (sidecar := engine.entry.sidecar) is not None:
        what = f"its routing sidecar, container {display(sidecar.name)}"
        yield _Listener(engine, sidecar.port, what)
    if isinstance(command.node_rank, int) and command.node_rank > 0:
        return
    meeting = meeting_of(command)
    if meeting is not None and command.headless is False:
        option, usual = PORT_OPTIONS.get(meeting.option, ("", 0))
        stated = command.options.get(option, usual) if option else port_of(meeting.shown)
        if isinstance(stated, int):
            what = f"the rendezvous of its ranks ({option or meeting.option})"
            yield _Listener(engine, stated, what)
    handshake = _handshake(command)
    if handshake is not None:
        yield _Listener(engine, handshake, f"the rendezvous of its copies ({_RPC_PORT})")
    if isinstance(command.ray_port, str) and command.ray_port.isdecimal():
        yield _Listener(engine, int(command.ray_port), "its Ray cluster (`ray start --head`)")


def _side_channel(engine: EngineFacts) -> int | None:
    """Return the port at which vLLM tells others where its KV cache is; None if none is stated.

    Its first rank, or its scheduler, listens there. Source: vllm/distributed/kv_transfer
    kv_connector/v1/nixl_connector.py, later nixl/ (_nixl_handshake_listener).
    """
    command, stated = engine.entry.command, engine.entry.engine_variables.get(_SIDE_CHANNEL)
    if command is None or stated is None or command.engine != "vllm" or command.by_dynamo:
        return None
    connector = mapping(command.options.get("--kv-transfer-config")).get("kv_connector")
    is_nixl = isinstance(connector, str) and connector.startswith("Nixl")
    value = stated.value if is_nixl else None
    return digits(value) if isinstance(value, str) else None


def _handshake(command: CommandFacts) -> int | None:
    """Return the port at which the first pod of vLLM's copies waits for the other ones.

    It waits on the host's address only if other pods have copies. Source: vllm/v1/engine/utils.py,
    launch_core_engines (handshake_local_only).
    """
    first = {command.data_rank, command.data_start_rank} <= {None, 0}
    data, local = command.data, 1 if command.data_mode == "external" else command.data_local
    if command.headless is not False or not first or command.data_backend not in {None, "mp"}:
        return None
    if not isinstance(data, int) or not isinstance(local, int) or local >= data:
        return None
    port = command.options.get(_RPC_PORT, _USUAL_RPC_PORT)
    return port if isinstance(port, int) else None


def _finding(first: _Listener, second: _Listener) -> Finding:
    """Report two listeners of one pod at the same port."""
    engine, command = second.engine, second.engine.entry.command
    if first.engine is engine:
        seen = f"{title(engine)} uses port {second.port} for {first.what} and for {second.what}"
        return Finding(
            path=engine.entry.command_path,
            seen=f"{seen}, and the one that starts last finds it in use",
            remedy="write another --port",
        )
    before = first.engine.entry.command
    names = {None if each is None else each.engine for each in (before, command)}
    models = {None if each is None else each.model for each in (before, command)}
    shared = names == {"vllm"} and (first.what, second.what) == (_SERVER, _SERVER)
    then = "both get some of its requests" if shared else "the one that starts last finds it in use"
    return Finding(
        path=engine.entry.command_path,
        seen=f"{title(engine)}, container {display(engine.entry.container)}, uses port "
        f"{second.port} for {second.what}, and so does container "
        f"{display(first.engine.entry.container)} of the same pod for {first.what}: {then}",
        remedy="write another --port in one of the two containers",
        level=Level.ADVISORY if shared and len(models) == 1 else Level.MANDATORY,
    )


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
    for engine in map(first_and_other, facts.engines):
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


def disaggregated_ports(facts: ServingFacts) -> Iterator[Finding]:
    """The file of trtllm-serve disaggregated has HOST:PORT of each server, num_instances of them.

    Otherwise it does not start. num_instances is 1 if it is left out. router-backend-port compares
    the addresses with the Services.

    Pass: context_servers with num_instances 2 and urls [ctx-0:8001, ctx-1:8001].
    Fail: two urls without num_instances; urls [http://ctx:8001]; urls [ctx].
    Level: mandatory. It is checked for Kubernetes' own kinds, if a ConfigMap has the file.
    Source: NVIDIA/TensorRT-LLM tensorrt_llm/llmapi/disagg_utils.py extract_ctx_gen_cfgs.
    """
    for server in facts.servers:
        for seen, remedy in server.faults:
            yield Finding(path=server.path, seen=f"{seen}, so it does not start", remedy=remedy)
