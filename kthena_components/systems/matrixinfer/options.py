"""`backend_options` of the matrixinfer backend.

Source: volcano-sh/kthena 98380a67 (charts/matrixinfer, the last state with the older group) and
e4fb6663 (charts/kthena, the last one before ModelServing).
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from kthena_components.core.plan.model import ServingPlan
from kthena_components.core.spec.fields import Spec


class ApiGroup(StrEnum):
    """API groups whose CRD was on the main branch. Except for the group, the CRDs are equal."""

    MATRIXINFER = "workload.matrixinfer.ai"
    """Until 19 September 2025."""
    VOLCANO = "workload.volcano.sh"
    """From then on until ModelServing replaced ModelInfer, on 23 September 2025."""


class MatrixInferOptions(Spec):
    """What depends on the state of MatrixInfer that the cluster runs."""

    api_group: Annotated[ApiGroup, Field(strict=False)] = ApiGroup.MATRIXINFER
    """API group of its ModelInfer."""


def api_group(plan: ServingPlan) -> str:
    """Return the API group that a plan is written for."""
    options = plan.options if isinstance(plan.options, MatrixInferOptions) else MatrixInferOptions()
    return options.api_group.value
