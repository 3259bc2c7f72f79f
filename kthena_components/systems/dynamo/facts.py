"""Read NVIDIA Dynamo's DynamoGraphDeployment and DynamoComponentDeployment.

A component with `multinode` runs one engine on that many pods, and the operator adds what joins
them to the command. Nothing of that has to be written, so it is added here as well.
Source: ai-dynamo/dynamo deploy/operator/internal/dynamo/backend_vllm.go, backend_sglang.go.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.assembly import relocated
from kthena_components.core.facts.pod import PodFacts, read_pod
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.workload import fill_requests, is_serving
from kthena_components.core.findings import join_path
from kthena_components.core.templates.patches import HIDDEN
from kthena_components.core.values.read import (
    as_count,
    as_list,
    as_map,
    group_kind,
    mapping,
    name_of,
    unknown_in,
)
from kthena_components.core.values.unknown import MaybeInt, Unknown
from kthena_components.systems.dynamo.view import (
    COMPONENT,
    EXECUTOR,
    GRAPH,
    Component,
    Graph,
    read_graph,
    template_of,
)

KINDS = frozenset({GRAPH, COMPONENT})
ELASTIC = "--enable-elastic-ep"
_SHAPELESS = Unknown("multinode.nodeCount is not a count of 1 or more")
_ELASTIC = Unknown("an elastic engine grows into its pods while it runs")


def read(body: Mapping[str, Any], path: str = "") -> ServingFacts | None:
    """Read the facts of a graph or a component of Dynamo; None for anything else."""
    if group_kind(body) not in KINDS:
        return None
    graph, name = read_graph(body), name_of(body)
    engines = [engine for item in graph.components if (engine := _engine(graph, item, path))]
    if unknown_in(graph.listed) or unknown_in(body.get("spec")):
        engines.extend(_hidden(graph, path, name))
    # Grove makes a gang of each replica; without it, LeaderWorkerSet and Volcano do.
    return ServingFacts(
        path=join_path(path, "spec"), name=name, engines=tuple(engines), gang_expected=True
    )


def _hidden(graph: Graph, path: str, name: str) -> Iterator[EngineFacts]:
    at = join_path(path, graph.at)
    pods = Unknown("the components are not known yet")
    yield EngineFacts(
        path=at, name=name, pods=pods, replicas=1, entry=read_pod(HIDDEN, at), worker=None
    )


def _engine(graph: Graph, component: Component, path: str) -> EngineFacts | None:
    pod = _pod(component, path)
    if not is_serving(pod):
        return None
    nodes, replicas = component.nodes, component.fields.get("replicas")
    pods: MaybeInt = _SHAPELESS
    if isinstance(nodes, Unknown) or (isinstance(nodes, int) and nodes > 0):
        pods = nodes
    command = pod.command
    if command is not None and pods != 1:
        words = _words(template_of(component), pod.container)
        command = _launched(graph, component, command, pod.gpus, pods, elastic=ELASTIC in words)
    return EngineFacts(
        path=join_path(path, component.path),
        name=component.name if isinstance(component.name, str) else "?",
        pods=pods,
        replicas=replicas if isinstance(replicas, Unknown) else as_count(replicas, "replicas", 1),
        entry=replace(pod, command=command),
        worker=None,
    )


def _pod(component: Component, path: str) -> PodFacts:
    """Read the pods of a component, with paths to where things are written."""
    template, at = template_of(component), join_path(path, component.path)
    if not component.alpha:
        return fill_requests(read_pod(template, f"{at}.podTemplate"))
    main = join_path(path, component.main_path)
    pod = fill_requests(read_pod(template, ""))
    pod = relocated(_env_placed(pod, component, at), "spec.containers[0]", main)
    pod = relocated(pod, "spec.containers", f"{at}.extraPodSpec.containers")
    if mapping(component.fields.get("resources")):
        old, new = f"{main}.resources", f"{at}.resources"
        pod = relocated(pod, old, new)
    return pod


def _env_placed(pod: PodFacts, component: Component, at: str) -> PodFacts:
    """Name the places of variables that the component or the graph adds to the container."""
    if pod.own is None or not pod.own.tokens:
        return pod
    main = as_map(as_map(component.fields.get("extraPodSpec")).get("mainContainer"))
    own = len(as_list(main.get("env")))
    envs = as_list(component.fields.get("envs"))
    spec = at.removesuffix(component.path) + "spec"
    for index in range(own, own + len(envs) + len(component.shared)):
        added = index - own
        new = f"{at}.envs[{added}]" if added < len(envs) else f"{spec}.envs[{added - len(envs)}]"
        pod = relocated(pod, f"spec.containers[0].env[{index}]", new)
    return pod


def _words(template: object, container: str | None) -> list[str]:
    """Give the words of a container's command, cut at blanks as the operator does."""
    for item in map(as_map, as_list(as_map(as_map(template).get("spec")).get("containers"))):
        if item.get("name") == container:
            stated = (*as_list(item.get("command")), *as_list(item.get("args")))
            return [word for text in stated if isinstance(text, str) for word in text.split()]
    return []


def _launched(
    graph: Graph,
    component: Component,
    command: CommandFacts,
    gpus: MaybeInt,
    pods: MaybeInt,
    *,
    elastic: bool,
) -> CommandFacts:
    """Add what the operator adds to a command that runs on several pods."""
    if command.engine == "sglang":
        return replace(command, nnodes=pods) if command.nnodes is None else command
    if command.engine != "vllm":
        return command
    if elastic:
        return replace(command, data=_ELASTIC)
    copy = command.per_rank_world
    if isinstance(copy, int) and isinstance(gpus, int) and 0 < gpus < copy:
        return _joined(graph, component, command, pods)
    if command.data_mode == "hybrid" and command.data_local is None:
        # The operator deals the copies out: as many in a pod as its GPUs hold.
        return replace(command, data_mode="internal")
    return command


def _joined(
    graph: Graph, component: Component, command: CommandFacts, pods: MaybeInt
) -> CommandFacts:
    """Join the pods of one copy: by vLLM itself, or by Ray where an annotation asks for it."""
    own = mapping(component.fields.get("annotations")).get(EXECUTOR)
    asked = graph.annotations.get(EXECUTOR) if own is None else own
    if command.executor is not None or command.nnodes is not None:
        return command
    if isinstance(asked, str) and asked.lower() == "ray":
        return replace(command, executor="ray")
    return replace(command, executor="mp", nnodes=pods)
