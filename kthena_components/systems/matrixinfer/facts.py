"""Read MatrixInfer's ModelInfer, from which Kthena's ModelServing grew: the same roles.

The field names that differ are translated, and Kthena's reader does the rest.
Source: matrixinfer-ai/matrixinfer pkg/apis/workload/v1alpha1.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.objects.kinds import MODEL_SERVING
from kthena_components.core.objects.object import GroupKind
from kthena_components.core.values.read import as_map, group_kind
from kthena_components.systems.kthena import facts as kthena
from kthena_components.systems.kthena.emit import API_VERSION

KINDS = frozenset(
    (group, "ModelInfer")
    for group in ("workload.matrixinfer.ai", "workload.volcano.sh", MODEL_SERVING[0])
)
"""By the API group that it began in, and those that its last examples and owners name."""


def read(body: Mapping[str, Any], path: str = "") -> ServingFacts | None:
    """Read the facts of a ModelInfer; None for anything else."""
    facts = kthena.read(as_model_serving(body), path) if group_kind(body) in KINDS else None
    if facts is None or facts.gang is None:
        return facts
    at = f"{facts.path}.template.gangSchedule"
    return replace(facts, gang=replace(facts.gang, path=at))


def as_model_serving(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Write a ModelInfer as the ModelServing that has the same pods.

    gangSchedule became gangPolicy. Everything that counts pods has kept its name.
    """
    spec = as_map(body.get("spec"))
    template = as_map(spec.get("template"))
    renamed = {**template, "gangPolicy": template.get("gangSchedule")}
    written = {**spec, "template": renamed}
    return {**body, "apiVersion": API_VERSION, "kind": MODEL_SERVING[1], "spec": written}


MODEL_INFERS: tuple[GroupKind, ...] = (
    ("workload.matrixinfer.ai", "ModelInfer"),
    ("workload.volcano.sh", "ModelInfer"),
    ("workload.serving.volcano.sh", "ModelInfer"),
)
