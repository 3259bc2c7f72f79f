"""Describes an object of a system without a backend by its pods and the facts of its engines. Pure.

Each engine becomes a role, and so does each other set of pods. Which pods form an engine is what
the checks read from the object (`Kind.facts`), so both read it alike.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kthena_components import systems
from kthena_components.convert.conversion import title_of
from kthena_components.convert.lost_fields import leaves
from kthena_components.core import naming
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, SpecError, count_of, path_of
from kthena_components.core.objects.object import VOLCANO, Object, PodSet, read_object
from kthena_components.core.plan.controller_variables import PodVariables
from kthena_components.core.plan.read_back import SERVE, described_template, stated
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import group_kind, is_name, mapping, name_of, sequence
from kthena_components.core.values.unknown import MaybeInt, Unknown
from kthena_components.systems.system import Body, Kind

_DEFAULT_SCHEDULER = "default-scheduler"
_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
HEAD = ("apiVersion", "kind", "metadata.name", "metadata.namespace")
"""Fields of an object that every description has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRole:
    """A role: an engine with its pods, or other pods."""

    name: str
    engine: EngineFacts | None
    sets: tuple[PodSet, ...]
    """The pods of the entry, then the workers. One set: all have the same template."""
    replicas: int
    """Number of such engines in one group of the object."""
    pods: int
    """Pods of one engine."""

    @property
    def after(self) -> int:
        """Pods of an engine before its workers: 1 if the workers have another template, else 0."""
        return 1 if len(self.sets) > 1 else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """An object, described by its pods."""

    facts: ServingFacts
    roles: tuple[PodRole, ...]
    args: Mapping[str, Any]
    variables: PodVariables
    sets: tuple[PodSet, ...]


def shows_pods(kind: Kind[Any]) -> bool:
    """Return whether objects of a kind can be described by their pods."""
    return kind.facts is not None and kind.pods is not None and not kind.not_whole


def describe(body: Body, replicas: object = None) -> Described:
    """Describe an object by its pods.

    Args:
        replicas: The number of its pods, if the object leaves it to others.

    Raises:
        SpecError: It does not show which pods its engines have.
    """
    kind, found = systems.find_kind(group_kind(body)), read_object(body)
    view = kind.view(found) if kind is not None else None
    facts = kind.facts(view) if kind is not None and kind.facts is not None else None
    if kind is None or facts is None or kind.pods is None or not shows_pods(kind):
        raise _refusal("kind", f"is {found.kind}: {_why(kind)}", _LATER, body)
    variables = kind.pod_variables(view) if kind.pod_variables is not None else PodVariables()
    facts, sets = _counted(facts, tuple(kind.pods(view)), replicas)
    copies = _known_count(facts.copies, facts.path, body)
    roles = tuple(_roles(found, facts, sets, copies))
    alone = len(roles) == 1 and facts.gang is None
    groups = roles[0].replicas * copies if alone else copies
    scheduler = scheduler_of(facts, sets)
    args = stated(
        name=found.metadata.get("name"),
        namespace=found.metadata.get("namespace"),
        replicas=groups,
        scheduler_name=scheduler,
        labels=labels_of(found) or None,
        **(kind.states(view) if kind.states is not None else {}),
        roles=[_arguments(role, scheduler, alone=alone) for role in roles],
    )
    return Described(facts=facts, roles=roles, args=args, variables=variables, sets=sets)


def _counted(
    facts: ServingFacts, sets: tuple[PodSet, ...], replicas: object
) -> tuple[ServingFacts, tuple[PodSet, ...]]:
    """Use the given number of copies where the object has none, such as one that is scaled."""
    if len(sets) != 1 or not isinstance(sets[0].count, Unknown) or not isinstance(replicas, int):
        return facts, sets
    engines = tuple(
        replace(one, replicas=replicas if isinstance(one.replicas, Unknown) else one.replicas)
        for one in facts.engines
    )
    return replace(facts, engines=engines), (replace(sets[0], count=replicas),)


_LATER = (
    "convert the objects with pods that are made of it (kubectl get -o yaml, helm template), "
    "or write a ModelServing by hand"
)


def _why(kind: Kind[Any] | None) -> str:
    if kind is None:
        return "no kind that convert reads"
    return kind.not_whole or kind.without.get("pods", "it shows no pods")


def _refusal(path: str, seen: str, remedy: str, body: Body) -> SpecError:
    finding = Finding(path=path, seen=seen, remedy=remedy, rule="convertible")
    return SpecError([finding], title_of(body))


def _known_count(number: MaybeInt, path: str, body: Body, *, is_set: bool = False) -> int:
    """Return a number of pods.

    Args:
        is_set: Whether `--set replicas` takes its place: see `_counted`.
    """
    if isinstance(number, Unknown):
        seen = f"does not show how many pods it makes: {number.because}"
        remedy = "state the number: --set replicas=1" if is_set else _LATER
        raise _refusal(path or "spec", seen, remedy, body)
    return number


def labels_of(found: Object) -> dict[str, Any]:
    """Return the labels of an object that the package does not set itself."""
    labels = mapping(found.metadata.get("labels"))
    return {key: value for key, value in labels.items() if key not in naming.KTHENA_LABELS}


def scheduler_of(facts: ServingFacts, sets: Sequence[PodSet]) -> str:
    """Return the scheduler that the pods name, or Volcano for a gang."""
    named = [name for each in sets if is_name(name := each.spec.get("schedulerName"))]
    if named:
        return str(named[0])
    return VOLCANO if facts.gang_expected is True else _DEFAULT_SCHEDULER


def _roles(
    found: Object, facts: ServingFacts, sets: Sequence[PodSet], copies: int
) -> Iterator[PodRole]:
    """Yield the roles in the order of the pods."""
    made: dict[int, PodRole] = {}
    free = [index for index, each in enumerate(sets) if each.count != 0]
    for engine in facts.engines:
        first, role = _engine(found, engine, sets, free, copies)
        made[first] = role
    for index in free:
        each = sets[index]
        number = _known_count(each.count, each.path, found.body, is_set=len(sets) == 1)
        if copies and number:
            made[index] = PodRole(
                name=_name(found, each, None),
                engine=None,
                sets=(each,),
                replicas=number // copies,
                pods=1,
            )
    yield from (made[index] for index in sorted(made))


def _engine(
    found: Object, engine: EngineFacts, sets: Sequence[PodSet], free: list[int], copies: int
) -> tuple[int, PodRole]:
    """Take the pods of an engine out of the pods that belong to no engine yet."""
    body = found.body
    pods = _known_count(engine.pods, engine.path, body)
    is_set = len(sets) == 1 and isinstance(sets[0].count, Unknown)
    replicas = _known_count(engine.replicas, engine.path, body, is_set=is_set)
    engines = replicas * copies
    if not engines:
        free = [*range(len(sets))]
    entry = _take(engine.entry.gpus_path, sets, free, body)
    taken = [sets[entry]]
    if engine.worker is not None and pods > 1:
        while sum(_count(each, body) for each in taken) < engines * pods or len(taken) == 1:
            taken.append(sets[_take(engine.worker.gpus_path, sets, free, body, taken[1:])])
    number = sum(_count(each, body) for each in taken)
    entries = _count(taken[0], body) == engines or len(taken) == 1
    if number != engines * pods or not entries:
        wanted = f"{count_of(engines, 'engine')} of {count_of(pods, 'pod')}"
        seen = f"makes {count_of(number, 'pod')}, which are not {wanted}"
        raise _refusal(taken[0].path, seen, "state as many pods as its command line does", body)
    kept = (taken[0], taken[1]) if len(taken) > 1 else (taken[0],)
    return entry, PodRole(
        name=_name(found, taken[0], engine), engine=engine, sets=kept, replicas=replicas, pods=pods
    )


def _count(each: PodSet, body: Body) -> int:
    return _known_count(each.count, each.path, body)


def _take(
    path: str, sets: Sequence[PodSet], free: list[int], body: Body, like: Sequence[PodSet] = ()
) -> int:
    """Return the index of the next free pods whose GPUs are at a path, or that equal `like[0]`."""
    for index in free:
        each = sets[index]
        same = each.spec == like[0].spec if like else _stands_at(each, path)
        if same:
            free.remove(index)
            return index
    seen = "shows pods of an engine that cannot be told from others"
    raise _refusal(path, seen, "write a ModelServing by hand", body)


def _stands_at(each: PodSet, path: str) -> bool:
    facts = read_pod({"spec": each.spec}, "", context=each.owner.context)
    return each.at(facts.gpus_path) == path


def _name(found: Object, each: PodSet, engine: EngineFacts | None) -> str:
    """Return a name for a role: the name of the engine, or of the part of the object above it."""
    own = name_of(found.body)
    if engine is not None and engine.name not in {own, "?"}:
        return naming.dns_name(engine.name) or SERVE
    if each.name:
        return naming.dns_name(each.name) or SERVE
    return _name_above(found.body, each.path)


def _name_above(body: Body, path: str) -> str:
    """Return the `name` of the map around a template, or else the key that leads to it."""
    steps = [int(index) if index else key for index, key in _STEP.findall(path)][:-1]
    holders: list[Any] = [body]
    for step in steps:
        last = holders[-1]
        if isinstance(step, str):
            holders.append(mapping(last).get(step))
        else:
            holders.append(next(iter(sequence(last)[step : step + 1]), None))
    for holder in reversed(holders[2:]):
        if is_name(name := mapping(holder).get("name")):
            return naming.dns_name(name) or SERVE
    key = str(steps[-1]) if steps else ""
    return SERVE if key in {"", "spec"} else naming.dns_name(key)


def _arguments(role: PodRole, scheduler: str, *, alone: bool) -> dict[str, Any]:
    """Describe a role by its pod templates; a role with one group has no replicas."""
    templates = [described_template(_template(each), scheduler) for each in role.sets]
    return stated(
        name=role.name,
        replicas=1 if alone else role.replicas,
        worker_replicas=role.pods - 1,
        entry_template=templates[0],
        worker_template=templates[-1] if role.pods > 1 else None,
    )


def _template(each: PodSet) -> dict[str, Any]:
    """Return the template of some pods, without restartPolicy Always: a serving implies it."""
    metadata = {"labels": dict(each.labels), "annotations": dict(each.annotations)}
    usual = {"restartPolicy": "Always"}
    spec = {k: v for k, v in each.spec.items() if k not in usual or v == usual[k]}
    return {"metadata": metadata, "spec": spec}


def known_paths(body: Body, described: Described) -> Iterator[str]:
    """Yield the paths of the fields that the description has with the same value."""
    yield from HEAD
    labels = described.args.get("labels", {})
    yield from (path_of(("metadata", "labels", str(key))) for key in labels)
    taken = [each for role in described.roles for each in role.sets]
    for each in taken:
        for steps, value in leaves(_template(each)):
            moved = steps[:2] == ("spec", "schedulerName")
            kept = value == described.args["scheduler_name"] if moved else True
            if kept and steps[-1] not in naming.KTHENA_LABELS:
                yield each.at(path_of(steps))
    yield from _selected(body, taken)


def _selected(body: Body, sets: Sequence[PodSet]) -> Iterator[str]:
    """Yield the paths of the selector with which an object finds its own pods."""
    for steps, value in leaves(body):
        inside = "selector" in steps and any(
            each.labels.get(str(steps[-1])) == value for each in sets
        )
        if inside and "template" not in steps[:-2]:
            yield path_of(steps)
