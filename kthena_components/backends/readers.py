"""From any manifest to facts and findings: what policies call. Pure, and it never raises.

SYSTEMS is the one list of what is judged. A new system is one reader beside the others, one
module of rules in core/checks, and one row here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kthena_components.backends import (
    dynamo,
    grove,
    kserve,
    kthena,
    llmisvc,
    lws,
    matrixinfer,
    modelbooster,
    ray,
    rbg,
    vllm_stack,
    workloads,
)
from kthena_components.core.checks import run_checks
from kthena_components.core.checks.dynamo import judge_dynamo
from kthena_components.core.checks.grove import judge_pod_clique_set
from kthena_components.core.checks.kserve import judge_inference_service
from kthena_components.core.checks.kthena_admission import judge_model_serving
from kthena_components.core.checks.llmisvc import judge_llm_inference_service
from kthena_components.core.checks.lws import judge_leader_worker_set
from kthena_components.core.checks.modelbooster import judge_model_booster
from kthena_components.core.checks.rbg import judge_role_based_group
from kthena_components.core.checks.volcano_objects import RULES as VOLCANO_RULES
from kthena_components.core.checks.volcano_objects import judge_volcano_object
from kthena_components.core.facts import ServingFacts
from kthena_components.core.findings import Finding

Body = Mapping[str, Any]
Kind = tuple[str, str]
"""API group and kind; every served version of it counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """Kinds that are judged alike."""

    kinds: frozenset[Kind]
    read: Callable[[Body, str], ServingFacts | None]
    """Read the facts of an object of these kinds for the rules of core/checks; None for others."""
    judge: Callable[[Body, str], list[Finding]] | None = None
    """The rules of the system's own, such as what its admission would refuse."""


def _model_serving(body: Body, path: str) -> list[Finding]:
    return [*judge_model_serving(body, path=path), *judge_volcano_object(body, path)]


SYSTEMS: tuple[System, ...] = (
    System(kinds=frozenset({kthena.MODEL_SERVING}), read=kthena.read, judge=_model_serving),
    System(kinds=lws.KINDS, read=lws.read, judge=judge_leader_worker_set),
    System(kinds=matrixinfer.KINDS, read=matrixinfer.read),
    System(kinds=kserve.KINDS, read=kserve.read, judge=judge_inference_service),
    System(kinds=llmisvc.KINDS, read=llmisvc.read, judge=judge_llm_inference_service),
    System(kinds=modelbooster.KINDS, read=modelbooster.read, judge=judge_model_booster),
    System(kinds=ray.KINDS, read=ray.read, judge=ray.judge),
    System(kinds=vllm_stack.KINDS, read=vllm_stack.read, judge=vllm_stack.judge),
    System(kinds=rbg.KINDS, read=rbg.read, judge=judge_role_based_group),
    System(kinds=grove.KINDS, read=grove.read, judge=judge_pod_clique_set),
    System(kinds=dynamo.KINDS, read=dynamo.read, judge=judge_dynamo),
    System(kinds=workloads.KINDS, read=workloads.read),
    System(
        kinds=frozenset(VOLCANO_RULES) - {kthena.MODEL_SERVING},
        read=lambda _body, _path: None,
        judge=judge_volcano_object,
    ),
)
_BY_KIND = {kind: system for system in SYSTEMS for kind in system.kinds}


def read_manifest(body: Body, path: str = "") -> ServingFacts | None:
    """Read the facts of a manifest of any kind that is known; None for the others."""
    system = _BY_KIND.get(workloads.group_kind(body))
    return system.read(body, path) if system else None


def has_rules(body: Body) -> bool:
    """Tell by its group and kind whether there are rules for a manifest."""
    return workloads.group_kind(body) in _BY_KIND


def judge_manifest(body: Body, path: str = "") -> list[Finding]:
    """Judge one manifest by every rule that applies to its kind. Unknown kinds give nothing."""
    system = _BY_KIND.get(workloads.group_kind(body))
    if system is None:
        return []
    facts = system.read(body, path)
    findings = [] if facts is None else run_checks(facts)
    return findings if system.judge is None else [*findings, *system.judge(body, path)]
