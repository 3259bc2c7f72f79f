"""How MatrixInfer's ModelInfer is read, from which Kthena's ModelServing grew: the same roles.

The field that has another name is translated, and Kthena's view does the rest.
Source: matrixinfer-ai/matrixinfer pkg/apis/workload/v1alpha1.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.objects.object import GroupKind, Object
from kthena_components.core.values.read import mapping
from kthena_components.systems.kthena.view import Serving, read_serving

MODEL_INFERS: tuple[GroupKind, ...] = (
    ("workload.matrixinfer.ai", "ModelInfer"),
    ("workload.volcano.sh", "ModelInfer"),
    ("workload.serving.volcano.sh", "ModelInfer"),
)
"""By the API group that it began in, and those that its last examples and owners name."""


def read_model_infer(found: Object) -> Serving:
    """Read a ModelInfer, whatever its fields hold."""
    return read_serving(replace(found, body=_as_model_serving(found.body)))


def _as_model_serving(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Write a ModelInfer's spec as that of the ModelServing that has the same pods.

    gangSchedule became gangPolicy. Everything that counts pods has kept its name.
    """
    spec = mapping(body.get("spec"))
    template = spec.get("template")
    if not isinstance(template, Mapping):
        return body
    renamed = {**template, "gangPolicy": template.get("gangSchedule")}
    return {**body, "spec": {**spec, "template": renamed}}
