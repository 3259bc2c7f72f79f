"""KServe: InferenceService and its runtimes, and LLMInferenceService."""

from collections.abc import Iterator

from kthena_components.core.objects.object import Object
from kthena_components.core.values.read import mapping
from kthena_components.systems.contract import Body, Made, Rollout, System, legacy
from kthena_components.systems.kserve import facts, facts_llm
from kthena_components.systems.kserve.rules import RULES, judge_inference_service
from kthena_components.systems.kserve.rules_llm import RULES as LLM_RULES
from kthena_components.systems.kserve.rules_llm import judge_llm_inference_service
from kthena_components.systems.kserve.view import GROUP, RUNTIMES

_SERVED_ELSEWHERE = {"pods": "an InferenceService takes its pods from it, and it has none itself"}


def has_workers(found: Object) -> bool:
    """Tell whether an InferenceService has several nodes."""
    return mapping(found.spec.get("predictor")).get("workerSpec") is not None


def rollouts(found: Object) -> Iterator[Rollout]:
    """KServe replaces all pods of a multi-node InferenceService at once, the new ones first."""
    if has_workers(found):
        yield Rollout(
            at="spec.predictor.workerSpec",
            replicas=1,
            all_at_once="is updated by KServe with maxSurge 100%",
        )


def keeps_number(found: Object) -> str:
    """Say why an InferenceService must not be scaled."""
    return "has a workerSpec, and KServe refuses to scale it" if has_workers(found) else ""


def makes(found: Object) -> Made | None:
    """Give the Deployment whose number KServe keeps."""
    if not (has_workers(found) and isinstance(found.name, str)):
        return None
    return Made(
        group_kind=("apps", "Deployment"),
        name=f"{found.name}-predictor",
        why="KServe makes for an InferenceService with a workerSpec, and keeps its number",
    )


def kept(body: Body) -> Body:
    """Keep whether there are workers."""
    worker = mapping(mapping(body.get("spec")).get("predictor")).get("workerSpec")
    return {"spec": {"predictor": {"workerSpec": {}}} if worker is not None else {}}


SYSTEM = System(
    name="kserve",
    title="KServe",
    kinds=(
        legacy(
            (GROUP, "InferenceService"),
            facts.read,
            judge_inference_service,
            rules=RULES,
            rollouts=rollouts,
            keeps_number=keeps_number,
            makes=makes,
            kept=kept,
        ),
        *(
            legacy(
                (GROUP, name),
                facts.read,
                judge_inference_service,
                rules=RULES,
                kept=None,
                without=_SERVED_ELSEWHERE,
            )
            for name in RUNTIMES
        ),
        legacy(
            (GROUP, "LLMInferenceService"),
            facts_llm.read,
            judge_llm_inference_service,
            rules=LLM_RULES,
        ),
    ),
)
