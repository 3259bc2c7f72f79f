"""Rules about updates of a LeaderWorkerSet."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.objects.object import read_object
from kthena_components.core.rules.support.admission import Change
from kthena_components.core.values.display import display
from kthena_components.core.values.read import first_unknown, mapping, require_known, whole
from kthena_components.core.values.unknown import MaybeInt, Unknown
from kthena_components.systems.lws.view import WORKER, Group, read_sets


def lws_lower_then_raise(change: Change) -> Iterator[Finding]:
    """A LeaderWorkerSet's replicas are not raised in the update that lowers its GPUs.

    The controller scales first, and updates no old group before the new ones are ready. Without
    room for both, the new groups wait for GPUs that the old ones would have released.

    Pass: replicas 1 with 8 GPUs before, replicas 1 with 4 GPUs after.
    Fail: replicas 1 with 8 GPUs before, replicas 2 with 4 GPUs after: 12 GPUs are needed at once.
    Level: advisory.
    Source: kubernetes-sigs/lws issue 717; pkg/controllers/leaderworkerset_controller.go
    rollingUpdateParameters.
    """
    path = "spec.replicas"
    old, new = _only(change.before), _only(change.after)
    was, now = old.replicas, new.replicas
    held, holds = _gpus(old), _gpus(new)
    if _rises(was, now) is False or _rises(holds, held) is False:
        return
    require_known(path, was, now, held, holds)
    numbers = [number for number in (was, now, held, holds) if isinstance(number, int)]
    yield _stuck(path, *numbers)


def lws_subgroups_fixed(change: Change) -> Iterator[Finding]:
    """A LeaderWorkerSet keeps its subgroups: none are added, resized or removed.

    The webhook rejects the update. The type of the subgroups may change.

    Pass: subGroupSize 2 before and after.
    Fail: subGroupSize 2 before, 4 after; no subGroupPolicy before.
    Level: mandatory.
    Source: kubernetes-sigs/lws pkg/webhooks/leaderworkerset_webhook.go ValidateUpdate.
    """
    path = "spec.leaderWorkerTemplate.subGroupPolicy"
    was, now = (
        _only(body).template.get("subGroupPolicy") for body in (change.before, change.after)
    )
    sizes = [mapping(policy).get("subGroupSize") for policy in (was, now)]
    require_known(path, was, now, *sizes)
    if bool(was) != bool(now) or whole(sizes[0]) != whole(sizes[1]):
        then = f"had subGroupSize {display(sizes[0])}" if was else "had no subgroups"
        seen = f"is removed: the set {then}" if not now else f"changes: the set {then}"
        yield Finding(
            path=path,
            seen=f"{seen}, and LWS does not change them",
            remedy="undo the change, or give the set another name",
        )


def _stuck(path: str, was: int, now: int, held: int, holds: int) -> Finding:
    most = was * held + (now - was) * holds
    return Finding(
        path=path,
        seen=f"rises from {was} to {now} while a group goes from {count_of(held, 'GPU')} to "
        f"{holds}: the new groups come first, so {count_of(most, 'GPU')} are needed at once, "
        f"not {now * holds}",
        remedy="lower the GPUs in one update, and raise replicas in the next",
        level=Level.ADVISORY,
    )


def _rises(low: MaybeInt | None, high: MaybeInt | None) -> bool | None:
    """Return whether a number increases; None if unknown."""
    if isinstance(low, Unknown) or isinstance(high, Unknown):
        return None
    return low is not None and high is not None and 0 <= low < high


def _only(body: Mapping[str, Any]) -> Group:
    """Return the only set of groups of a LeaderWorkerSet."""
    (group,) = read_sets(read_object(body)).groups
    return group


def _gpus(group: Group) -> MaybeInt | None:
    """Return the GPUs of a group; None if invalid."""
    size = group.size
    first, each = (
        read_pod(group.template.get(field), "").all_gpus for field in (group.leader, WORKER)
    )
    if gap := first_unknown(size, each, first):
        return gap
    if isinstance(size, int) and isinstance(each, int) and isinstance(first, int) and size > 0:
        return first + (size - 1) * each
    return None
