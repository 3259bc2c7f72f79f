"""The pods of LeaderWorkerSets and DisaggregatedSets."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from kthena_components.core.objects.object import PodSet, as_copies, copies_in, pod_set
from kthena_components.core.values.arithmetic import product
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.lws.view import SET_NAME, WORKER, Sets

_LABELS = "leaderworkerset.sigs.k8s.io/"
_ANY, _ABOVE_ZERO = re.compile(r".*"), re.compile(r"[1-9][0-9]*")
_OTHERS = ("group-index", "group-key", "template-revision-hash", "subgroup-index", "subgroup-key")
_OF_PODS = ("statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index")


def pods_of_groups(view: Sets) -> Iterator[PodSet]:
    """Return the leaders and the workers of each set of groups."""
    slices = copies_in(view.object.spec.get("slices"), 1)
    for group in view.groups:
        size = as_copies(group.size)
        rest = size if isinstance(size, Unknown) else max(size - 1, 0)
        groups = product(as_copies(group.replicas), slices)
        numbers = ((True, group.leader, groups), (False, WORKER, product(groups, rest)))
        for leader, field, number in numbers:
            at = f"{group.path}.leaderWorkerTemplate.{field}"
            if number != 0:
                made = group.template.get(field)
                pods = pod_set(view.object, at, made, number, by_controller=True, spread=rest != 0)
                yield replace(pods, added=_added(view, leader=leader))


def _added(view: Sets, *, leader: bool) -> Mapping[str, object] | None:
    """Return the labels that the controller gives to pods; None for those of a DisaggregatedSet.

    Source: kubernetes-sigs/lws api/leaderworkerset/v1 and pkg/webhooks/pod_webhook.go.
    """
    if view.disaggregated:
        return None
    added: dict[str, object] = dict.fromkeys(_OF_PODS, _ANY)
    added |= {f"{_LABELS}{name}": _ANY for name in _OTHERS}
    added[SET_NAME] = view.object.name
    added[f"{_LABELS}worker-index"] = "0" if leader else _ABOVE_ZERO
    return added
