"""Reads MatrixInfer's ModelInfer, the predecessor of Kthena's ModelServing, with the same roles.

The renamed field is translated; Kthena's view reads the rest. Source: volcano-sh/kthena
98380a67 and e4fb6663, pkg/apis/workload/v1alpha1.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.objects.object import GroupKind, Object
from kthena_components.core.values.read import mapping
from kthena_components.systems.kthena.view import Serving, read_serving

KIND = "ModelInfer"
MODEL_INFERS: tuple[GroupKind, ...] = (
    ("workload.matrixinfer.ai", KIND),
    ("workload.volcano.sh", KIND),
    ("workload.serving.volcano.sh", KIND),
)
"""API groups: the original one, its successor, and one that only examples have."""


def read_model_infer(found: Object) -> Serving:
    """Read a ModelInfer, whatever its fields contain."""
    return read_serving(replace(found, body=_as_model_serving(found.body)))


def _as_model_serving(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Convert a ModelInfer's spec to the spec of a ModelServing with the same pods.

    gangSchedule became gangPolicy. All fields that determine the number of pods keep their names.
    """
    spec = mapping(body.get("spec"))
    template = spec.get("template")
    if not isinstance(template, Mapping):
        return body
    renamed = {**template, "gangPolicy": template.get("gangSchedule")}
    return {**body, "spec": {**spec, "template": renamed}}
