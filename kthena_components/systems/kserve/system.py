"""KServe: InferenceService and its runtimes, and LLMInferenceService."""

from collections.abc import Iterator

from kthena_components.core.naming import DNS_LABEL
from kthena_components.core.objects.retained_fields import kept_pods
from kthena_components.core.plan.controller_variables import LWS_POD_VARIABLES, PodVariables
from kthena_components.core.values.read import mapping, whole
from kthena_components.core.values.unknown import is_unresolved
from kthena_components.systems.kserve.facts import facts
from kthena_components.systems.kserve.facts_llm import facts as facts_of_llm
from kthena_components.systems.kserve.pods import demand, demand_of_llm, kept, pods, pods_of_llm
from kthena_components.systems.kserve.rules.autoscaling import (
    kserve_autoscaling,
    kserve_llm_scaling,
)
from kthena_components.systems.kserve.rules.llm_parallelism_and_parts import (
    kserve_llm_adapters,
    kserve_llm_devices,
    kserve_llm_parallelism,
    kserve_llm_parts,
)
from kthena_components.systems.kserve.rules.models_replicas_canary_runtimes_confidential import (
    kserve_canary,
    kserve_confidential,
    kserve_one_model,
    kserve_replicas,
    kserve_runtime_formats,
    kserve_runtime_supports_model,
)
from kthena_components.systems.kserve.rules.multinode import kserve_multinode
from kthena_components.systems.kserve.rules.multinode_mode_arithmetic_gpu_type import (
    kserve_multinode_mode,
    kserve_node_arithmetic,
    kserve_one_gpu_type,
)
from kthena_components.systems.kserve.view import (
    AUTOSCALER_CLASS,
    GROUP,
    MODE,
    RUNTIMES,
    SERVICE,
    STANDARD,
    LlmService,
    Service,
    read_llm_service,
    read_service,
)
from kthena_components.systems.system import PRODUCTION, Kind, Made, Rollout, System

_RULES = (
    kserve_multinode,
    kserve_node_arithmetic,
    kserve_multinode_mode,
    kserve_one_gpu_type,
    kserve_one_model,
    kserve_replicas,
    kserve_autoscaling,
    kserve_canary,
    kserve_confidential,
    kserve_runtime_supports_model,
)
_OF_RUNTIMES = (
    kserve_multinode,
    kserve_node_arithmetic,
    kserve_one_gpu_type,
    kserve_runtime_formats,
)
_MERGED = "KServe merges its pod specs into a runtime's or a preset's, so fields may be missing"
_LWS = ("leaderworkerset.x-k8s.io", "LeaderWorkerSet")
_NO_PODS = "an InferenceService gets its pods from it, and it has none itself"


def rollouts(view: Service) -> Iterator[Rollout]:
    """KServe replaces all pods of a multi-node InferenceService at once, new pods first."""
    if view.many is not None:
        yield Rollout(
            at="spec.predictor.workerSpec",
            replicas=1,
            all_at_once="is updated by KServe with maxSurge 100%",
        )


def keeps_number(view: Service) -> str:
    """Explain why an InferenceService must not be scaled."""
    return "" if view.many is None else "has a workerSpec, and KServe does not allow scaling it"


def makes(view: Service) -> Made | None:
    """Return the Deployment whose replicas KServe keeps, or for which it makes an autoscaler.

    Source: kserve v0.20.0 pkg/controller/v1beta1/inferenceservice/reconcilers/autoscaler/
    autoscaler_reconciler.go (the class hpa is the default) and hpa/hpa_reconciler.go.
    """
    name, kind = view.object.name, ("apps", "Deployment")
    if not view.is_service or not isinstance(name, str):
        return None
    if view.many is not None:
        why = "KServe creates for an InferenceService with a workerSpec, and whose replicas it "
        return Made(group_kind=kind, name=f"{name}-predictor", why=f"{why}keeps")
    own = {None: "HorizontalPodAutoscaler", "hpa": "HorizontalPodAutoscaler"}
    own["keda"] = "ScaledObject"
    mode, by, stop = (view.annotations.get(MODE), _class_of(view), view.annotations.get(_STOP))
    if mode not in STANDARD or not (by is None or isinstance(by, str)) or by not in own:
        return None
    if stop is not None and str(stop).lower() != "false":
        return None
    return Made(
        group_kind=kind,
        name=f"{name}-predictor",
        why=f"KServe scales by a {own[by]} of its own, so each would undo what the other does",
        number_in="minReplicas and maxReplicas of the predictor, or keep it and write the "
        f"annotation {AUTOSCALER_CLASS}: external in the InferenceService (KServe 0.16 or newer)",
    )


_STOP = "serving.kserve.io/stop"


def _class_of(view: Service) -> object:
    """Return the class of an autoscaler: the predictor's annotations count before the service's.

    Source: kserve v0.15.0 to v0.20.0 pkg/controller/v1beta1/inferenceservice/components/
    predictor.go buildObjectMeta. Before 0.16, KServe keeps the replicas of the class external:
    reconcilers/deployment/deployment_reconciler.go.
    """
    given = [view.holder.get("annotations"), view.annotations]
    given.append(None if view.runtime is None else view.runtime.get("annotations"))
    for stated in given:
        if is_unresolved(stated) or AUTOSCALER_CLASS in mapping(stated):
            return stated if is_unresolved(stated) else mapping(stated)[AUTOSCALER_CLASS]
    return None


def makes_llm(view: LlmService) -> Made | None:
    """Return the main workload, if KServe keeps its replicas: it does if they are stated.

    Source: kserve v0.20.0 pkg/controller/v1alpha2/llmisvc/workload.go PreserveDeploymentReplicas,
    mainDeploymentName, mainLWSName.
    """
    name, main = view.object.name, view.workloads[0]
    kind, suffix = (_LWS, "-kserve-mn") if main.many else (("apps", "Deployment"), "-kserve")
    stated = whole(main.fields.get("replicas"))
    if not isinstance(name, str) or not isinstance(stated, int):
        return None
    # A longer name is hashed.
    if len(name + suffix) > DNS_LABEL:
        return None
    why = f"KServe creates for an LLMInferenceService with replicas {stated}, and writes them back"
    return Made(group_kind=kind, name=name + suffix, why=f"{why} there")


# pkg/controller/v1beta1/inferenceservice/components/predictor.go.
_TOLD = PodVariables(
    size=("RAY_NODE_COUNT",),
    leader=("HEAD_SVC",),
    others=(
        *("PIPELINE_PARALLEL_SIZE", "REQUEST_GPU_COUNT", "TENSOR_PARALLEL_SIZE"),
        *("MODEL_DIR", "MODEL_NAME", "PORT"),  # Knative sets the last one.
    ),
)

SYSTEM = System(
    name="kserve",
    title="KServe",
    kinds=(
        Kind(
            group=GROUP,
            name=SERVICE,
            view=read_service,
            facts=facts,
            pods=pods,
            demand=demand,
            rules=_RULES,
            pod_variables=lambda _: _TOLD,
            rollouts=rollouts,
            number_in="minReplicas and maxReplicas",
            keeps_number=keeps_number,
            makes=makes,
            kept=kept,
            without={
                "templates": _MERGED,
                PRODUCTION: "a runtime or a preset adds probes, rights and requests",
                "restarts": "a Deployment or Knative restarts the pods, each in its own way",
                "image-pinned": "a runtime may name the image",
            },
        ),
        *(
            Kind(
                group=GROUP,
                name=name,
                view=read_service,
                facts=facts,
                rules=_OF_RUNTIMES,
                pod_variables=lambda _: _TOLD,
                completes=True,
                kept=None,
                without={"pods": _NO_PODS, "templates": _NO_PODS, "restarts": _NO_PODS},
            )
            for name in sorted(RUNTIMES)
        ),
        Kind(
            group=GROUP,
            name="LLMInferenceService",
            view=read_llm_service,
            facts=facts_of_llm,
            pods=pods_of_llm,
            pod_variables=lambda _: LWS_POD_VARIABLES,
            demand=demand_of_llm,
            makes=makes_llm,
            rules=(
                kserve_llm_parallelism,
                kserve_llm_scaling,
                kserve_llm_adapters,
                kserve_llm_parts,
                kserve_llm_devices,
            ),
            kept=kept_pods,
            without={
                "templates": _MERGED,
                PRODUCTION: "a runtime or a preset adds probes, rights and requests",
                "restarts": "a Deployment or a LeaderWorkerSet restarts the pods, each in its own "
                "way",
            },
        ),
    ),
)
