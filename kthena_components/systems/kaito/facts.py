"""Reads KAITO's Workspace, InferenceSet and MultiRoleInference.

A preset has no command line: separate rules check what KAITO creates for it. A template is an
ordinary pod template, on nodes of the instance type. Source: kaito-project/kaito api/v1beta1 and
api/v1alpha1.
"""

from collections.abc import Iterator
from dataclasses import replace

from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.workload import read_template
from kthena_components.core.hardware import stated_gpu
from kthena_components.core.objects.object import Object
from kthena_components.core.values.read import inside, mapping, name_of
from kthena_components.systems.kaito.view import Model, View

_INSTANCE_TYPE = "node.kubernetes.io/instance-type"


def facts(view: View) -> ServingFacts:
    """Read the engines that pod templates start."""
    found = view.object
    engines = tuple(engine for model in view.models for engine in _engines(found, model))
    return ServingFacts(path=found.path, name=name_of(found.body), engines=engines)


def _engines(found: Object, model: Model) -> Iterator[EngineFacts]:
    if model.template is None:
        return
    resource = inside(model.holder, "resource")
    labels = {
        **mapping(inside(inside(resource, "labelSelector"), "matchLabels")),
        **({_INSTANCE_TYPE: kind} if (kind := inside(resource, "instanceType")) else {}),
    }
    gpu = stated_gpu({"nodeSelector": labels})
    for engine in read_template(
        model.template,
        found.at(model.template_path),
        name_of(found.body),
        {"replicas": inside(resource, "count")},
        found.context,
    ):
        yield replace(engine, entry=replace(engine.entry, gpu=engine.entry.gpu or gpu))
