"""Checks that KServe accepts and applies the parallelism of an LLMInferenceService."""

from collections.abc import Iterator

from kthena_components.core.findings import Finding, Level, count_of, not_checked, part_of_rule
from kthena_components.core.remedies import or_more
from kthena_components.core.values.display import display
from kthena_components.core.values.read import mapping, require_known, sequence, unknown_in, whole
from kthena_components.core.values.unknown import Unknown, known
from kthena_components.systems.kserve.view_llm import LlmService, LlmWorkload

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
        yield _refused(f"{workload.path}.worker", seen, remedy)
    if pipeline and data:
        shown = display(workload.parallelism.get("pipeline"))
        seen = f"is {shown}, but data is also given, and KServe accepts only one of them"
        yield _refused(f"{at}.pipeline", seen, "remove pipeline, or data and dataLocal")
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
        yield _refused(path, f"is {display(value)}, but must be at least 1", or_more(1))


def _data(workload: LlmWorkload, at: str) -> Iterator[Finding]:
    data, local = workload.size("data"), workload.size("dataLocal")
    if workload.states("data") != workload.states("dataLocal"):
        here, there = ("data", "dataLocal") if workload.states("data") else ("dataLocal", "data")
        seen = f"is {display(_shown(workload, here))}, but {there} is not given"
        yield _refused(f"{at}.{here}", seen, f"add {there}, or remove {here}")
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
    yield _refused(f"{at}.data", seen, remedy)


def _shown(workload: LlmWorkload, name: str) -> object:
    value = workload.parallelism.get(name)
    return "<output>" if unknown_in(value) else value


def _refused(path: str, seen: str, remedy: str) -> Finding:
    return Finding(path=path, seen=seen, remedy=remedy)
