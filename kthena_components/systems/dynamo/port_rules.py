"""The ports on which Dynamo's workers and frontends listen."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.facts.listening import Listening
from kthena_components.core.facts.ports import resolved
from kthena_components.core.facts.server_ports import (
    HTTP,
    HTTP_PORT,
    SYSTEM_VARIABLE,
    frontend,
    has_neighbours,
    http_port,
    is_frontend,
    numbers,
    starts_worker,
    text_of,
)
from kthena_components.core.findings import Finding, advise, part_of_rule, refuse
from kthena_components.core.remedies import write
from kthena_components.core.templates import PROBES
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    first_unknown,
    mapping,
    require_known,
    sequence,
    unknown_inside,
)
from kthena_components.core.values.unknown import Unknown, known
from kthena_components.systems.dynamo.view import MAIN, Component, Graph, template_of, written

_PORT_NAME, _USUAL = "system", 9090
_WORKERS = frozenset({"worker", "prefill", "decode"})

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
    """Check that a worker's probes and ports agree with its system port, the only one open."""
    index, main = _main(item)
    if item.kind not in _WORKERS or not starts_worker(main):
        return
    env, ports = main.get("env"), main.get("ports")
    require_known(item.path, env, *sequence(env), unknown_inside(ports, *sequence(ports)))
    place, stated = _variable(env)
    named = {_PORT_NAME: _USUAL, **(numbers(ports) if ports else {})}
    port = known(resolved(stated, {}), item.path)
    if port is None or (ports and _PORT_NAME not in numbers(ports)):
        return
    probes = {kind: _probe(item, index, main, kind) for kind in PROBES}
    listens = f"a worker answers on its system port {port} only"
    for path, probe in probes.values():
        yield from _compare(f"{path}.httpGet.port", probe, named, port, main, listens=listens)
    if place is not None and named[_PORT_NAME] != port and not all(p for _, p in probes.values()):
        field = written(item, f"spec.containers[{index}].env[{place}].value")
        seen = f"is {display(stated)}, but the probes of the operator ask port {named[_PORT_NAME]}"
        remedy = write(str(named[_PORT_NAME]))
        yield advise(field, seen, remedy)


@part_of_rule
def _compare(
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
        named: The ports of the container, by name.
        port: Where it listens. None: not known.
        listens: What listens there, as a clause.
    """
    stated = probe.get(path.split(".")[-2])
    action = mapping(stated)
    require_known(path, probe, stated, action.get("port"), action.get("host"))
    asked = None if action.get("host") else resolved(action.get("port"), named)
    if port is None or not isinstance(asked, int) or asked == port or str(asked) in text_of(main):
        return
    yield refuse(path, f"is {display(action['port'])}, but {listens}", write(port))


def _main(item: Component) -> tuple[int, Mapping[str, Any]]:
    """Return the main container, and its index."""
    spec = mapping(mapping(template_of(item)).get("spec"))
    listed = enumerate(map(mapping, sequence(spec.get("containers"))))
    return next((each for each in listed if each[1].get("name") == MAIN), (0, {}))


def _variable(env: object) -> tuple[int | None, object]:
    """Return the place and the value of the variable; the operator's value without it."""
    listed = enumerate(map(mapping, sequence(env)))
    found = [(place, each) for place, each in listed if each.get("name") == SYSTEM_VARIABLE]
    if not found:
        return None, _USUAL
    place, last = found[-1]
    return place, last.get("value")


def _probe(item: Component, index: int, main: Mapping[str, Any], kind: str) -> _Probe:
    """Return a probe that the user states: the component's own, or the container's."""
    own = item.fields.get(kind) if item.alpha else None
    if own is not None:
        return f"{item.path}.{kind}", mapping(own)
    return written(item, f"spec.containers[{index}].{kind}"), mapping(main.get(kind))


_FRONTEND_KIND = "frontend"


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
    """Report a frontend whose port its probes or its Service do not ask."""
    index, main = _main(item)
    ports = main.get("ports")
    require_known(item.path, _hidden(item))
    if _has_neighbours(item) or not is_frontend(main):
        return
    require_known(item.path, unknown_inside(ports, *sequence(ports)))
    port = known(http_port(main), item.path)
    named = numbers(ports) if ports else {HTTP: HTTP_PORT}
    probes = [_probe(item, index, main, kind) for kind in PROBES]
    listens = f"the frontend listens on {port}"
    for path, probe in probes:
        for action in ("httpGet", "tcpSocket"):
            yield from _compare(f"{path}.{action}.port", probe, named, port, main, listens=listens)
    asked = named.get(HTTP)
    if port is None or asked in {None, port} or all(probe for _, probe in probes[1:]):
        return
    at = written(item, f"spec.containers[{index}]")
    seen = f"has a frontend that listens on {port}, but the probes and the Service of the operator "
    seen += f"ask the port named {HTTP}, which is {asked}"
    stated = [each for each in sequence(ports) if mapping(each).get("name") != HTTP]
    http = {"name": HTTP, "containerPort": port}
    shown = f"write the ports [{{name: {HTTP}, containerPort: {port}}}]"
    remedy = write([*stated, http], shown, at=f"{at}.ports")
    yield advise(at, seen, remedy)


def _hidden(item: Component) -> Unknown | None:
    """Explain why the containers of a component are not known, if they are not."""
    template = template_of(item)
    spec = mapping(template).get("spec")
    listed = mapping(spec).get("containers")
    return first_unknown(template, spec, listed, *sequence(listed))


def _has_neighbours(item: Component) -> bool:
    return has_neighbours(mapping(mapping(template_of(item)).get("spec")))


def listens(graph: Graph) -> dict[str, Listening]:
    """Return where the frontends of a graph listen, by the paths of their components."""
    found: dict[str, Listening] = {}
    for item in graph.components:
        main, ports = _main(item)[1], _main(item)[1].get("ports")
        alone = item.kind == _FRONTEND_KIND and not _hidden(item) and not _has_neighbours(item)
        named = numbers(ports) if ports else {HTTP: HTTP_PORT}
        ports_of = frontend(main, http_port(main), named) if alone and is_frontend(main) else None
        if ports_of is not None:
            found[item.path] = ports_of
    return found
