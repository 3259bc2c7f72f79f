"""Rules of two states of one object: what it is now, and what an update would make of it.

Only a preview knows both, so only the review of a pull request asks these. A replaced object is
made anew, and none of them is about that.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kthena_components.core.checks.kthena_reading import (
    LATE,
    first_gap,
    gap_of,
    mapping,
    not_checked,
    show,
    whole,
)
from kthena_components.core.checks.lws_reading import Group, read_sets
from kthena_components.core.facts import as_list
from kthena_components.core.findings import Finding, Level, count_of, judge_by
from kthena_components.core.known import MaybeInt, Unknown, is_late
from kthena_components.core.pod_facts import read_pod

MODEL_SERVING = ("workload.serving.volcano.sh", "ModelServing")
LEADER_WORKER_SET = ("leaderworkerset.x-k8s.io", "LeaderWorkerSet")
_ONLY, _FIXED, _LOWERED = "gang-topology-only-change", "kthena-gang-fixed", "lws-lower-then-raise"
_DEEP = Unknown("it is nested too deeply to be compared")
_HASHED = ("name", "workerReplicas", "entryTemplate", "workerTemplate")
"""What of a role enters Kthena's revision hash."""


@dataclass(frozen=True, slots=True)
class Change:
    """One object before and after an update."""

    before: Mapping[str, Any]
    after: Mapping[str, Any]


def judge_change(
    before: Mapping[str, Any], after: Mapping[str, Any], path: str = ""
) -> list[Finding]:
    """Judge an update of one object in place by every rule that applies to its kind.

    Args:
        before: The object as it was applied.
        after: The object as it would be applied. Values may be Unknown or late texts.
        path: Where the object stands in the caller's input; a prefix of every path.
    """
    kind = _kind(after)
    change = Change(before, after)
    rules = CHANGE_RULES.get(kind, ()) if kind == _kind(before) else ()
    return judge_by(rules, change, path)


def _kind(body: Mapping[str, Any]) -> tuple[str, str]:
    version, kind = body.get("apiVersion"), body.get("kind")
    group = version.partition("/")[0] if isinstance(version, str) else ""
    return group, kind if isinstance(kind, str) else ""


def gang_topology_only_change(change: Change) -> Iterator[Finding]:
    """An edit of a ModelServing's gang or network topology reaches the pods that run.

    Kthena's revision holds the roles alone: their names, worker counts and templates. An edit of
    gangPolicy or networkTopology changes the PodGroups, and the pods stay where they are.

    Pass: groupPolicy.highestTierAllowed from 2 to 1, and a new image.
    Fail: groupPolicy.highestTierAllowed from 2 to 1, and nothing else.
    Level: advisory.
    Source: volcano-sh/kthena issues 690 and 1114; pkg/model-serving-controller/utils/utils.go.
    """
    old, new = _template(change.before), _template(change.after)
    for key in ("gangPolicy", "networkTopology"):
        path = f"spec.template.{key}"
        edited = _differ(old.get(key), new.get(key))
        if edited is False:
            continue
        rolled = _differ(_hashed(old), _hashed(new))
        if gap := first_gap(edited, rolled):
            if rolled is not True:
                yield not_checked(path, gap, _ONLY)
                return
        elif not rolled:
            yield Finding(
                path=path,
                seen="changes, but no role's name, worker count or template does: Kthena rolls out "
                "roles only, so pods that run keep their place",
                remedy="change an annotation in the templates as well, or delete the pods of each "
                "group after the update",
                rule=_ONLY,
                level=Level.ADVISORY,
            )


def kthena_gang_fixed(change: Change) -> Iterator[Finding]:
    """A ModelServing keeps the gang policy that it was made with.

    The API server refuses another minRoleReplicas and the removal of gangPolicy. It may be added.

    Pass: minRoleReplicas {prefill: 1} before and after.
    Fail: minRoleReplicas {prefill: 1} before, {prefill: 2} after.
    Source: volcano-sh/kthena pkg/apis/workload/v1alpha1/model_serving_types.go, the CEL rules.
    """
    old, new = (_template(body).get("gangPolicy") for body in (change.before, change.after))
    if not isinstance(old, Mapping):
        return
    path = "spec.template.gangPolicy"
    remedy = "keep it, or let the ModelServing be replaced"
    if new is None:
        seen = "is removed, but the API server refuses that: it is required once set"
        yield Finding(path=path, seen=seen, remedy=remedy, rule=_FIXED)
        return
    key = "minRoleReplicas"
    was, now = old.get(key), mapping(new).get(key)
    if gap := gap_of(new):
        yield not_checked(path, gap, _FIXED)
    elif was is None or now is None:
        return
    elif gap := gap_of(edited := _differ(was, now)):
        yield not_checked(f"{path}.{key}", gap, _FIXED)
    elif edited:
        seen = f"changes from {_counts(was)} to {_counts(now)}, but it is immutable"
        yield Finding(path=f"{path}.{key}", seen=seen, remedy=remedy, rule=_FIXED)


def _counts(minima: object) -> str:
    if not isinstance(minima, Mapping):
        return show(minima)
    shown = (f"{show(key).strip(chr(39))}: {show(value)}" for key, value in minima.items())
    return f"{{{', '.join(list(shown)[:8])}}}"


def lws_lower_then_raise(change: Change) -> Iterator[Finding]:
    """A LeaderWorkerSet's replicas are not raised in the edit that lowers its GPUs.

    The controller scales first, and updates no old group before the new ones are ready. Without
    room for both the new groups wait for GPUs that the old ones would have given up.

    Pass: replicas 1 with 8 GPUs before, replicas 1 with 4 GPUs after.
    Fail: replicas 1 with 8 GPUs before, replicas 2 with 4 GPUs after: 12 GPUs are needed at once.
    Level: advisory.
    Source: kubernetes-sigs/lws issue 717; pkg/controllers/leaderworkerset_controller.go
    rollingUpdateParameters.
    """
    path = "spec.replicas"
    (old,), (new,) = read_sets(change.before).groups, read_sets(change.after).groups
    was, now = old.replicas, new.replicas
    held, holds = _gpus(old), _gpus(new)
    if _rises(was, now) is False or _rises(holds, held) is False:
        return
    if gap := first_gap(was, now, held, holds):
        yield not_checked(path, gap, _LOWERED)
        return
    numbers = [number for number in (was, now, held, holds) if isinstance(number, int)]
    yield _stuck(path, *numbers)


def _stuck(path: str, was: int, now: int, held: int, holds: int) -> Finding:
    most = was * held + (now - was) * holds
    return Finding(
        path=path,
        seen=f"rises from {was} to {now} while a group goes from {count_of(held, 'GPU')} to "
        f"{holds}: the new groups come first, so {most} GPUs are needed at once, "
        f"not {now * holds}",
        remedy="lower the GPUs in one update, and raise replicas in the next",
        rule=_LOWERED,
        level=Level.ADVISORY,
    )


def _rises(low: MaybeInt | None, high: MaybeInt | None) -> bool | None:
    """Tell whether a number rises; None when that is not known."""
    if isinstance(low, Unknown) or isinstance(high, Unknown):
        return None
    return low is not None and high is not None and 0 <= low < high


def _gpus(group: Group) -> MaybeInt | None:
    """Give the GPUs of a group; None where it says nothing sensible."""
    worker, leader = group.template.get("workerTemplate"), group.template.get("leaderTemplate")
    each = read_pod(worker, "").all_gpus
    first = each if leader is None else read_pod(leader, "").all_gpus
    size = group.size
    if gap := first_gap(size, each, first):
        return gap
    if isinstance(size, int) and isinstance(each, int) and isinstance(first, int) and size > 0:
        return first + (size - 1) * each
    return None


def _template(body: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(mapping(body.get("spec")).get("template"))


def _hashed(template: Mapping[str, Any]) -> object:
    """Give what Kthena's revision is made of."""
    roles = template.get("roles")
    if is_late(roles) or isinstance(roles, Unknown):
        return roles
    return [
        role if is_late(role) else [_plain(mapping(role).get(key)) for key in _HASHED]
        for role in as_list(roles)
    ]


def _plain(value: object) -> object:
    number = whole(value)
    return number if isinstance(number, int) else value


def _differ(before: object, after: object) -> bool | Unknown:
    """Tell whether two values differ, or why that cannot be told."""
    if _has_late(before) or _has_late(after):
        return LATE
    try:
        return before != after
    except RecursionError:
        return _DEEP


def _has_late(value: object) -> bool:
    """Look for a value that is not known anywhere inside another one."""
    parts = [value]
    while parts:
        part = parts.pop()
        if isinstance(part, Unknown) or is_late(part):
            return True
        if isinstance(part, Mapping):
            parts.extend(part.values())
        elif isinstance(part, list | tuple):
            parts.extend(part)
    return False


CHANGE_RULES: Mapping[tuple[str, str], tuple[Callable[[Change], Iterator[Finding]], ...]] = {
    MODEL_SERVING: (gang_topology_only_change, kthena_gang_fixed),
    LEADER_WORKER_SET: (lws_lower_then_raise,),
}
"""The rules by API group and kind."""
