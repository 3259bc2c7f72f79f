"""Rules of the CRD and KServe's webhook about the scaling of an LLMInferenceService."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.findings import Finding, not_checked, refuse
from kthena_components.core.remedies import at_most, remove
from kthena_components.core.values.display import display
from kthena_components.core.values.read import count, mapping, unknown_in, unknown_inside
from kthena_components.systems.kserve.view_llm import LlmService, LlmWorkload

_MODIFIERS = ("activationTarget", "formula", "metricType", "target")


def kserve_llm_scaling(view: LlmService) -> Iterator[Finding]:
    """A workload of an LLMInferenceService has either replicas or scaling, with one actuator.

    The actuator is wva.hpa or wva.keda, the same for decode and prefill. minReplicas is at most
    maxReplicas, and above keda's idleReplicaCount. keda's `advanced` cannot be used: the CRD
    requires fields in it that the webhook rejects.

    Pass: scaling maxReplicas 5, wva.hpa {}.
    Fail: replicas 3 beside scaling; scaling without wva; minReplicas 10, maxReplicas 5.
    Level: mandatory. The API server or KServe's webhook rejects it.
    Source: kserve v0.20.0 config/crd/full/llmisvc/serving.kserve.io_llminferenceservices.yaml;
    pkg/apis/serving/v1alpha2/llm_inference_service_validation.go ValidateWorkloadScaling.
    """
    actuators = []
    for workload in view.workloads:
        scaling, at = workload.fields.get("scaling"), f"{workload.path}.scaling"
        if gap := unknown_in(scaling):
            yield not_checked(at, gap)
        elif scaling is not None:
            found = _scaling(workload, mapping(scaling))
            yield from (refuse(path, seen, fix) for path, seen, fix in found)
            wva = mapping(mapping(scaling).get("wva"))
            actuators.append("hpa" if wva.get("hpa") is not None else "keda" if wva else "")
    if len({one for one in actuators if one}) > 1:
        seen = f"is {actuators[1]}, but the main workload uses {actuators[0]}"
        yield refuse("spec.prefill.scaling.wva", seen, "use the same for both")


def _scaling(workload: LlmWorkload, scaling: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    at, wva = f"{workload.path}.scaling", scaling.get("wva")
    if workload.fields.get("replicas") is not None:
        yield at, "is given beside replicas", "keep one of the two"
    least, most = count(scaling.get("minReplicas")), count(scaling.get("maxReplicas"))
    if isinstance(least, int) and isinstance(most, int) and least > most:
        seen = f"is {least}, but maxReplicas is {most}"
        yield f"{at}.minReplicas", seen, at_most(most)
    if wva is None:
        yield f"{at}.wva", "is missing, and nothing else scales", "add it, with hpa or keda"
        return
    hpa, keda = (mapping(wva).get(name) for name in ("hpa", "keda"))
    if unknown_inside(wva, hpa, keda):
        return
    if (hpa is None) == (keda is None):
        seen = "has neither hpa nor keda" if hpa is None else "has both hpa and keda"
        yield f"{at}.wva", seen, "keep one of the two"
    idle = count(mapping(keda).get("idleReplicaCount"))
    if isinstance(idle, int) and (least is None or (isinstance(least, int) and idle >= least)):
        seen = f"is {idle}, but minReplicas is {'not given' if least is None else least}"
        yield f"{at}.wva.keda.idleReplicaCount", seen, "write less than minReplicas"
    yield from _advanced(mapping(keda).get("advanced"), f"{at}.wva.keda.advanced")


def _advanced(advanced: object, at: str) -> Iterator[tuple[str, str, str]]:
    if advanced is None or unknown_in(advanced):
        return
    modifiers = mapping(mapping(advanced).get("scalingModifiers"))
    given = {key: modifiers.get(key) for key in _MODIFIERS}
    tuned = [key for key, value in given.items() if value not in (None, "")]
    scaler = mapping(advanced).get("horizontalPodAutoscalerConfig")
    if tuned:
        seen = f"is {display(given[tuned[0]])}, but KServe sets what keda scales by"
        yield f"{at}.scalingModifiers.{tuned[0]}", seen, "remove advanced"
    elif any(value is None for value in given.values()):
        seen = "is given, and the CRD then requires four empty texts in scalingModifiers"
        yield at, seen, remove()
    if scaler is not None and mapping(scaler).get("name") != "":
        seen = "is given, and the CRD then requires an empty name in it"
        yield f"{at}.horizontalPodAutoscalerConfig", seen, remove()
