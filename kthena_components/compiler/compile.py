"""Compiles what a user wrote to manifests, with all mandatory findings at once. Pure.

The only entry for components, stacks and tests. It checks structure first, then rules between
fields, the limits of the backend, and the checks of the plan.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from datetime import date
from typing import TYPE_CHECKING, Any

from kthena_components import systems
from kthena_components.checker.waivers import WaiverEntry, annotations, listed, unwaivable, waive
from kthena_components.compiler.refusals import name_takers, read_options, refuse
from kthena_components.core.findings import Finding, Level, SpecError, nearest, rule_name
from kthena_components.core.hardware import NO_CHOICE, GpuChoice
from kthena_components.core.objects.object import VOLCANO
from kthena_components.core.plan.build import (
    build_group_plan,
    build_plan,
    build_role_plan,
    role_serving,
    serving_of,
)
from kthena_components.core.plan.facts import facts_from_plan, plan_values
from kthena_components.core.plan.manifest import Manifest
from kthena_components.core.plan.serving_plan import ServingPlan
from kthena_components.core.remedies import Remedy, either, fixes_of, remove
from kthena_components.core.remedies import write as set_to
from kthena_components.core.rules.production import PRODUCTION_NAMES
from kthena_components.core.rules.registry import CHECKS, MODEL_RULES, run_checks
from kthena_components.core.spec.parse import parse_spec
from kthena_components.core.spec.rules.engine_overlay_and_flags import BLOCKING, ROLE_RULES
from kthena_components.core.spec.rules.roles_pods_gang_expose import check_spec
from kthena_components.core.spec.serving_spec import (
    GroupSpec,
    ModelServingSpec,
    StandaloneGroupSpec,
    StandaloneRoleSpec,
)
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.regex import regex
from kthena_components.systems.kubernetes.backends import emit_budget, emit_claims

if TYPE_CHECKING:
    from kthena_components.systems.emitter import Emitter

_PLACE = regex(r"roles\[(\d+)\]")
_HEAD = regex(r"[.\[]")
_NAME = "chat"
"""The name of a serving whose own one is wrong."""
_DECIDING = frozenset({"", "backend", "kthena_version", "scheduler_name", "fill_requests"})
"""Fields that decide how each role is written."""
_OF_SEVERAL = frozenset(
    {"kv-halves-complete", "kv-halves-alike", "kv-halves-parallel", "options-agree"}
    | {"gang-covers-engine", "name-fits", "config-map-key-exists"}
)
"""Rules that compare roles, or read fields of the whole serving."""
_OF_ONE_ROLE = frozenset(map(rule_name, CHECKS)).union(map(rule_name, ROLE_RULES)) - _OF_SEVERAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A plan, its manifests, and the findings that do not stop it."""

    plan: ServingPlan
    manifests: tuple[Manifest, ...]
    """Sorted so that the manifests in `after` come first."""
    findings: tuple[Finding, ...]
    waivers: Mapping[str, str] = field(default_factory=dict)
    """As given, by rule."""


def compile_serving(
    args: Mapping[str, Any],
    subject: str = "",
    *,
    today: date | None = None,
    gpus: GpuChoice = NO_CHOICE,
) -> Compiled:
    """Compile a ModelServing, or raise one SpecError with all mandatory findings.

    Args:
        args: What the user wrote.
        subject: Title of the input, for the error's text.
        today: The day on which waivers are checked; without it, all are ignored.
        gpus: The GPUs of pods whose templates name none.
    """
    read = False
    try:
        spec = parse_spec(ModelServingSpec, args, subject)
        read, findings = True, check_spec(spec)
        return _compile(spec, findings, lambda: build_plan(spec), subject, today, gpus=gpus)
    except SpecError as error:
        stopping = [each for each in error.findings if not read or each.rule in BLOCKING]
        more = _of_other_roles(args, stopping, today, gpus) if stopping else []
        new = [each for each in more if each not in error.findings]
        raise SpecError([*error.findings, *new], subject) from None


def _of_other_roles(
    args: Mapping[str, Any], wrong: Sequence[Finding], today: date | None, gpus: GpuChoice
) -> list[Finding]:
    """Check the roles without findings by the rules about one role, as if they were all.

    No plan can be made of a role with such a finding, and so none of the serving.
    """
    heads = {_head(each.path, args) for each in wrong} - {"roles"}
    given = args.get("roles")
    if not isinstance(given, list | tuple) or heads & _DECIDING:
        return []
    places = {found[1] for each in wrong if (found := _PLACE.match(each.path))}
    left = [index for index in range(len(given)) if str(index) not in places]
    kept = {key: value for key, value in args.items() if key not in {*heads, "gang_policy"}}
    named = {"name": _NAME} if "name" in heads else {}
    # Whatever is left out has to be less than before: what is compiled may be wrong again.
    less = len(left) < len(given) or heads & (args.keys() - {"name"})
    if not left or not (less or (named and args.get("name") != _NAME)):
        return []
    some = {**kept, **named, "roles": [given[index] for index in left]}

    def place(text: str) -> str:
        return _PLACE.sub(lambda at: f"roles[{left[int(at[1])]}]", text)

    try:
        compile_serving(some, today=today, gpus=gpus)
    except SpecError as error:
        located = [each for each in error.findings if _PLACE.match(each.path)]
        moved = (each.at(place) for each in located if each.rule in _OF_ONE_ROLE)
        return [
            replace(f, seen=place(f.seen), remedy=Remedy(place(f.remedy), fixes_of(f.remedy)))
            for f in moved
        ]
    return []


def _head(path: str, args: Mapping[str, Any]) -> str:
    """Return the field of a serving that a path is in; a wrong one may have dots in its name."""
    own = (key for key in args if path == key or path.startswith((f"{key}.", f"{key}[")))
    return next(own, _HEAD.split(path, maxsplit=1)[0])


def compile_group(
    args: Mapping[str, Any], subject: str = "", *, today: date | None = None
) -> Compiled:
    """Compile a standalone ServingGroup for the native backend, the only one that has it.

    Args: as `compile_serving`.
    """
    spec = parse_spec(StandaloneGroupSpec, args, subject)
    findings = check_spec(serving_of(spec), alone=True)
    return _compile(spec, findings, lambda: build_group_plan(spec), subject, today)


def compile_role(
    args: Mapping[str, Any], subject: str = "", *, today: date | None = None
) -> Compiled:
    """Compile a standalone Role for the native backend, without a PodGroup for it.

    Args: as `compile_serving`.
    """
    spec = parse_spec(StandaloneRoleSpec, args, subject)
    findings = check_spec(serving_of(role_serving(spec)), alone=True, role_path="")
    if spec.pod_group is not None and spec.scheduler_name != VOLCANO:
        findings.append(_no_pod_group(spec.scheduler_name))
    return _compile(spec, findings, lambda: build_role_plan(spec), subject, today)


def _compile(
    spec: GroupSpec | StandaloneRoleSpec,
    findings: list[Finding],
    build: Callable[[], ServingPlan],
    subject: str,
    today: date | None,
    *,
    gpus: GpuChoice = NO_CHOICE,
) -> Compiled:
    """Build, check and write a plan; raise all mandatory findings at once."""
    name = getattr(spec, "backend", "native")
    backend = systems.find_emitter(name)
    if backend is None:
        findings.append(_no_backend(name))
    plan = None if BLOCKING.intersection(f.rule for f in findings) else build()
    if backend is not None:
        options, wrong = read_options(backend, name, getattr(spec, "backend_options", {}))
        findings += wrong
        if plan is not None and not wrong:
            plan = replace(plan, options=options)
            refused = refuse(plan, backend)
            findings += name_takers(plan, refused) if hasattr(spec, "backend") else refused
    found_in_plan = [] if plan is None else check_plan(plan, backend, gpus)
    manifests: tuple[Manifest, ...] = ()
    if spec.waivers and today is not None:
        firm = any(f.level is Level.MANDATORY for f in findings)
        emitted = () if firm or plan is None or backend is None else write(plan, backend)
        found_in_plan, manifests = _waived(spec.waivers, findings, found_in_plan, emitted, today)
    findings += found_in_plan
    mandatory = [f for f in findings if f.level is Level.MANDATORY]
    if mandatory or plan is None or backend is None:
        raise SpecError(mandatory, subject)
    mirrored = any(note.rule == "requests-mirrored" for note in plan.notes)
    findings_left = dict.fromkeys(
        finding
        for finding in (*plan.notes, *findings)
        if not (_about_a_private_model(finding) or (mirrored and _about_no_request(finding)))
    )
    return Compiled(
        plan=plan,
        manifests=labelled(manifests or write(plan, backend), spec.labels),
        findings=tuple(findings_left),
        waivers=spec.waivers,
    )


def write(plan: ServingPlan, backend: "Emitter") -> tuple[Manifest, ...]:
    """Write the objects of the backend, with claims, a budget of evictions and monitoring."""
    budget = emit_budget(plan, backend.pods(plan), is_counted=backend.is_counted)
    made = (*emit_claims(plan), *backend.emit(plan), *([budget] if budget else []))
    if not plan.monitoring:
        return made
    from kthena_components.systems.prometheus.system import emit_monitoring  # noqa: PLC0415

    return (*made, *emit_monitoring(plan, backend.targets(plan)))


def labelled(manifests: tuple[Manifest, ...], labels: Mapping[str, str]) -> tuple[Manifest, ...]:
    """Add labels to all objects; those of the backend stay."""
    if not labels:
        return manifests
    made = []
    for manifest in manifests:
        metadata = manifest.body["metadata"]
        merged = {**metadata, "labels": {**labels, **(metadata.get("labels") or {})}}
        made.append(replace(manifest, body={**manifest.body, "metadata": merged}))
    return tuple(made)


def _about_a_private_model(finding: Finding) -> bool:
    """Return whether a finding only says that a model's shape is unknown.

    Users of private models would see it at every update. Policies report it to reviewers.
    """
    return finding.level is Level.UNKNOWN and finding.rule in MODEL_RULES


def _about_no_request(finding: Finding) -> bool:
    """Return whether a finding about GPU requests repeats the one of requests-mirrored."""
    advice = finding.rule == "gpu-requests-equal-limits" and finding.level is Level.ADVISORY
    return advice and "and no request" in finding.seen


def _waived(
    waivers: Mapping[str, str],
    findings: Sequence[Finding],
    found_in_plan: Sequence[Finding],
    manifests: tuple[Manifest, ...],
    today: date,
) -> tuple[list[Finding], tuple[Manifest, ...]]:
    """Apply waivers to findings, and annotate the manifests with them.

    Findings from before the plan exists cannot be waived.
    """
    firm = {finding.rule for finding in findings if finding.level is Level.MANDATORY}
    stated = [entry for entry in listed(waivers) if entry.rule not in firm]
    refused = [unwaivable(entry) for entry in listed(waivers) if entry.rule in firm]
    manifests, found = _annotate(manifests, stated)
    return [*waive(found_in_plan, stated, today, elsewhere=found), *refused], manifests


def check_plan(
    plan: ServingPlan, backend: "Emitter | None" = None, gpus: GpuChoice = NO_CHOICE
) -> list[Finding]:
    """Check a plan by all rules; paths are those of the user's input."""
    values = list(dict.fromkeys(plan_values(plan)))
    if backend is None:
        return [*values, *run_checks(facts_from_plan(plan, gpus=gpus))]
    facts, order = facts_from_plan(plan, backend.sizes, gpus), backend.order(plan)
    engines = tuple(replace(engine, order=order) for engine in facts.engines)
    names = tuple(backend.names(plan))
    facts = replace(facts, engines=engines, names=names, controller_env=backend.controller_env)
    return [*values, *run_checks(facts)]


def _no_backend(name: str) -> Finding:
    """Write the finding of an unknown backend, with the one of a kind of that name."""
    by_kind = {kind.casefold(): system for (_, kind), system in systems.INDEX.items()}
    system, listed = by_kind.get(name.casefold()), ", ".join(sorted(systems.EMITTERS))
    close = system if system in systems.EMITTERS else nearest(name, systems.EMITTERS)
    return Finding(
        path="backend",
        seen=f"there is no backend '{name}'",
        remedy=set_to(close, f"write '{close}'; known: {listed}")
        if close
        else f"write one of {listed}",
        rule="known-backend",
    )


def _no_pod_group(scheduler: str) -> Finding:
    """Write the finding of pod_group without Volcano."""
    return Finding(
        path="pod_group",
        seen=f"is given, but scheduler_name is '{scheduler}', and only Volcano reads it",
        remedy=either(
            set_to("volcano", "write scheduler_name: volcano", at="scheduler_name"),
            remove("remove the field"),
        ),
        rule="volcano-scheduler",
    )


def _annotate(
    manifests: tuple[Manifest, ...], stated: Sequence[WaiverEntry]
) -> tuple[tuple[Manifest, ...], frozenset[str]]:
    """Annotate each manifest with the waivers of its findings.

    A check of the manifests alone then reports the same as the component. Rules that need all
    objects of a cluster are waived in each manifest.

    Returns:
        The manifests, and the rules that report something in them or may do so elsewhere; all rules
        if there are no manifests.
    """
    # Imported here: waivers are rare, and the readers of all systems are slow to load.
    from kthena_components.checker.catalogue import cluster_rule_names, rule_names  # noqa: PLC0415
    from kthena_components.checker.check_cluster_objects import check_objects_together  # noqa: PLC0415
    from kthena_components.checker.cluster_rules import owner_of  # noqa: PLC0415
    from kthena_components.checker.manifest import check_manifest, has_rules  # noqa: PLC0415

    if not manifests:
        return manifests, rule_names()
    bodies = {str(number): manifest.body for number, manifest in enumerate(manifests)}
    asked = PRODUCTION_NAMES
    rules = {
        name: {f.rule for f in check_manifest(body, asked=asked)} for name, body in bodies.items()
    }
    for finding in check_objects_together(bodies):
        rules.get(owner_of(finding, bodies), set()).add(finding.rule)
    shared = cluster_rule_names()
    made = []
    for name, manifest in zip(bodies, manifests, strict=True):
        wide = shared if has_rules(manifest.body) else frozenset[str]()
        # Those of its updates are known only to the engine and the cluster.
        rules[name] |= {*wide, *manifest.update_rules}
        own = annotations(entry for entry in stated if entry.rule in rules[name])
        made.append(_annotated(manifest, own) if own else manifest)
    return tuple(made), shared.union(*rules.values())


def _annotated(manifest: Manifest, own: dict[str, str]) -> Manifest:
    metadata = manifest.body["metadata"]
    merged = {**metadata, "annotations": {**metadata.get("annotations", {}), **own}}
    return replace(manifest, body={**manifest.body, "metadata": merged})
