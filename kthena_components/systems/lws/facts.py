"""Read LeaderWorkerSet and DisaggregatedSet: a leader and its workers, several times.

Source: kubernetes-sigs/lws api/leaderworkerset/v1 and api/disaggregatedset/v1.
"""

from collections.abc import Mapping
from typing import Any

from kthena_components.core.facts.pod import PodFacts, read_pod
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.workload import NO_SCHEDULER, fill_requests
from kthena_components.core.findings import join_path
from kthena_components.core.values.read import (
    as_count,
    as_list,
    as_map,
    group_kind,
    inside,
    name_of,
)
from kthena_components.core.values.unknown import MaybeBool, MaybeInt, Unknown, is_unresolved
from kthena_components.systems.lws.view import DISAGGREGATED_GROUP

LEADER_WORKER_SET = ("leaderworkerset.x-k8s.io", "LeaderWorkerSet")

DISAGGREGATED_SET = (DISAGGREGATED_GROUP, "DisaggregatedSet")

KINDS = frozenset({LEADER_WORKER_SET, DISAGGREGATED_SET})

GROUP_SIZE = "LWS_GROUP_SIZE"
"""Put into every container; the leader counts."""

_QUEUE = "scheduling.volcano.sh/queue-name"

_SHAPELESS = Unknown("the size of the group is below 1")


def read(body: Mapping[str, Any], path: str = "") -> ServingFacts | None:
    """Read the facts of a LeaderWorkerSet or a DisaggregatedSet; None for anything else."""
    if group_kind(body) not in KINDS:
        return None
    base, spec = join_path(path, "spec"), body.get("spec")
    annotations = as_map(as_map(body.get("metadata")).get("annotations"))
    engines: tuple[EngineFacts, ...]
    gang = _QUEUE in annotations
    if group_kind(body) == LEADER_WORKER_SET:
        engines = (_engine(spec, base, name_of(body), gang=gang),)
        placed = [_placed_by_volcano(spec)]
    else:
        roles = as_list(inside(spec, "roles"))
        held = [_held(role, f"{base}.roles[{index}]") for index, role in enumerate(roles)]
        engines = tuple(_engine(inner, at, name, gang=gang) for name, inner, at in held)
        placed = [_placed_by_volcano(inner) for _, inner, _ in held]
    expected: MaybeBool = gang or True in placed
    expected = expected or next((one for one in placed if isinstance(one, Unknown)), False)
    return ServingFacts(path=base, name=name_of(body), engines=engines, gang_expected=expected)


def _held(role: object, path: str) -> tuple[str, object, str]:
    """Give a role's name, its LeaderWorkerSet spec, and where that is."""
    name = as_map(role).get("name")
    named = name if isinstance(name, str) and not is_unresolved(name) else "?"
    if is_unresolved(role) or "leaderWorkerTemplate" in as_map(role):
        return named, role, path
    return named, as_map(role).get("spec"), f"{path}.spec"


def _engine(spec: object, path: str, name: str, *, gang: bool) -> EngineFacts:
    template = inside(spec, "leaderWorkerTemplate")
    at = f"{path}.leaderWorkerTemplate"
    pods: MaybeInt = as_count(inside(template, "size"), "size", 1)
    pods = _SHAPELESS if pods == 0 else pods
    env = {GROUP_SIZE: str(pods)} if isinstance(pods, int) else {}
    worker = inside(template, "workerTemplate")
    leader, key = inside(template, "leaderTemplate"), "leaderTemplate"
    if leader is None:
        leader, key = worker, "workerTemplate"
    entry = _pod(leader, f"{at}.{key}", env, gang=gang or _is_gang(spec))
    rest = _pod(worker, f"{at}.workerTemplate", env, gang=gang or _is_gang(spec))
    return EngineFacts(
        path=path,
        name=name,
        pods=pods,
        replicas=as_count(inside(spec, "replicas"), "replicas", 1),
        entry=entry,
        worker=None if pods == 1 else rest,
    )


def _pod(template: object, path: str, env: Mapping[str, str], *, gang: bool) -> PodFacts:
    """Read a pod template. A gang is sized by requests, else the API server fills them in."""
    pod = read_pod(template, path, env)
    return pod if gang else fill_requests(pod)


def _is_gang(spec: object) -> bool:
    """Tell whether Volcano may be asked to place the pods."""
    return _placed_by_volcano(spec) is not False


def _placed_by_volcano(spec: object) -> MaybeBool:
    template = inside(spec, "leaderWorkerTemplate")
    names = [
        inside(inside(inside(template, key), "spec"), "schedulerName")
        for key in ("leaderTemplate", "workerTemplate")
    ]
    if "volcano" in names:
        return True
    return NO_SCHEDULER if any(map(is_unresolved, names)) else False
