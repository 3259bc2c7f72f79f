"""Reports groups of a ModelServing that Kthena resized because a partition holds them back. Pure.

Source: Kthena v1.0.0 pkg/model-serving-controller/controller/model_serving_controller.go
syncRoleReplicas, checkServingGroupReady; run with Kthena 1.0.0.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kthena_components.cluster.objects import (
    Body,
    condition_of,
    labels_of,
    name_of,
    namespace_of,
    title_of,
)
from kthena_components.core import naming
from kthena_components.core.findings import count_of
from kthena_components.core.objects.object import read_object
from kthena_components.systems.kthena.partition import held_groups
from kthena_components.systems.kthena.view import Role, read_serving


def resized_groups(
    servings: Iterable[Body], groups: Mapping[tuple[str, str, str], Sequence[Body]]
) -> Iterator[tuple[str, str]]:
    """Report held groups with another number of engines than stated, and why.

    Kthena counts them as not ready, so the ModelServing does not become Available.

    Args:
        servings: ModelServings.
        groups: Pods by namespace, serving and group, in order.
    """
    for serving in servings:
        if condition_of(serving, "Available").get("status") == "True":
            continue
        view, owner = read_serving(read_object(serving)), (namespace_of(serving), name_of(serving))
        own = [(group, pods) for (*of, group), pods in groups.items() if (*of,) == owner]
        held = held_groups(view)
        for group, pods in own[: held if isinstance(held, int) else 0]:
            for role in view.roles:
                made = _engines(pods, role)
                if isinstance(role.replicas, int) and made != role.replicas:
                    yield title_of(serving), _resized(group, str(role.name), made, role.replicas)


def _engines(pods: Sequence[Body], role: Role) -> int:
    found = map(labels_of, pods)
    return len({own.get(naming.ROLE_ID) for own in found if own.get(naming.ROLE) == role.name})


def _resized(group: str, role: str, made: int, stated: int) -> str:
    return (
        f"group {group} has {count_of(made, 'engine')} of role '{role}', and the ModelServing "
        f"states {stated}. Kthena gives the groups that a partition holds back the number that it "
        "stored when it created groups, and the ModelServing does not become Available until the "
        "partition is removed"
    )
