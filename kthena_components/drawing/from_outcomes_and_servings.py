"""Makes the picture of a cluster: with the groups placed on it, or with those that run. Pure."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
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
from kthena_components.cluster.status import RUNNING, Servings, gang_of, role_of, state_of, waits
from kthena_components.core import naming
from kthena_components.core.findings import count_of
from kthena_components.core.plan.templates import requests_of
from kthena_components.core.topology.domains import Domain, lowest, matches
from kthena_components.core.values.display import sentence
from kthena_components.core.values.read import mapping
from kthena_components.core.values.unknown import Unknown
from kthena_components.drawing.picture import GroupRow, NodeBox, Picture, PodBox, node_box, racks_of
from kthena_components.placement.model import Cluster, Node, Outcome, PodGroup, PodSet

# Makes the picture of a cluster on which groups are placed. Pure.


LOST = "lost"


def picture_of(
    cluster: Cluster,
    outcomes: Sequence[Outcome],
    *,
    title: str = "Placement",
    changed: Collection[str] | None = None,
    lost: Collection[str] = (),
    before: Picture | None = None,
) -> Picture:
    """Draw what runs on a cluster, together with the groups that `fit` places.

    Args:
        cluster: What is there. A group that runs there and is placed again is drawn twice.
        title: The heading.
        changed: Titles of the groups that a pull request changes. None: all of them.
        lost: Names of nodes that fail. What ran on them is drawn as lost.
        before: The picture of the state before the change.
    """
    held: dict[str, list[PodBox]] = {}
    for running in cluster.running:
        for name, pod in zip(running.nodes, pods_of(running.group, "running"), strict=False):
            held.setdefault(name, []).append(replace(pod, state=LOST) if name in lost else pod)
    planned: Counter[str] = Counter()
    for outcome in outcomes:
        for name, pod in _places(outcome):
            if name:
                held.setdefault(name, []).append(pod)
                planned[name] += pod.gpus
    nodes = [
        _node(node, held.get(node.name, ()), planned[node.name], lost) for node in cluster.nodes
    ]
    return Picture(
        title=title,
        racks=racks_of(nodes, cluster.domains),
        groups=tuple(
            _row_of_group(one, is_changed=changed is None or one.group.title in changed)
            for one in outcomes
        ),
        before=before,
        taken=cluster.taken,
        source=cluster.source,
        notes=tuple(_strangers(held, {node.name for node in cluster.nodes})),
    )


def pods_of(group: PodGroup, state: str) -> Iterator[PodBox]:
    """List the pods of a group in their order."""
    for pods in group.pods:
        gpus, size = accelerators(pods.requests), _engine_size(group, pods)
        for index in range(pods.count):
            yield PodBox(
                name=f"{group.name}-{pods.name}-{index}",
                group=group.title,
                engine=f"{pods.name}-{index // size}",
                gpus=gpus,
                state=state,
            )


def _engine_size(group: PodGroup, pods: PodSet) -> int:
    """Return how many pods of a set form one engine: those of one subgroup."""
    for policy in group.subgroups:
        if matches(policy.match_labels, pods.labels):
            return max(1, policy.size)
    return 1


def _places(outcome: Outcome) -> Iterator[tuple[str, PodBox]]:
    """Pair each pod with its node; no node for one that waits."""
    nodes = outcome.placement.nodes if outcome.placement else ()
    for index, pod in enumerate(pods_of(outcome.group, "placed")):
        name = nodes[index] if index < len(nodes) else ""
        yield name, pod if name else replace(pod, state="waiting")


def _row_of_group(outcome: Outcome, *, is_changed: bool) -> GroupRow:
    """Describe a group for the page: its verdict, its place, and why it does not fit."""
    group, placement = outcome.group, outcome.placement
    said = [outcome.note, *(obstacle.text for obstacle in outcome.obstacles)]
    if group.unknown:
        said.append(f"not checked, because {group.unknown.because}")
    changes = [change.text for obstacle in outcome.obstacles for change in obstacle.changes]
    return GroupRow(
        title=group.title,
        serving=group.owner,
        verdict=outcome.verdict.value,
        where=_where(outcome) if placement else "",
        reason=" ".join(sentence(text) for text in (*said, *changes[:1]) if text),
        gpus=sum(accelerators(pods.requests) * pods.count for pods in group.pods),
        unplaced=tuple(pod for name, pod in _places(outcome) if not name),
        changed=is_changed,
    )


def _where(outcome: Outcome) -> str:
    placement = outcome.placement
    if placement is None:
        return ""
    nodes = {name for name in placement.nodes if name}
    spread = count_of(len(nodes), "node")
    return f"{placement.domain}, {spread}" if placement.domain else spread


def _node(node: Node, pods: Sequence[PodBox], planned: int, lost: Collection[str]) -> NodeBox:
    body = {**node.body, "metadata": {**mapping(node.body.get("metadata")), "name": node.name}}
    box = node_box(body, pods, accelerators(node.used) + planned)
    closed = "" if node.accepts_pods else box.closed or "closed"
    return NodeBox(
        name=node.name, gpus=accelerators(node.allocatable), used=box.used, pods=box.pods,
        product=box.product, closed=LOST if node.name in lost else closed,
    )  # fmt: skip


def _strangers(held: dict[str, list[PodBox]], known: AbstractSet[str]) -> Iterator[str]:
    """Tell of pods on nodes that the cluster does not list."""
    missing = sorted(name for name in held if name and name not in known)
    if missing:
        number = sum(len(held[name]) for name in missing)
        yield (
            f"{count_of(number, 'pod')} on nodes that are not listed: {', '.join(missing[:3])}"
            f"{f' and {len(missing) - 3} more' if len(missing) > 3 else ''}."  # noqa: PLR2004
        )


# Makes the picture of a live cluster: the servings that `status` shows, on their nodes. Pure.


_ENDED = ("Succeeded", "Failed")


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
    drawn = {title for group, owned in asked.items() for title in _titles(group, owned)}
    others = (f"{title}: {why}" for title, why in reasons.items() if title not in drawn)
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
    """Return the row of a group that runs in the cluster."""
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
