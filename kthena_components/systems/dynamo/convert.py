"""The engines of Dynamo's graphs and components for `convert`.

Source: ai-dynamo/dynamo deploy/operator/internal/dynamo/graph.go, GenerateBasePodSpec, and
api/v1alpha1/common.go VolumeMount.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from kthena_components.core.objects.engine_containers import Sketch
from kthena_components.core.objects.object import PodSet, pod_set
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.unknown import product
from kthena_components.systems.dynamo.template import template_of, written
from kthena_components.systems.dynamo.view import Component, Graph


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
