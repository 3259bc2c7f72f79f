"""Racks that hold the same are tried once, and every answer stays what it is if each is tried."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kthena_components.core.topology.domains import read_domains
from kthena_components.placement.model import (
    Cluster,
    Neighbour,
    Node,
    PodGroup,
    PodSet,
    SubGroupPolicy,
    Topology,
)
from kthena_components.placement.place import place
from kthena_components.placement.volcano.allocate import Allocator
from kthena_components.placement.volcano.equal_and_preferred_hypernodes import EqualCells
from kthena_components.placement.volcano.scheduler import Scheduler
from tests.support.for_each import for_each

RACKS = 20
GPU, HOST, RACK, POOL = "nvidia.com/gpu", "kubernetes.io/hostname", "rack", "pool"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
Body = Mapping[str, Any]


def _terms(kind: str, key: str, app: str) -> Body:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"affinity": {kind: {REQUIRED: [term]}}}


_APPS, _KEYS = st.sampled_from(("a", "b")), st.sampled_from((HOST, RACK, POOL))
_SPECS = st.one_of(
    st.just({}),
    st.just({"nodeSelector": {POOL: "pool-1"}}),
    st.builds(_terms, st.sampled_from(("podAffinity", "podAntiAffinity")), _KEYS, _APPS),
    st.builds(lambda port: {"containers": [{"ports": [{"hostPort": port}]}]}, st.integers(1, 2)),
    st.just({"topologySpreadConstraints": [
        {"topologyKey": RACK, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
         "labelSelector": {"matchLabels": {"app": "a"}}}]}),
)  # fmt: skip
_TOPOLOGY = st.sampled_from((
    None, Topology(hard=False), Topology(hard=True, highest_tier=1),
    Topology(hard=True, highest_tier=2),
))  # fmt: skip


@st.composite
def _clusters(draw: st.DrawFn) -> Cluster:
    """Draw up to six racks, of which most are equal but for the names of their nodes."""
    kinds = draw(st.lists(st.lists(st.sampled_from((0, 0, 4)), min_size=1, max_size=3),
                          min_size=1, max_size=2))  # fmt: skip
    nodes: list[Node] = []
    leaves: list[dict[str, Any]] = []
    for rack in range(draw(st.integers(2, 6))):
        selector = {"labelMatch": {"matchLabels": {RACK: f"rack-{rack}"}}}
        spec = {"tier": 1, "members": [{"type": "Node", "selector": selector}]}
        leaves.append({"kind": "HyperNode", "metadata": {"name": f"rack-{rack}"}, "spec": spec})
        pool = f"pool-{draw(st.integers(1, 2))}"
        for used in draw(st.sampled_from(kinds)):
            name = f"node-{len(nodes)}"
            labels = {HOST: name, RACK: f"rack-{rack}", POOL: pool}
            amounts = {"cpu": Decimal(64), GPU: Decimal(8), "pods": Decimal(110)}
            nodes.append(Node(
                name=name, body={"metadata": {"name": name, "labels": labels}},
                allocatable=amounts, used={GPU: Decimal(used), "pods": Decimal(1)} if used else {},
            ))  # fmt: skip
    members = [{"type": "HyperNode", "selector": {"exactMatch": {"name": f"rack-{at}"}}}
               for at in range(len(leaves))]  # fmt: skip
    bodies = [*leaves, {"kind": "HyperNode", "metadata": {"name": "spine"},
                        "spec": {"tier": 2, "members": members}}]  # fmt: skip
    labels_by_name = {node.name: node.body["metadata"]["labels"] for node in nodes}
    names = st.lists(st.sampled_from(sorted(labels_by_name)), max_size=2, unique=True)
    neighbours = [
        Neighbour(namespace="serving", nodes=tuple(draw(names)),
                  pods=PodSet(name="other", count=1, requests={}, spec=draw(_SPECS),
                              labels={"app": app}))
        for app in "ab"
    ]  # fmt: skip
    return Cluster(nodes=nodes, domains=read_domains(bodies, labels_by_name), hyper_nodes=bodies,
                   neighbours=[replace(one, pods=replace(one.pods, count=len(one.nodes)))
                               for one in neighbours if one.nodes])  # fmt: skip


@st.composite
def _groups(draw: st.DrawFn, number: int) -> PodGroup:
    engines = draw(st.integers(1, 2))
    pods = tuple(
        PodSet(name=f"pods-{at}", count=draw(st.integers(1, 3)), spec=draw(_SPECS),
               requests={"cpu": Decimal(1), GPU: Decimal(draw(st.sampled_from((2, 4, 8))))},
               labels={"app": draw(_APPS), "engine": str(at)},
               task=draw(st.sampled_from(("", "serve"))))
        for at in range(engines)
    )  # fmt: skip
    size = sum(one.count for one in pods)
    policy = SubGroupPolicy(name="engines", match_label_keys=("engine",), minimum=engines,
                            topology=draw(_TOPOLOGY))  # fmt: skip
    subgroups = (policy,) if draw(st.booleans()) else ()
    return PodGroup(namespace="serving", name=f"gang-{number}", owner=f"PodGroup gang-{number}",
                    pods=pods, minimum=draw(st.sampled_from((1, size))), topology=draw(_TOPOLOGY),
                    subgroups=subgroups)  # fmt: skip


def _each_alone(_: EqualCells, tier: Sequence[int], __: object) -> dict[int, Hashable]:
    return {at: at for at in tier}


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(_clusters(), st.tuples(_groups(0), _groups(1), _groups(2)))
def test_equal_racks_are_tried_once_and_no_answer_differs(
    cluster: Cluster, groups: tuple[PodGroup, ...]
) -> None:
    """Every node of every pod and every reason is that of a search that tries each rack."""
    found = place(cluster, groups)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(EqualCells, "names", _each_alone)
        assert place(cluster, groups) == found


def _racks(count: int) -> Cluster:
    """Describe racks of one node each."""
    names = [f"node-{at}" for at in range(count)]
    trees = [{"kind": "HyperNode", "metadata": {"name": f"rack-{at}"},
              "spec": {"tier": 1, "members": [
                  {"type": "Node", "selector": {"exactMatch": {"name": name}}}]}}
             for at, name in enumerate(names)]  # fmt: skip
    amounts = {"cpu": Decimal(64), GPU: Decimal(8), "pods": Decimal(110)}
    labels = {name: {HOST: name, POOL: f"pool-{at // 2}"} for at, name in enumerate(names)}
    nodes = [Node(name=name, body={"metadata": {"name": name, "labels": labels[name]}},
                  allocatable=amounts, used={}) for name in names]  # fmt: skip
    return Cluster(nodes=nodes, domains=read_domains(trees, labels), hyper_nodes=trees)


def _gang(spec: Body) -> PodGroup:
    pods = tuple(PodSet(name=f"gpus-{gpus}", count=1, requests={GPU: Decimal(gpus)}, spec=spec,
                        labels={"app": "a"}) for gpus in (2, 4))  # fmt: skip
    return PodGroup(namespace="serving", name="gang", owner="PodGroup gang", pods=pods, minimum=2,
                    topology=Topology(hard=True, highest_tier=1))  # fmt: skip


_PORT = {"containers": [{"ports": [{"hostPort": 1}]}]}
_SPREAD = {"topologySpreadConstraints": [
    {"topologyKey": HOST, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]}  # fmt: skip
_OTHER = {"app": "a"}


@for_each(
    ("asked", "beside", "alike"),
    [
        ({}, {}, 4),
        ({"nodeSelector": {POOL: "pool-1"}}, {}, 2),
        (_PORT, {}, 3),
        (_terms("podAntiAffinity", HOST, "a"), None, 4),
        (_terms("podAntiAffinity", POOL, "a"), None, 2),
        ({}, _terms("podAntiAffinity", HOST, "a"), 3),
        (_SPREAD, {}, 1),
    ],
    ids=["empty racks", "a selector", "a pod beside one", "a place of one rack",
         "a place of two racks", "a pod that keeps others away", "a spread over the cluster"],
)  # fmt: skip
def test_racks_are_equal_if_their_nodes_and_pods_are(
    asked: Body, beside: Body | None, alike: int
) -> None:
    """Of four racks, the largest number that are equal to each other."""
    others = PodSet(name="other", count=1, requests={}, spec=beside or {}, labels=_OTHER)
    one = Neighbour(namespace="serving", pods=others, nodes=("node-0",))
    cluster = replace(_racks(4), neighbours=() if beside is None else (one,))
    scheduler = Scheduler(cluster, [_gang(asked)])
    scheduler.neighbours.open_session()
    names = scheduler.allocator.equal.names(range(4), scheduler.jobs[0].tasks)
    assert max(Counter(names.values()).values()) == alike


def test_a_soft_topology_tries_each_rack() -> None:
    """A trial of a soft topology is remembered by the subgroup, so that none is left out."""
    policy = SubGroupPolicy(name="all", match_label_keys=("app",), size=2, minimum=1,
                            topology=Topology(hard=False))  # fmt: skip
    hard = replace(_gang({}), subgroups=(policy,))
    assert _trials(hard) > RACKS > _trials(_gang({}))


def _trials(group: PodGroup) -> int:
    """Count how often pods are put on nodes until a group is placed."""
    tried = 0
    real = Allocator._place

    def counting(self: Allocator, *args: Any) -> object:
        nonlocal tried
        tried += 1
        return real(self, *args)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Allocator, "_place", counting)
        place(_racks(RACKS), [group])
    return tried
