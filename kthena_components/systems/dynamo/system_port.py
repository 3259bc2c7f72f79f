"""The rule dynamo-system-port."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.facts.ports import PROBES, resolved
from kthena_components.core.findings import Finding, Level, part_of_rule
from kthena_components.core.remedies import write
from kthena_components.core.rules.support.admission import refuse
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    mapping,
    require_known,
    sequence,
    unknown_inside,
)
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import known
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
    for path, probe in probes.values():
        yield from _asked(f"{path}.httpGet.port", probe, named, port, main)
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
    port: int,
    main: Mapping[str, Any],
) -> Iterator[Finding]:
    """Compare the port that a probe asks with the system port."""
    action = mapping(probe.get("httpGet"))
    require_known(path, probe, probe.get("httpGet"), action.get("port"), action.get("host"))
    asked = None if action.get("host") else resolved(action.get("port"), named)
    if isinstance(asked, int) and asked != port and str(asked) not in _text(main):
        seen = f"is {display(action['port'])}, but a worker answers on its system port {port} only"
        yield from refuse(path, seen, write(port))


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
