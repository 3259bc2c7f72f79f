"""The queue of a LeaderWorkerSet, and the changes that its webhook or controller rejects."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core import naming
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.findings import Finding, Level, advise, count_of, part_of_rule
from kthena_components.core.objects.object import VOLCANO, read_object
from kthena_components.core.remedies import either, remove, write
from kthena_components.core.rules.support.admission import Change
from kthena_components.core.values.display import display
from kthena_components.core.values.read import first_unknown, mapping, require_known, text, whole
from kthena_components.core.values.unknown import MaybeInt, Unknown
from kthena_components.systems.lws.view import (
    LEADER,
    LEADER_WORKER_SET,
    WORKER,
    Group,
    Sets,
    read_sets,
)


def lws_lower_then_raise(change: Change) -> Iterator[Finding]:
    """A LeaderWorkerSet's replicas are not raised in the update that lowers its GPUs.

    The controller scales first, and updates no old group before the new ones are ready. Without
    room for both, the new groups wait for GPUs that the old ones would have released.

    Pass: replicas 1 with 8 GPUs before, replicas 1 with 4 GPUs after.
    Fail: replicas 1 with 8 GPUs before, replicas 2 with 4 GPUs after: 12 GPUs are needed at once.
    Level: advisory.
    Source: kubernetes-sigs/lws issue 717; pkg/controllers/leaderworkerset_controller.go
    rollingUpdateParameters.
    """
    path = "spec.replicas"
    old, new = _only(change.before), _only(change.after)
    was, now = old.replicas, new.replicas
    held, holds = _gpus(old), _gpus(new)
    if _rises(was, now) is False or _rises(holds, held) is False:
        return
    require_known(path, was, now, held, holds)
    numbers = [number for number in (was, now, held, holds) if isinstance(number, int)]
    yield _stuck(path, *numbers)


def lws_subgroups_fixed(change: Change) -> Iterator[Finding]:
    """A LeaderWorkerSet keeps its subgroups: none are added, resized or removed.

    The webhook rejects the update. The type of the subgroups may change.

    Pass: subGroupSize 2 before and after.
    Fail: subGroupSize 2 before, 4 after; no subGroupPolicy before.
    Level: mandatory.
    Source: kubernetes-sigs/lws pkg/webhooks/leaderworkerset_webhook.go ValidateUpdate.
    """
    path = "spec.leaderWorkerTemplate.subGroupPolicy"
    was, now = (
        _only(body).template.get("subGroupPolicy") for body in (change.before, change.after)
    )
    sizes = [mapping(policy).get("subGroupSize") for policy in (was, now)]
    require_known(path, was, now, *sizes)
    if bool(was) != bool(now) or whole(sizes[0]) != whole(sizes[1]):
        then = f"had subGroupSize {display(sizes[0])}" if was else "had no subgroups"
        seen = f"is removed: the set {then}" if not now else f"changes: the set {then}"
        yield Finding(
            path=path,
            seen=f"{seen}, and LWS does not change them",
            remedy="undo the change, or give the set another name",
        )


def _stuck(path: str, was: int, now: int, held: int, holds: int) -> Finding:
    """Advise against more groups and fewer GPUs in one update, with the GPUs of its peak."""
    most = was * held + (now - was) * holds
    return Finding(
        path=path,
        seen=f"rises from {was} to {now} while a group goes from {count_of(held, 'GPU')} to "
        f"{holds}: the new groups come first, so {count_of(most, 'GPU')} are needed at once, "
        f"not {now * holds}",
        remedy="lower the GPUs in one update, and raise replicas in the next",
        level=Level.ADVISORY,
    )


def _rises(low: MaybeInt | None, high: MaybeInt | None) -> bool | None:
    """Return whether a number increases; None if unknown."""
    if isinstance(low, Unknown) or isinstance(high, Unknown):
        return None
    return low is not None and high is not None and 0 <= low < high


def _only(body: Mapping[str, Any]) -> Group:
    """Return the only set of groups of a LeaderWorkerSet."""
    (group,) = read_sets(read_object(body)).groups
    return group


def _gpus(group: Group) -> MaybeInt | None:
    """Return the GPUs of a group; None if invalid."""
    size = group.size
    first, each = (
        read_pod(group.template.get(field), "").all_gpus for field in (group.leader, WORKER)
    )
    if gap := first_unknown(size, each, first):
        return gap
    if isinstance(size, int) and isinstance(each, int) and isinstance(first, int) and size > 0:
        return first + (size - 1) * each
    return None


_KUEUE = "kueue.x-k8s.io/queue-name"


def lws_queue(view: Sets) -> Iterator[Finding]:
    """The queue of a LeaderWorkerSet is in its own metadata, and its templates name no other.

    With gang scheduling, LWS gives the PodGroup of each group the queue of the annotation
    scheduling.volcano.sh/queue-name of the LeaderWorkerSet, and Volcano does not read the pods' one
    with a PodGroup. Kueue reads the label kueue.x-k8s.io/queue-name of the LeaderWorkerSet and
    writes it into the templates; from templates alone, it admits each pod by itself.

    Pass: queue-name research in metadata.annotations; the same in a template, too.
    Fail: queue-name research in a template, and none in metadata.annotations.
    Level: advisory. It has an effect if gang scheduling is off.
    Source: kubernetes-sigs/lws v0.7.0 to v0.10.0 pkg/schedulerprovider/volcano_provider.go
    CreatePodGroupIfNotExists; Volcano v1.14.1 pkg/controllers/podgroup/pg_controller_handler.go;
    kubernetes-sigs/kueue v0.19.2 pkg/controller/jobs/leaderworkerset/leaderworkerset_webhook.go
    podTemplateSpecDefault and pod/pod_webhook.go.
    """
    if view.object.group_kind != LEADER_WORKER_SET:
        return
    for group in view.groups:
        for field in (LEADER, WORKER):
            template = mapping(group.template.get(field))
            at = f"{group.path}.leaderWorkerTemplate.{field}.metadata"
            stated = mapping(template.get("metadata"))
            yield from _volcano(
                view, group, f"{at}.annotations", mapping(stated.get("annotations"))
            )
            yield from _kueue(view, f"{at}.labels", mapping(stated.get("labels")))


@part_of_rule
def _volcano(view: Sets, group: Group, at: str, notes: Mapping[str, Any]) -> Iterator[Finding]:
    if naming.QUEUE_NAME not in notes or VOLCANO not in group.schedulers:
        return
    yield from _differs(
        view, at, (notes, naming.QUEUE_NAME), "annotations", "the PodGroups of LWS take"
    )


@part_of_rule
def _kueue(view: Sets, at: str, labels: Mapping[str, Any]) -> Iterator[Finding]:
    if _KUEUE in labels:
        yield from _differs(view, at, (labels, _KUEUE), "labels", "Kueue takes for whole groups")


def _differs(
    view: Sets, at: str, stated: tuple[Mapping[str, Any], str], field: str, who: str
) -> Iterator[Finding]:
    """Compare the queue of a template with the queue of the LeaderWorkerSet."""
    held, key = stated
    path, above = f"{at}.{key}", f"metadata.{field}.{key}"
    own = text(mapping(view.object.metadata.get(field)).get(key))
    name = text(held.get(key))
    require_known(path, name, own)
    if name is None or name == own:
        return
    has = "has none" if own is None else f"has {display(own)}"
    seen = f"is {display(name)}, but the LeaderWorkerSet {has}, which is what {who}"
    up = write(name, f"write it in {above}", at=above)
    yield advise(path, seen, up if own is None else either(up, remove("remove it here")))
