"""The ports on which Dynamo's workers and frontends listen."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.facts.listening import Listening
from kthena_components.core.facts.ports import PROBES, resolved
from kthena_components.core.findings import Finding, Level, part_of_rule
from kthena_components.core.remedies import write
from kthena_components.core.rules.support.admission import refuse
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    digits,
    first_unknown,
    mapping,
    require_known,
    sequence,
    unknown_in,
    unknown_inside,
)
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import MaybeInt, Unknown, known
from kthena_components.systems.dynamo.template import MAIN, template_of, written
from kthena_components.systems.dynamo.view import Component, Graph

_VARIABLE, _PORT_NAME, _USUAL = "DYN_SYSTEM_PORT", "system", 9090
_WORKERS = frozenset({"worker", "prefill", "decode"})
_ENGINE = regex(r"dynamo\.(?:vllm|sglang|trtllm)(?![-\w.])")
_OTHERS = regex(r"[&|;\n]|dynamo\.frontend|nginx")
"""What may start another server."""

_Probe = tuple[str, Mapping[str, Any]]
"""A probe and its path. Empty: none is stated."""


def dynamo_system_port(graph: Graph) -> Iterator[Finding]:
    """The probes of a worker ask its system port, the only one on which it answers HTTP.

    That is DYN_SYSTEM_PORT, which the operator sets to 9090 for workers. Its own probes ask the
    port named system, which is 9090, too. A worker that starts other servers is not checked.

    Pass: a readinessProbe on system or 9090; DYN_SYSTEM_PORT 8081 and probes on 8081.
    Fail: a readinessProbe on 8000, the port of a frontend; DYN_SYSTEM_PORT 8081 without probes.
    Level: mandatory; advisory for a variable without probes, because releases of the operator may
    give it their own value.
    Source: ai-dynamo/dynamo deploy/operator/internal/dynamo/component_worker.go;
    lib/runtime/src/config.rs system_port; lib/runtime/src/system_status_server.rs.
    """
    for item in graph.components:
        yield from _worker(item)


@part_of_rule
def _worker(item: Component) -> Iterator[Finding]:
    index, main = _main(item)
    if item.kind not in _WORKERS or not _starts_one(main):
        return
    env, ports = main.get("env"), main.get("ports")
    require_known(item.path, env, *sequence(env), unknown_inside(ports, *sequence(ports)))
    place, stated = _variable(env)
    named = {_PORT_NAME: _USUAL, **(_numbers(ports) if ports else {})}
    port = known(resolved(stated, {}), item.path)
    if port is None or (ports and _PORT_NAME not in _numbers(ports)):
        return
    probes = {kind: _probe(item, index, main, kind) for kind in PROBES}
    listens = f"a worker answers on its system port {port} only"
    for path, probe in probes.values():
        yield from _asked(f"{path}.httpGet.port", probe, named, port, main, listens=listens)
    if place is not None and named[_PORT_NAME] != port and not all(p for _, p in probes.values()):
        field = written(item, f"spec.containers[{index}].env[{place}].value")
        seen = f"is {display(stated)}, but the probes of the operator ask port {named[_PORT_NAME]}"
        remedy = write(str(named[_PORT_NAME]))
        yield from refuse(field, seen, remedy, level=Level.ADVISORY)


@part_of_rule
def _asked(
    path: str,
    probe: Mapping[str, Any],
    named: Mapping[str, int],
    port: int | None,
    main: Mapping[str, Any],
    *,
    listens: str,
) -> Iterator[Finding]:
    """Compare the port that a probe asks with the one on which the container listens.

    Args:
        path: Path of the port: `….httpGet.port`.
        probe: The probe.
        named: The ports of the container, by name.
        port: Where it listens. None: not known.
        main: The container.
        listens: What listens there, as a clause.
    """
    stated = probe.get(path.split(".")[-2])
    action = mapping(stated)
    require_known(path, probe, stated, action.get("port"), action.get("host"))
    asked = None if action.get("host") else resolved(action.get("port"), named)
    if port is None or not isinstance(asked, int) or asked == port or str(asked) in _text(main):
        return
    yield from refuse(path, f"is {display(action['port'])}, but {listens}", write(port))


def _main(item: Component) -> tuple[int, Mapping[str, Any]]:
    """Return the main container, and its index."""
    spec = mapping(mapping(template_of(item)).get("spec"))
    listed = enumerate(map(mapping, sequence(spec.get("containers"))))
    return next((each for each in listed if each[1].get("name") == MAIN), (0, {}))


def _starts_one(main: Mapping[str, Any]) -> bool:
    """Return whether a command starts one engine of Dynamo, and nothing else."""
    words = [*sequence(main.get("command")), *sequence(main.get("args"))]
    if not all(isinstance(word, str) for word in words):
        return False
    line = " ".join(words)
    return len(_ENGINE.findall(line)) == 1 and not _OTHERS.search(line)


def _variable(env: object) -> tuple[int | None, object]:
    """Return the place and the value of the variable; the operator's value without it."""
    listed = enumerate(map(mapping, sequence(env)))
    found = [(place, each) for place, each in listed if each.get("name") == _VARIABLE]
    if not found:
        return None, _USUAL
    place, last = found[-1]
    return place, last.get("value")


def _numbers(ports: object) -> dict[str, int]:
    listed = map(mapping, sequence(ports))
    read = {str(each.get("name")): each.get("containerPort") for each in listed}
    return {name: port for name, port in read.items() if isinstance(port, int)}


def _probe(item: Component, index: int, main: Mapping[str, Any], kind: str) -> _Probe:
    """Return a probe that the user states: the component's own, or the container's."""
    own = item.fields.get(kind) if item.alpha else None
    if own is not None:
        return f"{item.path}.{kind}", mapping(own)
    return written(item, f"spec.containers[{index}].{kind}"), mapping(main.get(kind))


def _text(main: Mapping[str, Any]) -> str:
    """Return where a container may name another port on which it listens."""
    return " ".join(str(main.get(field)) for field in ("command", "args", "env"))


_FRONTEND = regex(r"(?:^| )-m dynamo\.frontend(?= |$)")
_HTTP_OPTION = regex(r"(?:^| )--http-port(?:=| +)(\S*)")
_HTTP_VARIABLE, _HTTP, _HTTP_PORT = "DYN_HTTP_PORT", "http", 8000
_OTHER_SERVERS = regex(r"[&|;\n]|dynamo\.(?:vllm|sglang|trtllm)|nginx|--interactive|-i\b|--kserve")
_NUMBER = regex(r"(?<![\w.])[0-9]{1,5}(?![\w.])")
_FRONTEND_KIND = "frontend"
_BY_VARIABLE = Unknown("a variable states the port of the frontend")


def dynamo_frontend_port(graph: Graph) -> Iterator[Finding]:
    """The probes of a frontend ask the port on which it listens.

    That is --http-port, else DYN_HTTP_PORT, else 8000. The probes and the Service that the operator
    writes ask the port named http, which is 8000 unless the container states its ports. Another
    number in the container's command or variables may be the port of another server.

    Pass: a readinessProbe on http or 8000; --http-port 8080 and a port http with 8080.
    Fail: a readinessProbe on 8080 without --http-port; --http-port 8080, and no ports.
    Level: mandatory; advisory for the probes of the operator, because its releases differ.
    Source: ai-dynamo/dynamo components/src/dynamo/frontend/frontend_args.py;
    deploy/operator/internal/dynamo/component_frontend.go, and graph.go (GenerateBasePodSpec,
    GenerateComponentService).
    """
    for item in graph.components:
        if item.kind == _FRONTEND_KIND:
            yield from _frontend(item)


@part_of_rule
def _frontend(item: Component) -> Iterator[Finding]:
    index, main = _main(item)
    ports = main.get("ports")
    require_known(item.path, _hidden(item))
    if _has_neighbours(item) or not _is_frontend(main):
        return
    require_known(item.path, ports, *sequence(ports), unknown_inside(ports))
    port = known(_http_port(main), item.path)
    named = _numbers(ports) if ports else {_HTTP: _HTTP_PORT}
    probes = [_probe(item, index, main, kind) for kind in PROBES]
    listens = f"the frontend listens on {port}"
    for path, probe in probes:
        for action in ("httpGet", "tcpSocket"):
            yield from _asked(f"{path}.{action}.port", probe, named, port, main, listens=listens)
    asked = named.get(_HTTP)
    if port is None or asked in {None, port} or all(probe for _, probe in probes[1:]):
        return
    at = written(item, f"spec.containers[{index}]")
    seen = f"has a frontend that listens on {port}, but the probes and the Service of the operator "
    seen += f"ask the port named {_HTTP}, which is {asked}"
    stated = [each for each in sequence(ports) if mapping(each).get("name") != _HTTP]
    http = {"name": _HTTP, "containerPort": port}
    shown = f"write the ports [{{name: {_HTTP}, containerPort: {port}}}]"
    remedy = write([*stated, http], shown, at=f"{at}.ports")
    yield from refuse(at, seen, remedy, level=Level.ADVISORY)


def _hidden(item: Component) -> Unknown | None:
    """Explain why the containers of a component are not known, if they are not."""
    template = template_of(item)
    spec = mapping(template).get("spec")
    listed = mapping(spec).get("containers")
    return first_unknown(template, spec, listed, *sequence(listed))


def _has_neighbours(item: Component) -> bool:
    spec = mapping(mapping(template_of(item)).get("spec"))
    sidecars = any(
        mapping(each).get("restartPolicy") for each in sequence(spec.get("initContainers"))
    )
    return len(sequence(spec.get("containers"))) > 1 or sidecars or bool(spec.get("hostNetwork"))


def _is_frontend(main: Mapping[str, Any]) -> bool:
    """Return whether a container starts a frontend and nothing else; without words it does."""
    words = [*sequence(main.get("command")), *sequence(main.get("args"))]
    line = " ".join(word for word in words if isinstance(word, str))
    is_one = not words or len(_FRONTEND.findall(line)) == 1
    return (
        is_one and all(isinstance(word, str) for word in words) and not _OTHER_SERVERS.search(line)
    )


def _http_port(main: Mapping[str, Any]) -> MaybeInt | None:
    """Return the port of a frontend; None if what states it is no number."""
    words = [*sequence(main.get("command")), *sequence(main.get("args"))]
    found = _HTTP_OPTION.findall(" ".join(map(str, words)))
    env = main.get("env")
    hidden = first_unknown(main.get("command"), main.get("args"), *words, env, *sequence(env))
    if hidden is not None:
        return hidden
    stated = found[-1] if found else _HTTP_PORT
    if not found:
        named = [each for each in map(mapping, sequence(env)) if each.get("name") == _HTTP_VARIABLE]
        stated = named[-1].get("value") if named else _HTTP_PORT
        if main.get("envFrom") or (named and stated is None):
            return _BY_VARIABLE
    if isinstance(stated, str) and not unknown_in(stated):
        number = digits(stated)
        return _BY_VARIABLE if number is None else number
    return resolved(stated, {})


def listens(graph: Graph) -> dict[str, Listening]:
    """Return where the frontends of a graph listen, by the paths of their components."""
    mains = [(item, _main(item)[1]) for item in graph.components if item.kind == _FRONTEND_KIND]
    return {
        item.path: _listening(main)
        for item, main in mains
        if _hidden(item) is None
        and not _has_neighbours(item)
        and _is_frontend(main)
        and _http_port(main) is not None
    }


def _listening(main: Mapping[str, Any]) -> Listening:
    ports = main.get("ports")
    hidden = first_unknown(ports, *sequence(ports)) or unknown_inside(ports)
    named = _numbers(ports) if ports else {_HTTP: _HTTP_PORT}
    return Listening(
        engine=None,
        program="the frontend of Dynamo",
        answers=hidden or _http_port(main),
        others=frozenset(map(int, _NUMBER.findall(_text(main)))),
        ray=False,
        named=tuple(sorted(named.items())),
    )
