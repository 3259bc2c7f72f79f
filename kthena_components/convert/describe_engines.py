"""Describes an object whose controller completes the pods of its engines, by its engines. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from kthena_components import systems
from kthena_components.convert.conversion import title_of
from kthena_components.convert.describe_pods import labels_of, scheduler_of
from kthena_components.convert.engine_pods import EnginePod, engine_pod, shared
from kthena_components.convert.engine_roles import (
    EngineRole,
    Gap,
    arguments_of,
    is_below,
    lead_of,
    refused_role,
    starts_same,
    worker_of,
)
from kthena_components.core.engines import CommandFacts, Transfer
from kthena_components.core.engines.kv_transfer import Env, read_transfer
from kthena_components.core.facts.context import NO_CONTEXT, Context, ReferencedObjects, gather
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, SpecError, join_path
from kthena_components.core.naming import dns_name
from kthena_components.core.objects.engine_containers import Sketch
from kthena_components.core.objects.object import Object, PodSet, read_object
from kthena_components.core.plan.read_back import SERVE, stated
from kthena_components.core.spec.enums import EngineKind
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import group_kind, name_of, sequence
from kthena_components.core.values.unknown import MaybeInt, Unknown
from kthena_components.systems.system import Body

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SAME_FOR_ALL = frozenset({*EngineKind, "worker"})
"""Words in names of engines that do not distinguish them."""
_LONG = 12
"""Characters that every backend allows in the name of a role."""
_BY_HAND = (
    "convert the objects with pods that are made of it (kubectl get -o yaml), or write a "
    "ModelServing by hand"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ByEngines:
    """An object, described by its engines."""

    facts: ServingFacts
    roles: tuple[EngineRole, ...]
    args: Mapping[str, Any]
    gaps: tuple[Gap, ...]
    """With paths in the arguments."""
    sketch: Sketch
    pods: tuple[EnginePod, ...]
    """The pods that run engines."""
    without_engine: tuple[str, ...]
    """Paths of the other pods."""

    @property
    def said(self) -> frozenset[object]:
        """The settings of its pods that the described pods have, too: path of the pods, setting."""
        overlays = [role.get("overlay") for role in self.args["roles"]]
        return shared(self.pods, [role.lead for role in self.roles], overlays)

    @property
    def known(self) -> Iterator[str]:
        """Yield the paths of fields that need not be tried."""
        yield from self.sketch.known
        leads = {role.lead.set.path for role in self.roles}
        for pod in self.pods:
            if pod.set.path not in leads and any(map(partial(starts_same, pod), self.roles)):
                yield from pod.command_paths
            yield pod.set.at(f"spec.containers[{pod.index}].name")  # it becomes `engine`


def is_sketched(body: Body) -> bool:
    """Return whether an object is described by its engines."""
    kind = systems.find_kind(group_kind(body))
    return kind is not None and kind.facts is not None and kind.sketch is not None


def context_of(objects: Iterable[Body]) -> Context:
    """Return what objects have that completes others: scripts of engines, and resource claims."""
    beside = ReferencedObjects(systems.COMPLETING, systems.NAMED_BY)
    for body in objects:
        beside.add(body)
    return Context(config_maps=gather(objects), referenced=beside)


def describe_engines(body: Body, context: Context = NO_CONTEXT) -> ByEngines:
    """Describe an object by its engines.

    Args:
        context: Objects of the same cluster that complete it (`context_of`).

    Raises:
        SpecError: An engine cannot be described.
    """
    kind, found = systems.find_kind(group_kind(body)), read_object(body, context=context)
    view = kind.view(found) if kind is not None else None
    facts = kind.facts(view) if kind is not None and kind.facts is not None else None
    if kind is None or facts is None or kind.sketch is None:
        raise SpecError([_refusal("kind", f"is {found.kind}")], title_of(body))
    sketch = kind.sketch(view)
    if sketch.refused or not facts.engines:
        raise SpecError([_refusal("spec", sketch.refused or "starts no engine")], title_of(body))
    gaps = list[Gap]()
    roles, wrong = list[EngineRole](), list[Finding]()
    for index, engine in enumerate(facts.engines):
        role = _role(found, engine, sketch.sets, f"roles[{index}]", gaps)
        wrong += [_refusal(engine.path, "shows no pods of its engine")] if role is None else []
        roles += [] if role is None else [role]
    wrong += [finding for role in roles for finding in refused_role(role)]
    if wrong:
        raise SpecError(wrong, title_of(body))
    own = kind.states(view) if kind.states is not None else {}
    described = _described(found, facts, roles, sketch, gaps)
    return replace(described, args={**described.args, **own})


def _described(
    found: Object, facts: ServingFacts, roles: Sequence[EngineRole], sketch: Sketch, gaps: list[Gap]
) -> ByEngines:
    """Return the arguments of an object's roles, and the gaps that a user must fill."""
    copies = _count(facts.copies, "replicas", gaps)
    alone = len(roles) == 1 and facts.gang is None
    made = list[Mapping[str, Any]]()
    for index, role in enumerate(roles):
        at = role.lead.set.path
        args, missing = arguments_of(role, sketch.roles.get(at, {}))
        unsaid = [Gap(argument=k, because=v) for k, v in sketch.unsaid.get(at, {}).items()]
        gaps += [_gap_below(gap, f"roles[{index}]") for gap in _once(unsaid, missing)]
        made.append({**args, "replicas": 1} if alone else args)
    if alone:
        gaps = [_alone(gap) for gap in gaps]
    args = stated(
        name=found.metadata.get("name"),
        namespace=found.metadata.get("namespace"),
        replicas=roles[0].replicas * copies if alone else copies,
        scheduler_name=scheduler_of(facts, sketch.sets),
        labels=labels_of(found) or None,
        roles=made,
    )
    leads = {role.lead.set.path: role.lead for role in roles}
    own = [each for each in sketch.sets if each.path in leads or _is_of(each, roles)]
    return ByEngines(
        facts=facts,
        roles=tuple(roles),
        args=args,
        gaps=tuple(gaps),
        sketch=sketch,
        pods=tuple(leads.get(each.path) or _other(each, roles) for each in own),
        without_engine=tuple(each.owner.at(each.path) for each in sketch.sets if each not in own),
    )


def _is_of(pods: PodSet, roles: Sequence[EngineRole]) -> bool:
    """Return whether pods are a part of an engine: they have its GPUs, or start it."""
    facts = read_pod({"spec": pods.spec}, "", context=pods.owner.context)
    starts = (role.engine.entry.command_path for role in roles)
    return facts.asks_for_gpus or any(is_below(path, pods) for path in starts)


def _other(pods: PodSet, roles: Sequence[EngineRole]) -> EnginePod:
    names = {
        c for r in roles for p in (r.engine.entry, r.engine.worker) if p and (c := p.container)
    }
    own = [c.get("name") for c in pods.spec.get("containers") or () if isinstance(c, Mapping)]
    said = [variable for role in roles for variable in role.lead.said]
    made = engine_pod(pods, next((name for name in own if name in names), None))
    return replace(made, said=said)


def _once(unsaid: Sequence[Gap], missing: Sequence[Gap]) -> list[Gap]:
    """List each argument once: with the reason why the object leaves it out, if there is one."""
    named = {gap.argument for gap in unsaid}
    return [*unsaid, *(gap for gap in missing if gap.argument not in named)]


def _gap_below(gap: Gap, at: str) -> Gap:
    return replace(gap, argument=join_path(at, gap.argument))


def _alone(gap: Gap) -> Gap:
    """Engines of a single role are counted by the copies of its group."""
    same = gap.argument == "roles[0].replicas"
    return replace(gap, argument="replicas") if same else gap


def _role(
    found: Object, engine: EngineFacts, sets: Sequence[PodSet], at: str, gaps: list[Gap]
) -> EngineRole | None:
    """Return the role of one engine; None if no set has the pod with its first rank."""
    lead = lead_of(engine, sets)
    if lead is None:
        return None
    pod, folded = lead
    worker = worker_of(engine, sets)
    others = [each for each in sets if worker and each.spec == worker.spec]
    pods = _count(engine.pods, f"{at}.worker_replicas", gaps)
    transfer, said = _transfer(engine, pod)
    return EngineRole(
        name=_name(found, engine),
        engine=engine,
        lead=replace(pod, said=said),
        pods=max(1, pods - bool(folded)),
        replicas=_count(engine.replicas, f"{at}.replicas", gaps),
        peers=tuple(
            replace(engine_pod(each, None), said=said)
            for each in others
            if each.path != pod.set.path
        ),
        folded=folded,
        transfer=transfer,
    )


def _transfer(engine: EngineFacts, pod: EnginePod) -> tuple[Transfer | None, Env]:
    """Return how an engine shares its KV cache, and the variables that configure it."""
    command = engine.entry.command or CommandFacts()
    env = sequence(pod.container.get("env"))
    return read_transfer(str(command.engine), command.options, env) or (None, ())


def _name(found: Object, engine: EngineFacts) -> str:
    """Return a short name for a role: `decode` for VllmDecodeWorker."""
    own = name_of(found.body)
    if engine.name in {own, "?"}:
        return SERVE
    name = engine.name.removeprefix(f"{own}-")
    words = [word.lower() for word in _WORDS.findall(name)]
    kept = [word for word in words if word not in _SAME_FOR_ALL]
    return dns_name("-".join(kept)) if len(name) > _LONG and kept else dns_name(name)


def _count(number: MaybeInt, argument: str, gaps: list[Gap]) -> int:
    if isinstance(number, Unknown):
        gaps.append(Gap(argument=argument, because=number.because))
        return 1
    return number


def _refusal(path: str, seen: str) -> Finding:
    return Finding(path=path, seen=seen, remedy=_BY_HAND, rule="convertible")
