"""Reads LeaderWorkerSets and DisaggregatedSets: a leader and its workers, facts and pods.

Source: kubernetes-sigs/lws api/leaderworkerset/v1 and api/disaggregatedset/v1.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kthena_components.core import naming
from kthena_components.core.facts.context import Context
from kthena_components.core.facts.network import HostedPods, PodHosts
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.serving import EngineFacts, NameFacts, ServingFacts, StartOrder
from kthena_components.core.facts.workload import (
    ELSEWHERE,
    NO_SCHEDULER,
    admitted_together,
    fill_requests,
)
from kthena_components.core.objects.cluster_objects import Gang
from kthena_components.core.objects.object import (
    VOLCANO,
    GroupKind,
    Object,
    PodSet,
    as_copies,
    copies_in,
    pod_set,
)
from kthena_components.core.remedies import write
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    count,
    count_or_unknown,
    inside,
    is_name,
    mapping,
    name_of,
    text,
    unknown_in,
    unknown_inside,
)
from kthena_components.core.values.unknown import (
    MaybeBool,
    MaybeInt,
    Unknown,
    is_unresolved,
    product,
    total,
)
from kthena_components.systems.kubernetes.backends import leader_names

LEADER_WORKER_SET: GroupKind = ("leaderworkerset.x-k8s.io", "LeaderWorkerSet")
DISAGGREGATED_SET: GroupKind = ("disaggregatedset.x-k8s.io", "DisaggregatedSet")
GROUP_INDEX = f"{naming.LWS_LABELS}group-index"
"""Label that the controller gives to pods."""
LEADER, WORKER = "leaderTemplate", "workerTemplate"
SUBGROUPS = "subGroupPolicy"
ROLLING = "rolloutStrategy.rollingUpdateConfiguration"
"""Path of the update strategy in a group's spec."""


_REVISION = 8
"""Characters of the revision in the names that a DisaggregatedSet generates."""


def in_slice(name: str, role: str) -> str:
    """Name the LeaderWorkerSet of a role in the first slice of a DisaggregatedSet, since LWS 0.10.

    Source: kubernetes-sigs/lws pkg/utils/disaggregatedset/utils.go GenerateName.
    """
    return f"{name}-0-{'0' * _REVISION}-{role}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The fields that define one LeaderWorkerSet."""

    path: str
    """Path of its spec."""
    engine_path: str
    """The same; the path of its role if the whole role is not known yet."""
    name: str
    """The object's name, or the role's; `?` for an unknown name."""
    stated: object
    """Its spec as written, which may be a string that is not known yet."""
    spec: Mapping[str, Any]
    template: Mapping[str, Any]
    """Its leaderWorkerTemplate."""
    annotations: Mapping[str, Any]
    annotations_path: str
    replicas: MaybeInt | None
    """1 if left out, None if invalid."""
    size: MaybeInt | None
    """Pods of one group, including the leader; 1 if left out, None if invalid."""
    role: Mapping[str, Any]
    """Its role in a DisaggregatedSet; empty without one."""
    role_path: str

    @property
    def in_role(self) -> bool:
        """Whether a DisaggregatedSet creates it."""
        return self.role_path != ""

    @property
    def leader(self) -> str:
        """Field of the leader's template: the workers' where it has none, or an empty one."""
        return LEADER if self.template.get(LEADER) else WORKER

    @property
    def schedulers(self) -> list[object]:
        """The schedulers of leader and workers, as their own templates state."""
        templates = (mapping(self.template.get(field)) for field in (LEADER, WORKER))
        return [mapping(template.get("spec")).get("schedulerName") for template in templates]

    @property
    def rolling(self) -> object:
        """The value at ROLLING."""
        return mapping(self.spec.get("rolloutStrategy")).get("rollingUpdateConfiguration")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sets:
    """A LeaderWorkerSet, or those that a DisaggregatedSet creates."""

    object: Object
    groups: tuple[Group, ...]

    @property
    def disaggregated(self) -> bool:
        """Whether its groups belong to roles."""
        return self.object.group == DISAGGREGATED_SET[0]


def read_sets(found: Object) -> Sets:
    """Read the groups; never raises."""
    if found.group == DISAGGREGATED_SET[0]:
        return Sets(object=found, groups=tuple(_roles(found.spec)))
    only = _group("spec", found.body.get("spec"), name=name_of(found.body), metadata=found.metadata)
    return Sets(object=found, groups=(only,))


def _roles(spec: Mapping[str, Any]) -> Iterator[Group]:
    """Read the roles of a DisaggregatedSet. Older versions have the spec in the role itself."""
    roles = spec.get("roles")
    for index, item in enumerate(roles if isinstance(roles, list | tuple) else ()):
        role, at = mapping(item), f"spec.roles[{index}]"
        name, nested = role.get("name"), "leaderWorkerTemplate" not in role
        late = is_unresolved(item)
        yield _group(
            f"{at}.spec" if nested else at,
            role.get("spec") if nested and not late else item,
            engine_path=at if late else "",
            name=name if isinstance(name, str) and not is_unresolved(name) else "?",
            metadata=mapping(role.get("metadata")),
            role=role,
            role_path=at,
        )


def _group(
    path: str,
    stated: object,
    *,
    name: str,
    metadata: Mapping[str, Any],
    engine_path: str = "",
    role: Mapping[str, Any] | None = None,
    role_path: str = "",
) -> Group:
    """Return the groups that one leaderWorkerTemplate describes."""
    spec = mapping(stated)
    template = mapping(spec.get("leaderWorkerTemplate"))
    return Group(
        path=path,
        engine_path=engine_path or path,
        name=name,
        stated=stated,
        spec=spec,
        template=template,
        annotations=mapping(metadata.get("annotations")),
        annotations_path=f"{role_path}.metadata.annotations".lstrip("."),
        replicas=count(spec.get("replicas"), 1),
        size=count(template.get("size"), 1),
        role={} if role is None else role,
        role_path=role_path,
    )


_READY = "LeaderReady"
_OWN_SUBDOMAIN = "UniquePerReplica"
_SHAPELESS = Unknown("the size of the group is below 1")


def facts(view: Sets) -> ServingFacts:
    """Return the facts of all groups."""
    found = view.object
    gang = naming.QUEUE_NAME in mapping(found.metadata.get("annotations"))
    placed = [_placed_by_volcano(group) for group in view.groups]
    expected: MaybeBool = gang or True in placed or admitted_together(found.metadata)
    expected = expected or next((one for one in placed if isinstance(one, Unknown)), False)
    return ServingFacts(
        path=found.at("spec"),
        name=name_of(found.body),
        engines=tuple(_engine(group, found, gang=gang) for group in view.groups),
        gang_expected=expected,
        names=tuple(name for group in view.groups for name in _names(group, found)),
        hosts=_hosts(view),
    )


def _hosts(view: Sets) -> PodHosts | None:
    """Return the names of the pods of the first group; None if not known.

    Source: kubernetes-sigs/lws v0.9.0 pkg/webhooks/pod_webhook.go Default (the subdomain of each
    group), pkg/controllers/pod_controller.go constructWorkerStatefulSetApplyConfiguration and
    pkg/utils/controller/controller_utils.go CreateHeadlessServiceIfNotExists (not-ready pods, too).
    """
    found, network = view.object, view.object.spec.get("networkConfig")
    policy = mapping(network).get("subdomainPolicy") or "Shared"
    if found.group_kind != LEADER_WORKER_SET or not is_name(found.name):
        return None
    if unknown_inside(network) or policy not in ("Shared", _OWN_SUBDOMAIN):
        return None
    (group,) = view.groups
    leader = HostedPods(
        path=found.at(group.engine_path),
        prefix=f"{found.name}-",
        count=as_copies(group.replicas),
        written="$(LWS_LEADER_ADDRESS)",
    )
    workers = HostedPods(
        path=found.at(f"{group.path}.leaderWorkerTemplate.{WORKER}"),
        prefix=f"{leader.first}-",
        count=total([as_copies(group.size), -1]),
        start=1,
    )
    domain = leader.first if policy == _OWN_SUBDOMAIN else found.name
    return PodHosts(domain=domain, pods=(leader, workers), namespace=found.stated_namespace)


def _names(group: Group, found: Object) -> Iterator[NameFacts]:
    """Return the longest names of a set of groups.

    LWS 0.10 puts a slice and a revision into the names of a DisaggregatedSet.
    """
    name, size = found.metadata.get("name"), group.size
    if not isinstance(name, str) or group.name == "?" or not isinstance(size, int):
        return
    at, made = found.at("metadata.name"), name
    if group.in_role:
        at, made = found.at(f"{group.role_path}.name"), in_slice(name, group.name)
    groups = as_copies(group.replicas)
    yield from leader_names(at, made, groups, max(size - 1, 0), made=group.in_role)


def _engine(group: Group, found: Object, *, gang: bool) -> EngineFacts:
    """Return the engine of a group; `gang`: the object asks for one."""
    template = inside(group.stated, "leaderWorkerTemplate")
    path = found.at(group.engine_path)
    pods: MaybeInt = count_or_unknown(inside(template, "size"), "size", 1)
    pods = _SHAPELESS if pods == 0 else pods
    env = {naming.LWS_GROUP_SIZE: str(pods)} if isinstance(pods, int) else {}
    asked = gang or _placed_by_volcano(group) is not False

    def pod(field: str) -> PodFacts:
        at = f"{path}.leaderWorkerTemplate.{field}"
        return _pod(inside(template, field), at, env, found.context, gang=asked)

    entry, worker = pod(group.leader), None if pods == 1 else pod(WORKER)
    read = (entry,) if worker is None else (entry, worker)
    return EngineFacts(
        path=path,
        name=group.name,
        pods=ELSEWHERE if _continues(read, pods) else pods,
        replicas=count_or_unknown(inside(group.stated, "replicas"), "replicas", 1),
        entry=entry,
        worker=worker,
        order=_order(group, found),
    )


def _continues(read: Sequence[PodFacts], pods: MaybeInt) -> bool:
    """Return whether a group has further ranks of an engine that another object starts."""
    found = [_is_behind(pod, pods) for pod in read]
    return True in found and False not in found


def _is_behind(pod: PodFacts, pods: MaybeInt) -> bool | None:
    """Return whether a rank is above 0 in an engine of more pods; None if it is not known."""
    command = pod.command
    if command is None or command.hidden is not None:
        return None
    nodes, rank = command.nnodes, command.node_rank
    if isinstance(nodes, Unknown) or isinstance(rank, Unknown):
        return None
    return nodes is not None and isinstance(pods, int) and nodes > pods and bool(rank)


def _order(group: Group, found: Object) -> StartOrder | None:
    """Return why the workers wait for their leader, if they do.

    Source: kubernetes-sigs/lws pkg/controllers/pod_controller.go Reconcile.
    """
    at = found.at(f"{group.path}.startupPolicy")
    return start_order(group.spec.get("startupPolicy"), at)


def start_order(policy: object, path: str) -> StartOrder | None:
    """Return why the workers wait for their leader, if a startup policy says so."""
    if policy != _READY:
        return None
    why = f"is {_READY}, with which LWS creates the workers only after their leader is ready"
    return StartOrder(path=path, why=why, remedy=write("LeaderCreated"))


def _pod(
    template: object, path: str, env: Mapping[str, str], context: Context, *, gang: bool
) -> PodFacts:
    """Read a pod template. Gangs are sized by requests; otherwise the API server fills them in."""
    pod = read_pod(template, path, env, context=context)
    return pod if gang else fill_requests(pod)


def _placed_by_volcano(group: Group) -> MaybeBool:
    """Return whether Volcano schedules the pods."""
    if "volcano" in group.schedulers:
        return True
    return NO_SCHEDULER if any(map(unknown_in, group.schedulers)) else False


_LABELS = ("group-index", "group-key", "template-revision-hash")
_OF_SUBGROUP = ("subgroup-index", "subgroup-key")
_ANY, _WORKER_INDEX = re.compile(".*"), re.compile("[1-9][0-9]*")


def pods_of_groups(view: Sets) -> Iterator[PodSet]:
    """Return the leaders and the workers of each set of groups."""
    slices = copies_in(view.object.spec.get("slices"), 1)
    for group in view.groups:
        size = as_copies(group.size)
        rest = size if isinstance(size, Unknown) else max(size - 1, 0)
        groups = product(as_copies(group.replicas), slices)
        for is_leader in (True, False):
            field = group.leader if is_leader else WORKER
            number = groups if is_leader else product(groups, rest)
            at = f"{group.path}.leaderWorkerTemplate.{field}"
            if number != 0:
                made = group.template.get(field)
                pods = pod_set(view.object, at, made, number, by_controller=True, spread=rest != 0)
                added = _added(view.object, group, is_leader=is_leader)
                yield replace(pods, added=added, by_controller=added is None or not pods.gang)


def _added(owner: Object, group: Group, *, is_leader: bool) -> Mapping[str, object] | None:
    """Return the labels that the controller adds to pods of a LeaderWorkerSet.

    Source: kubernetes-sigs/lws v0.7.0 pkg/webhooks/pod_webhook.go and
    pkg/controllers/leaderworkerset_controller.go. A DisaggregatedSet's are not known.
    """
    if owner.group_kind != LEADER_WORKER_SET:
        return None
    names = (*_LABELS, *(_OF_SUBGROUP if group.template.get(SUBGROUPS) else ()))
    added: dict[str, object] = {f"{naming.LWS_LABELS}{name}": _ANY for name in names}
    index = "0" if is_leader else _WORKER_INDEX
    return {**added, naming.LWS_NAME: owner.name, naming.LWS_WORKER_INDEX_LABEL: index}


def gangs_of_groups(view: Sets) -> Iterator[Gang]:
    """Return the pods of one group of each set that Volcano schedules: its engine.

    Source: kubernetes-sigs/lws pkg/schedulerprovider/volcano_provider.go.
    """
    for group in view.groups:
        size, leader = as_copies(group.size), group.template.get(group.leader)
        if VOLCANO not in group.schedulers:
            continue
        rest = size if isinstance(size, Unknown) else max(size - 1, 0)
        at = f"{group.path}.leaderWorkerTemplate"
        found: tuple[tuple[PodSet, MaybeInt], ...] = (
            (pod_set(view.object, f"{at}.{group.leader}", leader, 1), 1),
            (pod_set(view.object, f"{at}.{WORKER}", group.template.get(WORKER), rest), rest),
        )
        notes = mapping(view.object.metadata.get("annotations"))
        yield Gang(
            owner=view.object,
            title=f"each group of {display(group.name)}",
            pods=found,
            queue=text(notes.get(naming.QUEUE_NAME), ""),
            queue_path=f"metadata.annotations.{naming.QUEUE_NAME}",
        )
