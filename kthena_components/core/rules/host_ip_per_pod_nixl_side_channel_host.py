"""Rules of variables that hold a pod's own address: VLLM_HOST_IP, and NIXL's side channel."""

from collections.abc import Iterator

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.network import (
    EVERY_ADDRESS,
    HOST_IP,
    LOOPBACK,
    NIXL_HOST,
    SGLANG_HOST_IP,
    VariableFacts,
)
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.remedies import remove, set_option, write
from kthena_components.core.rules.support.engine_pods import LEADERS
from kthena_components.core.rules.support.kv_halves import NIXL, Half, halves_of, pairs_of
from kthena_components.core.rules.support.messages import title
from kthena_components.core.values.display import display
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import (
    MaybeInt,
    NodeAddress,
    OfController,
    Unknown,
    product,
)

_TWO = 2
_AT_HOST = (0, 5, 2)
"""The first SGLang whose bootstrap server listens at --host; before, at all addresses."""
_OF_DYNAMO = (0, 6)
"""The first Dynamo with such a release of SGLang."""
_FIXED = regex(r"[A-Za-z0-9.:-]+|\[[A-Fa-f0-9:.]+\]")
_NUMBERS = regex(r"[0-9.]+|\[?[A-Fa-f0-9.]*:[A-Fa-f0-9:.]*\]?")
_OWN_ADDRESS = f"set {NIXL_HOST} by a fieldRef to status.podIP"


def host_ip_per_pod(facts: ServingFacts) -> Iterator[Finding]:
    """VLLM_HOST_IP, or SGLang's SGLANG_HOST_IP, if it is set, is the address of each pod itself.

    vLLM takes it for the address of the process, and Ray's executor for the address of the node:
    all pods need different ones. With --nnodes, the processes of one copy in other pods connect to
    it. A fixed value in a template is the same in all of its pods. The address of the node is the
    pod's own only with hostNetwork: without, vLLM cannot listen there, and nothing answers. The
    first rank of SGLang listens at SGLANG_HOST_IP, where tensor ranks in other pods connect.

    Pass: VLLM_HOST_IP from status.podIP in the template of 2 pods.
    Fail: VLLM_HOST_IP 10.0.0.5 or 127.0.0.1 in the template of 2 pods; $(LWS_LEADER_ADDRESS) in
    the template of the workers; status.hostIP without hostNetwork; SGLANG_HOST_IP 127.0.0.1 in the
    template of 2 pods with --tp-size 16 and 8 GPUs.
    Level: mandatory with Ray, where vLLM stops, and with a copy over several pods (--nnodes), where
    it waits forever; advisory otherwise.
    Source: vllm/utils/network_utils.py get_ip; vllm/v1/executor/ray_executor.py ("Every node should
    have a unique IP address"); vllm/distributed/device_communicators/shm_broadcast.py
    create_from_process_group_single_reader and MessageQueue (connect_ip); sglang/srt/utils get_ip
    of 0.4.6, later get_local_ip_auto, and
    sglang/srt/distributed/device_communicators/shm_broadcast.py.
    """
    for engine in facts.engines:
        command = engine.entry.command
        name = _OWN_IP.get(str(command and command.engine))
        if command is None or name is None or engine.pods == 1:
            continue
        ray = command.executor == "ray" or command.data_backend == "ray"
        stops = ray or _spans_pods(command)
        found = _of_node(engine, name, each=_spans_pods(command) and name == HOST_IP)
        if found is not None:
            yield _at_node(engine, found, Level.MANDATORY if stops else Level.ADVISORY)
        else:
            yield from _check(engine, name, stops=stops)


_OWN_IP = {"vllm": HOST_IP, "sglang": SGLANG_HOST_IP}
"""The variable of an engine for the address of a pod."""


def _spans_pods(command: CommandFacts) -> bool:
    """Return whether the processes of one copy in several pods connect without Ray."""
    nodes = command.nnodes
    if not isinstance(nodes, int) or nodes < _TWO:
        return False
    if command.engine == "sglang":  # One stage of a pipeline per pod keeps tensor ranks together.
        return isinstance(command.pipeline, int) and command.pipeline < nodes
    return command.data == 1 and command.executor in {None, "mp"}


def _of_node(engine: EngineFacts, name: str, *, each: bool) -> VariableFacts | None:
    """Return a variable with the address of a node, in a pod without the network of its node.

    Args:
        each: Whether others connect to each pod. With Ray, they connect to the first one.
    """
    worker = engine.worker if each else None
    for pod in filter(None, (engine.entry, worker)):
        stated = pod.variables.get(name)
        of_node = stated is not None and isinstance(stated.value, NodeAddress)
        if stated is not None and of_node and not pod.on_host and not stated.by_script:
            return stated
    return None


def _at_node(engine: EngineFacts, stated: VariableFacts, level: Level) -> Finding:
    return Finding(
        path=f"{stated.path.removesuffix('.value')}.valueFrom.fieldRef.fieldPath",
        seen=f"is status.hostIP, but the pods of {title(engine)} do not have the network of their "
        "node (hostNetwork), so nothing listens at its address",
        remedy=write("status.podIP"),
        level=level,
    )


def _check(engine: EngineFacts, name: str, *, stops: bool) -> Iterator[Finding]:
    """Report an address of a pod that is the same in several pods: at most one finding an engine.

    A leader's address, a literal in a template of several pods, a loopback and 0.0.0.0 count as the
    same.
    """
    pods = [pod for pod in (engine.entry, engine.worker) if pod is not None]
    leader = _of_leader(engine, name)
    if leader is not None:
        seen = "is the address of the first pod in the other pods"
        yield _finding(leader, name, seen, engine, stops=stops)
        return
    stated = [pod.variables[name] for pod in pods if name in pod.variables]
    fixed = [one for one in stated if isinstance(one.value, str) and one.value]
    values = [str(one.value) for one in fixed]
    for one, value in zip(fixed, values, strict=True):
        shared = len(pods) == 1 or engine.pods != len(pods) or values.count(value) > 1
        if shared or value == EVERY_ADDRESS or LOOPBACK.fullmatch(value):
            seen = f"is {display(value)} in every pod of the template"
            yield _finding(one, name, seen, engine, stops=stops)
            return


def _of_leader(engine: EngineFacts, name: str) -> VariableFacts | None:
    """Return the variable if the other pods take it from the first pod's address."""
    stated = engine.worker.variables.get(name) if engine.worker is not None else None
    value = stated.value if stated is not None else None
    return stated if isinstance(value, OfController) and value.name in LEADERS else None


def _finding(
    stated: VariableFacts, name: str, seen: str, engine: EngineFacts, *, stops: bool
) -> Finding:
    """Report a variable with another address than the pod's; `stops`: its engine then stops."""
    said = "use a fieldRef to status.podIP, or remove the variable"
    set_to = f"sets {name}, which " if stated.by_script else ""
    return Finding(
        path=stated.path,
        seen=f"{set_to}{seen}, and each pod of {title(engine)} needs its own address",
        remedy=said if stated.by_script else remove(said),
        level=Level.MANDATORY if stops else Level.ADVISORY,
    )


def nixl_side_channel_host(facts: ServingFacts) -> Iterator[Finding]:
    """An engine that sends its KV cache states an address at which other pods ask for it.

    The prefill engine puts VLLM_NIXL_SIDE_CHANNEL_HOST into its answer, and the decode engine
    connects to it. The default is localhost, which is the decode engine's own pod. Dynamo sets it.
    vLLM also listens there: a fixed value is not an address of the pods of two engines, and the
    name of a Service gives no pod's address, unless the Service is headless and selects that pod
    alone. Since 0.5.2 the prefill engine of SGLang answers these questions at its --host only,
    which is 127.0.0.1 by default, whatever the connector.

    Pass: VLLM_NIXL_SIDE_CHANNEL_HOST from status.podIP, in each of 2 pods.
    Fail: NixlConnector with kv_producer, and no VLLM_NIXL_SIDE_CHANNEL_HOST, or 127.0.0.1; prefill,
    or 10.0.0.5, in a Deployment with replicas 2; --disaggregation-mode prefill without --host.
    Level: mandatory for kv_producer, and for kv_both with a kv_consumer in another role; advisory
    for other engines with kv_both, whose other half is not seen, and for 0.0.0.0. Mandatory for a
    fixed value of several engines; advisory for a name of one, and for SGLang in Dynamo.
    Source: vllm/envs.py (default localhost) and vllm/distributed/kv_transfer/kv_connector/v1/
    nixl_connector.py, from 0.20 nixl/ (side_channel_host, _nixl_handshake_listener), from 0.9.1 to
    0.33.0; zeromq/libzmq src/ip_resolver.cpp (the first address of a name);
    ai-dynamo/dynamo components/src/dynamo/vllm/args.py (ensure_side_channel_host);
    vllm-project/aibrix pkg/plugins/gateway/algorithms/pd/transfer/shfs.go (remote_host);
    sglang/srt/managers/disagg_service.py of 0.5.2 to 0.5.23, and tokenizer_manager.py before (a
    bootstrap server without a host); ai-dynamo/dynamo pull request 3666.
    """
    every = halves_of(facts)
    for half in every:
        if half.command.engine == "sglang" and half.sends and not _is_beside(half, facts):
            yield from _bootstrap_host(half)
    halves = [half for half in every if half.family == NIXL]
    directed = {id(pair.prefill) for pair in pairs_of(halves)}
    for half in halves:
        if not half.sends or half.command.by_dynamo or _is_beside(half, facts):
            continue
        sure = half.one_way or id(half) in directed
        yield from _check_host(half, Level.MANDATORY if sure else Level.ADVISORY)
        yield from _one_for_all(half, product(half.start.engine.replicas, facts.copies))


def _bootstrap_host(half: Half) -> Iterator[Finding]:
    """Check that SGLang's bootstrap server, which decode engines ask, is at the pod's address."""
    pod, level = half.start.engine.entry, half.start.since(_AT_HOST)
    host = half.start.option("--host")
    image = half.command.image
    dynamo = image.dynamo_release if image is not None else None
    if dynamo is not None:
        level = Level.ADVISORY if dynamo >= _OF_DYNAMO else None
    if level is None or pod.on_host or not (host is None or isinstance(host, str)):
        return
    if host is not None and not LOOPBACK.fullmatch(host):
        return
    stated = "127.0.0.1 (the default of --host)" if host is None else f"{host} (--host)"
    yield Finding(
        path=pod.command_path,
        seen=f"{half.name} sends its KV cache, and its bootstrap server listens only on {stated}, "
        "so no decode engine in another pod reaches it",
        remedy=set_option("--host", EVERY_ADDRESS, f"write --host {EVERY_ADDRESS}"),
        level=level,
    )


def _one_for_all(half: Half, engines: MaybeInt) -> Iterator[Finding]:
    """Report a fixed value: each pod listens at its own address only, and passes that on."""
    stated = half.start.engine.entry.variables.get(NIXL_HOST)
    value = stated.value if stated is not None else None
    if stated is None or not isinstance(value, str) or not _FIXED.fullmatch(value):
        return
    if value == EVERY_ADDRESS or LOOPBACK.fullmatch(value):
        return
    set_to = f"sets {NIXL_HOST} to" if stated.by_script else "is"
    if isinstance(engines, int) and engines > 1:
        level, seen = Level.MANDATORY, f"{display(value)} in {count_of(engines, 'engine')}, but "
        seen += "vLLM listens there, and an address belongs to one pod only"
    elif not _NUMBERS.fullmatch(value):
        level, seen = Level.ADVISORY, f"the name {display(value)}, but vLLM listens there, and can "
        seen += "do so only if the name gives the address of this pod: the name of a Service "
        seen += "with a cluster IP does not"
    else:
        return
    yield Finding(path=stated.path, seen=f"{set_to} {seen}", remedy=_OWN_ADDRESS, level=level)


def _check_host(half: Half, level: Level) -> Iterator[Finding]:
    """Check that the other half of a prefill-decode pair can reach the address given to NIXL.

    A literal address that is neither loopback nor 0.0.0.0 passes. Without the variable, vLLM uses
    localhost.
    """
    pod = half.start.engine.entry
    stated = pod.variables.get(NIXL_HOST)
    value = "" if stated is None else stated.value
    if isinstance(value, Unknown):
        return
    if value and value != EVERY_ADDRESS and not LOOPBACK.fullmatch(value):
        return
    if stated is not None:
        set_to = f"sets {NIXL_HOST} to" if stated.by_script else "is"
        replaced = value == EVERY_ADDRESS
        level = Level.ADVISORY if replaced else level
        yield _host_finding(stated.path, f"{set_to} {display(value)}", level, replaced=replaced)
    else:
        seen = f"{half.name} {half.verb} ({half.connector}) without {NIXL_HOST}, whose default is "
        yield _host_finding(pod.command_path, f"{seen}localhost", level)


def _host_finding(path: str, seen: str, level: Level, *, replaced: bool = False) -> Finding:
    """Write the finding of an address that points the other half to its own pod."""
    # AIBrix's gateway replaces the address that vLLM passes on by the pod's.
    unless = ", unless a router replaces the address" if replaced else ""
    return Finding(
        path=path,
        seen=f"{seen}: the other half then asks its own pod for the cache{unless}",
        remedy=_OWN_ADDRESS,
        level=level,
    )


def _is_beside(half: Half, facts: ServingFacts) -> bool:
    """Return whether another engine is in the same pod, where localhost reaches this one."""
    engine = half.start.engine
    others = (one for one in facts.engines if one is not engine)
    return any(one.entry.template == engine.entry.template for one in others)
