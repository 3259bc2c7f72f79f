"""Writes an InferenceService or an LLMInferenceService of KServe.

Source: kserve v0.20.0; docs/backends/kserve.md lists every field.
"""

from kthena_components.core.plan.manifest import Manifest
from kthena_components.core.plan.model import ServingPlan
from kthena_components.core.plan.rights import Resource
from kthena_components.systems.contract import IDLE_WORKERS, Emitter
from kthena_components.systems.kserve.describe import DESCRIBER
from kthena_components.systems.kserve.emit_llm import CONFIG, LLM, VERSION, emit_llm, entry_labels
from kthena_components.systems.kserve.emit_service import RUNTIME, emit_service
from kthena_components.systems.kserve.limits import names, refuse
from kthena_components.systems.kserve.options import KserveOptions, is_llm
from kthena_components.systems.kserve.read_back import SIZES, planned, read_back
from kthena_components.systems.kserve.view import GROUP, SERVICE
from kthena_components.systems.kserve.watch import watch
from kthena_components.systems.kserve.written import PROVEN, WRITTEN
from kthena_components.systems.kubernetes import services
from kthena_components.systems.kubernetes.resources import BUDGETS, SERVICES


def emit(plan: ServingPlan) -> tuple[Manifest, ...]:
    """Write the objects and, if the serving is exposed, its front Service."""
    if is_llm(plan):
        made, front = emit_llm(plan), services.emit_front(plan, entry_labels(plan))
    else:
        made, front = emit_service(plan), services.emit_front(plan)
    return (*made, front) if front else made


EMITTER = Emitter(
    emit=emit,
    refuse=refuse,
    names=names,
    resources=(
        Resource(api_version=f"{GROUP}/v1beta1", kind=SERVICE, plural="inferenceservices"),
        Resource(api_version=f"{GROUP}/v1alpha1", kind=RUNTIME, plural="servingruntimes"),
        Resource(api_version=VERSION, kind=LLM, plural="llminferenceservices"),
        Resource(api_version=VERSION, kind=CONFIG, plural="llminferenceserviceconfigs"),
        SERVICES,
        BUDGETS,
    ),
    read_back=read_back,
    watch=watch,
    install="Install KServe 0.20 or later with its CRDs",
    sizes=SIZES,
    options=KserveOptions,
    stays_from=None,
    drops=(IDLE_WORKERS,),
    planned=planned,
    written=WRITTEN,
    proven=PROVEN,
    describer=DESCRIBER,
)
