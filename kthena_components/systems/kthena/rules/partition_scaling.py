"""The rule kthena-partition-scaling."""

from collections.abc import Iterator

from kthena_components.core.findings import Finding, count_of, not_checked
from kthena_components.core.objects.object import read_object
from kthena_components.core.rules.support.update import Change
from kthena_components.core.values.read import first_unknown
from kthena_components.core.values.unknown import MaybeInt
from kthena_components.systems.kthena.partition import held_between
from kthena_components.systems.kthena.view import BY_GROUP, Role, Serving, read_serving


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
    held = held_between(old, new)
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
        yield not_checked(path, gap)
    elif isinstance(held, int):
        yield Finding(
            path=path,
            seen=f"changes from {before.replicas} to {role.replicas} with a partition that holds "
            f"{held} of {count_of(view.replicas, 'group')} back: Kthena scales the role in the "
            "other groups only",
            remedy=f"remove the partition in the same update, which updates all groups, or keep "
            f"replicas: {before.replicas}",
        )
