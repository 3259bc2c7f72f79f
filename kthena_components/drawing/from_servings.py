"""Makes the picture of a live cluster: the servings that `status` shows, on their nodes. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from kthena_components.cluster.objects import (
    Body,
    Listed,
    accelerators,
    known,
    labels_of,
    name_of,
    namespace_of,
    requested,
    status_of,
    title_of,
)
from kthena_components.cluster.pending import node_of
from kthena_components.cluster.status import (
    RUNNING,
    Servings,
    gang_of,
    role_of,
    state_of,
    waits,
)
from kthena_components.core import naming
from kthena_components.core.findings import count_of
from kthena_components.core.plan.templates import requests_of
from kthena_components.core.topology.domains import Domain, lowest
from kthena_components.core.values.unknown import Unknown
from kthena_components.drawing.picture import GroupRow, NodeBox, Picture, PodBox, node_box, racks_of

_ENDED = frozenset({"Succeeded", "Failed"})


def picture_of_servings(
    seen: Servings,
    pods: Listed,
    *,
    title: str = "Servings",
    taken: datetime | None = None,
    source: str = "",
) -> Picture:
    """Draw the pods of servings, and the GPUs that all pods of the cluster hold.

    Args:
        seen: The servings, with the nodes and HyperNodes of the cluster.
        pods: All pods of the cluster, also those that belong to no serving.
        title: The heading.
        taken: When the cluster was read.
        source: Where it was read: the name of a context.
    """
    asked: dict[str, list[Body]] = {}
    for (namespace, serving, group), owned in seen.groups.items():
        there = [pod for pod in owned if status_of(pod).get("phase") not in _ENDED]
        if there:
            asked[f"{namespace}/{group or serving}"] = there
    boxes = {group: [_box(pod, group) for pod in owned] for group, owned in asked.items()}
    held: dict[str, list[PodBox]] = {}
    for group, owned in asked.items():
        for pod, box in zip(owned, boxes[group], strict=True):
            held.setdefault(node_of(pod), []).append(box)
    domains: Sequence[Domain] = () if isinstance(seen.domains, Unknown) else seen.domains
    reasons = dict(waits(seen))
    groups = [_row(group, owned, boxes[group], domains, reasons) for group, owned in asked.items()]
    told = {title for group, owned in asked.items() for title in _titles(group, owned)}
    others = (f"{title}: {why}" for title, why in reasons.items() if title not in told)
    return Picture(
        title=title,
        racks=racks_of(_nodes(seen, pods, held), domains),
        groups=tuple(groups),
        taken=taken,
        source=source,
        notes=(*_hidden(seen, pods), *others),
    )


def _box(pod: Body, group: str) -> PodBox:
    state = "waiting"
    if node_of(pod):
        state = "running" if state_of(pod) == RUNNING else "placed"
    return PodBox(
        name=name_of(pod), group=group, engine=role_of(pod),
        gpus=accelerators(requests_of(dict(pod))), state=state,
    )  # fmt: skip


def _row(
    group: str,
    owned: Sequence[Body],
    boxes: Sequence[PodBox],
    domains: Sequence[Domain],
    reasons: Mapping[str, str],
) -> GroupRow:
    nodes = {node for node in map(node_of, owned) if node}
    unplaced = tuple(box for box in boxes if box.state == "waiting")
    runs = all(box.state == "running" for box in boxes)
    domain = lowest(domains, nodes)
    spread = count_of(len(nodes), "node")
    why = (reasons[title] for title in _titles(group, owned) if title in reasons)
    return GroupRow(
        title=group,
        serving=f"{namespace_of(owned[0])}/{labels_of(owned[0]).get(naming.NAME, '')}",
        verdict="waits" if unplaced else "runs" if runs else "starts",
        where=f"{domain}, {spread}" if domain else spread if nodes else "",
        reason=" ".join(text if text.endswith((".", "?")) else f"{text}." for text in why),
        gpus=sum(box.gpus for box in boxes),
        unplaced=unplaced,
    )


def _titles(group: str, owned: Sequence[Body]) -> list[str]:
    """List the titles under which `status` tells why a group waits."""
    gangs = (f"{namespace_of(pod)}/{gang_of(pod)}" for pod in owned if gang_of(pod))
    return [*dict.fromkeys((group, *gangs, *map(title_of, owned)))]


def _nodes(seen: Servings, pods: Listed, held: Mapping[str, Sequence[PodBox]]) -> Iterator[NodeBox]:
    """Describe the nodes that are listed, and those that only pods name."""
    of_servings = [pod for pod in seen.pods if node_of(pod)]
    used = requested(of_servings if isinstance(pods, Unknown) else pods)
    for node in known(seen.nodes):
        name = name_of(node)
        yield node_box(node, held.get(name, ()), accelerators(used.get(name, {})))
    for name in sorted({*held} - {"", *seen.by_name}):
        gpus = accelerators(used.get(name, {}))
        closed = "" if isinstance(seen.nodes, Unknown) else "not listed"
        yield NodeBox(name=name, gpus=gpus, used=gpus, pods=tuple(held[name]), closed=closed)


def _hidden(seen: Servings, pods: Listed) -> Iterator[str]:
    """Tell what could not be read."""
    if isinstance(seen.nodes, Unknown):
        yield f"Nodes and their free GPUs are not shown, because {seen.nodes.because}."
    elif isinstance(seen.domains, Unknown):
        yield f"Racks are not shown, because {seen.domains.because}."
    if isinstance(pods, Unknown):
        yield f"GPUs that other pods hold are not shown, because {pods.because}."
