"""Checks a ModelServing's update while a partition holds groups back."""

from collections.abc import Iterator

from kthena_components.core.findings import Finding, count_of, not_checked
from kthena_components.core.objects.object import read_object
from kthena_components.core.rules.change import Change
from kthena_components.core.values.budget import is_budget, scaled
from kthena_components.core.values.read import first_unknown, mapping, unknown_in
from kthena_components.core.values.unknown import MaybeInt, Unknown, all_known
from kthena_components.systems.kthena.view import BY_GROUP, Role, Serving, read_serving

PARTITION_SCALING = "kthena-partition-scaling"
_ALL = 100


def kthena_partition_scaling(change: Change) -> Iterator[Finding]:
    """While a partition holds groups back, roles keep their numbers of replicas.

    Kthena gives the first groups, as many as the partition counts, the roles that it stored when it
    created their revision, and these have the number of replicas of that time. A role that is
    scaled changes in the other groups only, and the update still ends well.

    Pass: partition 1 of 2 groups, and another image; a role from 1 to 2 replicas without partition.
    Fail: partition 1 of 2 groups, a role from 1 to 2 replicas: three engines instead of four.
    Level: mandatory.
    Source: Kthena v1.0.0 pkg/model-serving-controller/controller/model_serving_controller.go
    syncRoleReplicas.
    """
    old, new = (read_serving(read_object(body)) for body in (change.before, change.after))
    held = _held(old, new)
    if new.rollout != BY_GROUP or held == 0:
        return
    known = {role.name: role for role in old.roles if isinstance(role.name, str)}
    for role in new.roles:
        before = known.get(role.name) if isinstance(role.name, str) else None
        if before is not None and before.replicas != role.replicas:
            yield from _scaled(before, role, held, new)


def _scaled(before: Role, role: Role, held: MaybeInt, view: Serving) -> Iterator[Finding]:
    path = f"{role.path}.replicas"
    if gap := first_unknown(held, before.replicas, role.replicas):
        yield not_checked(path, gap, PARTITION_SCALING)
    elif isinstance(held, int):
        yield Finding(
            path=path,
            seen=f"changes from {before.replicas} to {role.replicas} with a partition that holds "
            f"{held} of {count_of(view.replicas, 'group')} back: Kthena scales the role in the "
            "other groups only",
            remedy=f"remove the partition in the same update, which updates all groups, or keep "
            f"replicas: {before.replicas}",
            rule=PARTITION_SCALING,
        )


def _held(old: Serving, new: Serving) -> MaybeInt:
    """Count the groups that exist already and keep their roles; percentages round up."""
    stated = mapping(new.strategy.get("rollingUpdateConfiguration")).get("partition")
    if gap := unknown_in(stated):
        return gap
    if not is_budget(stated, _ALL):
        return 0
    groups = all_known(old.replicas or 0, new.replicas or 0)
    if isinstance(groups, Unknown):
        return groups
    return min(scaled(stated, groups[1], 0, up=True) or 0, *groups)
