"""Whether the parallelism of an LLMInferenceService is taken, and acted on."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kthena_components.core.findings import Finding, Level, count_of, judge_by, not_checked
from kthena_components.core.values.display import display
from kthena_components.core.values.read import count, first_unknown, mapping, unknown_in, whole
from kthena_components.core.values.unknown import MaybeInt, Unknown

_RULE = "kserve-llm-parallelism"
_SIZES = ("tensor", "pipeline", "data", "dataLocal")


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmWorkload:
    """One workload of an LLMInferenceService: the main one, or prefill."""

    path: str
    fields: Mapping[str, Any]
    parallelism: Mapping[str, Any]
    many: bool
    """Whether it has a worker, and so is a LeaderWorkerSet."""

    def size(self, name: str) -> MaybeInt | None:
        """Give a size as it is stated; None when it is not, or is no number."""
        return count(self.parallelism.get(name))

    def states(self, name: str) -> bool:
        """Tell whether a size is stated."""
        return self.parallelism.get(name) is not None

    @property
    def pods(self) -> MaybeInt:
        """Pods of one engine, as KServe counts them."""
        data, local = self.size("data"), self.size("dataLocal")
        gap = first_unknown(data, local, self.size("pipeline"))
        if not self.many:
            return 1
        if gap is not None:
            return gap
        if isinstance(data, int) and isinstance(local, int) and local > 0:
            return max(data // local, 1)
        pipeline = self.size("pipeline")
        return pipeline if isinstance(pipeline, int) and pipeline > 0 else 1


def read_workloads(manifest: object) -> Iterator[LlmWorkload]:
    """Read the workloads of an LLMInferenceService."""
    spec = mapping(mapping(manifest).get("spec"))
    yield _workload("spec", spec)
    prefill = spec.get("prefill")
    if prefill is not None:
        yield _workload("spec.prefill", mapping(prefill))


def _workload(path: str, fields: Mapping[str, Any]) -> LlmWorkload:
    return LlmWorkload(
        path=path,
        fields=fields,
        parallelism=mapping(fields.get("parallelism")),
        many=fields.get("worker") is not None,
    )


def judge_llm_inference_service(manifest: Mapping[str, Any], path: str = "") -> list[Finding]:
    """Judge an LLMInferenceService, all findings at once.

    Args:
        manifest: The object as it would be applied. Values may be Unknown or late texts.
        path: Where the manifest stands in the caller's input; a prefix of every path.
    """
    found = (f for one in read_workloads(manifest) for f in judge_by(RULES, one))
    return [finding.under(path) for finding in dict.fromkeys(found)]


def kserve_llm_parallelism(workload: LlmWorkload) -> Iterator[Finding]:
    """The sizes of an LLMInferenceService agree, and each of them has an effect.

    A worker needs data or pipeline parallelism, never both; data and dataLocal come together, and
    dataLocal divides data: KServe makes data ÷ dataLocal pods and drops the rest without a word.

    Pass: tensor 1, data 16, dataLocal 8, with a worker: 2 pods.
    Fail: data 5, dataLocal 2; pipeline 2 without a worker, which is ignored (kserve#6044).
    Level: mandatory; advisory for the pipeline that is ignored.
    Source: kserve pkg/apis/serving/v1alpha2/llm_inference_service_validation.go,
    llm_inference_service_types_func.go GetSize.
    """
    at = f"{workload.path}.parallelism"
    if gap := unknown_in(workload.fields.get("parallelism")):
        yield not_checked(at, gap, _RULE)
        return
    for name in _SIZES:
        yield from _positive(f"{at}.{name}", workload.parallelism.get(name))
    pipeline, data = workload.states("pipeline"), workload.states("data")
    worker = workload.fields.get("worker")
    if not (pipeline or data) and (gap := unknown_in(worker)):
        yield not_checked(f"{workload.path}.worker", gap, _RULE)
    elif workload.many and not (pipeline or data):
        seen = "is given, but parallelism states neither data nor pipeline"
        remedy = "add data and dataLocal, or remove worker"
        yield _refused(f"{workload.path}.worker", seen, remedy)
    if pipeline and data:
        shown = display(workload.parallelism.get("pipeline"))
        seen = f"is {shown}, but data is given as well, and KServe takes one of them"
        yield _refused(f"{at}.pipeline", seen, "remove pipeline, or data and dataLocal")
    yield from _data(workload, at)
    stages = workload.size("pipeline")
    if not workload.many and isinstance(stages, int) and stages > 1:
        yield Finding(
            path=f"{at}.pipeline",
            seen=f"is {stages}, but without a worker KServe ignores it (kserve#6044): "
            "the engine has 1 stage, and GPUs for more stay idle",
            remedy="raise tensor instead, or write --pipeline-parallel-size into the command",
            rule=_RULE,
            level=Level.ADVISORY,
        )


def _positive(path: str, value: object) -> Iterator[Finding]:
    number = whole(value)
    if gap := unknown_in(value):
        yield not_checked(path, gap, _RULE)
    elif value is not None and (not isinstance(number, int) or number < 1):
        yield _refused(path, f"is {display(value)}, but must be at least 1", "write 1 or more")


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
        f"is {data}, and dataLocal {local} does not divide it: KServe makes {data} ÷ {local} = "
        f"{count_of(pods, 'pod')} for {pods * local} copies of the model, and "
        f"the engine waits for {data}"
    )
    lower, upper = data // local * local, (data // local + 1) * local
    remedy = f"write {lower} or {upper}" if lower else f"write dataLocal: {data}"
    yield _refused(f"{at}.data", seen, remedy)


def _shown(workload: LlmWorkload, name: str) -> object:
    value = workload.parallelism.get(name)
    return "<output>" if unknown_in(value) else value


def _refused(path: str, seen: str, remedy: str) -> Finding:
    return Finding(path=path, seen=seen, remedy=remedy, rule=_RULE)


RULES: tuple[Callable[[LlmWorkload], Iterator[Finding]], ...] = (kserve_llm_parallelism,)
