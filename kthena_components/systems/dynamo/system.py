"""NVIDIA Dynamo: graphs of components, and single ones."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.serving import EngineFacts, GpuDemand, ServingFacts, gpu_demand
from kthena_components.core.facts.workload import fill_requests, is_serving, relocated
from kthena_components.core.objects.engine_containers import Sketch
from kthena_components.core.objects.object import PodSet, pod_set
from kthena_components.core.objects.retained_fields import kept_pods, only
from kthena_components.core.templates import HIDDEN
from kthena_components.core.values.read import group_kind, mapping, name_of, sequence
from kthena_components.core.values.unknown import MaybeInt, Unknown, product, total
from kthena_components.systems.dynamo.port_rules import (
    dynamo_frontend_port,
    dynamo_system_port,
    listens,
)
from kthena_components.systems.dynamo.rules import (
    dynamo_gpu_memory,
    dynamo_launch,
    dynamo_name_length,
    dynamo_placement,
    dynamo_restart,
    dynamo_shape,
)
from kthena_components.systems.dynamo.view import (
    COMPONENT,
    EXECUTOR,
    GRAPH,
    Component,
    Graph,
    has_services,
    read_graph,
    template_of,
    whole_template_of,
    written,
)
from kthena_components.systems.kubernetes.rules.gpu_budget_and_type_rwx import gpus_of_pods
from kthena_components.systems.system import PRODUCTION, Body, Kind, System

# Facts and pods of Dynamo's graphs and components.
#
# A component with `multinode` runs one engine on that many pods, and the operator adds the options
# that connect them to the command. Manifests do not contain them, so they are added here, too.
# Source: ai-dynamo/dynamo deploy/operator/internal/dynamo/backend_vllm.go, backend_sglang.go,
# backend_trtllm.go.


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
    """Describe the engine of a component; the operator joins its pods with options or Ray."""
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
        ray_started=True,
        counted_by=f"{graph.object.at(component.path)}.multinode",
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
    if command.engine == "sglang" and command.nnodes is None:
        return replace(command, nnodes=component.pods)
    if command.engine == "trtllm" and command.mpi_ranks is None:
        return replace(command, mpi_session=True, mpi_ranks=product(component.pods, gpus))
    if command.engine != "vllm":
        return command
    return _vllm(graph, component, command, gpus, elastic=elastic)


def _vllm(
    graph: Graph, component: Component, command: CommandFacts, gpus: MaybeInt, *, elastic: bool
) -> CommandFacts:
    """Add to vLLM's command what the operator adds over several nodes: ranks, or local copies."""
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
    """Connect the pods of one copy: by vLLM itself, or by Ray if an annotation requests it.

    The operator does so as well if the command states mp, and its own option comes last.
    """
    own = mapping(component.fields.get("annotations")).get(EXECUTOR)
    asked = graph.annotations.get(EXECUTOR) if own is None else own
    if command.executor not in {None, "mp"} or command.nnodes is not None:
        return command
    if isinstance(asked, str) and asked.lower() == "ray":
        return replace(command, executor="ray")
    return replace(command, executor="mp", nnodes=component.pods)


# The pods that Dynamo's operator creates, and the part of a graph for rules over a stack.
#
# Source: ai-dynamo/dynamo deploy/operator/internal/dynamo/graph.go, GenerateBasePodSpec.


_MAIN = "mainContainer"
_VARIABLE = frozenset({"name", "valueFrom"})
_COMPONENT = (
    *("componentType", "replicas", "multinode", "resources"),
    *("envFromSecret", "volumeMounts", "extraPodMetadata"),
)
"""Fields of a v1alpha1 component that define its pods and are kept whole."""


def pods(graph: Graph) -> Iterator[PodSet]:
    """Return the pods of each component; Grove, a LeaderWorkerSet or a Deployment creates them."""
    if graph.is_hidden:
        yield pod_set(graph.object, graph.at, LISTED_LATER, LISTED_LATER, by_controller=True)
    for component in graph.components:
        found = pod_set(
            graph.object,
            component.path,
            whole_template_of(component),
            product(component.replicas, component.pods),
            by_controller=True,
            spread=component.pods != 1,
            written=partial(written, component),
        )
        yield replace(found, labels={**_added(graph, component), **found.labels})


def _added(graph: Graph, component: Component) -> dict[str, Any]:
    """Return labels that every release of the operator adds to the pods of a frontend.

    Those of workers differ between releases. Source: ai-dynamo/dynamo deploy/operator/internal/
    dynamo/graph.go, generateLabels.
    """
    if graph.is_single or component.kind != "frontend":
        return {}
    return {
        "nvidia.com/dynamo-graph-deployment-name": graph.name,
        "nvidia.com/dynamo-component-type": component.kind,
    }


def demand(graph: Graph) -> GpuDemand | None:
    """Return an unknown demand if a template names accelerators without a number."""
    if isinstance(total(map(gpus_of_pods, pods(graph))), Unknown):
        return None
    counted = gpu_demand(facts(graph)).gpus
    return GpuDemand(gpus=counted) if isinstance(counted, Unknown) else None


def kept(body: Body) -> Body:
    """Keep the fields of each component that define its pods."""
    spec, is_single = body.get("spec"), group_kind(body) == COMPONENT
    if not isinstance(spec, Mapping):
        return kept_pods(body)
    if is_single and spec.get("podTemplate") is None:
        return {"spec": _kept_component(spec)}
    if is_single or not has_services(spec):
        return kept_pods(body)
    services = spec.get("services")
    if isinstance(services, Mapping):
        services = {name: _kept_component(fields) for name, fields in services.items()}
    return {"spec": {"services": services, "envs": _kept_variables(spec.get("envs"))}}


def _kept_component(component: Any) -> Any:
    """Keep the parts of a component that rules over all objects read."""
    if not isinstance(component, Mapping):
        return component
    own = {key: component[key] for key in _COMPONENT if key in component}
    found = dict(kept_pods({"spec": own})["spec"])
    for key, cut in (("envs", _kept_variables), ("extraPodSpec", _kept_pod)):
        if key in component:
            found[key] = cut(component[key])
    return found


def _kept_variables(variables: Any) -> Any:
    """Keep the names of variables, too, as one may replace another, but no values."""
    listed = isinstance(variables, list | tuple)
    return [only(item, _VARIABLE) for item in variables] if listed else variables


def _kept_pod(extra: Any) -> Any:
    """Keep of a v1alpha1 pod spec what is kept of others; its main container is separate."""
    if not isinstance(extra, Mapping):
        return extra
    rest = {key: value for key, value in extra.items() if key != _MAIN}
    found = dict(kept_pods({"spec": {"containers": [], **rest}})["spec"])
    main = extra.get(_MAIN)
    if isinstance(main, Mapping):
        (pruned,) = kept_pods({"spec": {"containers": [main]}})["spec"]["containers"]
        found[_MAIN] = {**pruned, "env": _kept_variables(main.get("env"))}
    elif _MAIN in extra:
        found[_MAIN] = main
    return found


# The engines of Dynamo's graphs and components for `convert`.
#
# Source: ai-dynamo/dynamo deploy/operator/internal/dynamo/graph.go, GenerateBasePodSpec, and
# api/v1alpha1/common.go VolumeMount.


def sketch(graph: Graph) -> Sketch:
    """Return the engines of a graph; its frontend and its planner start none."""
    return Sketch(sets=tuple(_pods(graph, component) for component in graph.components))


def _pods(graph: Graph, component: Component) -> PodSet:
    number = product(component.replicas, component.pods)
    template = _alpha(component) if component.alpha else _beta(component)
    return pod_set(
        graph.object, component.path, template, number, written=partial(written, component)
    )


def _beta(component: Component) -> object:
    """Return the template of a v1beta1 component, with the variables of the graph."""
    template = mapping(template_of(component))
    spec, shared = mapping(template.get("spec")), component.shared
    main, *others = [mapping(item) for item in sequence(spec.get("containers"))] or [{}]
    own = [mapping(entry) for entry in sequence(main.get("env"))]
    names = {entry.get("name") for entry in own}
    more = [entry for entry in shared if mapping(entry).get("name") not in names]
    made = {**main, "env": [*own, *more]} if more else main
    return {**template, "spec": {**spec, "containers": [made, *others]}}


def _alpha(component: Component) -> dict[str, Any]:
    """Return the template of a v1alpha1 component, with its Secret and its claims."""
    fields, spec = component.fields, mapping(mapping(template_of(component)).get("spec"))
    main, *others = [mapping(item) for item in sequence(spec.get("containers"))] or [{}]
    mounts = [mapping(mount) for mount in sequence(fields.get("volumeMounts"))]
    made = {
        **main,
        "env": [entry for entry in sequence(main.get("env")) if entry is not None],
        "envFrom": [*sequence(main.get("envFrom")), *_secret(fields)],
        "volumeMounts": [
            *sequence(main.get("volumeMounts")),
            *({"name": m.get("name"), "mountPath": m.get("mountPoint")} for m in mounts),
        ],
    }
    claims = [
        {"name": m.get("name"), "persistentVolumeClaim": {"claimName": m.get("name")}}
        for m in mounts
    ]
    return {
        "metadata": fields.get("extraPodMetadata"),
        "spec": {
            **spec,
            "containers": [{k: v for k, v in made.items() if v != []}, *others],
            "volumes": [*sequence(spec.get("volumes")), *claims],
        },
    }


def _secret(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    name = fields.get("envFromSecret")
    return [] if name is None else [{"secretRef": {"name": name}}]


_WITHOUT = {
    "templates": "its operator completes them, so fields that Kubernetes requires may be missing",
    "restarts": "Grove, a LeaderWorkerSet or a Deployment restarts the pods, each in its own way",
    PRODUCTION: "its operator completes them with probes and labels",
}

SYSTEM = System(
    name="dynamo",
    title="NVIDIA Dynamo",
    kinds=tuple(
        Kind(
            group=group,
            name=name,
            view=read_graph,
            facts=facts,
            pods=pods,
            listens=listens,
            sketch=sketch,
            demand=demand,
            rules=(
                dynamo_shape,
                dynamo_placement,
                dynamo_restart,
                dynamo_gpu_memory,
                dynamo_launch,
                dynamo_name_length,
                dynamo_system_port,
                dynamo_frontend_port,
            ),
            kept=kept,
            # deploy/operator/api/v1alpha1: only a DynamoGraphDeploymentScalingAdapter has one.
            unscalable="has no scale subresource",
            number_in="replicas of each component",
            without=_WITHOUT,
        )
        for group, name in (COMPONENT, GRAPH)
    ),
)
