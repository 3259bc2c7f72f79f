"""The pod that KServe makes of a runtime and the model of an InferenceService.

Source: kserve pkg/controller/v1beta1/inferenceservice/utils MergeServingRuntimeAndInferenceService-
Specs and MergeRuntimeContainers: a strategic merge, but for the arguments of both.
"""

from collections.abc import Callable, Mapping
from typing import Any

from kthena_components.core.templates.overlay import lay_over
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.unknown import is_unresolved

_ENGINE = "kserve-container"


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """A pod, and where its parts were written."""

    spec: Mapping[str, Any]
    place: Callable[[str], str]
    """Gives the path below the predictor for a path in the pod."""


def merge(runtime: Mapping[str, Any], predictor: Mapping[str, Any]) -> Merged | None:
    """Merge the spec of a runtime with a predictor; None if the runtime has no engine."""
    model = mapping(predictor.get("model"))
    containers = [mapping(each) for each in sequence(runtime.get("containers"))]
    names = [each.get("name") for each in containers]
    if _ENGINE not in names:
        return None
    index = names.index(_ENGINE)
    args = _joined(containers[index].get("args"), model.get("args"))
    containers[index] = {**lay_over(containers[index], model), "name": _ENGINE, "args": args}
    volumes = lay_over(
        {"volumes": runtime.get("volumes") or []}, {"volumes": predictor.get("volumes") or []}
    )
    at = f"spec.containers[{index}]"

    def place(path: str) -> str:
        field = path.removeprefix(at).lstrip(".").partition(".")[0].partition("[")[0]
        if not path.startswith(at) or (field and field not in model):
            return "model.runtime"
        # The arguments of the runtime stand in front, so no index is right.
        return "model.args" if field == "args" else path.replace(at, "model", 1)

    return Merged(spec={**volumes, "containers": containers}, place=place)


def _joined(first: Any, second: Any) -> Any:
    for each in (first, second):
        if is_unresolved(each):
            return each
    return [*sequence(first), *sequence(second)]
