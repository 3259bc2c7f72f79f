"""The pods of LeaderWorkerSets and DisaggregatedSets."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from kthena_components.core.objects.object import Object, PodSet, as_copies, copies_in, pod_set
from kthena_components.core.values.arithmetic import product
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.lws.view import LEADER_WORKER_SET, SET_NAME, WORKER, Sets

_PREFIX = "leaderworkerset.sigs.k8s.io/"
_INDEX = f"{_PREFIX}worker-index"
_LABELS = ("group-index", "group-key", "subgroup-index", "subgroup-key", "template-revision-hash")
_ANY, _WORKER_INDEX = re.compile(".*"), re.compile("[1-9][0-9]*")


def pods_of_groups(view: Sets) -> Iterator[PodSet]:
    """Return the leaders and the workers of each set of groups."""
    slices = copies_in(view.object.spec.get("slices"), 1)
    for group in view.groups:
        size = as_copies(group.size)
        rest = size if isinstance(size, Unknown) else max(size - 1, 0)
        groups = product(as_copies(group.replicas), slices)
        for is_leader in (True, False):
            field = group.leader if is_leader else WORKER
            number = groups if is_leader else product(groups, rest)
            at = f"{group.path}.leaderWorkerTemplate.{field}"
            if number != 0:
                made = group.template.get(field)
                pods = pod_set(view.object, at, made, number, by_controller=True, spread=rest != 0)
                yield replace(pods, added=_added(view.object, is_leader=is_leader))


def _added(owner: Object, *, is_leader: bool) -> Mapping[str, object] | None:
    """Return the labels that the controller adds to pods of a LeaderWorkerSet.

    Source: kubernetes-sigs/lws v0.7.0 pkg/webhooks/pod_webhook.go and
    pkg/controllers/leaderworkerset_controller.go. A DisaggregatedSet's are not known.
    """
    if owner.group_kind != LEADER_WORKER_SET:
        return None
    added: dict[str, object] = {f"{_PREFIX}{name}": _ANY for name in _LABELS}
    return {**added, SET_NAME: owner.name, _INDEX: "0" if is_leader else _WORKER_INDEX}
