"""Rules about updates of a ModelServing and of a ModelRoute."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.findings import (
    Finding,
    Level,
    count_of,
    not_checked,
    part_of_rule,
    refuse,
)
from kthena_components.core.objects.object import read_object
from kthena_components.core.remedies import either, write
from kthena_components.core.rules.support.admission import Change, differ
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    first_unknown,
    mapping,
    require_known,
    sequence,
    spec_of,
    whole,
)
from kthena_components.core.values.unknown import MaybeInt, Unknown, is_unresolved, known
from kthena_components.systems.kthena.view import (
    BY_GROUP,
    Role,
    Serving,
    held_between,
    read_serving,
)

_HASHED = ("name", "workerReplicas", "entryTemplate", "workerTemplate")
"""Fields of a role in Kthena's revision hash."""


def gang_topology_only_change(change: Change) -> Iterator[Finding]:
    """A change of a ModelServing's gang or network topology reaches running pods.

    Kthena's revision only covers the roles: names, worker counts and templates. A change of
    gangPolicy or networkTopology changes the PodGroups, but the pods stay where they are.

    Pass: groupPolicy.highestTierAllowed from 2 to 1, and a new image.
    Fail: groupPolicy.highestTierAllowed from 2 to 1, and nothing else.
    Level: advisory.
    Source: volcano-sh/kthena issues 690 and 1114; pkg/model-serving-controller/utils/utils.go.
    """
    old, new = _template(change.before), _template(change.after)
    for key in ("gangPolicy", "networkTopology"):
        path = f"spec.template.{key}"
        edited = differ(old.get(key), new.get(key))
        if edited is False:
            continue
        rolled = differ(_hashed(old), _hashed(new))
        if gap := first_unknown(edited, rolled):
            if rolled is not True:
                yield not_checked(path, gap)
                return
        elif not rolled:
            yield Finding(
                path=path,
                seen="changes, but no role's name, worker count or template does: Kthena only "
                "rolls out roles, so running pods keep their place",
                remedy="change an annotation in the templates, too, or delete the pods of each "
                "group after the update",
                level=Level.ADVISORY,
            )


def kthena_gang_fixed(change: Change) -> Iterator[Finding]:
    """A ModelServing keeps the gang policy of its creation.

    The API server rejects another minRoleReplicas and the removal of gangPolicy. It may be added.

    Pass: minRoleReplicas {prefill: 1} before and after.
    Fail: minRoleReplicas {prefill: 1} before, {prefill: 2} after.
    Source: volcano-sh/kthena pkg/apis/workload/v1alpha1/model_serving_types.go, the CEL rules.
    """
    old, new = (_template(body).get("gangPolicy") for body in (change.before, change.after))
    if not isinstance(old, Mapping):
        return
    path = "spec.template.gangPolicy"
    remedy = either(
        write(old, "keep it", at="spec.template.gangPolicy"), "let the ModelServing be replaced"
    )
    if new is None:
        seen = "is removed, but the API server rejects that: it is required once set"
        yield Finding(path=path, seen=seen, remedy=remedy)
        return
    key = "minRoleReplicas"
    was, now = old.get(key), mapping(new).get(key)
    require_known(path, new)
    if was is None or now is None:
        return
    if known(differ(was, now), f"{path}.{key}"):
        seen = f"changes from {_counts(was)} to {_counts(now)}, but it is immutable"
        yield Finding(path=f"{path}.{key}", seen=seen, remedy=remedy)


def _counts(minima: object) -> str:
    if not isinstance(minima, Mapping):
        return display(minima)
    shown = (f"{display(key).strip(chr(39))}: {display(value)}" for key, value in minima.items())
    return f"{{{', '.join(list(shown)[:8])}}}"


def _template(body: Mapping[str, Any]) -> Mapping[str, Any]:
    return read_serving(read_object(body)).template


def _hashed(template: Mapping[str, Any]) -> object:
    """Return the fields that Kthena's revision covers."""
    roles = template.get("roles")
    if is_unresolved(roles) or isinstance(roles, Unknown):
        return roles
    return [
        role if is_unresolved(role) else [_plain(mapping(role).get(key)) for key in _HASHED]
        for role in sequence(roles)
    ]


def _plain(value: object) -> object:
    number = whole(value)
    return number if isinstance(number, int) else value


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


@part_of_rule
def _scaled(before: Role, role: Role, held: MaybeInt, view: Serving) -> Iterator[Finding]:
    """Report a role that is scaled while a partition holds groups back at the old number."""
    path = f"{role.path}.replicas"
    require_known(path, held, before.replicas, role.replicas)
    yield Finding(
        path=path,
        seen=f"changes from {before.replicas} to {role.replicas} with a partition that holds "
        f"{held} of {count_of(view.replicas, 'group')} back: Kthena scales the role in the "
        "other groups only",
        remedy=f"remove the partition in the same update, which updates all groups, or keep "
        f"replicas: {before.replicas}",
    )


def kthena_model_name_fixed(change: Change) -> Iterator[Finding]:
    """A ModelRoute keeps the modelName of its creation.

    Pass: modelName llama before and after.
    Fail: modelName llama before, qwen after.
    Source: volcano-sh/kthena v1.0.0 pkg/apis/networking/v1alpha1/modelroute_types.go, the CEL rule.
    """
    old, new = (spec_of(body).get("modelName") for body in (change.before, change.after))
    if old is None or new is None:
        return
    path, edited = "spec.modelName", differ(old, new)
    require_known(path, edited)
    if edited:
        seen = f"changes from {display(old)} to {display(new)}, but it is immutable"
        yield refuse(path, seen, either(write(old, "keep it"), "write another ModelRoute"))
