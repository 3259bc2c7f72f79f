"""Rules of KServe's webhook about the scaling of InferenceServices and LLMInferenceServices."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from kthena_components.core.findings import Finding, not_checked, refuse, suggest
from kthena_components.core.remedies import at_most, or_more, remove, write
from kthena_components.core.rules.support.admission import exactly_one
from kthena_components.core.values.display import display
from kthena_components.core.values.quantity import parse_quantity
from kthena_components.core.values.read import (
    count,
    mapping,
    require_known,
    sequence,
    unknown_in,
    unknown_inside,
    whole,
)
from kthena_components.systems.kserve.rules.models_replicas_canary_runtimes_confidential import (
    components,
)
from kthena_components.systems.kserve.view import (
    AUTOSCALER_CLASS,
    MODE,
    STANDARD,
    LlmService,
    LlmWorkload,
    Service,
)

_KNATIVE_CLASS = "autoscaling.knative.dev/class"
_CLASSES = ("external", "hpa", "keda", "none")
_BY_RESOURCES, _BY_REQUESTS = ("cpu", "memory"), ("concurrency", "rps")
_MEBIBYTE, _PERCENT = Decimal(2**20), 100
_SOURCES = {"Resource": "resource", "External": "external", "PodMetric": "podmetric"}
_STATED = {"Utilization": "averageUtilization", "AverageValue": "averageValue", "Value": "value"}
Fields = Mapping[str, Any]


def kserve_autoscaling(view: Service) -> Iterator[Finding]:
    """The autoscaler class of an InferenceService exists, and supports the metrics.

    hpa and Knative's hpa scale by cpu and memory, keda by the metrics in autoScaling, and Knative's
    own autoscaler by concurrency and rps. Without deploymentMode, the cluster decides which one is
    used, and metrics are not checked.

    Pass: class keda, metric memory with averageValue 2Gi.
    Fail: class test; class hpa with an External metric; class keda with scaleMetric.
    Level: mandatory. KServe's webhook rejects it.
    Source: kserve v0.20.0 pkg/apis/serving/v1beta1/inference_service_validation.go
    validateInferenceServiceAutoscaler, validateAutoScalingCompExtension.
    """
    if not view.is_service:
        return
    given, mode = view.annotations.get(AUTOSCALER_CLASS), view.annotations.get(MODE)
    knative = view.annotations.get(_KNATIVE_CLASS)
    require_known(f"metadata.annotations.{AUTOSCALER_CLASS}", unknown_inside(given, mode, knative))
    if given is not None and given not in _CLASSES:
        seen = f"is {display(given)}, which is not a class of autoscaler"
        remedy = suggest(str(given), _CLASSES)
        yield refuse(f"metadata.annotations.{AUTOSCALER_CLASS}", seen, remedy)
    check = None
    if mode in STANDARD:
        check = {"hpa": _by_resources, "keda": _by_keda}.get(str(given))
    elif mode is not None:
        check = _by_resources if knative == "hpa.autoscaling.knative.dev" else _by_knative
    for path, fields in components(view) if check else ():
        if gap := unknown_inside(*(fields.get(key) for key in ("scaleMetric", "autoScaling"))):
            yield not_checked(path, gap)
        elif check is not None:
            found = check(fields)
            yield from (refuse(f"{path}.{at}", seen, fix) for at, seen, fix in found)


def _metrics(fields: Fields) -> Iterator[tuple[str, Fields]]:
    for index, metric in enumerate(sequence(mapping(fields.get("autoScaling")).get("metrics"))):
        yield f"autoScaling.metrics[{index}]", mapping(metric)


def _by_resources(fields: Fields) -> Iterator[tuple[str, str, str]]:
    """Check scaling by the class hpa: metric, target in percent, and resource metrics."""
    metric, target = fields.get("scaleMetric", "cpu"), whole(fields.get("scaleTarget"))
    if metric not in _BY_RESOURCES:
        seen = f"is {display(metric)}, but hpa knows cpu and memory"
        yield "scaleMetric", seen, "write cpu or memory"
    elif isinstance(target, int) and (target > _PERCENT or target < 1):
        yield "scaleTarget", f"is {target}, but must be from 1 to 100", "write, for example, 80"
    for path, one in _metrics(fields):
        if one.get("type") != "Resource":
            seen = f"is {display(one.get('type'))}, but hpa knows Resource alone"
            yield f"{path}.type", seen, "write Resource, or use the class keda"
        elif one.get("resource") is None:
            yield f"{path}.resource", "is missing", "add it"


def _by_knative(fields: Fields) -> Iterator[tuple[str, str, str]]:
    """Check scaling by Knative: concurrency or requests per second, and no strategy."""
    metric, target = fields.get("scaleMetric", "concurrency"), whole(fields.get("scaleTarget"))
    if fields.get("deploymentStrategy") is not None:
        yield "deploymentStrategy", "is given, but Knative has no such thing", remove()
    if metric not in _BY_REQUESTS:
        seen = f"is {display(metric)}, but Knative scales by concurrency and rps"
        yield "scaleMetric", seen, "write concurrency or rps"
    elif metric == "rps" and isinstance(target, int) and target < 1:
        yield "scaleTarget", f"is {target}, but must be at least 1", or_more(1)


def _by_keda(fields: Fields) -> Iterator[tuple[str, str, str]]:
    """Check scaling by KEDA: the sources in autoScaling; scaleMetric is not read."""
    if fields.get("scaleMetric") is not None:
        yield "scaleMetric", "is given, but keda reads autoScaling alone", "write autoScaling"
    for path, one in _metrics(fields):
        kind = str(one.get("type"))
        source = _SOURCES.get(kind)
        if source is None:
            yield f"{path}.type", f"is {display(one.get('type'))}", suggest(kind, _SOURCES)
        elif one.get(source) is None:
            yield f"{path}.{source}", "is missing", "add it"
        else:
            found = _one_metric(kind, mapping(one.get(source)))
            yield from ((f"{path}.{source}.{at}", seen, fix) for at, seen, fix in found)


def _one_metric(kind: str, fields: Fields) -> Iterator[tuple[str, str, str]]:
    """Check one metric of KEDA: its query, threshold, and the value for its type."""
    target = mapping(fields.get("target"))
    wanted = target.get("type")
    if kind == "Resource":
        yield from _resource(fields.get("name"), target)
    else:
        if not mapping(fields.get("metric")).get("query"):
            yield "metric.query", "is missing", "add the query that keda asks"
        if target.get("value") is None:
            yield "target.value", "is missing", "add the threshold"
    stated = _STATED.get(str(wanted))
    if stated is not None and stated != "value" and target.get(stated) is None:
        yield f"target.{stated}", f"is missing, but the type is {wanted}", "add it"
    share = whole(target.get("averageUtilization"))
    if wanted == "Utilization" and isinstance(share, int) and not 1 <= share <= _PERCENT:
        yield "target.averageUtilization", f"is {share}, but must be from 1 to 100", write(80)


def _resource(name: object, target: Fields) -> Iterator[tuple[str, str, str]]:
    """Yield mistakes in a target for CPU or memory: the field, what is wrong, and the remedy.

    CPU needs a utilisation. Memory needs a utilisation, or an amount of 1Mi or more.
    """
    wanted, amount = target.get("type"), parse_quantity(target.get("averageValue"))
    if name == "cpu" and wanted != "Utilization":
        remedy = "write Utilization, with averageUtilization in place of its value"
        if target.get("averageUtilization") is not None:
            remedy = write("Utilization", "write Utilization")
        yield "target.type", f"is {display(wanted)}", remedy
    elif name == "memory" and wanted not in ("AverageValue", "Utilization"):
        yield "target.type", f"is {display(wanted)}", "write AverageValue or Utilization"
    elif name == "memory" and wanted == "AverageValue" and amount is not None:
        if amount < _MEBIBYTE:
            seen = f"is {display(target.get('averageValue'))}, but must be at least 1Mi"
            yield "target.averageValue", seen, "write, for example, 2Gi"
    elif name not in _BY_RESOURCES:
        yield "name", f"is {display(name)}, but keda scales by cpu and memory", "write memory"


_BOUNDS = frozenset({"maxReplicas", "minReplicas", "wva"})
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
    """Yield the path, the mistake and the remedy of each wrong field of a scaling."""
    at, wva = f"{workload.path}.scaling", scaling.get("wva")
    if workload.fields.get("replicas") is not None:
        yield at, "is given beside replicas", "keep one of the two"
    least, most = count(scaling.get("minReplicas")), count(scaling.get("maxReplicas"))
    if isinstance(least, int) and isinstance(most, int) and least > most:
        seen = f"is {least}, but maxReplicas is {most}"
        yield f"{at}.minReplicas", seen, at_most(most)
    if wva is None:
        if _BOUNDS.issuperset(scaling):  # crd-schema refuses another actuator, if the CRD does
            yield f"{at}.wva", "is missing, and nothing else scales", "add it, with hpa or keda"
        return
    hpa, keda = (mapping(wva).get(name) for name in ("hpa", "keda"))
    if unknown_inside(wva, hpa, keda):
        return
    if (hpa is None) == (keda is None):
        yield f"{at}.wva", *exactly_one("hpa", "keda", neither=hpa is None)
    idle = count(mapping(keda).get("idleReplicaCount"))
    if isinstance(idle, int) and (least is None or (isinstance(least, int) and idle >= least)):
        seen = f"is {idle}, but minReplicas is {'not given' if least is None else least}"
        yield f"{at}.wva.keda.idleReplicaCount", seen, "write less than minReplicas"
    yield from _advanced(mapping(keda).get("advanced"), f"{at}.wva.keda.advanced")


def _advanced(advanced: object, at: str) -> Iterator[tuple[str, str, str]]:
    """Refuse what KServe sets in KEDA's advanced options; the CRD wants its strings empty."""
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
        seen = "is given, and the CRD then requires four empty strings in scalingModifiers"
        yield at, seen, remove()
    if scaler is not None and mapping(scaler).get("name") != "":
        seen = "is given, and the CRD then requires an empty name in it"
        yield f"{at}.horizontalPodAutoscalerConfig", seen, remove()
