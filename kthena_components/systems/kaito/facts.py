"""Read KAITO's Workspace, InferenceSet and MultiRoleInference.

A preset has no command line: what KAITO makes of it is judged by rules of its own. A template is
a pod template like any other, on nodes of the instance type.
Source: kaito-project/kaito api/v1beta1 and api/v1alpha1.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.workload import read_template
from kthena_components.core.findings import join_path
from kthena_components.core.hardware import stated_gpu
from kthena_components.core.values.read import as_map, group_kind, inside, name_of
from kthena_components.systems.kaito.view import GROUP, INFERENCE_SET, SEVERAL_ROLES, WORKSPACE

KINDS = frozenset((GROUP, kind) for kind in (WORKSPACE, INFERENCE_SET, SEVERAL_ROLES))
_INSTANCE_TYPE = "node.kubernetes.io/instance-type"


def read(body: Mapping[str, Any], path: str = "") -> ServingFacts | None:
    """Read the facts of an object of KAITO; None for anything else."""
    if group_kind(body) not in KINDS:
        return None
    holder: object = body
    at = path
    if group_kind(body) == (GROUP, INFERENCE_SET):
        holder, at = inside(body.get("spec"), "template"), join_path(path, "spec.template")
    name = name_of(body)
    return ServingFacts(path=path, name=name, engines=tuple(_engines(holder, at, name)))


def _engines(holder: object, path: str, name: str) -> list[EngineFacts]:
    template = inside(inside(holder, "inference"), "template")
    if template is None:
        return []
    resource = inside(holder, "resource")
    found = read_template(
        template,
        join_path(path, "inference.template"),
        name,
        {"replicas": inside(resource, "count")},
    )
    labels = {
        **as_map(inside(inside(resource, "labelSelector"), "matchLabels")),
        **({_INSTANCE_TYPE: kind} if (kind := inside(resource, "instanceType")) else {}),
    }
    gpu = stated_gpu({"nodeSelector": labels})
    return [
        replace(engine, entry=replace(engine.entry, gpu=engine.entry.gpu or gpu))
        for engine in found
    ]
