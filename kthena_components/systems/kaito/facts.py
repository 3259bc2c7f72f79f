"""Reads KAITO's Workspace, InferenceSet and MultiRoleInference.

A preset has no command line: separate rules check what KAITO creates for it. A template is an
ordinary pod template, on nodes of the instance type. Source: kaito-project/kaito api/v1beta1 and
api/v1alpha1.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.workload import read_template
from kthena_components.core.hardware import stated_gpu
from kthena_components.core.objects.object import Object
from kthena_components.core.values.read import inside, name_of
from kthena_components.systems.kaito.view import Model, View

_INSTANCE_TYPE = "node.kubernetes.io/instance-type"


def facts(view: View) -> ServingFacts:
    """Read the engines that pod templates start."""
    found = view.object
    engines = tuple(engine for model in view.models for engine in _engines(found, model))
    return ServingFacts(path=found.path, name=name_of(found.body), engines=engines)


def node_labels(labels: Mapping[str, Any], kind: object) -> dict[str, Any]:
    """Return the labels of the nodes, with the one that states their instance type."""
    return {**labels, **({_INSTANCE_TYPE: kind} if kind else {})}


def _engines(found: Object, model: Model) -> Iterator[EngineFacts]:
    if model.template is None:
        return
    resource = inside(model.holder, "resource")
    gpu = stated_gpu({"nodeSelector": node_labels(model.labels, inside(resource, "instanceType"))})
    for engine in read_template(
        model.template,
        found.at(model.template_path),
        name_of(found.body),
        {"replicas": inside(resource, "count")},
        found.context,
    ):
        yield replace(engine, entry=replace(engine.entry, gpu=engine.entry.gpu or gpu))
