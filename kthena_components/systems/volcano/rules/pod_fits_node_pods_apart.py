"""Rules about the given Nodes: each pod has room on one, and pods that stay apart have enough."""

from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cached_property, partial
from typing import Any

from kthena_components.core import naming
from kthena_components.core.findings import Finding, Level, count_of, not_checked, part_of_rule
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import (
    NODE,
    Amounts,
    GroupKind,
    Object,
    PodSet,
    copies_in,
    requests_of,
)
from kthena_components.core.topology.node_fit import (
    REQUIRED,
    apart_from,
    obstacles,
    tolerating_devices,
)
from kthena_components.core.values.quantity import is_accelerator, render_quantity
from kthena_components.core.values.read import mapping, require_known, sequence, unknown_within
from kthena_components.core.values.unknown import MaybeInt, Unknown, is_unresolved, known, total
from kthena_components.systems.volcano.rules.gang_fits_hypernode import nodes_of

_Test = Callable[[Object], bool]


class NodeChoice:
    """Some Nodes, and which of them pods may use. Pods with equal constraints are asked once."""

    def __init__(self, nodes: list[Object]) -> None:
        """Take the Nodes."""
        self.nodes = nodes
        self._own = {str(key) for one in nodes for key in mapping(one.metadata.get("labels"))}
        self._found: dict[str, tuple[list[Object], str]] = {}

    @cached_property
    def are_whole(self) -> bool:
        """Whether they have all labels of a cluster: the kubelet adds the label with the name."""
        return all(naming.HOSTNAME in mapping(one.metadata.get("labels")) for one in self.nodes)

    def usable(
        self,
        spec: Mapping[str, Any],
        asked: Collection[str],
        labels: Container[str] | None = None,
    ) -> tuple[list[Object], str]:
        """Return the Nodes on which pods may start, and the fields of the pods that exclude others.

        Args:
            spec: The spec of the pods.
            asked: The resources that they request.
            labels: The labels that are compared. None: those that a Node has.
        """
        affinity = mapping(spec.get("affinity")).get("nodeAffinity")
        stated = (*map(spec.get, ("nodeName", "nodeSelector", "tolerations")), affinity)
        key = repr((stated, sorted(asked), labels is None))
        if key not in self._found:
            tests = _tests(spec, self._own if labels is None else labels, asked)
            self._found[key] = _usable(self.nodes, [*tests])
        return self._found[key]


class _Every(Container[str]):
    """All labels."""

    def __contains__(self, key: object) -> bool:
        return True


def pod_fits_node(cluster: ClusterObjects) -> Iterator[Finding]:
    """A pod with accelerators requests at most what one of the given Nodes can allocate.

    The rule compares room if all given Nodes state what they can allocate, and assumes empty nodes.
    It leaves out Nodes that the nodeName, the nodeSelector or the required nodeAffinity of the pods
    excludes, and Nodes with a taint that the pods do not tolerate. It ignores a taint with the name
    of the resource, because an admission plugin may add the toleration. A label that no given Node
    has may be added later, so the rule compares it only if these are all objects of the cluster, or
    if each Node has the label kubernetes.io/hostname, as Nodes that are read from a cluster do.

    Pass: pods of 8 GPUs, and a Node with 8 GPUs.
    Fail: pods of 8 GPUs, and Nodes with 4 GPUs; a nodeSelector gpu h100, a Node of 4 GPUs with that
    label, and one of 8 GPUs with gpu a100.
    Level: mandatory if a Node of the same file has these accelerators, or if these are all objects
    of the cluster; else advisory, because the cluster may have other Nodes. Advisory for a label
    that no given Node has.
    Source: kubernetes pkg/scheduler/framework/plugins/noderesources/fit.go, nodename, nodeaffinity
    and tainttoleration there; plugin/pkg/admission/extendedresourcetoleration/admission.go.
    """
    stated = cluster.of(NODE)
    sizes = nodes_of(cluster) if stated else {}
    sources = {cluster.source_of(node) for node in stated}
    choice = NodeChoice(stated)
    for pods in cluster.pods if stated else ():
        asked = requests_of(pods)
        if isinstance(asked, Unknown):
            yield not_checked(pods.at("spec.containers"), asked)
        elif pods.count != 0 and any(map(is_accelerator, asked)):
            same = sources == {cluster.source_of(pods.owner)}
            yield from _placed(pods, asked, choice, sizes, same=same, whole=cluster.complete)


def _placed(
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
        _has_room(sizes[str(node.name)], asked) for node in allowed
    ):
        nodes = [sizes[str(node.name)] for node in allowed]
        yield from _without_room(pods, asked, nodes, by, same=same, whole=whole)
    elif whole or choice.are_whole:
        allowed, by = choice.usable(pods.spec, asked, _Every())
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


def _has_room(node: Amounts, asked: Mapping[str, Decimal]) -> bool:
    """Return whether an empty Node has room for a pod, of the amounts that it states."""
    if not all(key in node for key in asked if is_accelerator(key)):
        return False
    return all(node[key] >= amount for key, amount in asked.items() if key in node)


def _usable(nodes: list[Object], tests: list[tuple[str, _Test]]) -> tuple[list[Object], str]:
    """Return the Nodes on which pods may start, and the fields of the pods that exclude others."""
    left, by = nodes, list[str]()
    for field, test in tests:
        allowed = [node for node in left if test(node)]
        if len(allowed) < len(left):
            left = allowed
            by.append(field)
    return left, " and ".join(by)


def _tests(
    spec: Mapping[str, Any], stated: Container[str], asked: Collection[str]
) -> Iterator[tuple[str, _Test]]:
    """Return what decides which Nodes pods may use, by field. Unknown values decide nothing."""
    name, selector = spec.get("nodeName"), mapping(spec.get("nodeSelector"))
    if isinstance(name, str) and name and not is_unresolved(name):
        yield "nodeName", lambda node: node.name == name
    wanted = {
        key: value for key, value in selector.items() if key in stated and not is_unresolved(value)
    }
    yield "nodeSelector", partial(_accepts, {"nodeSelector": wanted, **_ALL_TAINTS})
    yield "nodeAffinity", partial(_accepts, {"affinity": _affinity(spec, stated), **_ALL_TAINTS})
    if not unknown_within(spec.get("tolerations")):
        tolerations = tolerating_devices(spec, asked)["tolerations"]
        yield "tolerations", partial(_accepts, {"tolerations": tolerations})


_ALL_TAINTS = {"tolerations": [{"operator": "Exists"}]}


def _accepts(fields: Mapping[str, Any], node: Object) -> bool:
    """Return whether a Node may accept pods, by some fields of their spec."""
    if unknown_within(node.metadata.get("labels")) or unknown_within(node.spec.get("taints")):
        return True
    return not any(obstacles(fields, node.body))


def _affinity(spec: Mapping[str, Any], stated: Container[str]) -> Mapping[str, Any]:
    """Return the required affinity to nodes, of labels that Nodes state; empty if none is left."""
    required = mapping(mapping(mapping(spec.get("affinity")).get("nodeAffinity")).get(REQUIRED))
    terms = [
        {
            **term,
            "matchExpressions": [
                each
                for each in map(mapping, sequence(term.get("matchExpressions")))
                if str(each.get("key")) in stated
            ],
        }
        for term in map(mapping, sequence(required.get("nodeSelectorTerms")))
    ]
    open_to_all = not all(term["matchExpressions"] or term.get("matchFields") for term in terms)
    if open_to_all or unknown_within(required):
        return {}
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}} if terms else {}


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


# Pods that share no Node, or no part of a topology.


def pods_apart_fit(cluster: ClusterObjects) -> Iterator[Finding]:
    """Pods or groups that may not share a node or rack have at least as many of them here.

    Pods whose required podAntiAffinity matches their own labels start only on Nodes with different
    values of the label topologyKey. Each group of a LeaderWorkerSet or JobSet with the annotation
    exclusive-topology, or of a RoleBasedGroupSet with group-exclusive-topology, needs its own value
    of the label that the annotation names. Nodes that the pods exclude do not count. A Node without
    the label takes any number of pods with podAntiAffinity, but no group. Jobs that start when
    others have ended are not compared.

    Pass: 2 replicas with podAntiAffinity over kubernetes.io/hostname, and 2 Nodes.
    Fail: 3 such replicas, and 2 Nodes; exclusive-topology rack, 3 groups, and Nodes of 2 racks.
    Level: mandatory if the Nodes are in the same file, or if these are all objects of the cluster;
    else advisory, because the cluster may have other Nodes.
    Source: kubernetes pkg/scheduler/framework/plugins/interpodaffinity/filtering.go;
    kubernetes-sigs/lws v0.9.0 pkg/webhooks/pod_webhook.go SetExclusiveAffinities;
    kubernetes-sigs/jobset v0.10 pkg/webhooks/pod_webhook.go setExclusiveAffinities;
    sgl-project/rbg v0.8.0-alpha.5 pkg/reconciler/pod_reconciler.go. Run on Volcano 1.14.1 and
    LeaderWorkerSet 0.9.0.
    """
    nodes = cluster.of(NODE)
    if not nodes:
        return
    sources, choice = {cluster.source_of(node) for node in nodes}, NodeChoice(nodes)
    for owned in cluster.pods_of.values():
        sure = sources == {cluster.source_of(owned[0].owner)}
        yield from _pods_apart(owned, choice, sure=sure)
        yield from _groups_apart(owned, choice, sure=sure)


@part_of_rule
def _pods_apart(owned: Sequence[PodSet], nodes: NodeChoice, *, sure: bool) -> Iterator[Finding]:
    """Compare the number of pods that stay apart with the number of domains of the Nodes."""
    seen = set[str]()
    for pods in owned:
        for path, key in apart_from(pods.spec, pods.labels) if pods.count != 0 else ():
            if key in seen:
                continue
            seen.add(key)
            among = [other for other in owned if _each_apart(pods, other, key)]
            at = pods.at(f"spec.{path}")
            number = known(total([other.count for other in among]), at)
            what = f"keeps {count_of(number, 'pod')} apart by {key}"
            domains = _domains(nodes, pods, key, free=True)
            yield from _enough(at, what, (number, "pod"), key, domains, sure=sure)


def _each_apart(pods: PodSet, other: PodSet, key: str) -> bool:
    """Return whether no two pods of two templates share a domain."""
    pairs = ((pods, other), (other, pods), (other, other))
    return all(key in {found for _, found in apart_from(a.spec, b.labels)} for a, b in pairs)


def _domains(nodes: NodeChoice, pods: PodSet, key: str, *, free: bool) -> int | None:
    """Count the values of the label `key` on the Nodes that take some pods.

    None: any number of them has room, `free` on Nodes without the label, or labels are not known.
    """
    asked = requests_of(pods)
    allowed, _ = nodes.usable(pods.spec, () if isinstance(asked, Unknown) else asked)
    labels = [node.metadata.get("labels") for node in allowed]
    if key == naming.HOSTNAME:
        return len(allowed)
    values = [mapping(stated).get(key) for stated in labels]
    if any(map(unknown_within, labels)) or (free and None in values):
        return None
    return len({str(value) for value in values if value is not None})


def _enough(
    path: str, what: str, several: tuple[int, str], key: str, domains: int | None, *, sure: bool
) -> Iterator[Finding]:
    """Report more pods or groups than domains: their number, and the word for one."""
    number, word = several
    if domains is None or number <= domains:
        return
    left = count_of(number - domains, word)
    values = count_of(domains, "value")
    fewer = f", or lower the number of {word}s to {domains}" if domains else ""
    yield Finding(
        path=path,
        seen=f"{what}, but the Nodes here that they may use have {values} of this label, so {left} "
        f"never {'starts' if number - domains == 1 else 'start'}",
        remedy=f"add Nodes with {count_of(number - domains, 'other value')} of {key}{fewer}",
        level=Level.MANDATORY if sure else Level.ADVISORY,
    )


_ALPHA, _LWS = "alpha.jobset.sigs.k8s.io", "leaderworkerset.sigs.k8s.io"
_OF_GROUPS: Mapping[GroupKind, str] = {
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): f"{_LWS}/exclusive-topology",
    ("jobset.x-k8s.io", "JobSet"): f"{_ALPHA}/exclusive-topology",
    ("workloads.x-k8s.io", "RoleBasedGroupSet"): "rbg.workloads.x-k8s.io/group-exclusive-topology",
}
"""By kind, the annotation that names the label of Nodes. Each group needs its own value of it."""


@part_of_rule
def _groups_apart(owned: Sequence[PodSet], nodes: NodeChoice, *, sure: bool) -> Iterator[Finding]:
    """Compare the number of groups that stay apart with the number of domains of the Nodes."""
    owner = owned[0].owner
    annotation = _OF_GROUPS.get(owner.group_kind)
    for at, key, groups in _exclusive(owner, annotation) if annotation else ():
        path = owner.at(f"{at}.{annotation}")
        require_known(path, key)
        if isinstance(key, str) and key:
            number = known(groups, path)
            what = f"keeps {count_of(number, 'group')} apart by {key}"
            domains = _domains(nodes, owned[0], key, free=False)
            yield from _enough(path, what, (number, "group"), key, domains, sure=sure)


def _exclusive(owner: Object, annotation: str) -> Iterator[tuple[str, object, MaybeInt]]:
    """Yield the path of the annotations, the label, and the number of groups that have one each."""
    at, annotations = "metadata.annotations", mapping(owner.metadata.get("annotations"))
    if owner.kind == "RoleBasedGroupSet":
        at = "spec.groupTemplate.annotations"
        annotations = mapping(mapping(owner.spec.get("groupTemplate")).get("annotations"))
    if owner.kind != "JobSet":
        yield at, annotations.get(annotation), copies_in(owner.spec.get("replicas"), 1)
        return
    jobs = list(map(mapping, sequence(owner.spec.get("replicatedJobs"))))
    past = [job.get("dependsOn") for job in jobs]
    if f"{_ALPHA}/node-selector" in annotations or unknown_within(past) or "Complete" in str(past):
        return
    numbers = [copies_in(job.get("replicas"), 1) for job in jobs]
    if annotation in annotations:
        yield at, annotations[annotation], total(numbers)
        return
    for index, (job, number) in enumerate(zip(jobs, numbers, strict=True)):
        metadata = mapping(mapping(job.get("template")).get("metadata"))
        stated = mapping(metadata.get("annotations")).get(annotation)
        yield f"spec.replicatedJobs[{index}].template.metadata.annotations", stated, number
