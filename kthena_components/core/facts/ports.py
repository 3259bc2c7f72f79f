"""Reads which ports a container may listen on, and which its probes ask."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from kthena_components.core.engines.files import Files, read_file
from kthena_components.core.engines.shapes import idle_command
from kthena_components.core.facts.routing_sidecar import RoutingSidecar, read_sidecar
from kthena_components.core.facts.wait_loops import asked_by, wait_loops
from kthena_components.core.facts.wait_programs import ITSELF
from kthena_components.core.templates import PROBES
from kthena_components.core.values.caches import cached_by_text
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping, sequence, unknown_in, unknown_inside, whole
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import MaybeBool, MaybeInt, Unknown

DECIDING = frozenset({"startupProbe", "readinessProbe"})
"""The probes without which a pod is ready as soon as its containers run."""
_ACTIONS = ("httpGet", "tcpSocket", "grpc")
_TIMES = {"initialDelaySeconds": 0, "periodSeconds": 10, "failureThreshold": 3, "timeoutSeconds": 1}
_NUMBER = regex(r"(?<![\w.])[0-9]{1,5}(?![\w.])", re.ASCII)
_MOST = 8
"""Containers of a pod whose ports are read."""
_PASSES_ON = regex(r"(?i)istio|linkerd|dapr|consul|kong|traefik|gateway|mesh|vllm|sglang|ray")
"""Programs beside an engine that listen on ports that they do not state, and other engines."""
_HIDING = ("$", "{{", "valueFrom", "envFrom")
"""What hides a value in a container."""
_DIGITS = regex(r"[0-9]{1,5}", re.ASCII)
_RAY_BESIDE = regex(
    r"(?:\beval\s+)?\"?(?:\$\{?KUBERAY_GEN_RAY_START_CMD\}?|\bray\s+start\b[^&;|\n]*)\"?\s*&(?![&>0-9])"
)
"""Ray in the background, whose ports are known."""
_BESIDE = regex(r"(?<![&<>])&(?![&>0-9])")
"""A program that a script starts in the background."""
_SERVERS = regex(
    r"(?<![-\w])(?:nginx|haproxy|envoy|supervisord|systemctl|service|uvicorn|gunicorn|http\.server"
    r"|socat|caddy|redis-server|etcd|mooncake_master|proxy|router|dynamo)(?![-\w])"
    r"|(?<!multi-node-serving)\.(?:sh|py)\b"
)
"""Programs in an engine's container that may listen, too, and files that may start some."""
_FILE = regex(r"(?<![\w.$}])/[\w./-]+(?![\w$*?{])", re.ASCII)
"""The whole path of a file in a command line or a script."""
_GRPC = regex(r"(?i)grpc")
_PROXY = regex(r"(?i)(?:http|https|all)_proxy", re.ASCII)
_KEY_HEADERS = frozenset({"authorization", "x-api-key"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeFacts:
    """A probe that connects to a port of the same pod."""

    path: str = field(compare=False)
    """Path of the port, or of the command that asks it."""
    action: str = "httpGet"
    """httpGet, tcpSocket, grpc, exec, BY_KSERVE, or BY_KNATIVE."""
    kind: str
    """readinessProbe and so on."""
    port: MaybeInt | None
    """None: a name that no port of the container has."""
    name: str = ""
    """The name of the port, if the probe names it."""
    patience: MaybeInt | None = None
    """Seconds in which it surely fails for good if nothing answers. None: not known, or it waits
    for another probe."""
    scheme: str = ""
    """HTTP or HTTPS. Empty for TCP, or if it is not known."""
    target: str = ""
    """The path of an HTTP request. Empty for TCP, or if it is not known."""
    has_key: bool = False
    """Whether an HTTP request has, or may have, a header with a key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PortFacts:
    """The ports of one container."""

    named: Mapping[str, int] = field(hash=False)
    mentioned: frozenset[int]
    """Numbers in its command line and variables: some may be ports of other servers."""
    alone: bool
    """Whether nothing else may listen in its pod than an engine in its command line, and a routing
    sidecar."""
    probes: tuple[ProbeFacts, ...]
    of_first: tuple[ProbeFacts, ...] = ()
    """Commands of probes as they run in the first pod of an engine, whose number is 0."""
    on_host: bool = False
    """Whether its pod may have the network of its node, on which other pods may listen, too."""
    sidecar: RoutingSidecar | None = None
    """The routing sidecar of its pod. None: there is none, or its ports are not known."""
    beside: Mapping[str, int] = field(default_factory=dict, hash=False)
    """The named ports of the other containers of its pod."""
    stated: frozenset[int] = frozenset()
    """The ports that it states, with a name or without one."""
    filled: Mapping[str, MaybeBool] = field(default_factory=dict, compare=False)
    """Its variables by name, and whether each surely has a value that is not empty."""


_OF_SCRIPTS = "PORT"
"""A variable that no engine reads: only scripts, which state the port to the engine, and probes."""
BY_KSERVE, BY_KNATIVE = "default of KServe", "default of Knative"
"""The action of a probe that KServe adds: it connects to the port by TCP."""
NO_PORTS = PortFacts(named={}, mentioned=frozenset(), alone=False, probes=())


def read_ports(
    container: Mapping[str, Any], spec: Mapping[str, Any], path: str, files: Files = ()
) -> PortFacts:
    """Read the ports of a container, whatever it contains.

    Args:
        files: Its mounted files. A script among them is read in the place of its name.
    """
    words = [str(word) for key in ("command", "args") for word in sequence(container.get(key))]
    words = [*_with_scripts(words, files)] if files else words
    env = (mapping(item) for item in sequence(container.get("env")))
    variables = (item.get("value") for item in env if item.get("name") != _OF_SCRIPTS)
    # The pattern goes over no end of a line, so all strings are searched at once.
    texts = "\n".join([*words, *(value for value in variables if isinstance(value, str))])
    named = dict(_named_ports(container))
    beside, sidecar = read_sidecar(container, spec, path)
    mentioned = frozenset(map(int, _NUMBER.findall(texts)))
    others = _others(container, spec, beside)
    if others is not None:
        mentioned |= frozenset(number for one in others for number in _states(one))
    return PortFacts(
        named=named,
        beside={name: port for one in others or () for name, port in _named_ports(one)},
        mentioned=mentioned if sidecar is None else mentioned | {sidecar.port},
        alone=others is not None and not any(map(_may_listen, words)) and not _hides(container),
        probes=tuple(_probes(container, path, named)),
        of_first=tuple(_of_first(container, path)),
        on_host=spec.get("hostNetwork") not in (None, False),
        sidecar=sidecar,
        stated=frozenset(_port_numbers(container)),
        filled=dict(_filled(container)),
    )


def _with_scripts(words: Sequence[str], files: Files) -> Iterator[str]:
    """Yield some words, with the contents of mounted files in place of their names."""
    waiting, seen = [*words], set[str]()
    for word in waiting:
        kept = word
        for path in dict.fromkeys(_FILE.findall(word)):
            text = read_file(files, path)
            if isinstance(text, str) and (path in seen or len(seen) < _MOST):
                kept = kept.replace(path, " ")
                waiting += [] if path in seen else [text]
                seen.add(path)
        yield kept


def _hides(container: Mapping[str, Any]) -> bool:
    """Return whether the port of another server may be in a variable that is not known."""
    env = container.get("env")
    items = [item for item in sequence(env) if not isinstance(item, Mapping) or _is_port(item)]
    return unknown_in(env) is not None or any(map(unknown_inside, items))


def _is_port(item: Mapping[str, Any]) -> bool:
    name = item.get("name")
    return name != _OF_SCRIPTS and (not isinstance(name, str) or _OF_SCRIPTS in name)


def _filled(container: Mapping[str, Any]) -> Iterator[tuple[str, MaybeBool]]:
    """Return the variables of a container, and whether each has a value."""
    for item in map(mapping, sequence(container.get("env"))):
        name, value, source = item.get("name"), item.get("value"), item.get("valueFrom")
        if not isinstance(name, str):
            continue
        reference = mapping(mapping(source).get("secretKeyRef"))
        by_secret = bool(reference) and not reference.get("optional")
        gap = unknown_in(value) or unknown_in(source) or unknown_inside(reference)
        yield name, gap or by_secret or (isinstance(value, str) and value != "")


@cached_by_text
def _may_listen(word: str) -> bool:
    """Return whether a word of a command line may start another program that listens."""
    rest = _RAY_BESIDE.sub("", word)
    return _BESIDE.search(rest) is not None or _SERVERS.search(rest) is not None


def read_waits(container: Mapping[str, Any]) -> frozenset[tuple[str, int]]:
    """Return the hosts and the ports that a script asks until they answer."""
    loops = wait_loops(container)
    return frozenset((loop.host, loop.port) for loop in loops if loop.port is not None)


def _others(
    container: Mapping[str, Any], spec: Mapping[str, Any], sidecar: object
) -> list[Mapping[str, Any]] | None:
    """Return what else runs in the pod of a container than a sidecar that is known.

    Returns:
        The containers. None if any of them may listen on ports that nothing states.
    """
    listed = sequence(spec.get("containers"))
    if len(listed) > _MOST or not any(each is container for each in listed):
        return None
    inits = (mapping(each) for each in sequence(spec.get("initContainers")) if each is not sidecar)
    if any(init.get("restartPolicy") is not None for init in inits):
        return None
    others = [mapping(each) for each in listed if each is not container and each is not sidecar]
    return others if all(_is_plain(each, spec) for each in others) else None


def _is_plain(container: Mapping[str, Any], spec: Mapping[str, Any]) -> bool:
    """Return whether a container beside an engine states its ports, or surely has none."""
    words = [*sequence(container.get("command")), *sequence(container.get("args"))]
    texts = [str(word) for word in (container.get("image"), *words)]
    written = json.dumps(container, default=str, ensure_ascii=False)
    # A variable or a template may be a port; other characters than ASCII stand for what is hidden.
    hides = not written.isascii() or any(map(written.__contains__, _HIDING))
    if hides or unknown_inside(container) is not None:
        return False
    if any(_SERVERS.search(text) or _PASSES_ON.search(text) for text in texts):
        return False
    if not container.get("ports"):
        return idle_command([*map(str, words)]) != ""
    volumes = (mapping(each) for each in sequence(spec.get("volumes")))
    empty = [each.get("name") for each in volumes if "emptyDir" in each]
    mounts = map(mapping, sequence(container.get("volumeMounts")))
    return all(each.get("name") in empty for each in mounts)  # A file may state other ports.


def _states(container: Mapping[str, Any]) -> Iterator[int]:
    """Return all numbers in a container that may be ports."""
    yield from map(int, _NUMBER.findall(json.dumps(container, default=str)))


def at_overlay(ports: PortFacts, path: str) -> PortFacts:
    """Replace the paths in a container that the package wrote by the path of the user's overlay."""
    return replace(ports, probes=tuple(replace(probe, path=path) for probe in ports.probes))


def relocated_ports(ports: PortFacts, place: Callable[[str], str]) -> PortFacts:
    """Replace every path by another one."""
    return replace(
        ports,
        probes=tuple(replace(probe, path=place(probe.path)) for probe in ports.probes),
        sidecar=ports.sidecar and replace(ports.sidecar, path=place(ports.sidecar.path)),
    )


def resolved(stated: object, named: Mapping[str, int]) -> MaybeInt | None:
    """Return the number of a port, given by number or by name; None for an unknown name."""
    if gap := unknown_in(stated):
        return gap
    if isinstance(stated, str):
        return int(stated) if _DIGITS.fullmatch(stated) else named.get(stated)
    return whole(stated)


def _named_ports(container: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for item in map(mapping, sequence(container.get("ports"))):
        name, number = item.get("name"), whole(item.get("containerPort"))
        if isinstance(name, str) and isinstance(number, int):
            yield name, number


def _port_numbers(container: Mapping[str, Any]) -> Iterator[int]:
    numbers = (whole(mapping(i).get("containerPort")) for i in sequence(container.get("ports")))
    yield from (number for number in numbers if isinstance(number, int))


def _probes(
    container: Mapping[str, Any], path: str, named: Mapping[str, int]
) -> Iterator[ProbeFacts]:
    """Read the probes of a container: what they ask, and at which port."""
    hidden = unknown_in(container.get("ports")) or next(
        filter(None, map(unknown_in, sequence(container.get("ports")))), None
    )
    for kind in (each for each in PROBES if container.get(each) is not None):
        for name in _ACTIONS:
            action = mapping(container.get(kind)).get(name)
            stated = mapping(action).get("port")
            if stated is None or mapping(action).get("host") not in (None, ""):
                continue
            port = resolved(stated, named)
            port = hidden if port is None and hidden else port
            if name == "grpc" and _may_speak_grpc(container):
                continue
            text = stated if isinstance(stated, str) and not isinstance(port, Unknown) else ""
            at = f"{path}.{kind}.{name}.port"
            scheme, target = _request(mapping(action)) if name == "httpGet" else ("", "")
            yield ProbeFacts(
                path=at,
                action=name,
                kind=kind,
                port=port,
                name=text,
                patience=_patience(container, kind),
                scheme=scheme,
                target=target,
                has_key=_has_key(mapping(action)),
            )

        yield from _of_command(container, f"{path}.{kind}.exec.command", kind)


def _of_command(
    container: Mapping[str, Any], path: str, kind: str, *, first: bool = False
) -> Iterator[ProbeFacts]:
    """Read a command that asks a port of its own pod, maybe only in the first pod of an engine."""
    command = mapping(mapping(container.get(kind)).get("exec")).get("command")
    words = sequence(command)
    # A variable may name a proxy that answers for the pod.
    if command is None or unknown_inside(command) or _has_variable(container, _PROXY):
        return
    known = all(isinstance(word, str) for word in words)
    asked = asked_by(words, container, first=first) if known else None
    if asked is not None and asked.port is not None and ITSELF.fullmatch(asked.host):
        patience = _patience(container, kind)
        yield ProbeFacts(path=path, action="exec", kind=kind, port=asked.port, patience=patience)


def _of_first(container: Mapping[str, Any], path: str) -> Iterator[ProbeFacts]:
    for kind in (each for each in PROBES if container.get(each) is not None):
        yield from _of_command(container, f"{path}.{kind}.exec.command", kind, first=True)


def _may_speak_grpc(container: Mapping[str, Any]) -> bool:
    """Return whether an option or a variable may start a gRPC server."""
    stated = str([container.get(key) for key in ("command", "args", "env")])
    return _GRPC.search(stated) is not None or _has_variable(container, _GRPC)


def _has_variable(container: Mapping[str, Any], pattern: re.Pattern[str]) -> bool:
    """Return whether a container may have a variable with such a name."""
    env = container.get("env")
    listed = [env, *sequence(env), *(mapping(each).get("name") for each in sequence(env))]
    names = (each for each in listed if isinstance(each, str))
    hidden = container.get("envFrom") or any(map(unknown_in, listed))
    return bool(hidden) or any(map(pattern.search, names))


def _request(action: Mapping[str, Any]) -> tuple[str, str]:
    """Return the scheme and the path of an HTTP request; empty if they are not known."""
    scheme, path = action.get("scheme") or "HTTP", action.get("path") or "/"
    known = isinstance(scheme, str) and not unknown_in(scheme)
    stated = isinstance(path, str) and not unknown_in(path)
    return (str(scheme) if known else ""), (str(path) if stated else "")


def _has_key(action: Mapping[str, Any]) -> bool:
    """Return whether an HTTP request has, or may have, a header with a key."""
    headers = action.get("httpHeaders")
    names = [mapping(each).get("name") for each in sequence(headers)]
    if unknown_in(headers) or any(map(unknown_in, (*sequence(headers), *names))):
        return True
    return any(str(name).lower() in _KEY_HEADERS for name in names)


def _patience(container: Mapping[str, Any], kind: str) -> int | None:
    """Return the seconds after which the kubelet acts at the latest if a probe never succeeds.

    A livenessProbe waits for the startupProbe.

    Source: kubernetes pkg/kubelet/prober/worker.go (a first delay of up to one period), and the
    defaults in pkg/apis/core/v1/defaults.go SetDefaults_Probe.
    """
    probe = mapping(container.get(kind))
    if kind == "livenessProbe" and container.get("startupProbe"):
        return None
    stated = [whole(probe.get(name) or usual) for name, usual in _TIMES.items()]  # 0 is none
    delay, period, failures, timeout = (n if isinstance(n, int) else -1 for n in stated)
    if min(delay, period, failures, timeout) < 0:
        return None
    return delay + period * (failures + 1) + timeout
