"""The rule pod-fits-node: a Node has room for each pod."""

from collections.abc import Iterator, Mapping
from decimal import Decimal

from kthena_components.core.findings import Finding, Level, not_checked
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import Amounts, PodSet, requests_of
from kthena_components.core.values.quantity import is_accelerator, render_quantity
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.volcano.rules.gang_fits_hypernode import NODE, nodes_of


def pod_fits_node(cluster: ClusterObjects) -> Iterator[Finding]:
    """A pod with accelerators requests at most what one of the given Nodes can allocate.

    It applies if all given Nodes state what they can allocate. The rule assumes empty nodes.

    Pass: pods of 8 GPUs, and a Node with 8 GPUs.
    Fail: pods of 8 GPUs, and Nodes with 4 GPUs.
    Level: mandatory if a Node of the same file has these accelerators, or if these are all objects
    of the cluster; else advisory, because the cluster may have other Nodes.
    Source: kubernetes pkg/scheduler/framework/plugins/noderesources/fit.go.
    """
    nodes, stated = list(nodes_of(cluster).values()), cluster.of(NODE)
    if not nodes or len(nodes) != len(stated):
        return
    sources = {cluster.source_of(node) for node in stated}
    for pods in cluster.pods:
        asked = requests_of(pods)
        if isinstance(asked, Unknown):
            yield not_checked(pods.at("spec.containers"), asked)
        elif pods.count != 0 and any(map(is_accelerator, asked)):
            same = sources == {cluster.source_of(pods.owner)}
            yield from _check(pods, asked, nodes, same=same, whole=cluster.complete)


def _check(
    pods: PodSet, asked: Mapping[str, Decimal], nodes: list[Amounts], *, same: bool, whole: bool
) -> Iterator[Finding]:
    if any(all(node.get(key, 0) >= asked[key] for key in asked if key in node) for node in nodes
           if all(key in node for key in asked if is_accelerator(key))):  # fmt: skip
        return
    key = next(filter(is_accelerator, asked))
    most = max(node.get(key, Decimal(0)) for node in nodes)
    known = any(key in node for node in nodes)
    what, has = (
        f"{render_quantity(asked[key])} of {key}",
        f"the largest has {render_quantity(most)}",
    )
    remedy = f"request at most {render_quantity(most)} in each pod, or add a larger Node"
    if most >= asked[key]:
        what, has, remedy = _beside(asked, key, nodes)
    elif most == 0:
        remedy = "add a Node with it"
    yield Finding(
        path=pods.at("spec.containers"),
        seen=f"request {what}, but of the {len(nodes)} Nodes here none has room for that, "
        f"{has}, so these pods never start",
        remedy=remedy,
        level=Level.MANDATORY if (known and same) or whole else Level.ADVISORY,
    )


def _beside(asked: Mapping[str, Decimal], key: str, nodes: list[Amounts]) -> tuple[str, str, str]:
    """Name what is short where there are enough accelerators: in the request, on Nodes, a remedy.

    Args:
        asked: The request.
        key: The accelerators.
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
