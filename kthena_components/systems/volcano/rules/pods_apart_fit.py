"""The rule pods-apart-fit: pods that share no Node, or no part of a topology, have enough."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from kthena_components.core import naming
from kthena_components.core.findings import Finding, Level, count_of, part_of_rule
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
    Body,
    HostPort,
    NodeChoice,
    Spread,
    apart_from,
    host_ports,
    labels_of,
    selects,
    spreads,
    together_with,
)
from kthena_components.core.values.display import display
from kthena_components.core.values.read import mapping, require_known, sequence, unknown_within
from kthena_components.core.values.unknown import MaybeInt, Unknown, known, total
from kthena_components.systems.volcano.rules.gang_fits_hypernode import nodes_of
from kthena_components.systems.volcano.rules.pod_fits_node import has_room, size_of


def pods_apart_fit(cluster: ClusterObjects) -> Iterator[Finding]:
    """Pods or groups that may not share a node or rack have at least as many of them here.

    Pods whose required podAntiAffinity matches their own labels start only on Nodes with different
    values of the label topologyKey. Each group of a LeaderWorkerSet or JobSet with the annotation
    exclusive-topology, or of a RoleBasedGroupSet with group-exclusive-topology, needs its own value
    of the label that the annotation names. Nodes that the pods exclude do not count. A Node without
    the label takes any number of pods with podAntiAffinity, but no group. Pods of a Job that serve
    nothing and meet no others may start when others have ended, and are not compared. Pods with the
    same hostPort share no Node either: they need one each, and no other field may bind them to one.
    A topologySpreadConstraint with DoNotSchedule allows maxSkew pods more than the emptiest domain
    has, which is none while there are fewer domains than minDomains, or one in which the pods start
    on no Node, and no others that it counts. With nodeName, the scheduler is not asked.

    Pass: 2 replicas with podAntiAffinity over kubernetes.io/hostname, and 2 Nodes.
    Fail: 3 such replicas, and 2 Nodes; exclusive-topology rack, 3 groups, and Nodes of 2 racks;
    2 replicas with hostPort 9000, and 1 Node, or a nodeSelector kubernetes.io/hostname; 2 replicas
    with maxSkew 1 and minDomains 2 over racks, and Nodes of 1 rack.
    Level: mandatory if the Nodes are in the same file, if these are all objects of the cluster, or
    if the fields of the pods exclude each other; else advisory, because the cluster may have other
    Nodes. Advisory for groups of Jobs that may end.
    Source: kubernetes pkg/scheduler/framework/plugins/interpodaffinity/filtering.go,
    nodeports/node_ports.go and podtopologyspread/filtering.go there; pkg/kubelet/lifecycle
    predicate.go (what the kubelet checks); pkg/controller/job/job_controller.go (manageJob);
    kubernetes-sigs/lws v0.9.0 pkg/webhooks/pod_webhook.go SetExclusiveAffinities;
    kubernetes-sigs/jobset v0.10 pkg/webhooks/pod_webhook.go setExclusiveAffinities;
    sgl-project/rbg v0.8.0-alpha.5 pkg/reconciler/pod_reconciler.go. Run on Volcano 1.14.1 and
    LeaderWorkerSet 0.9.0.
    """
    nodes = cluster.of(NODE)
    sources, choice = {*map(cluster.source_of, nodes)}, NodeChoice([node.body for node in nodes])
    sizes = nodes_of(cluster)
    for owned in cluster.pods_of.values():
        sure = sources == {cluster.source_of(owned[0].owner)}
        if nodes:
            placed = [each for each in owned if not _is_free(cluster, each)]
            yield from _pods_apart(placed, choice, sure=sure)
            stay = not any(_may_wait(cluster, each) for each in owned)
            yield from _groups_apart(owned, choice, sure=sure and stay)
    for (source, port, _), taking in _by_host_port(cluster).items():
        yield from _host_ports_fit(taking, port, choice, sure=sources == {source})
    for (source, spread, *_), spreading in _by_spread(cluster).items():
        filled = partial(_counts_others, cluster, spreading, spread)
        yield from _spread_fits(spreading, spread, choice, sizes, filled, sure=sources == {source})


def _is_free(cluster: ClusterObjects, pods: PodSet) -> bool:
    """Return whether no scheduler places pods, or they may start when others have ended."""
    return bool(pods.spec.get("nodeName")) or _may_wait(cluster, pods)


_ENDING = frozenset({"Job", "CronJob", "JobSet"})
"""Kinds whose pods may end by themselves."""


def _may_wait(cluster: ClusterObjects, pods: PodSet) -> bool:
    """Return whether pods, which neither serve nor meet, may start when others have ended."""
    owner = pods.owner
    if owner.kind not in _ENDING:
        return False
    least = owner.spec.get("minAvailable")
    every = total([each.count for each in cluster.pods_of[owner.index]])
    if owner.group == "batch.volcano.sh" and (least is None or least == every):
        return False
    ports = cluster.listening(pods)
    return ports is None or (ports.answers is None and ports.asks is None)


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
    labels = [mapping(node.get("metadata")).get("labels") for node in allowed]
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


# Pods that take a port of their Node, and pods that are spread.


_SPREAD = "topologySpreadConstraints"
_Place = tuple[PodSet, str]
"""Pods, and the path of a port or of a constraint in their spec."""
_Taking = tuple[str, HostPort, int | None]


def _by_host_port(cluster: ClusterObjects) -> Mapping[_Taking, list[_Place]]:
    """Return the pods of each file that take one port of their Nodes; those that end by object.

    A port of all addresses is taken on each address, too: Kubernetes 1.34 staging/src/k8s.io/
    kube-scheduler/framework/types.go (HostPortInfo.CheckConflict).
    """
    found = defaultdict[_Taking, list[_Place]](list)
    for pods in cluster.pods:
        if pods.count == 0 or pods.owner.kind == "DaemonSet" or _may_wait(cluster, pods):
            continue
        alone = pods.owner.index if pods.owner.kind in _ENDING else None
        for path, port in host_ports(pods.spec):
            found[cluster.source_of(pods.owner), port, alone].append((pods, path))
    for source, (protocol, address, number), one in [*found]:
        everywhere: _Taking = (source, (protocol, "", number), one)
        if address and everywhere in found:
            found[source, (protocol, address, number), one] += found[everywhere]
    return found


@part_of_rule
def _host_ports_fit(
    listed: Sequence[_Place], port: HostPort, nodes: NodeChoice, *, sure: bool
) -> Iterator[Finding]:
    """Compare the number of pods that take one port with the Nodes that they may share."""
    pods, path = listed[0]
    at = pods.at(f"spec.{path}")
    what = f"takes port {port[2]} of the Node"
    for bound, by in _bound_together(listed):
        number = known(total([each.count for each in bound]), at)
        if number > 1:
            seen = f"{what} in {count_of(number, 'pod')}, but {by} puts them onto one Node, so "
            yield Finding(
                path=at,
                seen=f"{seen}{count_of(number - 1, 'pod')} never {_start(number - 1)}",
                remedy=f"remove the port of the Node, or remove {by}",
            )
            return
    apart = all(naming.HOSTNAME in {k for _, k in apart_from(p.spec, p.labels)} for p, _ in listed)
    if not nodes.nodes or apart:
        return
    number = known(total([each.count for each, _ in listed]), at)
    usable = {id(node) for each, _ in listed for node in _usable_by(nodes, each)}
    if 0 < len(usable) < number:
        short = number - len(usable)
        here = count_of(len(usable), "Node")
        yield Finding(
            path=at,
            seen=f"{what} in {count_of(number, 'pod')}, but they may use {here} here, so "
            f"{count_of(short, 'pod')} never {_start(short)}",
            remedy=f"remove the port of the Node, or add {count_of(short, 'Node')}",
            level=Level.MANDATORY if sure else Level.ADVISORY,
        )


def _bound_together(listed: Sequence[_Place]) -> Iterator[tuple[list[PodSet], str]]:
    """Yield pods that must share one Node, with the field that says so."""
    by_name = defaultdict[tuple[str, str], list[PodSet]](list)
    for pods, _ in listed:
        name, selector = pods.spec.get("nodeName"), mapping(pods.spec.get("nodeSelector"))
        host = selector.get(naming.HOSTNAME)
        stated = ("nodeName", name) if name else (f"nodeSelector {naming.HOSTNAME}", host)
        if isinstance(stated[1], str) and stated[1] and not unknown_within(stated[1]):
            by_name[stated[0], stated[1]].append(pods)
        for path, key in together_with(pods.spec, pods.labels):
            if key == naming.HOSTNAME:
                space = pods.owner.namespace
                others = [each for each, _ in listed if each.owner.namespace == space]
                yield [each for each in others if _joins(pods, each)], path
    yield from ((bound, f"{field} {display(name)}") for (field, name), bound in by_name.items())


def _joins(pods: PodSet, other: PodSet) -> bool:
    """Return whether two templates' pods share each Node."""
    both = ((pods, other), (other, pods))
    return all(naming.HOSTNAME in {k for _, k in together_with(a.spec, b.labels)} for a, b in both)


def _usable_by(nodes: NodeChoice, pods: PodSet) -> list[Body]:
    asked = requests_of(pods)
    return nodes.usable(pods.spec, () if isinstance(asked, Unknown) else asked)[0]


_Spreading = tuple[str, Spread, str, int | None, str]
_CHOOSING = ("nodeSelector", "affinity", "tolerations")


def _by_spread(cluster: ClusterObjects) -> Mapping[_Spreading, list[_Place]]:
    """Return the pods of each file that one spread constraint counts, on the same Nodes."""
    found = defaultdict[_Spreading, list[_Place]](list)
    for pods in cluster.pods:
        if pods.count == 0 or _SPREAD not in pods.spec or _is_free(cluster, pods):
            continue
        owner, where = pods.owner, repr([*map(pods.spec.get, _CHOOSING)])
        for each in spreads(pods.spec, pods.labels):
            alone = owner.index if owner.kind in _ENDING or each.by_template else None
            place = pods.path if each.by_template else ""
            key = cluster.source_of(owner), each, str(owner.namespace), alone, where + place
            found[key].append((pods, each.path))
    return found


def _counts_others(cluster: ClusterObjects, listed: Sequence[_Place], spread: Spread) -> bool:
    """Return whether a constraint may count pods that it does not bind."""
    own, space = {id(pods) for pods, _ in listed}, listed[0][0].owner.namespace
    return any(
        unknown_within(pods.labels) or selects(spread.selector, pods.labels)
        for pods in cluster.pods
        if id(pods) not in own and pods.count != 0 and pods.owner.namespace == space
    )


def _in_one_domain(path: str, spread: Spread, value: str, number: int) -> Iterator[Finding]:
    """Report pods that a nodeSelector keeps in one of the domains that they need."""
    short = number - spread.most
    if short > 0:
        yield Finding(
            path=path,
            seen=f"needs {count_of(spread.domains, 'domain')}, but the nodeSelector {spread.key}: "
            f"{value} leaves 1, which takes {count_of(spread.most, 'pod')} with maxSkew "
            f"{spread.most}, so {count_of(short, 'pod')} never {_start(short)}",
            remedy=f"remove minDomains, or remove {spread.key} from the nodeSelector",
        )


def _counting(spec: Body, spread: Spread) -> Body:
    """Return the fields of pods that decide on which Nodes a constraint counts."""
    taints = spec.get("tolerations") if spread.no_tainted else [{"operator": "Exists"}]
    return {**({} if spread.all_nodes else spec), "tolerations": taints}


@part_of_rule
def _spread_fits(
    listed: Sequence[_Place],
    spread: Spread,
    nodes: NodeChoice,
    sizes: Mapping[str, Amounts],
    filled: Callable[[], bool],
    *,
    sure: bool,
) -> Iterator[Finding]:
    """Compare the number of pods with those that the domains of a spread constraint take.

    `filled`: whether it counts others, which may be in domains where these start on no Node.
    """
    pods, path = listed[0]
    at, count = pods.at(f"spec.{path}"), total([each.count for each, _ in listed])
    selector = mapping(pods.spec.get("nodeSelector"))
    if isinstance(selector.get(spread.key), str) and spread.domains > 1 and not spread.all_nodes:
        return (yield from _in_one_domain(at, spread, selector[spread.key], known(count, at)))
    usable = _usable_by(nodes, pods) if nodes.nodes else []
    asked = requests_of(pods)
    if not usable or isinstance(asked, Unknown) or any(unknown_within(n) for n in nodes.nodes):
        return
    roomy = [n for n in usable if not (size := size_of(sizes, n)) or has_room(size, asked)]
    domains, taken = (
        {labels_of(n).get(spread.key) for n in some if spread.keys <= labels_of(n).keys()}
        for some in (nodes.usable(_counting(pods.spec, spread), asked)[0], roomy)
    )
    number, room = known(count, at), spread.most * len(taken)
    if number <= room:
        return
    if len(domains) < spread.domains or not taken or (domains > taken and not filled()):
        short = number - room
        least = "" if spread.domains <= max(len(domains), 1) else f" of {spread.domains}"
        have = count_of(len(domains), "value")
        yield Finding(
            path=at,
            seen=f"spreads {count_of(number, 'pod')} over {spread.key} with maxSkew {spread.most}, "
            f"but the Nodes here have {have}{least} of this label, and those with room take "
            f"{count_of(room, 'pod')}, so {count_of(short, 'pod')} never {_start(short)}",
            remedy=f"add Nodes with other values of {spread.key}, or write whenUnsatisfiable: "
            "ScheduleAnyway",
            level=Level.MANDATORY if sure else Level.ADVISORY,
        )


def _start(number: int) -> str:
    return "starts" if number == 1 else "start"
