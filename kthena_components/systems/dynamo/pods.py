"""The pods that Dynamo's operator creates, and the part of a graph for rules over a stack.

Source: ai-dynamo/dynamo deploy/operator/internal/dynamo/graph.go, GenerateBasePodSpec.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from kthena_components.core.facts.totals import GpuDemand, gpu_demand
from kthena_components.core.objects.object import PodSet, pod_set
from kthena_components.core.objects.retained_fields import kept_pods, only
from kthena_components.core.values.arithmetic import product, total
from kthena_components.core.values.read import group_kind
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.contract import Body
from kthena_components.systems.dynamo.facts import LISTED_LATER, facts
from kthena_components.systems.dynamo.template import whole_template_of, written
from kthena_components.systems.dynamo.view import COMPONENT, Graph, has_services
from kthena_components.systems.kubernetes.rules.gpu_budget import gpus_of_pods

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
        yield pod_set(
            graph.object,
            component.path,
            whole_template_of(component),
            product(component.replicas, component.pods),
            by_controller=True,
            spread=component.pods != 1,
            written=partial(written, component),
        )


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
