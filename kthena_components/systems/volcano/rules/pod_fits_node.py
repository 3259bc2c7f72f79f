"""The rule pod-fits-node: each pod has room on one of the given Nodes."""

from collections.abc import Iterator, Mapping
from decimal import Decimal

from kthena_components.core.findings import Finding, Level, not_checked
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import NODE, Amounts, PodSet, requests_of
from kthena_components.core.topology.node_fit import Body, Every, NodeChoice
from kthena_components.core.values.quantity import is_accelerator, render_quantity
from kthena_components.core.values.read import mapping
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.volcano.rules.gang_fits_hypernode import nodes_of


def pod_fits_node(cluster: ClusterObjects) -> Iterator[Finding]:
    """A pod with accelerators requests at most what one of the given Nodes can allocate.

    The rule compares room if all given Nodes state what they can allocate, and assumes empty nodes.
    It leaves out Nodes that the nodeName, the nodeSelector or the required nodeAffinity of the pods
    excludes, and Nodes with a taint that the pods do not tolerate. With nodeName, only taints with
    the effect NoExecute count, because the kubelet checks no others. It ignores a taint with the
    name of the resource, because an admission plugin may add the toleration. A label that no given
    Node has may be added later, so the rule compares it only if these are all objects of the
    cluster, or if each Node has the label kubernetes.io/hostname, as Nodes that are read from a
    cluster do.

    Pass: pods of 8 GPUs, and a Node with 8 GPUs.
    Fail: pods of 8 GPUs, and Nodes with 4 GPUs; a nodeSelector gpu h100, a Node of 4 GPUs with that
    label, and one of 8 GPUs with gpu a100.
    Level: mandatory if a Node of the same file has these accelerators, or if these are all objects
    of the cluster; else advisory, because the cluster may have other Nodes. Advisory for a label
    that no given Node has.
    Source: kubernetes pkg/scheduler/framework/plugins/noderesources/fit.go, nodename, nodeaffinity
    and tainttoleration there; pkg/kubelet/lifecycle/predicate.go (generalFilter);
    plugin/pkg/admission/extendedresourcetoleration/admission.go.
    """
    stated = cluster.of(NODE)
    sizes = nodes_of(cluster) if stated else {}
    sources = {cluster.source_of(node) for node in stated}
    choice = NodeChoice([node.body for node in stated])
    for pods in cluster.pods if stated else ():
        asked = requests_of(pods)
        if isinstance(asked, Unknown):
            yield not_checked(pods.at("spec.containers"), asked)
        elif pods.count != 0 and any(map(is_accelerator, asked)):
            same = sources == {cluster.source_of(pods.owner)}
            yield from _check_nodes(pods, asked, choice, sizes, same=same, whole=cluster.complete)


def _check_nodes(
    pods: PodSet,
    asked: Mapping[str, Decimal],
    choice: NodeChoice,
    sizes: Mapping[str, Amounts],
    *,
    same: bool,
    whole: bool,
) -> Iterator[Finding]:
    """Report pods that none of the given Nodes takes, or has room for."""
    stated, (allowed, by) = choice.nodes, choice.usable(pods.spec, asked)
    if not allowed:
        yield _nowhere(pods, len(stated), by, same=same)
    elif len(sizes) == len(stated) and not any(
        has_room(size_of(sizes, node), asked) for node in allowed
    ):
        nodes = [size_of(sizes, node) for node in allowed]
        yield from _without_room(pods, asked, nodes, by, same=same, whole=whole)
    elif whole or choice.are_whole:
        allowed, by = choice.usable(pods.spec, asked, Every())
        if not allowed:
            yield _nowhere(pods, len(stated), by, same=False)


def _nowhere(pods: PodSet, count: int, by: str, *, same: bool) -> Finding:
    here = "the only Node here" if count == 1 else f"all {count} Nodes here"
    return Finding(
        path=pods.at("spec"),
        seen=f"keeps these pods off {here} by its {by}",
        remedy=f"change {by}, or add a Node that fits",
        level=Level.MANDATORY if same else Level.ADVISORY,
    )


def _without_room(
    pods: PodSet,
    asked: Mapping[str, Decimal],
    nodes: list[Amounts],
    by: str,
    *,
    same: bool,
    whole: bool,
) -> Iterator[Finding]:
    """Report that none of the Nodes has room for a pod, even if it is empty."""
    key = next(filter(is_accelerator, asked))
    most = max(node.get(key, Decimal(0)) for node in nodes)
    known = any(key in node for node in nodes)
    what, which = (
        f"{render_quantity(asked[key])} of {key}",
        "it" if len(nodes) == 1 else "the largest",
    )
    has = f"{which} has {render_quantity(most)}"
    remedy = f"request at most {render_quantity(most)} in each pod, or add a larger Node"
    here, room = f"none of the {len(nodes)} Nodes here", "has room"
    if len(nodes) == 1:
        here, room = "the only Node here", "has no room"
    if most >= asked[key]:
        what, has, remedy = _beside(asked, key, nodes)
    elif most == 0:
        remedy = f"add a Node with {render_quantity(asked[key])} of {key}"
    where = f" that {by} allows" if by else ""
    yield Finding(
        path=pods.at("spec.containers"),
        seen=f"request {what}, but {here}{where} {room} for that: {has}, so these pods never start",
        remedy=remedy,
        level=Level.MANDATORY if (known and same) or whole else Level.ADVISORY,
    )


def size_of(sizes: Mapping[str, Amounts], node: Body) -> Amounts:
    """Return what a Node can allocate, as far as it is stated."""
    return sizes.get(str(mapping(node.get("metadata")).get("name")), {})


def has_room(node: Amounts, asked: Mapping[str, Decimal]) -> bool:
    """Return whether an empty Node has room for a pod, of the amounts that it states."""
    if not all(key in node for key in asked if is_accelerator(key)):
        return False
    return all(node[key] >= amount for key, amount in asked.items() if key in node)


def _beside(asked: Mapping[str, Decimal], key: str, nodes: list[Amounts]) -> tuple[str, str, str]:
    """Name what is short where there are enough accelerators: in the request, on Nodes, a remedy.

    Args:
        nodes: All Nodes.
    """
    enough = [node for node in nodes if node.get(key, 0) >= asked[key]]
    what = f"{render_quantity(asked[key])} of {key}"
    for other in (each for each in asked if all(each in node for node in enough)):
        most = max(node[other] for node in enough)
        if most < asked[other]:
            most_of = f"{render_quantity(most)} of {other}"
            what += f" and {render_quantity(asked[other])} of {other}"
            has = f"those with enough accelerators have at most {most_of}"
            return what, has, f"request at most {most_of} in each pod, or add a larger Node"
    every = ", ".join(f"{render_quantity(amount)} of {name}" for name, amount in asked.items())
    has = "each lacks one of them"
    return every, has, "request less in each pod, or add a larger Node"
