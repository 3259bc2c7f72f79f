"""Other pods decide where a pod can be: host ports, affinity between pods, spread constraints."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance.fit.constraints import broken
from kthena_components.placement.anonymous import with_names_of, without_names
from kthena_components.placement.from_objects import cluster_of
from kthena_components.placement.inventory import parse_inventory
from kthena_components.placement.inventory_write import write_inventory
from kthena_components.placement.model import Cause, Cluster, Neighbour, PodGroup, PodSet, Verdict
from kthena_components.placement.place import place
from tests.support.for_each import for_each
from tests.support.placement import GPU, cluster, group, node, pods

HOST, ZONE = "kubernetes.io/hostname", "zone"
APP = {"app": "chat"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
Body = Mapping[str, Any]


def affinity(kind: str, key: str = HOST, labels: Body | None = None, **more: object) -> Body:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": labels or APP}, **more}
    return {"affinity": {kind: {REQUIRED: [term]}}}


def apart(key: str = HOST, **more: Any) -> Body:
    return affinity("podAntiAffinity", key, **more)


def near(key: str = HOST, **more: Any) -> Body:
    return affinity("podAffinity", key, **more)


def port(number: int = 80, **more: object) -> Body:
    return {"containers": [{"ports": [{"hostPort": number, "protocol": "TCP", **more}]}]}


def spread(key: str = HOST, **more: object) -> Body:
    constraint = {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
                  "labelSelector": {"matchLabels": APP}, **more}  # fmt: skip
    return {"topologySpreadConstraints": [constraint]}


def like(spec: Body, count: int = 2, gpus: int = 1, task: str = "", **labels: str) -> PodSet:
    (made,) = (pods(count, gpus),)
    return replace(made, spec=spec, labels=labels or APP, task=task)


def other(spec: Body, name: str, namespace: str = "serving", **labels: str) -> Neighbour:
    return Neighbour(namespace=namespace, pods=like(spec, 1, 1, "", **labels), nodes=(name,))


def two(*neighbours: Neighbour, nodes: int = 2) -> Cluster:
    names = [chr(ord("a") + number) for number in range(nodes)]
    labels = {name: {HOST: name, ZONE: "left" if at < nodes / 2 else "right"}
              for at, name in enumerate(names)}  # fmt: skip
    there = cluster([node(name, labels=labels[name]) for name in names])
    return replace(there, neighbours=neighbours)


def gang(*sets: PodSet, **fields: Any) -> PodGroup:
    return group(*sets, **fields)


FITS, WAITS, NEVER = Verdict.FITS, Verdict.WAITS, Verdict.NEVER
ASKED: dict[str, tuple[Cluster, PodGroup, Verdict]] = {
    "one port, two nodes": (two(), gang(like(port())), FITS),
    "one port, three pods": (two(), gang(like(port(), 3)), NEVER),
    "two ports, one node": (two(nodes=1), gang(like(port(80), 1), like(port(81), 1)), FITS),
    "two protocols": (
        two(nodes=1), gang(like(port(), 1), like(port(protocol="UDP"), 1)), FITS),
    "two addresses": (two(nodes=1), gang(like(port(hostIP="10.0.0.1"), 1),
                                         like(port(hostIP="10.0.0.2"), 1)), FITS),
    "an address and all": (
        two(nodes=1), gang(like(port(hostIP="10.0.0.1"), 1), like(port(), 1)), NEVER),
    "a port that runs": (two(other(port(), "a", app="x")), gang(like(port())), WAITS),
    "a switched-off plugin": (
        replace(two(), scheduler=replace(two().scheduler, arguments={
            "predicates": {"predicate.NodePortsEnable": "false"}})),
        gang(like(port(), 3)), FITS),
    "apart by node": (two(), gang(like(apart())), FITS),
    "apart by node, three pods": (two(), gang(like(apart(), 3)), NEVER),
    "apart by zone": (two(nodes=4), gang(like(apart(ZONE))), FITS),
    "apart by zone, three pods": (two(nodes=4), gang(like(apart(ZONE), 3)), NEVER),
    "apart by a label that no node has": (two(), gang(like(apart("row"), 3)), FITS),
    "apart from others": (two(nodes=1), gang(like(apart(labels={"app": "x"}))), FITS),
    "apart from one that runs": (
        two(other({}, "a")), gang(like(apart(), 1), like(apart(), 1)), WAITS),
    "apart from one in another namespace": (two(other({}, "a", "elsewhere")),
                                            gang(like(apart())), FITS),
    "apart in a named namespace": (two(other({}, "a", "elsewhere")), gang(
        like(apart(namespaces=["elsewhere", "serving"]))), WAITS),
    "apart in all namespaces": (two(other({}, "a", "elsewhere")), gang(
        like(apart(namespaceSelector={}))), WAITS),
    "kept away by one that runs": (
        two(other(apart(), "a", app="x"), nodes=1), gang(like({}, 1)), WAITS),
    "not kept away within a session": (
        two(nodes=1), gang(like(apart(labels={"app": "y"}), 1, app="x"), like({}, 1, app="y")),
        FITS),
    "by the pod's own label": (two(nodes=1), gang(
        like(apart(matchLabelKeys=["hash"]), 1, app="chat", hash="1"),
        like(apart(matchLabelKeys=["hash"]), 1, app="chat", hash="2")), FITS),
    "near itself": (two(), gang(like(near(), 8)), FITS),
    "near itself, too many": (two(), gang(like(near(), 9)), NEVER),
    "near itself in a zone": (two(nodes=4), gang(like(near(ZONE), 16)), FITS),
    "near none": (two(), gang(like(near(labels={"app": "x"}), 1)), NEVER),
    "near one that runs": (two(other({}, "b", app="x")), gang(
        like(near(labels={"app": "x"}), 8)), FITS),
    "near a label that no node has": (two(), gang(like(near("row"), 1)), NEVER),
    "spread over two": (two(), gang(like(spread(), 2)), FITS),
    "spread over two, three of one role": (two(), gang(like(spread(), 3, task="t")), FITS),
    "spread over two, four of one role": (two(), gang(like(spread(), 4, task="t")), NEVER),
    "spread over two, four without a role": (two(), gang(like(spread(), 4)), FITS),
    "spread by chance": (two(), gang(like(spread(whenUnsatisfiable="ScheduleAnyway"), 8)), FITS),
    "spread beside one that runs": (two(other({}, "a"), nodes=1), gang(like(spread(), 1)), FITS),
    "spread over more than there are": (two(), gang(like(spread(minDomains=3), 3)), NEVER),
    "spread by a label that no node has": (two(), gang(like(spread("row"), 1)), NEVER),
    "spread of others": (two(nodes=1), gang(
        like(spread(labelSelector={"matchLabels": {"app": "x"}}), 4)), FITS),
    "spread over a selected node": (two(), gang(
        like({**spread(), "nodeSelector": {HOST: "a"}}, 4)), FITS),
    "spread over all nodes": (two(), gang(
        like({**spread(nodeAffinityPolicy="Ignore"), "nodeSelector": {HOST: "a"}}, 2)), NEVER),
}  # fmt: skip


@for_each("there, one, verdict", ASKED.values(), ids=ASKED)
def test_other_pods_decide(there: Cluster, one: PodGroup, verdict: Verdict) -> None:
    (outcome,) = place(there, [one])
    assert outcome.verdict is verdict
    if verdict is not FITS:
        (obstacle,) = outcome.obstacles
        chosen = any("nodeSelector" in each.spec for each in one.pods)
        assert obstacle.cause is (Cause.SELECTOR if chosen else Cause.NEIGHBOURS)
        assert obstacle.changes


def test_without_the_pods_that_run_nothing_is_said() -> None:
    """Their sums say nothing of their labels and ports. Where nothing runs, they are known."""
    asked = gang(like(port()))
    there = two()
    for nodes, verdict in (
        (there.nodes, FITS),
        ([replace(each, used={"cpu": Decimal(1)}) for each in there.nodes], Verdict.UNKNOWN),
    ):
        (outcome,) = place(replace(there, nodes=nodes, neighbours=None), [asked])
        assert outcome.verdict is verdict
        assert ("`neighbours`" in outcome.note) == (verdict is Verdict.UNKNOWN)
        (plain,) = place(replace(there, nodes=nodes, neighbours=None), [gang(like({}))])
        assert plain.verdict is FITS
    labelled = gang(like(apart(namespaceSelector={"matchLabels": {"team": "a"}})))
    (outcome,) = place(there, [labelled])
    assert outcome.verdict is Verdict.UNKNOWN
    assert "chooses namespaces by labels" in outcome.note


def test_what_runs_is_in_an_inventory_with_and_without_names() -> None:
    """Without names, fingerprints of equal labels and namespaces are still equal."""
    running = [
        *({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {HOST: name}},
           "status": {"allocatable": {GPU: "8", "cpu": "8", "pods": "9"},
                      "conditions": [{"type": "Ready", "status": "True"}]}} for name in "ab"),
        {"apiVersion": "v1", "kind": "Pod",
         "metadata": {"name": "web-1", "namespace": "serving", "labels": APP},
         "spec": {"nodeName": "a", **port(443), **apart(labels={"app": "x"})}},
    ]  # fmt: skip
    whole, findings = cluster_of(running)
    assert findings == []
    asked: dict[str, tuple[PodGroup, Verdict]] = {
        "another port": (gang(like(port(80), 2)), FITS),
        "the port": (gang(like(port(443), 2)), WAITS),
        "apart": (gang(like(apart(), 2)), WAITS),
        "apart from others": (gang(like(apart(labels={"app": "x"}), 2)), FITS),
        "kept away": (gang(like(apart(labels={"app": "y"}), 2, 8, app="x")), WAITS),
        "near": (gang(like(near(), 2, app="y")), FITS),
    }
    for there in (whole, without_names(whole)):
        read = parse_inventory(write_inventory(there))
        assert read.neighbours == there.neighbours
        for name, (one, verdict) in asked.items():
            (outcome,) = place(with_names_of(read, [one]), [one])
            assert (name, outcome.verdict) == (name, verdict)
    assert "chat" not in write_inventory(without_names(whole))


@settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from((port(80), port(81), apart(), apart(ZONE), spread(), {})),
                       st.integers(1, 4), st.sampled_from(("chat", "x"))), min_size=1, max_size=3),
    st.integers(1, 5),
)  # fmt: skip
def test_a_placement_keeps_what_pods_ask_of_each_other(
    sets: list[tuple[Body, int, str]], nodes: int
) -> None:
    """No host port is used twice on a node, and equal pods that must be apart are."""
    made = [like(spec, count, app=app) for spec, count, app in sets]
    one = gang(*(replace(each, name=f"role-{n}", task=f"role-{n}") for n, each in enumerate(made)))
    (outcome,) = place(two(nodes=nodes), [one])
    placed = {one.name: outcome.placement.nodes} if outcome.placement else {}
    assert list(broken(two(nodes=nodes), [one], placed)) == []
    assert bool(placed) == (outcome.verdict is FITS)
