"""KServe's rules about the parallelism and the parts of an LLMInferenceService."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.findings import (
    Finding,
    Level,
    count_of,
    not_checked,
    part_of_rule,
    refuse,
)
from kthena_components.core.naming import DNS_LABEL, is_dns_name
from kthena_components.core.remedies import either, or_more, remove
from kthena_components.core.rules.support.admission import exactly_one
from kthena_components.core.values.display import display
from kthena_components.core.values.quantity import parse_quantity
from kthena_components.core.values.read import (
    mapping,
    require_known,
    sequence,
    text,
    unknown_in,
    unknown_inside,
    whole,
)
from kthena_components.core.values.unknown import Unknown, known
from kthena_components.systems.kserve.rules.models_replicas_canary_runtimes_confidential import (
    SECRET,
)
from kthena_components.systems.kserve.view import LlmService, LlmWorkload

_SIZES = ("tensor", "pipeline", "data", "dataLocal")


def kserve_llm_parallelism(view: LlmService) -> Iterator[Finding]:
    """The sizes of an LLMInferenceService are consistent, and each has an effect.

    A worker needs either data or pipeline parallelism; data and dataLocal come together, and
    dataLocal divides data: KServe creates data ÷ dataLocal pods and silently drops the remainder.
    Without a worker, KServe takes a preset that states the tensor size only.

    Pass: tensor 1, data 16, dataLocal 8, with a worker: 2 pods.
    Fail: data 5, dataLocal 2; pipeline 2 without a worker, which is ignored (kserve#6044); the same
    with a worker, without commands and baseRefs: KServe looks for a config of a fixed name, which
    it does not publish, and without it creates nothing.
    Level: mandatory; advisory for what is ignored, and for a pipeline that has no preset.
    Source: kserve pkg/apis/serving/v1alpha2/llm_inference_service_validation.go,
    llm_inference_service_types_func.go GetSize; config/llmisvcconfig of KServe 0.20, and
    pkg/controller/v1alpha2/llmisvc/config_merge.go, combineBaseRefsConfig.
    """
    for workload in view.workloads:
        yield from _parallelism(workload)
        if not view.is_based:
            yield from _pipeline_preset(workload, has_prefill=len(view.workloads) > 1)
            yield from _data_alone(workload)


@part_of_rule
def _parallelism(workload: LlmWorkload) -> Iterator[Finding]:
    """Check the parallel sizes of one workload, with and without a worker."""
    at = f"{workload.path}.parallelism"
    require_known(at, workload.fields.get("parallelism"))
    for name in _SIZES:
        yield from _positive(f"{at}.{name}", workload.parallelism.get(name))
    pipeline, data = workload.states("pipeline"), workload.states("data")
    worker = workload.fields.get("worker")
    if not (pipeline or data) and (gap := unknown_in(worker)):
        yield not_checked(f"{workload.path}.worker", gap)
    elif workload.many and not (pipeline or data):
        seen = "is given, but parallelism states neither data nor pipeline"
        remedy = "add data and dataLocal, or remove worker"
        yield refuse(f"{workload.path}.worker", seen, remedy)
    if pipeline and data:
        shown = display(workload.parallelism.get("pipeline"))
        seen = f"is {shown}, but data is also given, and KServe accepts only one of them"
        yield refuse(f"{at}.pipeline", seen, "remove pipeline, or data and dataLocal")
    yield from _data(workload, at)
    stages = workload.size("pipeline")
    if not workload.many and isinstance(stages, int) and stages > 1:
        yield Finding(
            path=f"{at}.pipeline",
            seen=f"is {stages}, but without a worker KServe ignores it (kserve#6044): "
            "the engine has 1 stage, and GPUs for more stay idle",
            remedy="raise tensor instead, or write --pipeline-parallel-size into the command",
            level=Level.ADVISORY,
        )


def _pipeline_preset(workload: LlmWorkload, *, has_prefill: bool) -> Iterator[Finding]:
    """Report pods of a pipeline that no published config of KServe starts."""
    stages = workload.size("pipeline")
    pods = [workload.fields.get(field) for field in ("template", "worker")]
    if not (workload.many and isinstance(stages, int) and stages > 1) or any(map(unknown_in, pods)):
        return
    if all(map(_has_command, pods)) or workload.states("data") or workload.states("dataLocal"):
        return
    part = "prefill-" if workload.path.endswith("prefill") else "decode-" if has_prefill else ""
    config = f"kserve-config-llm-{part}worker-pipeline-parallel"
    yield Finding(
        path=f"{workload.path}.parallelism.pipeline",
        seen=f"is {stages}, for which KServe requires the LLMInferenceServiceConfig '{config}', "
        "and KServe 0.20 publishes no preset for pipelines; nor have both pods a command",
        remedy="add that config to this namespace, empty if template and worker have a command, "
        "or state data and dataLocal instead",
        level=Level.ADVISORY,
    )


def _data_alone(workload: LlmWorkload) -> Iterator[Finding]:
    """Report copies of the model that the preset without a worker does not start."""
    data, pod = workload.size("data"), workload.fields.get("template")
    if workload.many or not isinstance(data, int) or data <= 1 or unknown_in(pod):
        return
    if not _has_command(pod):
        yield Finding(
            path=f"{workload.path}.parallelism.data",
            seen=f"is {data}, but without a worker KServe ignores it: its preset starts 1 copy of "
            "the model in 1 pod",
            remedy="add worker, or raise tensor or replicas instead",
            level=Level.ADVISORY,
        )


def _has_command(pod: object) -> bool:
    containers = sequence(mapping(pod).get("containers"))
    return bool(containers) and mapping(containers[0]).get("command") is not None


@part_of_rule
def _positive(path: str, value: object) -> Iterator[Finding]:
    number = known(whole(value), path)
    if value is not None and (number is None or number < 1):
        yield refuse(path, f"is {display(value)}, but must be at least 1", or_more(1))


_COPIES = {"data": "all pods together", "dataLocal": "each pod"}


def _data(workload: LlmWorkload, at: str) -> Iterator[Finding]:
    """Check data against dataLocal: both are stated, and the first is a multiple."""
    data, local = workload.size("data"), workload.size("dataLocal")
    if workload.states("data") != workload.states("dataLocal"):
        here, there = ("data", "dataLocal") if workload.states("data") else ("dataLocal", "data")
        seen = f"is {display(_shown(workload, here))}, but {there} is not given"
        remedy = f"add {there}, the copies of the model in {_COPIES[there]}, or remove {here}"
        yield refuse(f"{at}.{here}", seen, remedy)
        return
    if isinstance(data, Unknown) or isinstance(local, Unknown):
        return
    if data is None or local is None or data < 1 or local < 1 or data % local == 0:
        return
    pods = max(data // local, 1)
    seen = (
        f"is {data}, and dataLocal {local} does not divide it: KServe creates {data} ÷ {local} = "
        f"{count_of(pods, 'pod')} for {count_of(pods * local, 'copy')} of the model, and "
        f"the engine waits for {data}"
    )
    lower, upper = data // local * local, (data // local + 1) * local
    remedy = f"write {lower} or {upper}" if lower else f"write dataLocal: {data}"
    yield refuse(f"{at}.data", seen, remedy)


def _shown(workload: LlmWorkload, name: str) -> object:
    value = workload.parallelism.get(name)
    return "<output>" if unknown_in(value) else value


_DRA = "serving.kserve.io/exp-dra-"
_LONGEST = 1000


def kserve_llm_adapters(view: LlmService) -> Iterator[Finding]:
    """The LoRA adapters of an LLMInferenceService and its model have different names.

    Pass: adapters sql and chat of the model base.
    Fail: an adapter without a name; two adapters sql; an adapter base of the model base.
    Level: mandatory. KServe's webhook rejects it.
    Source: kserve v0.20.0 pkg/apis/serving/v1alpha2/llm_inference_service_validation.go
    validateLoRAAdapters.
    """
    model = mapping(view.object.spec.get("model"))
    listed, at = mapping(model.get("lora")).get("adapters"), "spec.model.lora.adapters"
    require_known(at, unknown_inside(model.get("lora"), listed))
    base = text(model.get("name")) or view.object.name
    known = {base: "the model"} if isinstance(base, str) else {}
    for index, adapter in enumerate(map(mapping, sequence(listed))):
        path, name = f"{at}[{index}].name", text(adapter.get("name"), "")
        if gap := unknown_in(name):
            yield not_checked(path, gap)
        elif name in (None, ""):
            yield refuse(path, "is missing", "add a name")
        elif name in {".", ".."}:
            yield refuse(path, f"is {display(name)}, which is a folder", "rename it")
        elif name in known:
            seen = f"is {display(name)}, which is also the name of {known[str(name)]}"
            yield refuse(path, seen, "rename it")
        else:
            known[str(name)] = f"adapter {index}"


def kserve_llm_parts(view: LlmService) -> Iterator[Finding]:
    """Scheduler, route and offloaded cache of an LLMInferenceService do not contradict themselves.

    A scheduler has replicas above 0, and a config with inline or ref. A route has refs or a spec,
    and refs exclude KServe's own gateway. A secondary tier of the cache needs memory for the first
    tier, and is an emptyDir or a claim with spec or ref. The key of a confidential model is
    kbs:///repository/type/tag.

    Pass: scheduler replicas 1, config.ref; kvCacheOffloading cpu 10Gi with a pvc.ref.
    Fail: scheduler replicas 0; a config with inline and ref; a tier with emptyDir and pvc.
    Level: mandatory. KServe's webhook rejects it.
    Source: kserve v0.20.0 pkg/apis/serving/v1alpha2/llm_inference_service_validation.go
    validateSchedulerConfig, validateRouterCrossFieldConstraints, validateKVCacheOffloading;
    pkg/validation/confidential.go.
    """
    router = mapping(view.object.spec.get("router"))
    found = [*_scheduler(router.get("scheduler")), *_route(router)]
    for workload in view.workloads:
        cache = workload.fields.get("kvCacheOffloading")
        found += _cache(mapping(cache), f"{workload.path}.kvCacheOffloading")
    found += _confidential(mapping(mapping(view.object.spec.get("model")).get("confidential")))
    yield from (refuse(path, seen, remedy) for path, seen, remedy in found)


def _scheduler(scheduler: object) -> Iterator[tuple[str, str, str]]:
    """Check the scheduler's replicas, and that its config is inline or a reference."""
    at, config = "spec.router.scheduler", mapping(scheduler).get("config")
    number = whole(mapping(scheduler).get("replicas"))
    if isinstance(number, int) and number < 1:
        yield f"{at}.replicas", f"is {number}, but must be at least 1", or_more(1)
    inline, ref = (mapping(config).get(key) for key in ("inline", "ref"))
    if config is None or unknown_inside(config, inline, ref):
        return
    if (inline is None) == (ref is None):
        yield f"{at}.config", *exactly_one("inline", "ref", neither=ref is None)
    elif inline == {}:
        yield f"{at}.config.inline", "is empty", "write the configuration"
    elif ref is not None and mapping(ref).get("name") in (None, ""):
        yield f"{at}.config.ref.name", "is missing", "add the name of the ConfigMap"


def _route(router: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the path, the mistake and the remedy of each wrong field of a route."""
    route, at = mapping(router.get("route")), "spec.router.route"
    http, gateway = mapping(route.get("http")), router.get("gateway")
    refs, group, weight = http.get("refs"), route.get("group"), route.get("weight")
    if unknown_inside(http, gateway, refs, group, weight):
        return
    if refs and http.get("spec") is not None:
        yield f"{at}.http", "has both refs and spec", "keep one of the two"
    if refs and gateway is not None and not mapping(gateway).get("refs"):
        seen = "is given, but KServe makes the gateway itself"
        yield (
            f"{at}.http.refs",
            seen,
            either(remove(), "name the gateway in spec.router.gateway.refs"),
        )
    if (group is None) != (weight is None):
        missing = "group" if group is None else "weight"
        yield f"{at}.{missing}", "is missing", "give both group and weight, or neither"
    elif group is not None and (refs or router.get("ingress") is not None):
        why = "routes of its own" if refs else "an Ingress"
        yield f"{at}.group", f"is given beside {why}", "let KServe make the routes, or remove it"


def _cache(cache: Mapping[str, Any], at: str) -> Iterator[tuple[str, str, str]]:
    """Check the tiers of a KV cache: a first in memory, and one kind of storage for each."""
    tiers = sequence(cache.get("secondary"))
    if tiers and parse_quantity(cache.get("cpu")) == 0:
        yield f"{at}.cpu", "is 0, but a second tier needs a first", "write, for example, 10Gi"
    for index, tier in enumerate(map(mapping, tiers)):
        path, system = f"{at}.secondary[{index}].fileSystem", tier.get("fileSystem")
        folder, claim = (mapping(system).get(key) for key in ("emptyDir", "pvc"))
        spec, ref = (mapping(claim).get(key) for key in ("spec", "ref"))
        if unknown_inside(system, folder, claim, spec, ref):
            continue
        if (folder is None) == (claim is None):
            yield path, *exactly_one("emptyDir", "pvc", neither=claim is None)
        elif claim is not None and (spec is None) == (ref is None):
            yield f"{path}.pvc", *exactly_one("spec", "ref", neither=ref is None)


def _confidential(fields: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the path, what is wrong and the remedy of a key that is not a key's address."""
    key = text(fields.get("resourceId"), "")
    if fields.get("enabled") is not True or not isinstance(key, str) or not key:
        return
    if len(key) > _LONGEST or not SECRET.fullmatch(key):
        seen = f"is {display(key)}, which names no key"
        yield "spec.model.confidential.resourceId", seen, "write kbs:///repository/type/tag"


def kserve_llm_devices(view: LlmService) -> Iterator[Finding]:
    """The DRA annotations of an LLMInferenceService are valid, and include a device class.

    Pass: exp-dra-device-class gpu.nvidia.com, exp-dra-device-count "2".
    Fail: exp-dra-device-count without a class; exp-dra-device-count "0"; container name VLLM.
    Level: mandatory. KServe's webhook rejects it.
    Source: kserve v0.20.0 pkg/apis/serving/v1alpha2/llm_inference_service_validation.go
    validateManagedDRAAnnotations.
    """
    annotations = mapping(view.object.metadata.get("annotations"))
    names = ("device-class", "device-count", "cel-selector", "container-name")
    given = {name: text(annotations.get(f"{_DRA}{name}")) for name in names}
    require_known(f"metadata.annotations.{_DRA}device-class", *given.values())
    stated = {name: str(value).strip() for name, value in given.items() if value is not None}
    if stated and "device-class" not in stated:
        path = f"metadata.annotations.{_DRA}device-class"
        yield refuse(path, f"is missing beside {_DRA}{min(stated)}", "add it")
    for name, value in stated.items():
        seen, remedy = _device(name, value)
        if seen:
            path = f"metadata.annotations.{_DRA}{name}"
            yield refuse(path, f"is {display(given[name])}, {seen}", remedy)


def _device(name: str, value: str) -> tuple[str, str]:
    """Return what is wrong with an annotation and the remedy; empty strings if it is valid."""
    if name == "device-class" and not is_dns_name(value):
        return "which is not a DNS-1123 subdomain", "write, for example, gpu.nvidia.com"
    label = is_dns_name(value) and "." not in value and len(value) <= DNS_LABEL
    if name == "container-name" and not label:
        return "which is not a DNS-1123 label", "write, for example, main"
    if (
        name == "device-count"
        and value
        and not (value.isascii() and value.isdecimal() and value.strip("0"))
    ):
        return "which is not a count above 0", "write, for example, 1, in quotes"
    if name == "cel-selector" and not value:
        return "which holds no expression", remove()
    return "", ""
