"""Limits of a backend: a table of the fields that it does not take, or not with every value.

The findings about a serving and docs/backends.md are derived from the table. compiler/refusals.py
adds to each remedy which other backends take the field.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, replace
from functools import reduce
from typing import Any

from kthena_components.core.findings import Finding, join_path
from kthena_components.core.plan.serving_plan import RolePlan, ServingPlan
from kthena_components.core.remedies import elsewhere, remove
from kthena_components.core.values.dataclass import dataclass

UPDATE = "rollout_strategy.rolling_update_configuration"
_ROLES = "roles[]."


@dataclass(frozen=True, slots=True)
class SetField:
    """A field of a serving that has a value."""

    plan: ServingPlan
    path: str
    value: Any
    role: RolePlan

    @property
    def several(self) -> bool:
        """Whether the serving has several roles."""
        return len(self.plan.roles) > 1


Text = str | Callable[[SetField], str]
When = Callable[[SetField], object]
REMOVE = elsewhere(remove())


@dataclass(frozen=True, slots=True)
class Limit:
    """A field that a backend does not take, or not with every value."""

    field: str
    """Its path, with `roles[]` for each role."""
    seen: Text = ""
    """What is wrong, with `{}` for the value, or `{plan.…}`. Empty: another rule reports it."""
    _: KW_ONLY
    takes: str = ""
    """What the backend takes of the field, for docs/backends.md. Empty: nothing."""
    when: When = lambda _: True
    """Whether a value is refused."""
    remedy: Text = REMOVE


_FIELDS: Mapping[str, Callable[[ServingPlan], object]] = {
    "replicas": lambda p: p.groups,
    "roles": lambda p: p.roles,
    "gang_policy.min_role_replicas": lambda p: p.min_role_replicas,
    "network_topology.group_policy": lambda p: p.group_topology,
    "network_topology.group_policy.highest_tier_name": lambda p: (
        p.group_topology and p.group_topology.highest_tier_name
    ),
    "network_topology.role_policy": lambda p: p.role_topology,
    "queue": lambda p: p.queue,
    "priority_class": lambda p: p.priority_class,
    "spread_over": lambda p: p.spread_over,
    "scheduler_name": lambda p: p.scheduler,
    "rollout_strategy.type": lambda p: p.rollout.type,
    UPDATE: lambda p: p.rollout.stated,
    f"{UPDATE}.max_unavailable": lambda p: p.rollout.stated and p.rollout.stated.max_unavailable,
    f"{UPDATE}.max_surge": lambda p: p.rollout.stated and p.rollout.stated.max_surge,
    f"{UPDATE}.partition": lambda p: p.rollout.stated and p.rollout.stated.partition,
    "recovery_policy": lambda p: p.recovery,
    "autoscaled": lambda p: p.autoscaled or None,
    "restart_grace_period_seconds": lambda p: p.restart_grace_seconds,
    "monitoring": lambda p: p.monitoring or None,
}
"""How a plan has a field of the serving; the fields of roles have the same names in a plan."""


def above_zero(stated: SetField) -> bool:
    """Return whether a number is not 0, as a condition of a limit."""
    return bool(stated.value)


def only_if(when: When, *limits: Limit) -> tuple[Limit, ...]:
    """Return limits of some servings only."""
    return tuple(replace(one, when=_both(when, one.when)) for one in limits)


def _both(first: When, second: When) -> When:
    return lambda stated: first(stated) and second(stated)


def refused(plan: ServingPlan, limits: Iterable[Limit]) -> Iterator[Finding]:
    """Report the fields of a serving that a backend with these limits does not take."""
    for limit in limits:
        for stated in _stated_fields(plan, limit.field) if limit.seen else ():
            if stated.value is not None and limit.when(stated):
                yield Finding(
                    path=stated.path,
                    seen=_text(limit.seen, stated),
                    remedy=limit.remedy(stated) if callable(limit.remedy) else limit.remedy,
                    rule="backend-loss",
                )


def _text(text: Text, stated: SetField) -> str:
    return text(stated) if callable(text) else text.format(stated.value, plan=stated.plan)


def _stated_fields(plan: ServingPlan, field: str) -> Iterator[SetField]:
    """Read a field of a plan, once for each role if the path begins with `roles[].`."""
    of_role = field.removeprefix(_ROLES)
    if of_role != field:
        for role in plan.roles:
            yield SetField(plan, join_path(role.path, of_role), _read(role, of_role), role)
    elif field.startswith("backend_options."):
        value = _read(plan, field.removeprefix("backend_"))
        yield SetField(plan, field, value, plan.roles[0])
    else:
        yield SetField(plan, field, _FIELDS[field](plan), plan.roles[0])


def _read(part: object, field: str) -> object:
    """Read a field of a role as it is planned, or as it is stated; or one of the options."""
    first, *more = field.split(".")
    part = part if hasattr(part, first) else getattr(part, "stated", None)
    return reduce(lambda one, name: getattr(one, name, None), (first, *more), part)


def taken(argument: str, limits: Iterable[Limit]) -> str | None:
    """Return what a backend takes of an argument: None for nothing, empty for every value.

    Args:
        argument: Its path as in docs/backends.md, where … shortens it.
    """
    field = argument.replace("…", ".rolling_update_configuration.")
    found = [limit.takes for limit in limits if _is_part(limit.field, field)]
    return "; ".join(dict.fromkeys(found)) if all(found) else None


def _is_part(one: str, other: str) -> bool:
    """Return whether one of two fields is a part of the other one, or the same."""
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


def gang_copies(stated: SetField) -> int:
    """Count the copies that the gangs of all roles contain."""
    return sum(role.gang_replicas for role in stated.plan.roles)


def loss(path: str, seen: str, remedy: str) -> Finding:
    """Report what a backend does not write, and no table of limits can state."""
    return Finding(path=path, seen=seen, remedy=remedy, rule="backend-loss")


def wrong_option(option: str, seen: str, remedy: str) -> Finding:
    """Report an option of a backend that does not fit the serving."""
    path = join_path("backend_options", option)
    return Finding(path=path, seen=seen, remedy=remedy, rule="backend-options")
