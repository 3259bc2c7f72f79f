"""Makes the picture of a cluster on which groups are placed. Pure."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from kthena_components.cluster.objects import accelerators
from kthena_components.core.findings import count_of
from kthena_components.core.topology.domains import holds
from kthena_components.core.values.display import sentence
from kthena_components.core.values.read import mapping, sequence
from kthena_components.drawing.picture import GroupRow, NodeBox, Picture, PodBox, node_box, racks_of
from kthena_components.placement.model import Cluster, Node, Outcome, PodGroup, PodSet

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
    """Draw what runs on a cluster together with the groups that are asked about.

    Args:
        cluster: What is there. A group that runs there and is placed again is drawn twice.
        outcomes: The groups that are asked about.
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
            _row(one, is_changed=changed is None or one.group.title in changed) for one in outcomes
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
        wanted = mapping(policy.match_labels.get("matchLabels"))
        expressions = sequence(policy.match_labels.get("matchExpressions"))
        if all(pods.labels.get(key) == value for key, value in wanted.items()) and all(
            holds(mapping(item), pods.labels) for item in expressions
        ):
            return max(1, policy.size)
    return 1


def _places(outcome: Outcome) -> Iterator[tuple[str, PodBox]]:
    """Pair each pod with its node; no node for one that waits."""
    nodes = outcome.placement.nodes if outcome.placement else ()
    for index, pod in enumerate(pods_of(outcome.group, "placed")):
        name = nodes[index] if index < len(nodes) else ""
        yield name, pod if name else replace(pod, state="waiting")


def _row(outcome: Outcome, *, is_changed: bool) -> GroupRow:
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
