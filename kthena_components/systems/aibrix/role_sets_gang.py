"""Reads the roles of a StormService or a RoleSet, and the gangs that AIBrix makes of their pods.

Source: vllm-project/aibrix v0.5.0 to v0.7.0 api/orchestration/v1alpha1/roleset_types.go;
pkg/controller/roleset/sync.go syncPodGroup, podset_rollsyncer.go createPodSetForRole and
utils.go renderStormServicePod; pkg/controller/podset/podset_controller.go reconcilePodGroup.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core import naming
from kthena_components.core.findings import (
    Finding,
    advise,
    count_of,
    join_path,
    part_of_rule,
    refuse,
)
from kthena_components.core.objects.cluster_objects import Gang
from kthena_components.core.objects.object import VOLCANO, Object, PodSet, copies_in, pod_set
from kthena_components.core.remedies import at_most, remove, write
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display, key_text
from kthena_components.core.values.read import (
    count,
    inside,
    is_name,
    mapping,
    require_known,
    sequence,
    text,
    unknown_in,
)
from kthena_components.core.values.unknown import MaybeInt, Unknown, known, product, total

GROUP = "orchestration.aibrix.ai"
GROUP_SIZE = "POD_GROUP_SIZE"
"""Added to every container of a group of pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """One role: equal pods, or equal groups of pods."""

    path: str
    """Path in the object."""
    name: str
    template: object
    instances: MaybeInt
    """Its pods, or groups of pods, in one RoleSet."""
    size: MaybeInt
    """Pods of an instance."""
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleSets:
    """A StormService, or a RoleSet."""

    object: Object
    path: str
    """Path of the spec of the RoleSet."""
    spec: Mapping[str, Any]
    copies: MaybeInt
    roles: tuple[Role, ...]
    gap: Unknown | None
    """Why the roles are not known. None: they are."""


def read_role_sets(found: Object) -> RoleSets:
    """Read the roles, whatever the object contains."""
    several = found.kind == "StormService"
    spec = found.body.get("spec")
    held = inside(inside(spec, "template"), "spec") if several else spec
    path, listed = "spec.template.spec" if several else "spec", inside(held, "roles")
    roles = enumerate(sequence(listed))
    return RoleSets(
        object=found,
        path=path,
        spec=mapping(held),
        copies=copies_in(inside(spec, "replicas"), 1) if several else 1,
        roles=tuple(_role(item, join_path(path, f"roles[{index}]")) for index, item in roles),
        gap=unknown_in(listed),
    )


def _role(item: object, path: str) -> Role:
    """Read a role of a RoleSet; an instance of it has podGroupSize pods."""
    fields = mapping(item)
    name, size = fields.get("name"), copies_in(fields.get("podGroupSize"), 1)
    return Role(
        path=path,
        name=name if is_name(name) else "?",
        template=inside(item, "template"),
        instances=copies_in(fields.get("replicas"), 1),
        size=size if isinstance(size, Unknown) else max(size, 1),
        fields=fields,
    )


def pods_in(role: Role) -> MaybeInt:
    """Count the pods of a role in one RoleSet."""
    return product(role.instances, role.size)


def pods_of_roles(view: RoleSets) -> Iterator[PodSet]:
    """Yield the pods of each role in all RoleSets."""
    for role in view.roles:
        yield _pods(view, role, product(view.copies, pods_in(role)))


def _pods(view: RoleSets, role: Role, number: MaybeInt) -> PodSet:
    path = f"{role.path}.template"
    grouped = role.size != 1
    return pod_set(
        view.object,
        path,
        role.template,
        number,
        by_controller=True,
        spread=grouped,
        numbered=role.size if grouped else None,
    )


STRATEGY = "schedulingStrategy"
_VOLCANO = "volcanoSchedulingStrategy"
_SCHEDULERS = {
    _VOLCANO: VOLCANO,
    "coschedulingSchedulingStrategy": "",
    "godelSchedulingStrategy": "godel-scheduler",
}
"""The strategies, each with the schedulerName of the pods; empty if the default one may have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Strategy:
    """A PodGroup that AIBrix makes for a RoleSet, or for each group of pods of a role."""

    path: str
    """Path of its fields, in the object."""
    kind: str
    """One of _SCHEDULERS."""
    fields: Mapping[str, Any]
    title: str
    roles: tuple[Role, ...]
    """The roles whose pods are in it."""
    numbers: tuple[MaybeInt, ...]
    """The pods of each of them."""
    of_role: bool

    @property
    def by_name(self) -> bool:
        """Whether all pods name the scheduler that reads this PodGroup."""
        wanted = _SCHEDULERS[self.kind]
        return bool(wanted) and all(_scheduler(role) == wanted for role in self.roles)


def _scheduler(role: Role) -> Any:
    return mapping(mapping(role.template).get("spec")).get("schedulerName")


def _strategies(view: RoleSets) -> Iterator[_Strategy]:
    """Yield the PodGroups of a RoleSet. A role's own one takes its pods out of the other."""
    own = [role for role in view.roles if role.size != 1 and mapping(role.fields.get(STRATEGY))]
    rest = [role for role in view.roles if role not in own]
    for kind, fields in mapping(view.spec.get(STRATEGY)).items():
        if kind in _SCHEDULERS and isinstance(fields, Mapping) and view.gap is None:
            yield _Strategy(
                path=f"{view.path}.{STRATEGY}.{kind}",
                kind=kind,
                fields=fields,
                title="each RoleSet",
                roles=tuple(rest),
                numbers=tuple(map(_left, rest)),
                of_role=False,
            )
    for role in own:
        for kind, fields in mapping(role.fields.get(STRATEGY)).items():
            if kind in _SCHEDULERS and isinstance(fields, Mapping):
                yield _Strategy(
                    path=f"{role.path}.{STRATEGY}.{kind}",
                    kind=kind,
                    fields=fields,
                    title=f"each group of role {display(role.name)}",
                    roles=(role,),
                    numbers=(role.size,),
                    of_role=True,
                )


def _left(role: Role) -> MaybeInt:
    """Count the pods of a role that its own strategy, which may not be known, leaves."""
    gap = unknown_in(role.fields.get(STRATEGY))
    return pods_in(role) if role.size == 1 or gap is None else gap


def gangs_of_role_sets(view: RoleSets) -> Iterator[Gang]:
    """Return the pods of each PodGroup of Volcano that must start together."""
    for one in _strategies(view):
        if one.kind != _VOLCANO:
            continue
        numbers, least = one.numbers, copies_in(one.fields.get("minMember"), 0)
        if least != total(numbers):
            numbers = (least,) if len(numbers) == 1 else (0,) * len(numbers)
        made = zip(one.roles, numbers, strict=True)
        yield Gang(
            owner=view.object,
            title=one.title,
            pods=tuple((_pods(view, role, number), number) for role, number in made),
            queue=text(one.fields.get("queue"), ""),
            queue_path=f"{one.path}.queue",
            sure=one.by_name,
            resources=one.fields.get("minResources"),
        )


def aibrix_gang(view: RoleSets) -> Iterator[Finding]:
    """The PodGroup of a schedulingStrategy waits for pods that exist, and its scheduler has them.

    The strategy of a RoleSet makes one PodGroup of all its pods, and the strategy of a role one of
    each podGroupSize pods; with podGroupSize 1 it has no effect. AIBrix leaves schedulerName as the
    template states it: Volcano takes pods that name `volcano`, Godel those of `godel-scheduler`. A
    minMember above the pods, or a task of minTaskMember that fewer pods have, holds all of them
    back. A minMember below podGroupSize starts parts of an engine.

    Pass: minMember 4 in a RoleSet with 2 replicas of podGroupSize 2, schedulerName volcano.
    Fail: minMember 5 there; minMember 1; volcanoSchedulingStrategy without a schedulerName; a
    schedulingStrategy in a role with podGroupSize 1.
    Level: mandatory for pods that never start, if they name the scheduler; else advisory.
    Source: vllm-project/aibrix v0.7.0 pkg/controller/roleset/sync.go, utils.go and
    podset_rollsyncer.go; Volcano v1.14 pkg/scheduler/api/job_info.go CheckTaskValid;
    kubernetes-sigs/scheduler-plugins pkg/coscheduling/core/core.go PreFilter.
    """
    for role in view.roles:
        yield from _without_effect(role)
    for one in _strategies(view):
        yield from _minimum(one)
        yield from _tasks(one)
        for role in one.roles:
            yield from _scheduled(one, role)


@part_of_rule
def _without_effect(role: Role) -> Iterator[Finding]:
    """Report a strategy of a role of single pods, which AIBrix does not read."""
    stated, path = role.fields.get(STRATEGY), f"{role.path}.{STRATEGY}"
    require_known(path, stated, role.size if stated is not None else None)
    if role.size == 1 and mapping(stated):
        seen = "has no effect in a role whose podGroupSize is 1: AIBrix makes a PodGroup for each "
        yield advise(path, f"{seen}group of several pods only", remove())


@part_of_rule
def _minimum(one: _Strategy) -> Iterator[Finding]:
    """Compare minMember with the pods of a PodGroup, and with those of an engine."""
    path, stated = f"{one.path}.minMember", one.fields.get("minMember")
    least, pods = count(stated, 0), total(one.numbers)
    if least is None or not one.roles:
        return
    wanted, number = known(least, path), known(pods, path)
    sizes = [role.size for role in one.roles if isinstance(role.size, int) and role.size > 1]
    if wanted > number:
        seen = f"is {wanted}, but {one.title} has {count_of(number, 'pod')}, so none of them "
        report = refuse if one.by_name else advise
        yield report(path, f"{seen}ever starts", at_most(number))
    elif sizes and wanted < min(sizes):
        shown = f"is {wanted}" if stated is not None else "is not stated, which counts as 0"
        seen = f"{shown}, and the pods form groups of {min(sizes)}: the scheduler may start a part "
        yield advise(path, f"{seen}of an engine, which blocks its GPUs", write(number))


@part_of_rule
def _tasks(one: _Strategy) -> Iterator[Finding]:
    """Compare minTaskMember of Volcano with the pods that have each task."""
    tasks = mapping(one.fields.get("minTaskMember"))
    minima = {task: count(stated, 0) for task, stated in tasks.items()}
    sizes = [least for least in minima.values() if isinstance(least, int)]
    least = count(one.fields.get("minMember"), 0)
    if not isinstance(least, int) or least < sum(sizes):
        return
    pairs = list(zip(one.roles, one.numbers, strict=True))
    for task, stated in minima.items():
        path = f"{one.path}.minTaskMember.{key_text(task)}"
        having = [n for role, n in pairs if _task(role) == task]
        require_known(path, stated, *(_task(role) for role, _ in pairs))
        number = known(total(having), path)
        if isinstance(stated, int) and stated > number:
            seen = f"requires {count_of(stated, 'pod')} of task {display(task)}, and "
            seen += f"{number} of {one.title} have the annotation volcano.sh/task-spec with it"
            report = refuse if one.by_name else advise
            yield report(path, f"{seen}, so none of them ever starts", remove())


def _task(role: Role) -> Any:
    """Return the task of a role's pods: AIBrix adds none, and a label replaces the annotation."""
    metadata = mapping(mapping(role.template).get("metadata"))
    places = (metadata.get("annotations"), metadata.get("labels"))
    found = (mapping(place).get(naming.TASK_SPEC) for place in places)
    return next((task for task in found if task not in (None, "")), None)


@part_of_rule
def _scheduled(one: _Strategy, role: Role) -> Iterator[Finding]:
    """Report pods that do not name the scheduler of their PodGroup."""
    path, wanted = f"{role.path}.template.spec.schedulerName", _SCHEDULERS[one.kind]
    name = _scheduler(role)
    require_known(path, role.template, inside(role.template, "spec"), name)
    if wanted and name in (None, "", "default-scheduler"):
        seen = f"is {display(name)}" if name else "is missing"
        reads = "Volcano" if wanted == VOLCANO else "Godel"
        seen += f", but the PodGroup of {one.kind} is one that only {reads} reads"
        yield advise(path, f"{seen}: the pods start one by one", write(wanted))
