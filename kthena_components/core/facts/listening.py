"""Derives the ports on which the pods of a template answer, from the command line of the engine.

It only covers pods in which nothing else may listen: they have one container whose command starts
one engine or joins one, at most a routing sidecar of llm-d, and containers that state their ports.
"""

import json
from collections.abc import Iterator, Mapping, Sequence

from kthena_components.core.engines import CommandFacts
from kthena_components.core.engines.options import TITLES
from kthena_components.core.facts.network import LOOPBACK, PORT_OPTIONS
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.ports import DECIDING, ProbeFacts
from kthena_components.core.values.caches import cached_by_object
from kthena_components.core.values.dataclass import dataclass, replace
from kthena_components.core.values.read import digits
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import MaybeBool, MaybeInt, Unknown, is_unresolved

DEFAULT_PORTS = {"vllm": 8000, "sglang": 30000, "trtllm": 8000}
"""vLLM vllm/entrypoints/openai/cli_args.py, SGLang sglang/srt/server_args.py and TensorRT-LLM
tensorrt_llm/commands/serve.py."""
_DEFAULT_HOSTS = {"vllm": "", "sglang": "127.0.0.1", "trtllm": "localhost"}
"""Addresses of their servers without --host, in the same files. Empty: all addresses of the pod."""
_RAY = frozenset({6379, 6380, 8076, 8265, 10001, 44217, 44227, 52365})
"""Ports of Ray: its head, dashboard, agents and clients (Ray documentation, Configuring Ray)."""
_RANDOM_FROM = 10_002
"""From here on, Ray's workers listen on random ports."""
TRANSFERS = frozenset({5555, 5556, 5557, 5600, 8998, 14579, 29500, 29501, 29550})
"""Defaults of what engines tell each other: NIXL, Mooncake, KV events, torch, data parallel."""
_SOCKET = "--uds"
"""The option with which vLLM listens on a Unix socket, and on no port."""
_SEVERAL_SERVERS = "--api-server-count"
"""The option with which it may listen on no port."""
_ADAPTERS = frozenset({"--enable-lora", "--lora-modules", "--lora-paths", "--prompt-adapters"})
"""Options of adapters, which requests name instead of the model."""
_ENABLED, _MODULES = "--enable-lora", "--lora-modules"
_LOADING = frozenset(
    {"VLLM_ALLOW_RUNTIME_LORA_UPDATING", "VLLM_PLUGINS", "VLLM_LORA_RESOLVER_CACHE_DIR"}
    | {"VLLM_LORA_RESOLVER_HF_REPO_LIST"}
)
"""Variables with which vLLM loads adapters while it runs (vllm/envs.py, vllm/plugins)."""
_PORT = regex(r":(\d{1,5})$")
_KEY_VARIABLE = "VLLM_API_KEY"
_REFERENCE = regex(r"\$[({]?(?P<name>\w+)[)}]?")
_WITH_PORT = ("--dist-init-addr", "--master-port", "--data-parallel-rpc-port")
_MOST_COPIES = 64
_SEVERAL = 2
ON_A_PORT = f"remove {_SOCKET} from its command line"
"""What to do about a server that only listens on a Unix socket."""
ON_ALL_ADDRESSES = "write --host 0.0.0.0 in its command line"
"""What to do about a server that only listens on its loopback address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """The ports of the pods of one template."""

    engine: str | None
    """vllm, sglang or trtllm; None: they only join the engine of another pod."""
    answers: MaybeInt | None
    """The port on which they answer requests. None: they answer none."""
    others: frozenset[int]
    """Other ports that may be open."""
    ray: bool
    named: tuple[tuple[str, int], ...]
    """Ports by name."""
    loopback: str = ""
    """The address on which only the pod itself reaches them; empty if they have another one."""
    socket: str = ""
    """The Unix socket on which alone they answer; empty if they answer on a port, or not at all."""
    states_host: bool = False
    """Whether the command line states the address."""
    only: int | None = None
    """The number of the only pod of the template that answers. None: all do, or it is not known."""
    on_host: bool = False
    """Whether they are on the network of their node."""
    health: MaybeInt | None = None
    """The port of a server that only answers probes. None: there is none."""
    tls: bool | None = None
    """Whether it answers requests with TLS only. None: not known."""
    guarded: MaybeBool = False
    """Whether it answers requests without its key with 401, except those about its health."""
    models: frozenset[str] | None = None
    """The names of its model. None: not known, or adapters have names, too."""
    taken: frozenset[str] | None = None
    """All names that vLLM takes in requests, those of adapters, too. None: not known."""
    has_adapters: bool = False
    """Whether it may load adapters; more can be added while it runs."""
    program: str = ""
    """What listens if it is not an engine."""
    sends: tuple[tuple[str, str], ...] = ()
    """The addresses HOST:PORT of the servers to which it sends requests, each with its field."""
    meets: tuple[str, int] | None = None
    """The host and the port at which they meet the other pods of their engine, as written."""
    asks: tuple[str, int] | None = None
    """The same, also of Ray and of copies."""

    @property
    def title(self) -> str:
        """Where the pods listen, as a clause."""
        if self.answers is not None:
            return f"{self.program or TITLES[str(self.engine)]} listens on {self.answers}"
        if self.socket:
            return f"vLLM listens on the Unix socket {self.socket} and on no port ({_SOCKET})"
        if self.engine == "vllm":
            return "vLLM with --headless answers no requests"
        if self.engine == "sglang":
            return "only the first pod of SGLang's --nnodes answers requests"
        return "a worker of Ray answers no requests"

    @property
    def hidden_title(self) -> str:
        """Why nothing outside of the pods reaches their server, as a clause; empty if it does."""
        if not self.loopback or (self.answers is None and self.health is None):
            return ""
        why = "" if self.states_host else ", its default --host"
        return f"{TITLES[str(self.engine)]} listens on {self.loopback}{why}"

    def may_listen(self, port: int) -> bool:
        """Return whether any of the pods may listen on a port."""
        known = port == self.answers or port in self.others
        return known or (self.ray and port >= _RANDOM_FROM)


def listening(
    pod: PodFacts, *, first: bool | None = None, on_host: bool = False
) -> Listening | None:
    """Return the ports of the pods of a template; None if others may be open that nobody states.

    Args:
        first: Whether they are the first pods of their engines. None: one template is for all.
        on_host: Whether pods on the network of their node count, too: others may listen there.
    """
    found = _listening(pod, first=first)
    return None if found is None or (found.on_host and not on_host) else found


@cached_by_object(8)  # several rules ask it of the pods of one engine
def _listening(pod: PodFacts, *, first: bool | None) -> Listening | None:
    command, own = pod.joined or pod.command, pod.own
    if command is None or own is None or own.serves or not own.ports.alone:
        return None
    without_ray = pod.joined and (command.engine or command.ray_role != "worker")
    if without_ray or pod.gap or command.hidden or _hides_port(command):
        return None
    answers = _answers(command, first=first)
    if answers is False:
        return None
    meets = _meeting(command)
    return Listening(
        engine=command.engine,
        answers=answers,
        others=_others(command, own.ports.mentioned),
        ray=command.ray_role is not None,
        named=tuple(sorted({**own.ports.beside, **own.ports.named}.items())),
        loopback=_loopback(command),
        socket=str(command.options[_SOCKET]) if _has_socket(command) else "",
        states_host="--host" in command.options,
        on_host=own.ports.on_host,
        health=_port(command) if answers is None and command.engine == "sglang" else None,
        tls=_has_tls(command),
        guarded=_has_key(command, own.ports.filled),
        models=_models(command),
        taken=_taken(pod, command),
        has_adapters=command.options.get(_ENABLED, False) is not False,
        meets=meets,
        asks=meets or _head_address(command),
    )


def _meeting(command: CommandFacts) -> tuple[str, int] | None:
    """Return the host and the port of an engine over several pods; None if they are not known."""
    if not isinstance(command.nnodes, int) or command.nnodes < _SEVERAL:
        return None
    options = command.options
    host, port = options.get("--master-addr"), options.get(*PORT_OPTIONS["--master-addr"])
    if command.engine == "sglang":
        stated = command.options.get("--dist-init-addr")
        host, _, number = stated.rpartition(":") if isinstance(stated, str) else ("", "", "")
        port = digits(number)
    is_here = not isinstance(host, str) or is_unresolved(host) or LOOPBACK.fullmatch(host)
    return None if is_here or not isinstance(port, int) else (str(host), port)


def _head_address(command: CommandFacts) -> tuple[str, int] | None:
    """Return where pods look for the first one of their engine; None if that is not known."""
    stated = command.ray_address or command.options.get("--data-parallel-address")
    later = isinstance(command.data_rank, int) and command.data_rank > 0  # It has a server, too.
    if stated is None or command.nnodes not in {None, 1} or later:
        return None
    if not isinstance(stated, str) or is_unresolved(stated) or LOOPBACK.fullmatch(stated):
        return None
    host, _, number = stated.partition(":")
    port = command.options.get(*PORT_OPTIONS["--data-parallel-address"])
    port = digits(number) if command.ray_role == "worker" else port
    return (host, port) if isinstance(port, int) and not LOOPBACK.fullmatch(host) else None


def server_port(command: CommandFacts) -> int | None:
    """Return the port on which the first pod of an engine answers; None if none is known."""
    found = _answers(command, first=True)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def listening_by_number(pod: PodFacts, commands: Sequence[CommandFacts]) -> Listening | None:
    """Return the ports if one pod answers requests; None if it is not known which one does.

    Without a probe, the others are ready, and get requests from Services, too. With one, those of
    vLLM and Ray never are; SGLang's may answer the probe, and nothing else.

    Args:
        commands: The command line of each.

    Source: sglang/srt/entrypoints/engine.py (launch_dummy_health_check_server for ranks above 0).
    """
    # Of one that no number changes, the ports are known already.
    pods = [pod if one is pod.command else replace(pod, command=one) for one in commands]
    found = [listening(each, first=True, on_host=True) for each in pods]
    answering = [number for number, one in enumerate(found) if one and one.answers is not None]
    if len(answering) != 1 or len(found) < _SEVERAL or None in found or pod.own is None:
        return None
    first = found[answering[0]]
    probed = any(probe.kind in DECIDING for probe in pod.own.ports.probes)
    return first if first is None or probed else replace(first, only=answering[0])


def waits_for_engine(pod: PodFacts, commands: Sequence[CommandFacts] = ()) -> bool:
    """Return whether the first of pods with some commands is ready only when its engine answers."""
    found = listening(replace(pod, command=commands[0]) if commands else pod, first=True)
    if found is None or pod.own is None:
        return False
    return any(p.kind in DECIDING and p.port == found.answers for p in pod.own.ports.probes)


def restarting_probe(pod: PodFacts, *, first: bool | None = None) -> ProbeFacts | None:
    """Return the probe of the engine's port that may restart its container first.

    Args:
        first: Whether they are the first pods of their engines. None: one template is for all.
    """
    found = listening(pod, first=first)
    if found is None or pod.own is None:
        return None
    restarting = (probe for probe in pod.own.ports.probes if probe.kind != "readinessProbe")
    probe = next(restarting, None)  # A livenessProbe waits for the startupProbe.
    asks = probe is not None and probe.action != "grpc" and probe.port == found.answers
    return probe if asks else None


def _answers(command: CommandFacts, *, first: bool | None) -> MaybeInt | bool | None:
    """Return the port on which an engine answers requests; None if on none, False if unclear."""
    if command.engine is None:
        return None if command.ray_role == "worker" else False
    # Of the ranks of MPI one answers, and mpirun decides where it is.
    by_mpi = command.mpi_session is not False or command.mpi_ranks is not None
    if command.engine not in DEFAULT_PORTS or by_mpi or _SEVERAL_SERVERS in command.options:
        return False
    if command.headless is True or _has_socket(command):
        return None
    if command.headless is not False or _SOCKET in command.options:
        return False
    if command.nnodes not in {None, 1} and (rank := _rank(command, first=first)) != 0:
        # vLLM without --headless is another rule's concern: core/rules/headless.py.
        return None if command.engine == "sglang" and isinstance(rank, int) else False
    port = _port(command)
    return False if port is None else port


def _port(command: CommandFacts) -> MaybeInt | None:
    port = command.options.get("--port", DEFAULT_PORTS.get(str(command.engine)))
    return port if isinstance(port, int | Unknown) else None


def _has_tls(command: CommandFacts) -> bool | None:
    """Return whether vLLM or SGLang has a key and a certificate; None if that is not known.

    Source: uvicorn/config.py is_ssl; vllm/entrypoints/openai/api_server.py and
    sglang/srt/entrypoints/http_server.py, which pass both options.
    """
    if command.engine not in {"vllm", "sglang"} or command.hidden:
        return None
    stated = [command.options.get(name) for name in ("--ssl-keyfile", "--ssl-certfile")]
    if any(isinstance(value, str) for value in stated):
        return True
    return False if all(value is None for value in stated) else None


def _has_key(command: CommandFacts, filled: Mapping[str, MaybeBool]) -> MaybeBool:
    """Return whether a server of vLLM or SGLang asks for a key.

    Source: vllm/entrypoints/openai/api_server.py (args.api_key, else VLLM_API_KEY);
    sglang/srt/entrypoints/http_server.py (add_api_key_middleware, for an api_key).
    """
    stated = command.options.get("--api-key")
    if command.engine not in {"vllm", "sglang"} or "--root-path" in command.options:
        return False
    if isinstance(stated, Unknown):
        name = _REFERENCE.fullmatch(command.written.get("--api-key", ""))
        is_set = filled.get(name["name"]) if name else None
        return stated if is_set is None else is_set
    if stated is not None:
        return isinstance(stated, str | tuple) and len(stated) > 0
    return filled.get(_KEY_VARIABLE, False) if command.engine == "vllm" else False


def _models(command: CommandFacts) -> frozenset[str] | None:
    """Return the names under which vLLM or SGLang serves its model."""
    if command.engine not in {"vllm", "sglang"} or not _ADAPTERS.isdisjoint(command.options):
        return None
    return _own_names(command)


def _own_names(command: CommandFacts) -> frozenset[str] | None:
    """Return the names of an engine's model without those of adapters; None if not known."""
    stated = command.options.get("--served-model-name", command.model)
    names = stated if isinstance(stated, tuple) else (stated,)
    known = [name for name in names if isinstance(name, str) and not is_unresolved(name)]
    return frozenset(known) if known and len(known) == len(names) else None


def _taken(pod: PodFacts, command: CommandFacts) -> frozenset[str] | None:
    """Return all names that vLLM takes in requests; None if adapters may be loaded later.

    Source: vLLM vllm/entrypoints/openai: serving_engine.py _check_model, models/serving.py
    init_static_loras (later releases), serving_models.py (earlier ones).
    """
    names, enabled = _own_names(command), command.options.get(_ENABLED, False)
    modules = command.options.get(_MODULES, ())
    if command.engine != "vllm" or command.by_dynamo or names is None:
        return None
    if enabled is False and not _ADAPTERS.intersection(command.options) - {_ENABLED}:
        return names
    given = [*map(_adapter, modules)] if isinstance(modules, tuple) else [""]
    own = pod.own is None or pod.own.has_other_inputs or pod.stated.intersection(_LOADING)
    if enabled is not True or own or "--prompt-adapters" in command.options or not all(given):
        return None
    return names.union(given)


def _adapter(module: object) -> str:
    """Return the name of a module, `name=path` or JSON; empty if it is not known."""
    if not isinstance(module, str) or is_unresolved(module):
        return ""
    if not module.lstrip().startswith("{"):
        return module.partition("=")[0]
    try:
        stated = json.loads(module)
    except (ValueError, RecursionError):
        return ""
    name = stated.get("name") if isinstance(stated, dict) else None
    return name if isinstance(name, str) else ""


def _has_socket(command: CommandFacts) -> bool:
    return isinstance(command.options.get(_SOCKET), str) and command.headless is False


def _loopback(command: CommandFacts) -> str:
    host = command.options.get("--host", _DEFAULT_HOSTS.get(str(command.engine), ""))
    return host if isinstance(host, str) and LOOPBACK.fullmatch(host) else ""


def _rank(command: CommandFacts, *, first: bool | None) -> MaybeInt:
    """Return the rank of the pods, or any above 0 for those that are not the first."""
    if isinstance(command.node_rank, Unknown) and first is not None:
        return 0 if first else 1
    return command.node_rank or 0


def _others(command: CommandFacts, mentioned: frozenset[int]) -> frozenset[int]:
    """List further ports that may answer; the engine's own --port is none, even if unused."""
    mentioned |= frozenset(_ports_in(command))
    found = (mentioned - {command.options.get("--port")}) | TRANSFERS
    if command.ray_role is not None:
        found |= _RAY
    if command.options.get("--data-parallel-multi-port-external-lb"):
        port = command.options.get("--port", DEFAULT_PORTS["vllm"])
        found |= frozenset(range(port, port + _MOST_COPIES)) if isinstance(port, int) else set()
    return found


def _hides_port(command: CommandFacts) -> bool:
    """Return whether a port at which the pods meet is in a variable that is not known."""
    return any(
        isinstance(command.options.get(option), Unknown)
        and not _PORT.search(command.written.get(option, ""))
        for option in _WITH_PORT
    )


def _ports_in(command: CommandFacts) -> Iterator[int]:
    """Return the ports in options: a variable may have one, which the command line only names."""
    for option, value in command.options.items():
        if option.endswith("-port") and isinstance(value, int):
            yield value
        elif isinstance(value, str) and (found := _PORT.search(value)):
            yield int(found[1])
