"""KAITO: Workspace, InferenceSet and MultiRoleInference."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.facts.serving import EngineFacts, GpuDemand, ServingFacts
from kthena_components.core.facts.workload import read_template
from kthena_components.core.hardware import stated_gpu
from kthena_components.core.objects.object import Object, PodSet, pod_set
from kthena_components.core.objects.retained_fields import kept_pods
from kthena_components.core.values.display import display
from kthena_components.core.values.read import inside, mapping, name_of, unknown_in
from kthena_components.core.values.unknown import MaybeInt, Unknown, product, total
from kthena_components.systems.kaito.estimator import NO_INSTANCE, node_of, size_of
from kthena_components.systems.kaito.rules.preset_roles_name_selector import RULES
from kthena_components.systems.kaito.view import (
    GROUP,
    INFERENCE_SET,
    SEVERAL_ROLES,
    TRANSFORMERS,
    WORKSPACE,
    Model,
    View,
    read_view,
)
from kthena_components.systems.system import Kind, System

# Reads KAITO's Workspace, InferenceSet and MultiRoleInference, and the pods of KAITO.
#
# A preset has no command line: separate rules check what KAITO creates for it. A template is an
# ordinary pod template, on nodes of the instance type. Source: kaito-project/kaito api/v1beta1 and
# api/v1alpha1.


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


# The pods and GPUs that KAITO creates.


_GPU = "nvidia.com/gpu"
"""Requests of KAITO's own pods, whatever GPUs the nodes have (GenerateInferencePodSpec)."""
_LATER = Unknown("KAITO sets this name when it creates the object")


def pods(view: View) -> Iterator[PodSet]:
    """Return the pods of templates: one on each node of each Workspace.

    The pods of a Workspace are intended for as many nodes; the nodes that KAITO creates of an
    instance type belong to one Workspace. Source: kaito-project/kaito
    pkg/workspace/manifests/manifests.go GenerateManifestWithPodTemplate and
    pkg/workspace/inference/preset_inferences.go ApplyProvisionerNodeSelector.
    """
    for model in view.models:
        if model.template is not None:
            apart = model.nodes != 1 or (model.copies != 1 and bool(model.instance))
            number = product(model.copies, model.nodes)
            at, template = model.template_path, model.template
            made = pod_set(view.object, at, template, number, spread=apart)
            yield replace(made, labels=_labelled(view, made.labels))


def _labelled(view: View, labels: Mapping[str, Any]) -> Mapping[str, Any]:
    """Add the labels that KAITO adds; unknown if the labels are unknown."""
    if unknown_in(labels.get("")):
        return labels
    name, own = view.object.name or _LATER, f"{GROUP}/workspace"
    if view.kind == WORKSPACE:
        return {**labels, own: name}
    return {**labels, own: _LATER, f"inferenceset.{GROUP}/created-by": name}


def demand(view: View) -> GpuDemand | None:
    """Count the GPUs of the nodes that KAITO creates for presets; None if there are none.

    Each of its pods uses all GPUs of its node.
    """
    made = [m for m in view.models if m.preset is not None and m.template is None]
    gpus = total([product(model.copies, _gpus(model)) for model in made])
    whole = all(model.resource.get("partition") is None for model in made)
    return GpuDemand(gpus=gpus, resources=frozenset({_GPU} if whole else ())) if made else None


def _gpus(model: Model) -> MaybeInt:
    """Count the GPUs of one Workspace."""
    instance, nodes = node_of(model.instance, model.labels), _nodes(model)
    return instance if isinstance(instance, Unknown) else product(nodes, instance.gpus)


def _nodes(model: Model) -> MaybeInt:
    """Count the nodes of one Workspace: with vLLM, KAITO calculates them.

    Source: kaito-project/kaito pkg/workspace/controllers/workspace_controller.go
    UpdateWorkspaceTargetNodeCount.
    """
    runtime = model.runtime
    if model.tuned:
        return 1
    if isinstance(runtime, Unknown) or runtime == TRANSFORMERS:
        return runtime if isinstance(runtime, Unknown) else model.nodes
    sized = size_of(model)
    if sized is None or isinstance(sized, Unknown):
        return sized or NO_INSTANCE
    if isinstance(sized.tokens, Unknown):
        return sized.tokens
    deployment = sized.deployment
    if deployment is None:
        shown = display(model.instance), display(model.preset)
        return Unknown(f"KAITO finds no room on {shown[0]} for {shown[1]}")
    return deployment.nodes


def kept(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Keep of a Workspace what defines its number of pods, and what the rules compare of them."""
    parts = {key: body[key] for key in ("resource", "inference", "tuning") if key in body}
    return mapping(kept_pods({"spec": parts}).get("spec"))


_KEPT_RUNNING = {"restarts": "KAITO leaves running pods as they are when a template changes"}
_PRESETS = {
    "pods": "a preset creates them",
    "templates": "a preset creates them",
    "restarts": "KAITO leaves running pods as they are when a role changes",
}


def _kind(name: str, **known: Any) -> Kind[View]:
    return Kind(
        group=GROUP, name=name, view=read_view, facts=facts, demand=demand, rules=RULES, **known
    )


SYSTEM = System(
    name="kaito",
    title="KAITO",
    kinds=(
        _kind(
            INFERENCE_SET,
            pods=pods,
            templates=("spec.template.inference.template",),
            kept=kept_pods,
            without=_KEPT_RUNNING,
        ),
        _kind(SEVERAL_ROLES, without=_PRESETS),
        _kind(
            WORKSPACE,
            pods=pods,
            templates=("inference.template",),
            number_in="resource.count",
            kept=kept,
            without=_KEPT_RUNNING,
        ),
    ),
)
