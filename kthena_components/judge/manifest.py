"""From any manifest to facts and findings: what policies call. Pure, and it never raises.

SYSTEMS is the one list of what is judged. A new system is one reader beside the others, one
module of rules in core/checks, and one row here.
"""

from dataclasses import replace
from datetime import date

from kthena_components.core.facts.context import NO_CONTEXT, Context, place, stated_shape
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.totals import GpuDemand, gpu_demand
from kthena_components.core.findings import READING, RULE_FAULT, Finding, fault, judged, rule_name
from kthena_components.core.models import ModelShape
from kthena_components.core.objects.kinds import MODEL_SERVING
from kthena_components.core.rules.serving import CHECKS, run_checks
from kthena_components.core.schema.versions import KTHENA_VERSIONS
from kthena_components.core.values.read import group_kind
from kthena_components.core.values.unknown import Unknown
from kthena_components.judge.catalogue import stack_rule_names
from kthena_components.judge.objects import MAKERS
from kthena_components.judge.pod_schema import pod_schema
from kthena_components.judge.stack_rules import COMPARED
from kthena_components.judge.waivers import RULE as WAIVER
from kthena_components.judge.waivers import annotated, waive
from kthena_components.systems.contract import Body, System
from kthena_components.systems.dynamo import facts as dynamo
from kthena_components.systems.dynamo.rules import judge_dynamo
from kthena_components.systems.grove import facts as grove
from kthena_components.systems.grove.rules import judge_pod_clique_set
from kthena_components.systems.kaito import facts as kaito
from kthena_components.systems.kaito.rules import judge_kaito
from kthena_components.systems.kserve import facts as kserve
from kthena_components.systems.kserve import facts_llm as llmisvc
from kthena_components.systems.kserve.rules import judge_inference_service
from kthena_components.systems.kserve.rules_llm import judge_llm_inference_service
from kthena_components.systems.kserve.view import GROUP as KSERVE
from kthena_components.systems.kserve.view import RUNTIMES
from kthena_components.systems.kthena import facts as kthena
from kthena_components.systems.kthena import facts_booster as modelbooster
from kthena_components.systems.kthena.rules import judge_model_serving
from kthena_components.systems.kthena.rules_booster import judge_model_booster
from kthena_components.systems.kubernetes import facts as workloads
from kthena_components.systems.lws import facts as lws
from kthena_components.systems.lws.rules import judge_leader_worker_set
from kthena_components.systems.matrixinfer import facts as matrixinfer
from kthena_components.systems.native.facts import read_part
from kthena_components.systems.ray import facts as ray
from kthena_components.systems.rbg import facts as rbg
from kthena_components.systems.rbg.rules import judge_role_based_group
from kthena_components.systems.vllm_stack import facts as vllm_stack
from kthena_components.systems.volcano.rules import RULES as VOLCANO_RULES
from kthena_components.systems.volcano.rules import judge_volcano_object

NEWEST = KTHENA_VERSIONS[-1]


def _model_serving(body: Body, path: str, version: str) -> list[Finding]:
    return [*judge_model_serving(body, version, path), *judge_volcano_object(body, path)]


SYSTEMS: tuple[System, ...] = (
    System(kinds=frozenset({MODEL_SERVING}), read=kthena.read, judge_version=_model_serving),
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
        kinds=frozenset(VOLCANO_RULES) - {MODEL_SERVING},
        read=lambda _body, _path: None,
        judge=judge_volcano_object,
    ),
)

_BY_KIND = {kind: system for system in SYSTEMS for kind in system.kinds}

_RUNTIMES = frozenset((KSERVE, kind) for kind in RUNTIMES)
"""Kinds that others take their pods from, and that have none of their own."""


def read_manifest(
    body: Body, path: str = "", *, around: Context = NO_CONTEXT
) -> ServingFacts | None:
    """Read the facts of a manifest of any kind that is known; None for the others.

    Args:
        body: The object as it would be applied.
        path: Where it stands in the caller's input; a prefix of every path.
        around: What is known beside it: ConfigMaps, and shapes of models.
    """
    system = _BY_KIND.get(group_kind(body))
    facts = system.read(place(body, around), path) if system else None
    shape = stated_shape(body.get("metadata"))
    if facts is None or (shape is None and not around.shapes):
        return facts
    return replace(facts, engines=tuple(_shaped(e, shape, around) for e in facts.engines))


def _shaped(
    engine: EngineFacts, shape: ModelShape | Unknown | None, around: Context
) -> EngineFacts:
    """Add the shape of its model to an engine that has no pod template to say it."""
    entry, command = engine.entry, engine.entry.command
    if shape is None and command is not None and isinstance(command.model, str):
        shape = around.shapes.get(command.model.casefold())
    if shape is None or entry.shape is not None:
        return engine
    return replace(engine, entry=replace(entry, shape=shape))


def has_rules(body: Body) -> bool:
    """Tell by its group and kind whether there are rules for a manifest."""
    return group_kind(body) in _BY_KIND


def is_compared(body: Body) -> bool:
    """Tell by its group and kind whether the rules for a whole stack look at a manifest."""
    kind = group_kind(body)
    return kind in COMPARED or (kind in _BY_KIND and kind not in _RUNTIMES)


def judge_manifest(
    body: Body,
    path: str = "",
    *,
    around: Context = NO_CONTEXT,
    today: date | None = None,
    kthena_version: str = NEWEST,
) -> list[Finding]:
    """Judge one manifest by every rule that applies to its kind. Unknown kinds give nothing.

    Args:
        body: The object as it would be applied.
        path: Where it stands in the caller's input; a prefix of every path.
        around: What is known beside it: ConfigMaps, and shapes of models.
        today: The day by which its waivers are judged; none is heeded if left out.
        kthena_version: The Kthena that is to read a ModelServing, such as `0.4`.
    """
    return judge_and_count(body, path, around, today, kthena_version)[0]


def judge_and_count(
    body: Body,
    path: str = "",
    around: Context = NO_CONTEXT,
    today: date | None = None,
    kthena_version: str = NEWEST,
) -> tuple[list[Finding], GpuDemand | None]:
    """Judge one manifest, and count the accelerators of pods that do not stand in it."""
    kind = group_kind(body)
    system = _BY_KIND.get(kind)
    if system is None:
        return [], None
    findings, held = list[Finding](), None
    try:
        facts = read_manifest(body, path, around=around)
        if facts is not None:
            findings = run_checks(facts)
            counted = kind not in MAKERS and kind not in _RUNTIMES
            held = gpu_demand(facts) if counted else None
    except Exception as error:  # noqa: BLE001 - the rules of its kind may read it all the same
        findings.append(fault(READING, error))
    if system.judge is not None:
        findings += judged(system.judge, body, path, name=READING)
    if system.judge_version is not None:
        findings += judged(system.judge_version, body, path, kthena_version, name=READING)
    findings += [finding.under(path) for finding in judged(pod_schema, body, kind)]
    return _waived(findings, body, path, today), held


def _waived(findings: list[Finding], body: Body, path: str, today: date | None) -> list[Finding]:
    """Heed an object's waivers, and tell each fault once, in the object where it came up."""
    try:
        stated = () if today is None else annotated(body, path)
        if today is not None and stated:
            findings = waive(findings, stated, today, elsewhere=judged_elsewhere(body))
    except Exception as error:  # noqa: BLE001 - what was found stands without them
        findings.append(fault(f"the rule {WAIVER}", error))
    if any(finding.rule == RULE_FAULT for finding in findings):
        placed = (f if f.path or f.rule != RULE_FAULT else f.under(path) for f in findings)
        findings = list(dict.fromkeys(placed))
    return findings


def judged_elsewhere(body: Body) -> frozenset[str]:
    """Give the rules that judge an object together with others (together.py) too."""
    shared = map(rule_name, CHECKS) if read_part(body) is not None else ()
    return stack_rule_names().union(shared)


def read_held(body: Body) -> GpuDemand | None:
    """Count the accelerators of an object whose pods do not stand in it as templates."""
    kind = group_kind(body)
    if kind in MAKERS or kind in _RUNTIMES:
        return None
    facts = read_manifest(body)
    return None if facts is None else gpu_demand(facts)
