"""The names that come from a set of groups of a leader and its workers.

The leaders are pods of a StatefulSet, numbered from 0, and the workers of a group are a StatefulSet
with the name of its leader. Source: kubernetes-sigs/lws pkg/controllers/pod_controller.go.
"""

from collections.abc import Iterator

from kthena_components.core import naming
from kthena_components.core.facts.serving import NameFacts
from kthena_components.core.values.unknown import MaybeInt


def leader_names(
    path: str, name: str, groups: MaybeInt, workers: MaybeInt, *, made: bool = True
) -> Iterator[NameFacts]:
    """Return the longest names of a set; those of its first group if the number is unknown.

    Args:
        path: Path of the name that they come from.
        name: The name of the set.
        groups: Its groups.
        workers: Workers of a group.
        made: Whether the name is derived from others.
    """
    sets, last = naming.STATEFUL_SET_NAME, max(groups - 1, 0) if isinstance(groups, int) else 0
    leader = f"{name}-{last}"
    if workers == 0:
        yield NameFacts(path=path, name=name, limit=sets, what="StatefulSet", made=made)
    elif isinstance(workers, int):
        yield NameFacts(path=path, name=leader, limit=sets, what="StatefulSet", made=made)
        pod, limit = f"{leader}-{workers}", naming.DNS_LABEL
        yield NameFacts(path=path, name=pod, limit=limit, what="worker pod", made=made)
