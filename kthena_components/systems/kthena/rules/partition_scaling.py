"""Checks a ModelServing's update while a partition holds groups back."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kthena_components.core.findings import Finding, count_of, not_checked
from kthena_components.core.objects.object import read_object
from kthena_components.core.rules.support.update import Change
from kthena_components.core.values.budget import is_budget, scaled
from kthena_components.core.values.read import first_unknown, mapping, sequence, unknown_in
from kthena_components.core.values.unknown import MaybeInt, Unknown, all_known
from kthena_components.systems.kthena.view import BY_GROUP, Role, Serving, read_serving

PARTITION_SCALING = "kthena-partition-scaling"
PARTITION_RESTORES = "kthena-partition-restores"
REVISION = "modelserving.volcano.sh/revision"
"""Label of a ControllerRevision with the revision whose roles it stores."""
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


def restored_roles(
    after: Mapping[str, Any], live: Mapping[str, Any], stored: Iterable[Mapping[str, Any]]
) -> Iterator[Finding]:
    """Report roles of which the held groups get the number that Kthena stored for them.

    Kthena stores the roles of a revision when it creates groups. If a role is scaled later, the
    groups follow; once a partition holds groups back, they get the stored number again. A group
    whose numbers differ from the spec is never ready, so the ModelServing does not get Available.

    Args:
        after: The ModelServing after the update.
        live: The ModelServing in the cluster, with its status.
        stored: The ControllerRevisions of the ModelServing.

    Source: Kthena v1.0.0 pkg/model-serving-controller/controller/model_serving_controller.go
    syncRoleReplicas, checkServingGroupReady.
    """
    before, new = (read_serving(read_object(body)) for body in (live, after))
    held = _held(before, new)
    numbers = _stored(mapping(live.get("status")).get("currentRevision"), stored)
    if new.rollout != BY_GROUP or not isinstance(held, int) or held == 0:
        return
    for role in new.roles:
        number = numbers.get(role.name)
        if isinstance(number, int) and isinstance(role.replicas, int) and number != role.replicas:
            grows = number > role.replicas
            yield Finding(
                path=f"{role.path}.replicas",
                seen=f"is {role.replicas}, but Kthena stored {number} when it created groups, and "
                f"gives the {count_of(held, 'group')} that the partition holds back {number} again"
                + ("; the ModelServing then does not become Available" if grows else ""),
                remedy="remove the partition in this update, which updates all groups, or first "
                f"write replicas: {number} in an update without a partition",
                rule=PARTITION_RESTORES,
            )


def _stored(revision: object, stored: Iterable[Mapping[str, Any]]) -> dict[object, object]:
    """Return the stored number of replicas of each role; empty if the revision is not stored."""
    for body in stored:
        if mapping(mapping(body.get("metadata")).get("labels")).get(REVISION) == revision:
            roles = map(mapping, sequence(mapping(body.get("data")).get("data")))
            return {role.get("name"): role.get("replicas", 1) for role in roles}
    return {}


def held_groups(view: Serving) -> MaybeInt:
    """Count the first groups that a partition holds back."""
    return _held(view, view) if view.rollout == BY_GROUP else 0


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
