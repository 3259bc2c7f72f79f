"""From any manifest to facts and findings: what policies call. Pure, and it never raises."""

from collections.abc import Callable, Mapping
from typing import Any

from kthena_components.backends import kserve, kthena, llmisvc, lws, matrixinfer, workloads
from kthena_components.core.checks import run_checks
from kthena_components.core.checks.kserve import judge_inference_service
from kthena_components.core.checks.kthena_admission import judge_model_serving
from kthena_components.core.checks.llmisvc import judge_llm_inference_service
from kthena_components.core.checks.lws import judge_leader_worker_set
from kthena_components.core.checks.volcano_objects import (
    is_volcano_object,
    judge_volcano_object,
)
from kthena_components.core.facts import ServingFacts
from kthena_components.core.findings import Finding

READERS: tuple[Callable[[Mapping[str, Any], str], ServingFacts | None], ...] = (
    kthena.read,
    lws.read,
    matrixinfer.read,
    kserve.read,
    llmisvc.read,
    workloads.read,
)


def read_manifest(body: Mapping[str, Any], path: str = "") -> ServingFacts | None:
    """Read the facts of a manifest of any kind that is known; None for the others."""
    for read in READERS:
        facts = read(body, path)
        if facts is not None:
            return facts
    return None


def has_rules(body: Mapping[str, Any]) -> bool:
    """Tell by its group and kind whether there are rules for a manifest."""
    return is_volcano_object(body) or read_manifest(body) is not None


def judge_manifest(body: Mapping[str, Any], path: str = "") -> list[Finding]:
    """Judge one manifest by every rule that applies to its kind. Unknown kinds give nothing."""
    facts = read_manifest(body, path)
    findings = [] if facts is None else run_checks(facts)
    if kthena.is_model_serving(body):
        findings += judge_model_serving(body, path=path)
    if lws.is_leader_worker_set(body):
        findings += judge_leader_worker_set(body, path=path)
    if kserve.is_kserve(body):
        findings += judge_inference_service(body, path=path)
    if llmisvc.is_llm_inference_service(body):
        findings += judge_llm_inference_service(body, path=path)
    return [*findings, *judge_volcano_object(body, path)]
