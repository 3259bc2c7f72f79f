"""Checks that the queue of a LeaderWorkerSet stands where its schedulers read it."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core import naming
from kthena_components.core.findings import Finding, advise, part_of_rule
from kthena_components.core.objects.object import VOLCANO
from kthena_components.core.remedies import either, remove, write
from kthena_components.core.values.display import display
from kthena_components.core.values.read import mapping, require_known, text
from kthena_components.systems.lws.view import LEADER, LEADER_WORKER_SET, WORKER, Group, Sets

_KUEUE = "kueue.x-k8s.io/queue-name"


def lws_queue(view: Sets) -> Iterator[Finding]:
    """The queue of a LeaderWorkerSet is in its own metadata, and its templates name no other.

    With gang scheduling, LWS gives the PodGroup of each group the queue of the annotation
    scheduling.volcano.sh/queue-name of the LeaderWorkerSet, and Volcano does not read that of pods
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
    """Compare a queue of a template with that of the LeaderWorkerSet."""
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
