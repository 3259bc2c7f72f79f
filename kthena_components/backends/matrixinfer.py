"""Read MatrixInfer's ModelInfer, from which Kthena's ModelServing grew: the same roles.

The field names that differ are translated, and Kthena's reader does the rest.
Source: matrixinfer-ai/matrixinfer pkg/apis/workload/v1alpha1.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kthena_components.backends import kthena
from kthena_components.backends.workloads import group_kind
from kthena_components.core.facts import ServingFacts, as_map

KINDS = frozenset(
    (group, "ModelInfer")
    for group in ("workload.matrixinfer.ai", "workload.volcano.sh", kthena.GROUP)
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
    return {**body, "apiVersion": kthena.API_VERSION, "kind": kthena.KIND, "spec": written}
