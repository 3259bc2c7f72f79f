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
from kthena_components.core.remedies import remove, write
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

    @property
    def scheduler(self) -> Any:
        """The schedulerName of its pods, as it is stated."""
        return mapping(mapping(self.template).get("spec")).get("schedulerName")


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

    @property
    def copied(self) -> bool:
        """Whether a StormService makes the RoleSets, with numbers and a Service."""
        return self.object.kind == "StormService"


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

    @property
    def by_name(self) -> bool:
        """Whether all pods name the scheduler that reads this PodGroup."""
        wanted = _SCHEDULERS[self.kind]
        return bool(wanted) and all(role.scheduler == wanted for role in self.roles)


def _strategies(view: RoleSets) -> Iterator[_Strategy]:
    """Yield the PodGroups of a RoleSet. Pods with a PodGroup of their role are in no other."""
    own = [role for role in view.roles if role.size != 1 and mapping(role.fields.get(STRATEGY))]
    rest = [role for role in view.roles if role not in own]
    if view.gap is None:
        numbers = tuple(map(_left, rest))
        yield from _stated_strategies(view.path, view.spec, "each RoleSet", tuple(rest), numbers)
    for role in own:
        title = f"each group of role {display(role.name)}"
        yield from _stated_strategies(role.path, role.fields, title, (role,), (role.size,))


def _stated_strategies(
    path: str,
    holder: Mapping[str, Any],
    title: str,
    roles: tuple[Role, ...],
    numbers: tuple[MaybeInt, ...],
) -> Iterator[_Strategy]:
    """Yield the PodGroups of the strategies that a RoleSet or a role states."""
    for kind, fields in mapping(holder.get(STRATEGY)).items():
        if kind in _SCHEDULERS and isinstance(fields, Mapping):
            yield _Strategy(
                path=f"{path}.{STRATEGY}.{kind}",
                kind=kind,
                fields=fields,
                title=title,
                roles=roles,
                numbers=numbers,
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
    """The PodGroup of a schedulingStrategy waits for pods that exist and name its scheduler.

    The strategy of a RoleSet makes one PodGroup of all its pods. The strategy of a role makes one
    PodGroup of each podGroupSize pods, and has no effect with podGroupSize 1. AIBrix leaves
    schedulerName as the template states it: Volcano schedules pods that name `volcano`, Godel pods
    that name `godel-scheduler`. None of the pods starts if minMember is above their number, or if
    fewer pods have a task than its minTaskMember. A minMember below the number of pods lets parts
    of engines of several pods start: 2 of 2 engines of 2 pods may be a pod of each.

    Pass: minMember 4 in a RoleSet with 2 replicas of podGroupSize 2, schedulerName volcano.
    Fail: minMember 5 there; minMember 2; volcanoSchedulingStrategy without a schedulerName; a
    schedulingStrategy in a role with podGroupSize 1.
    Level: mandatory for pods that never start, if they name the scheduler; else advisory.
    Source: vllm-project/aibrix v0.7.0 pkg/controller/roleset/sync.go, utils.go and
    podset_rollsyncer.go; Volcano v1.14 pkg/scheduler/api/job_info.go CheckTaskValid;
    kubernetes-sigs/scheduler-plugins pkg/coscheduling/core/core.go PreFilter. Run on AIBrix 0.7.0
    with Volcano 1.14.1.
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
        seen = "has no effect in a role whose podGroupSize is 1, because AIBrix makes a PodGroup "
        yield advise(path, f"{seen}only for groups of several pods", remove())


@part_of_rule
def _minimum(one: _Strategy) -> Iterator[Finding]:
    """Compare minMember with the pods of a PodGroup, and with those of an engine."""
    path, stated = f"{one.path}.minMember", one.fields.get("minMember")
    least, pods = count(stated, 0), total(one.numbers)
    if least is None or not one.roles:
        return
    wanted, number = known(least, path), known(pods, path)
    if number == 0:  # It is scaled to zero: nothing waits.
        return
    has = f"has {count_of(number, 'pod')}"
    wide = any(isinstance(role.size, int) and role.size > 1 for role in one.roles)
    if wanted > number:
        seen = f"is {wanted}, but {one.title} {has}, so no pod ever starts"
        yield (refuse if one.by_name else advise)(path, seen, write(number))
    elif wide and wanted < number:
        shown = f"is {wanted}" if stated is not None else "is not stated, which counts as 0"
        seen = f"{shown}, but {one.title} {has}: the scheduler may start only some pods of an "
        yield advise(path, f"{seen}engine, which hold their GPUs and wait", write(number))


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
            verb = "has" if number == 1 else "have"
            seen = (
                f"is {stated}, but {count_of(number, 'pod')} of {one.title} {verb} the annotation "
            )
            seen += f"{naming.TASK_SPEC}: {task}"
            report = refuse if one.by_name else advise
            yield report(path, f"{seen}, so no pod ever starts", remove())


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
    name = role.scheduler
    require_known(path, role.template, inside(role.template, "spec"), name)
    if wanted and name in (None, "", "default-scheduler"):
        seen = f"is {display(name)}" if name else "is missing"
        reads = "Volcano" if wanted == VOLCANO else "Godel"
        seen += f", but only {reads} reads the PodGroup of {one.kind}, so another scheduler starts "
        yield advise(path, f"{seen}the pods one by one", write(wanted))


_OWN = "stormservice.orchestration.aibrix.ai/"
_OF_GANGS = (
    *("scheduling.x-k8s.io/pod-group", "godel.bytedance.com/pod-group-name"),
    "scheduling.k8s.io/group-name",
)
"""Labels and annotations with the name of a PodGroup, by the strategy."""
OF_SERVICE = "storm-service-name"
"""The label of a RoleSet with the name of the Service of its pods."""


def is_grouped(view: RoleSets) -> bool:
    """Return whether pods may be in groups of several."""
    return view.gap is not None or any(role.size != 1 for role in view.roles)


def is_numbered(view: RoleSets) -> bool:
    """Return whether instances may have numbers: those of a stateful role, and groups of pods."""
    stateful = (role.fields.get("stateful") not in (None, False) for role in view.roles)
    return is_grouped(view) or any(stateful)


def added_fields(view: RoleSets) -> Iterator[str]:
    """Yield the labels and annotations that AIBrix gives to the pods.

    Source: vllm-project/aibrix v0.7.0 pkg/controller/roleset/utils.go renderStormServicePod and
    podset_rollsyncer.go createPodSetForRole; podset/podset_controller.go createPodFromTemplate.
    Run on AIBrix 0.7.0.
    """
    labels = ["roleset-name", "role-name", "role-template-hash", OF_SERVICE]
    annotations = [f"{_OWN}roleset-index"] if view.copied else []
    if view.copied:
        labels += [f"{_OWN}role-revision", f"{_OWN}role-revision-name"]
    if is_numbered(view):
        labels.append(f"{_OWN}role-replica-index")
        annotations.append(f"{_OWN}role-replica-index")
    if is_grouped(view):
        labels += [f"{_OWN}podset-name", f"{_OWN}pod-group-index"]
    labels += _OF_GANGS
    annotations += _OF_GANGS
    yield from map(naming.label_field, labels)
    yield from map(naming.annotation_field, annotations)
