"""Facts of Dynamo's graphs and components.

A component with `multinode` runs one engine on that many pods, and the operator adds the options
that connect them to the command. Manifests do not contain them, so they are added here, too.
Source: ai-dynamo/dynamo deploy/operator/internal/dynamo/backend_vllm.go, backend_sglang.go.
"""

from collections.abc import Iterator
from dataclasses import replace

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.pod import PodFacts, read_pod
from kthena_components.core.facts.relocation import relocated
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.workload import fill_requests, is_serving
from kthena_components.core.templates.patches import HIDDEN
from kthena_components.core.values.read import mapping, name_of, sequence
from kthena_components.core.values.unknown import MaybeInt, Unknown
from kthena_components.systems.dynamo.template import template_of, written
from kthena_components.systems.dynamo.view import EXECUTOR, Component, Graph

ELASTIC = "--enable-elastic-ep"
_DISTRIBUTED = Unknown("Dynamo distributes the copies over the pods")
_ELASTIC = Unknown("an elastic engine grows into its pods while it runs")
LISTED_LATER = Unknown("the components are not known yet")


def facts(graph: Graph) -> ServingFacts:
    """Return the facts of every component that serves."""
    found = graph.object
    engines = [engine for item in graph.components if (engine := _engine(graph, item))]
    if graph.is_hidden:
        engines.extend(_hidden(graph))
    # Grove schedules each replica as a gang; without it, LeaderWorkerSet and Volcano do.
    return ServingFacts(
        path=found.at("spec"), name=name_of(found.body), engines=tuple(engines), gang_expected=True
    )


def _hidden(graph: Graph) -> Iterator[EngineFacts]:
    at, name = graph.object.at(graph.at), name_of(graph.object.body)
    entry = read_pod(HIDDEN, at, context=graph.object.context)
    yield EngineFacts(path=at, name=name, pods=LISTED_LATER, replicas=1, entry=entry, worker=None)


def _engine(graph: Graph, component: Component) -> EngineFacts | None:
    pod = _pod(graph, component)
    if not is_serving(pod):
        return None
    pods, command = component.pods, pod.command
    if command is not None and pods != 1:
        words = _words(template_of(component), pod.container)
        command = _launched(graph, component, command, pod.gpus, elastic=ELASTIC in words)
    return EngineFacts(
        path=graph.object.at(component.path),
        name=component.name if isinstance(component.name, str) else "?",
        pods=pods,
        replicas=component.replicas,
        entry=replace(pod, command=command),
        worker=None,
    )


def _pod(graph: Graph, component: Component) -> PodFacts:
    """Read the pods of a component, with paths of the fields as written."""
    found = graph.object
    pod = fill_requests(read_pod(template_of(component), "", context=found.context))
    return relocated(pod, lambda path: found.at(written(component, path)))


def _words(template: object, container: str | None) -> list[str]:
    """Return the words of a container's command, split at blanks as the operator does."""
    for item in map(mapping, sequence(mapping(mapping(template).get("spec")).get("containers"))):
        if item.get("name") == container:
            stated = (*sequence(item.get("command")), *sequence(item.get("args")))
            return [word for text in stated if isinstance(text, str) for word in text.split()]
    return []


def _launched(
    graph: Graph, component: Component, command: CommandFacts, gpus: MaybeInt, *, elastic: bool
) -> CommandFacts:
    """Add the operator's options to a command that runs on several pods."""
    if command.engine == "sglang":
        return replace(command, nnodes=component.pods) if command.nnodes is None else command
    if command.engine != "vllm":
        return command
    if elastic:
        return replace(command, data=_ELASTIC)
    copy = command.per_rank_world
    if isinstance(copy, int) and isinstance(gpus, int) and 0 < gpus < copy:
        return _joined(graph, component, command)
    if command.data_mode == "hybrid" and command.data_local is None:
        # The operator distributes the copies: as many per pod as fit on its GPUs.
        local = gpus // copy if isinstance(copy, int) and isinstance(gpus, int) else _DISTRIBUTED
        return replace(command, data_mode="internal", data_local=local)
    return command


def _joined(graph: Graph, component: Component, command: CommandFacts) -> CommandFacts:
    """Connect the pods of one copy: by vLLM itself, or by Ray if an annotation requests it."""
    own = mapping(component.fields.get("annotations")).get(EXECUTOR)
    asked = graph.annotations.get(EXECUTOR) if own is None else own
    if command.executor is not None or command.nnodes is not None:
        return command
    if isinstance(asked, str) and asked.lower() == "ray":
        return replace(command, executor="ray")
    return replace(command, executor="mp", nnodes=component.pods)
