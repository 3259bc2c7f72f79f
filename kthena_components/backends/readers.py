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
    kaito,
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
from kthena_components.core.checks.kaito import judge_kaito
from kthena_components.core.checks.kserve import judge_inference_service
from kthena_components.core.checks.kserve_reading import GROUP as KSERVE
from kthena_components.core.checks.kserve_reading import RUNTIMES
from kthena_components.core.checks.kthena_admission import judge_model_serving
from kthena_components.core.checks.llmisvc import judge_llm_inference_service
from kthena_components.core.checks.lws import judge_leader_worker_set
from kthena_components.core.checks.modelbooster import judge_model_booster
from kthena_components.core.checks.rbg import judge_role_based_group
from kthena_components.core.checks.stack_pods import MAKERS, Held
from kthena_components.core.checks.volcano_objects import RULES as VOLCANO_RULES
from kthena_components.core.checks.volcano_objects import judge_volcano_object
from kthena_components.core.checks.whole_stack import COMPARED
from kthena_components.core.facts import EngineFacts, PodFacts, ServingFacts
from kthena_components.core.findings import Finding
from kthena_components.core.known import MaybeInt, Unknown

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
    System(kinds=kaito.KINDS, read=kaito.read, judge=judge_kaito),
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
_RUNTIMES = frozenset((KSERVE, kind) for kind in RUNTIMES)
"""Kinds that others take their pods from, and that have none of their own."""


def read_manifest(body: Body, path: str = "") -> ServingFacts | None:
    """Read the facts of a manifest of any kind that is known; None for the others."""
    system = _BY_KIND.get(workloads.group_kind(body))
    return system.read(body, path) if system else None


def has_rules(body: Body) -> bool:
    """Tell by its group and kind whether there are rules for a manifest."""
    return workloads.group_kind(body) in _BY_KIND


def is_compared(body: Body) -> bool:
    """Tell by its group and kind whether the rules for a whole stack look at a manifest."""
    kind = workloads.group_kind(body)
    return kind in COMPARED or (kind in _BY_KIND and kind not in _RUNTIMES)


def judge_manifest(body: Body, path: str = "") -> list[Finding]:
    """Judge one manifest by every rule that applies to its kind. Unknown kinds give nothing."""
    return judge_and_count(body, path)[0]


def judge_and_count(body: Body, path: str = "") -> tuple[list[Finding], Held | None]:
    """Judge one manifest, and count the accelerators of pods that do not stand in it."""
    kind = workloads.group_kind(body)
    system = _BY_KIND.get(kind)
    if system is None:
        return [], None
    facts = system.read(body, path)
    findings = [] if facts is None else run_checks(facts)
    if system.judge is not None:
        findings += system.judge(body, path)
    counted = facts is not None and kind not in MAKERS and kind not in _RUNTIMES
    return findings, held_by(facts) if facts is not None and counted else None


def read_held(body: Body) -> Held | None:
    """Count the accelerators of an object whose pods do not stand in it as templates."""
    kind = workloads.group_kind(body)
    if kind in MAKERS or kind in _RUNTIMES:
        return None
    facts = read_manifest(body)
    return None if facts is None else held_by(facts)


def held_by(facts: ServingFacts) -> Held:
    """Add up the accelerators of all engines of a serving, with all their replicas."""
    one: MaybeInt = 0
    for engine in facts.engines:
        one = _plus(one, _times(engine.replicas, _of_engine(engine)))
    pods = [pod for e in facts.engines for pod in (e.entry, e.worker) if pod is not None]
    return Held(gpus=_times(facts.copies, one), resources=frozenset(_resources(pods)))


def _of_engine(engine: EngineFacts) -> MaybeInt:
    entry = engine.entry.all_gpus
    if engine.worker is None:
        return _times(engine.pods, entry)
    workers = engine.pods if isinstance(engine.pods, Unknown) else max(engine.pods - 1, 0)
    return _plus(entry, _times(workers, engine.worker.all_gpus))


def _resources(pods: list[PodFacts]) -> list[str]:
    return [d.resource for pod in pods for d in pod.devices if "/" in d.resource]


def _plus(one: MaybeInt, other: MaybeInt) -> MaybeInt:
    if isinstance(one, Unknown) or isinstance(other, Unknown):
        return one if isinstance(one, Unknown) else other
    return one + other


def _times(one: MaybeInt, other: MaybeInt) -> MaybeInt:
    if one == 0 or other == 0:
        return 0
    if isinstance(one, Unknown) or isinstance(other, Unknown):
        return one if isinstance(one, Unknown) else other
    return one * other
