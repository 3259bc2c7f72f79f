"""The rule dynamo-system-port, and amounts in fields that Dynamo's CRDs do not have.

Source: ai-dynamo/dynamo deploy/operator/api/v1alpha1/common.go, ResourceItem. The field for nodes
of early releases is in docs/guides, Multinode Deployment Guide;
api/v1alpha1/dynamocomponentdeployment_types.go MultinodeSpec has the field of later ones.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.facts.context import Context
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.ports import PROBES, resolved
from kthena_components.core.findings import Finding, Level, join_path, part_of_rule
from kthena_components.core.remedies import remove, together, write
from kthena_components.core.rules.support.admission import refuse
from kthena_components.core.values.display import display, key_text
from kthena_components.core.values.read import (
    first_unknown,
    mapping,
    require_known,
    sequence,
    unknown_in,
    unknown_inside,
    whole,
)
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import known
from kthena_components.systems.dynamo.template import MAIN, template_of, written
from kthena_components.systems.dynamo.view import LEAST_NODES, Component, Graph

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


def misplaced_nodes(item: Component) -> Iterator[Finding]:
    """Report the fields of a component that state a number of nodes in a wrong place."""
    stated = dict(_stated(item))
    if not stated:
        return
    seen = "is no field of Dynamo's CRD"
    seen += ", so an engine of this component has 1 pod" if item.nodes == 1 else ""
    yield from refuse(next(iter(stated)), seen, _remedy(item, stated))


def _stated(item: Component) -> Iterator[tuple[str, object]]:
    multinode = mapping(item.fields.get("multinode"))
    for path, fields, names in (
        (item.path, item.fields, ("numberOfNodes", "nodeCount")),
        (f"{item.path}.multinode", multinode, ("numberOfNodes",)),
    ):
        # A map that is not known yet answers every lookup, but contains no key.
        present = (name for name in names if name in fields and fields[name] is not None)
        yield from ((f"{path}.{name}", fields[name]) for name in present)


def _remedy(item: Component, stated: Mapping[str, object]) -> str:
    """Keep the first number that multinode.nodeCount may have."""
    at, given = f"{item.path}.multinode", item.fields.get("multinode")
    removed = [remove(at=path) for path in stated]
    text = "remove it" if len(stated) == 1 else f"remove {' and '.join(stated)}"
    if unknown_in(given) or mapping(given).get("nodeCount") is not None:
        return together(*removed, text=text)
    numbers = [whole(number) for number in stated.values()]
    if first_unknown(*numbers):
        return f"{text}, and write the number as {at}.nodeCount"
    count = next((n for n in numbers if isinstance(n, int) and n >= LEAST_NODES), None)
    if count is not None:
        same = "it" if len(stated) == 1 else str(count)
        new = write({"nodeCount": count}, at=at)
        return together(*removed, new, text=f"write {same} as multinode.nodeCount")
    if given is None:
        return together(*removed, text=text)
    # An empty multinode would have 2 nodes.
    return together(*removed, remove(at=at), text=f"remove {at}: 1 node is the default")


def enough_nodes(item: Component, context: Context) -> str:
    """Say what to write for a number of nodes below the least one: as many as its engine needs."""
    pod = read_pod(template_of(item), item.path, context=context)
    ranks = None if pod.command is None else pod.command.per_rank_world
    gpus, at = pod.gpus, f"{item.path}.multinode"
    alone = remove(f"remove {at}", at=at)
    if not isinstance(ranks, int) or not isinstance(gpus, int) or gpus < 1:
        return f"{alone}, or write {LEAST_NODES} or more"
    return write(-(-ranks // gpus), at=f"{at}.nodeCount") if ranks > gpus else alone


_NAMES = ("cpu", "memory", "gpu", "gpuType", "custom")
_GPU = "nvidia.com/gpu"


def misplaced_amounts(item: Component) -> Iterator[Finding]:
    """Report the amounts of a component that have the names of a container's resources."""
    resources = mapping(item.fields.get("resources")) if item.alpha else {}
    for kind in ("limits", "requests"):
        amounts, at = mapping(resources.get(kind)), f"{item.path}.resources.{kind}"
        for name in amounts:
            if not unknown_in(name) and name not in _NAMES:
                yield from _misplaced(at, name, amounts)


def _misplaced(at: str, name: str, amounts: Mapping[str, Any]) -> Iterator[Finding]:
    path, amount = join_path(at, key_text(name)), amounts[name]
    remedy = f"write it as custom: {{{key_text(name)}: …}}"
    if name == _GPU and amounts.get("gpu") is None:
        remedy, known = "write it as gpu", isinstance(amount, str | int)
        if known and not unknown_in(amount):
            moved = remove(at=path), write(str(amount), at=f"{at}.gpu")
            remedy = together(*moved, text=remedy)
    seen = f"is no field of Dynamo's CRD, whose names are {', '.join(_NAMES)}"
    yield from refuse(path, seen, remedy)
