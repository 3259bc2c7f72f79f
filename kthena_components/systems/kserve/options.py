"""`backend_options` of the kserve backend: what only KServe has.

Source: kserve v0.20.0 pkg/apis/serving/v1beta1 and pkg/webhook/admission/pod.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field

from kthena_components.core.plan.serving_plan import ServingPlan
from kthena_components.core.spec.fields import Spec

SCHEMES = ("pvc://", "oci://")


def _uri(value: str) -> str:
    scheme = next((one for one in SCHEMES if value.startswith(one)), None)
    if scheme is None or value == scheme:
        raise ValueError("pvc://claim/path or oci://image")
    return value


class KserveKind(StrEnum):
    """The object that serves."""

    SERVICE = "InferenceService"
    LLM = "LLMInferenceService"


class KserveOptions(Spec):
    """Fields of KServe's objects that no other backend has."""

    kind: Annotated[KserveKind, Field(strict=False)] = KserveKind.SERVICE
    storage_uri: Annotated[str, AfterValidator(_uri)] | None = None
    """Model that KServe mounts at /mnt/models: pvc://claim/path or oci://image. Default: none. An
    engine of several pods needs one.
    """
    keeps_workers: bool = False
    """Whether KServe in the cluster has pull request 5899. Version 0.20.0 deletes all workers of
    InferenceServices.
    """
    write_configs: bool = True
    """Whether to write the LLMInferenceServiceConfigs that an engine needs. A namespace has one of
    each, so only one of its servings writes them.
    """
    replaces_presets: bool = False
    """Whether the LLMInferenceServiceConfigs for data parallelism may be written, too, empty. In
    this namespace they replace KServe's own, for all servings. Data parallelism over several pods
    needs it.
    """


def is_llm(plan: ServingPlan) -> bool:
    """Return whether the plan is written as an LLMInferenceService."""
    return options_of(plan).kind is KserveKind.LLM


def options_of(plan: ServingPlan) -> KserveOptions:
    """Return the options of a plan."""
    return plan.options if isinstance(plan.options, KserveOptions) else KserveOptions()
