"""Reads the gangs that controllers make of jobs and of servings. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from kthena_components.core import naming
from kthena_components.core.objects.object import VOLCANO, copies_in, pod_set, requests_in
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.quantity import add_resources
from kthena_components.core.values.read import count, mapping, text, unknown_in, unknown_within
from kthena_components.core.values.unknown import MaybeInt, Unknown
from kthena_components.placement.model import PodGroup, PodSet, SubGroupPolicy
from kthena_components.placement.pod_groups import number_or, read_topology
from kthena_components.placement.pod_sets import Templates, pod_sets, priority_in
from kthena_components.systems.kthena.view import Role, Serving
from kthena_components.systems.lws.view import GROUP_INDEX, WORKER, Group, Sets
from kthena_components.systems.matrixinfer.view import MODEL_INFERS
from kthena_components.systems.volcano.view import Task, tasks_of

# The PodGroup that Volcano makes for a Job.
#
# Source: Volcano v1.14 pkg/controllers/job/job_controller_actions.go createOrUpdatePodGroup and
# pkg/webhooks/admission/jobs/mutate/mutate_job.go.


_PARTITION = "volcano.sh/partition-id"


def groups_of_job(templates: Templates, _view: object) -> Iterator[PodGroup]:
    """Return the PodGroup of a Volcano Job."""
    spec, pods, minima = templates.owner.spec, list[PodSet](), dict[str, int]()
    gap = templates.unnamed or unknown_in(spec.get("tasks")) or unknown_in(spec.get("minAvailable"))
    tasks = [(_name(task, i), task) for i, task in enumerate(tasks_of(templates.owner))]
    total = 0
    for name, task in tasks:
        copies = copies_in(task.fields.get("replicas"), 1)
        least = count(task.fields.get("minAvailable"))
        found = copies if isinstance(copies, Unknown) else _pods(templates, task, name, copies)
        for made in (found, least):
            gap = gap or (made if isinstance(made, Unknown) else None)
        if not isinstance(copies, Unknown) and not isinstance(least, Unknown):
            minima[name] = copies if least is None else least
            total += minima[name]
        pods += [] if isinstance(found, Unknown) else found
    minimum = number_or(spec.get("minAvailable")) or total
    partitioned = [_subgroup_of_task(name, task) for name, task in tasks if _partition(task)]
    scheduler = text(spec.get("schedulerName"), VOLCANO)
    yield PodGroup(
        namespace=templates.namespace,
        name=templates.name,
        owner=templates.title,
        pods=tuple(pods),
        minimum=minimum,
        task_minimum={name: least for name, least in minima.items() if least},
        topology=read_topology(spec.get("networkTopology")),
        subgroups=tuple(partitioned),
        queue=str(spec.get("queue") or "default"),
        priority=priority_in(spec, templates.priorities),
        scheduler=scheduler if isinstance(scheduler, str) and scheduler else VOLCANO,
        unknown=gap,
    )


def _name(task: Task, index: int) -> str:
    """Return the name of a task; the webhook numbers unnamed ones."""
    name = task.fields.get("name")
    return name if isinstance(name, str) and name else f"default{index}"


def _partition(task: Task) -> bool:
    return bool(mapping(task.fields.get("partitionPolicy")).get("partitionSize"))


def _pods(templates: Templates, task: Task, name: str, copies: int) -> list[PodSet] | Unknown:
    """Return the pods of a task, those of each partition as one set."""
    made = pod_set(templates.owner, f"{task.path}.template", task.template, copies)
    size = number_or(mapping(task.fields.get("partitionPolicy")).get("partitionSize"))
    if not size:
        labels = {naming.TASK_SPEC: name}
        return pod_sets(templates, made, copies, name=name, labels=labels, task=name)
    pods: list[PodSet] = []
    for partition, start in enumerate(range(0, copies, size)):
        labels = {naming.TASK_SPEC: name, _PARTITION: str(partition)}
        found = pod_sets(templates, made, min(size, copies - start), name=f"{name}-{partition}",
                         labels=labels, task=name)  # fmt: skip
        if isinstance(found, Unknown):
            return found
        pods += found
    return pods


def _subgroup_of_task(name: str, task: Task) -> SubGroupPolicy:
    """Describe the subgroups of a task, its partitions, which Volcano places together."""
    policy = mapping(task.fields.get("partitionPolicy"))
    return SubGroupPolicy(
        name=name,
        match_labels={"matchLabels": {naming.TASK_SPEC: name}},
        match_label_keys=(_PARTITION,),
        size=number_or(policy.get("partitionSize"), 1),
        minimum=number_or(policy.get("minPartitions")),
        topology=read_topology(policy.get("networkTopology")),
    )


# The PodGroups that Kthena, MatrixInfer and LeaderWorkerSet make for their objects.
#
# Sources: Kthena v1.0.0 pkg/model-serving-controller/podgroupmanager/manager.go; volcano-sh/kthena
# 98380a67 pkg/infer-controller/gangscheduling/manager.go; kubernetes-sigs/lws
# pkg/schedulerprovider/volcano_provider.go.


@dataclass(frozen=True, slots=True)
class _Engines:
    """The engines of a role in one group."""

    role: Role
    name: str
    number: int
    workers: int
    least: int
    """How many of them must start together."""

    @property
    def size(self) -> int:
        return 1 + self.workers


def groups_of_serving(templates: Templates, view: object) -> Iterator[PodGroup]:
    """Return one PodGroup for each ServingGroup of a ModelServing, or group of a ModelInfer."""
    assert isinstance(view, Serving)  # noqa: S101 - the index has this reader for these kinds
    groups = copies_in(view.spec.get("replicas"), 1)
    roles = [_engines(view, role) for role in view.roles]
    gap = templates.unnamed or unknown_within(view.template.get("networkTopology"))
    gap = gap or next((each for each in (groups, *roles) if isinstance(each, Unknown)), None)
    if gap is not None or isinstance(groups, Unknown):
        yield _unknown(templates, gap or Unknown(""))
        return
    known = [each for each in roles if isinstance(each, _Engines)]
    for number in range(groups):
        yield _serving_group(templates, view, known, naming.group_name(templates.name, number))


def _engines(view: Serving, role: Role) -> _Engines | Unknown:
    """Read a role's engines: how many there are, and how many the gang needs; unknown if any is."""
    number, workers = (
        copies_in(role.fields.get("replicas"), 1),
        copies_in(role.fields.get("workerReplicas"), 0),
    )
    if isinstance(number, Unknown):
        return number
    if isinstance(workers, Unknown):
        return workers
    minima = mapping(mapping(view.template.get("gangPolicy")).get("minRoleReplicas"))
    name = role.name
    if not isinstance(name, str):
        return name or Unknown("a role has no name")
    least = count(minima.get(name))
    if isinstance(least, Unknown):
        return least
    held = number if least is None else min(max(least, 0), number)
    return _Engines(role=role, name=name, number=number, workers=workers, least=held)


def _serving_group(
    templates: Templates, view: Serving, roles: Sequence[_Engines], name: str
) -> PodGroup:
    """Return one group of a ModelServing, as Kthena's controller creates it."""
    pods: list[PodSet] = []
    least: dict[str, Decimal] = {}
    gap: Unknown | None = None
    for engines in roles:
        for number in range(engines.number):
            for made in _engine(templates, view, engines, name, number):
                gap = gap or (made if isinstance(made, Unknown) else None)
                pods += [] if isinstance(made, Unknown) else made
        least = add_resources(least, _requests(engines), engines.least)
    scheduler = text(view.spec.get("schedulerName"), VOLCANO)
    gap = gap or (scheduler if isinstance(scheduler, Unknown) else None)
    is_gang = scheduler == VOLCANO and _has_gang(view)
    policies = mapping(view.template.get("networkTopology"))
    queue = mapping(templates.owner.metadata.get("annotations")).get(naming.QUEUE_NAME)
    subgroups = tuple(_subgroup(view, each, policies) for each in roles) if is_gang else ()
    return PodGroup(
        namespace=templates.namespace,
        name=name,
        owner=templates.title,
        pods=tuple(pods),
        minimum=sum(each.least * each.size for each in roles) if is_gang else 0,
        min_resources=least if is_gang else None,
        topology=read_topology(policies.get("groupPolicy")) if is_gang else None,
        subgroups=subgroups,
        queue=queue if isinstance(queue, str) and queue else "default",
        priority=0 if is_gang else max((each.priority for each in pods), default=0),
        scheduler=str(scheduler),
        unknown=gap,
    )


def _has_gang(view: Serving) -> bool:
    """Return whether the controller makes PodGroups: MatrixInfer's only if asked."""
    is_old = view.object.group_kind in MODEL_INFERS
    return not is_old or view.template.get("gangPolicy") is not None


def _engine(
    templates: Templates, view: Serving, engines: _Engines, group: str, number: int
) -> Iterator[list[PodSet] | Unknown]:
    """Return the entry pod of an engine, then its workers."""
    name = naming.role_id(engines.name, number)
    labels = {
        naming.NAME: templates.name,
        naming.GROUP_NAME: group,
        naming.ROLE: engines.name,
        naming.ROLE_ID: name,
    }
    parts = (("entryTemplate", 1, {**labels, naming.ENTRY: "true"}),
             ("workerTemplate", engines.workers, labels))  # fmt: skip
    for field, copies, own in parts:
        template = engines.role.fields.get(field)
        if copies and template is not None:
            made = pod_set(view.object, f"{engines.role.path}.{field}", template, copies)
            yield pod_sets(templates, made, copies, name=name, labels=own, task=name)


def _requests(engines: _Engines) -> dict[str, Decimal]:
    """Add up the requests of an engine as Kthena does, without init containers."""
    parts = (("entryTemplate", 1), ("workerTemplate", engines.workers))
    total: dict[str, Decimal] = {}
    for field, copies in parts:
        spec = mapping(mapping(engines.role.fields.get(field)).get("spec"))
        asked = requests_in({"containers": spec.get("containers")})
        total = add_resources(total, {} if isinstance(asked, Unknown) else asked, copies)
    return total


def _subgroup(view: Serving, engines: _Engines, policies: Mapping[str, object]) -> SubGroupPolicy:
    """Describe the engines of a role as subgroups, which Kthena's PodGroup declares."""
    return SubGroupPolicy(
        name=engines.name,
        match_labels={"matchLabels": {naming.NAME: view.name, naming.ROLE: engines.name}},
        match_label_keys=(naming.ROLE_ID,),
        size=engines.size,
        minimum=engines.least,
        topology=read_topology(policies.get("rolePolicy")),
    )


def _unknown(templates: Templates, gap: Unknown) -> PodGroup:
    """Write a group whose pods are not known, with the reason."""
    return PodGroup(
        namespace=templates.namespace,
        name=templates.name,
        owner=templates.title,
        pods=(),
        minimum=0,
        unknown=gap,
    )


# LeaderWorkerSets: a PodGroup for each group that Volcano schedules, and single pods otherwise.


def groups_of_sets(templates: Templates, view: object) -> Iterator[PodGroup]:
    """Return each group of a LeaderWorkerSet, or of the roles of a DisaggregatedSet."""
    assert isinstance(view, Sets)  # noqa: S101 - the index has this reader for these kinds
    slices = copies_in(view.object.spec.get("slices"), 1)
    for group in view.groups:
        sizes: tuple[MaybeInt | None, ...] = (slices, group.replicas, group.size)
        gap = templates.unnamed or next((n for n in sizes if isinstance(n, Unknown)), None)
        if gap is not None or None in sizes:
            yield _unknown(templates, gap or Unknown("its size or replicas are not a count"))
            continue
        times, replicas, size = (n if isinstance(n, int) else 0 for n in sizes)
        for number in range(times * replicas):
            yield _lws_group(templates, group, number, max(size, 1))


def _lws_group(templates: Templates, group: Group, number: int, size: int) -> PodGroup:
    """Return one group of a LeaderWorkerSet, as its controller creates it."""
    base = f"{templates.name}-{group.name}" if group.in_role else templates.name
    labels = {naming.LWS_NAME: base, GROUP_INDEX: str(number)}
    at = f"{group.path}.leaderWorkerTemplate"
    pods: list[PodSet] = []
    gap: Unknown | None = None
    for field, copies, name in ((group.leader, 1, "leader"), (WORKER, size - 1, "worker")):
        made = pod_set(templates.owner, f"{at}.{field}", group.template.get(field), copies)
        found = pod_sets(templates, made, copies, name=name, labels=labels)
        gap = gap or (found if isinstance(found, Unknown) else None)
        pods += [] if isinstance(found, Unknown) else found
    is_gang = VOLCANO in group.schedulers
    queue = mapping(templates.owner.metadata.get("annotations")).get(naming.QUEUE_NAME)
    total: dict[str, Decimal] = {}
    for each in pods:
        total = add_resources(total, each.requests, each.count)
    return PodGroup(
        namespace=templates.namespace,
        name=f"{base}-{number}",
        owner=templates.title,
        pods=tuple(pods),
        minimum=size if is_gang else 0,
        min_resources=total if is_gang else None,
        queue=queue if isinstance(queue, str) and queue else "default",
        scheduler=VOLCANO if is_gang else _scheduler(group),
        priority=0 if is_gang else max((each.priority for each in pods), default=0),
        unknown=gap,
    )


def _scheduler(group: Group) -> str:
    return str(next(filter(None, group.schedulers), "default-scheduler"))
