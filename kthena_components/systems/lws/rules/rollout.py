"""Checks a LeaderWorkerSet's rollout: maxUnavailable, maxSurge and partition.

All of it is rule lws-shape. The roles of a DisaggregatedSet are updated together, which allows
less. updates.py has further rules about updates, and system.py what a surge needs. Source:
kubernetes-sigs/lws pkg/webhooks/leaderworkerset_webhook.go generalValidate and
pkg/webhooks/disaggregatedset/disaggregatedset_webhook.go.
"""

from collections.abc import Iterator, Mapping

from kthena_components.core.findings import Finding, count_of, not_checked, part_of_rule
from kthena_components.core.remedies import either, or_more, remove, write
from kthena_components.core.values.display import display
from kthena_components.core.values.quantity import is_budget, scaled
from kthena_components.core.values.read import mapping, require_known, unknown_in, whole
from kthena_components.core.values.unknown import known
from kthena_components.systems.lws.view import ROLLING, Group

_MOST = 100
"""Maximum percentage of a budget, including maxSurge."""


def is_refused(budget: object) -> bool:
    """Return whether the webhook rejects a budget: it is known and invalid."""
    return budget is not None and not unknown_in(budget) and not is_budget(budget, _MOST)


@part_of_rule
def check_rollout(group: Group) -> Iterator[Finding]:
    """Check the update fields of a group."""
    rolling, at = group.rolling, f"{group.path}.{ROLLING}"
    require_known(at, rolling)
    if not isinstance(rolling, Mapping):
        return
    for key in ("maxUnavailable", "maxSurge"):
        yield from _budget(f"{at}.{key}", rolling.get(key))
    if not group.in_role:
        yield from at_least(f"{at}.partition", rolling.get("partition"), 0)
    yield from _can_begin(group, rolling, at)


@part_of_rule
def _budget(path: str, budget: object) -> Iterator[Finding]:
    require_known(path, budget)
    if is_refused(budget):
        seen = f"is {display(budget)}, but must be a count or a percentage up to {_MOST}%"
        yield refusal(path, seen, "write for example 1 or 25%")


def _can_begin(group: Group, rolling: Mapping[str, object], at: str) -> Iterator[Finding]:
    """Check that an update may remove or add a group."""
    replicas = group.replicas
    down, up = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    if not isinstance(replicas, int) or replicas <= 0:
        return
    if scaled(down, replicas, 1, up=False) == 0 == scaled(up, replicas, 0, up=True):
        of = f" of {count_of(replicas, 'replica')}" if "%" in str(down) else ""
        seen = f"is {display(down)}{of} and maxSurge is {display(0 if up is None else up)}"
        remedy = either(
            write(1, "write maxUnavailable: 1"), write(1, "maxSurge: 1", at=f"{at}.maxSurge")
        )
        yield refusal(f"{at}.maxUnavailable", f"{seen}, so no update could start", remedy)


def check_role_rollout(group: Group) -> Iterator[Finding]:
    """Check what is forbidden only in a role of a DisaggregatedSet."""
    kind, at = mapping(group.spec.get("rolloutStrategy")).get("type"), f"{group.path}."
    if gap := unknown_in(kind):
        yield not_checked(f"{at}rolloutStrategy.type", gap, SHAPE)
    elif isinstance(kind, str) and kind not in {"", "RollingUpdate"}:
        seen = f"is {display(kind)}, but a DisaggregatedSet only supports RollingUpdate"
        yield refusal(f"{at}rolloutStrategy.type", seen, remove())
    partition, where = mapping(group.rolling).get("partition"), f"{at}{ROLLING}.partition"
    if gap := unknown_in(partition):
        yield not_checked(where, gap, SHAPE)
    elif partition is not None and whole(partition) != 0:
        seen = f"is {display(partition)}, but a DisaggregatedSet updates its roles together"
        yield refusal(where, seen, remove())


# Shared findings of lws-shape: what the webhook rejects, in the same words.


SHAPE = "lws-shape"


def refusal(path: str, seen: str, remedy: str) -> Finding:
    """Report what the webhook rejects."""
    return Finding(path=path, seen=seen, remedy=remedy, rule=SHAPE)


@part_of_rule
def at_least(path: str, value: object, lowest: int, why: str = "") -> Iterator[Finding]:
    """Report a count below its minimum. Nothing is wrong if it is left out."""
    number = known(whole(value), path)
    if value is None:
        return
    if number is None:
        yield refusal(
            path,
            f"is {display(value)}, but must be a whole number",
            write(lowest, f"write {lowest}"),
        )
    elif number < lowest:
        seen = f"is {display(number)}, but must be at least {lowest}{why}"
        yield refusal(path, seen, or_more(lowest))
