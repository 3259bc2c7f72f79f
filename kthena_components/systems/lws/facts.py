"""Facts of LeaderWorkerSets and DisaggregatedSets: each set of groups is an engine."""

from collections.abc import Iterator, Mapping

from kthena_components.core import naming
from kthena_components.core.facts.context import Context
from kthena_components.core.facts.pod import PodFacts, read_pod
from kthena_components.core.facts.serving import EngineFacts, NameFacts, ServingFacts, StartOrder
from kthena_components.core.facts.workload import NO_SCHEDULER, admitted_together, fill_requests
from kthena_components.core.objects.object import Object, as_copies
from kthena_components.core.remedies import write
from kthena_components.core.values.read import (
    count_or_unknown,
    inside,
    mapping,
    name_of,
    unknown_in,
)
from kthena_components.core.values.unknown import MaybeBool, MaybeInt, Unknown
from kthena_components.systems.kubernetes.leader_names import leader_names
from kthena_components.systems.lws.view import WORKER, Group, Sets, in_slice

_QUEUE = "scheduling.volcano.sh/queue-name"
_READY = "LeaderReady"
_SHAPELESS = Unknown("the size of the group is below 1")


def facts(view: Sets) -> ServingFacts:
    """Return the facts of all groups."""
    found = view.object
    gang = _QUEUE in mapping(found.metadata.get("annotations"))
    placed = [_placed_by_volcano(group) for group in view.groups]
    expected: MaybeBool = gang or True in placed or admitted_together(found.metadata)
    expected = expected or next((one for one in placed if isinstance(one, Unknown)), False)
    return ServingFacts(
        path=found.at("spec"),
        name=name_of(found.body),
        engines=tuple(_engine(group, found, gang=gang) for group in view.groups),
        gang_expected=expected,
        names=tuple(name for group in view.groups for name in _names(group, found)),
    )


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
    template = inside(group.stated, "leaderWorkerTemplate")
    path = found.at(group.engine_path)
    pods: MaybeInt = count_or_unknown(inside(template, "size"), "size", 1)
    pods = _SHAPELESS if pods == 0 else pods
    env = {naming.LWS_GROUP_SIZE: str(pods)} if isinstance(pods, int) else {}
    asked = gang or _placed_by_volcano(group) is not False

    def pod(field: str) -> PodFacts:
        at = f"{path}.leaderWorkerTemplate.{field}"
        return _pod(inside(template, field), at, env, found.context, gang=asked)

    return EngineFacts(
        path=path,
        name=group.name,
        pods=pods,
        replicas=count_or_unknown(inside(group.stated, "replicas"), "replicas", 1),
        entry=pod(group.leader),
        worker=None if pods == 1 else pod(WORKER),
        order=_order(group, found),
    )


def _order(group: Group, found: Object) -> StartOrder | None:
    """Return why the workers wait for their leader, if they do.

    Source: kubernetes-sigs/lws pkg/controllers/pod_controller.go Reconcile.
    """
    if group.spec.get("startupPolicy") != _READY:
        return None
    path = found.at(f"{group.path}.startupPolicy")
    why = f"is {_READY}, by which LWS creates the workers when their leader is ready"
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
