"""What a change replaces: running groups of the same servings, HyperNodes and queues."""

from dataclasses import replace
from decimal import Decimal

from kthena_components.placement.anonymous import without_names
from kthena_components.placement.answer import answer, ask, without
from kthena_components.placement.inventory import parse_inventory
from kthena_components.placement.model import Cluster, Queue, Running, Scheduler, Verdict
from kthena_components.placement.pod_sets import owner_of
from kthena_components.placement.workloads import pod_groups_of
from tests.cluster.objects import by_label, hyper_node
from tests.placement.test_inventory import GROUP, OBJECTS, Body, listed
from tests.support import placement
from tests.support.for_each import for_each
from tests.support.placement import GPU

QUEUES = (
    Queue(name="team", parent="root", used={"nvidia.com/gpu": Decimal(16)}),
    Queue(name="root", used={"nvidia.com/gpu": Decimal(18)}),
)


def cluster() -> Cluster:
    return replace(parse_inventory(listed(*OBJECTS), "dump.json"), queues=QUEUES)


def test_what_is_taken_off_is_free_on_its_nodes_queues_and_quotas() -> None:
    before = cluster()
    after = without(before, [before.running[0]])
    used = {node.name: node.used for node in after.nodes}
    assert {key: amount for key, amount in used["n-0-0"].items() if amount} == {}
    assert used["n-1-0"]["nvidia.com/gpu"] == 2
    assert [queue.used["nvidia.com/gpu"] for queue in after.queues] == [0, 2]
    assert after.quotas[0].used["requests.nvidia.com/gpu"] == 0
    assert [one.group.name for one in after.running] == ["other"]


def test_a_changed_group_replaces_the_running_one_and_another_does_not() -> None:
    pod = {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "namespace": "serving",
                     "annotations": {"scheduling.k8s.io/group-name": "chat-0"}},
        "spec": {"schedulerName": "volcano", "containers": [
            {"name": "e", "resources": {"limits": {"nvidia.com/gpu": 4}}}]},
    }  # fmt: skip
    changed = ask(cluster(), [GROUP, pod])
    assert (len(changed.groups), dict(changed.staying)) == (1, {})
    assert [one.group.name for one in changed.cluster.running] == ["other"]
    elsewhere: Body = {**GROUP, "metadata": {"name": "new", "namespace": "serving"}}
    new = ask(cluster(), [elsewhere])
    assert len(new.cluster.running) == 2


def test_hyper_nodes_and_queues_of_the_objects_count() -> None:
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
        "metadata": {"name": "team"}, "spec": {"capability": {"nvidia.com/gpu": 8}},
    }  # fmt: skip
    top = hyper_node("top", 2, by_label("r0"), by_label("r1"))
    asked = ask(cluster(), [queue, top]).cluster
    assert {domain.name for domain in asked.domains} == {"r0", "r1", "spine", "top"}
    (root, team) = asked.queues
    assert root.name == "root"
    assert team.capability == {"nvidia.com/gpu": 8}
    assert team.used == {"nvidia.com/gpu": 16}


def test_the_owner_of_a_deployments_pod_is_the_deployment() -> None:
    pod = {
        "kind": "Pod",
        "metadata": {
            "name": "chat-7d9f-x", "namespace": "a", "labels": {"pod-template-hash": "7d9f"},
            "ownerReferences": [{"kind": "ReplicaSet", "name": "chat-7d9f", "controller": True}],
        },
    }  # fmt: skip
    assert owner_of(pod) == "Deployment a/chat"
    assert owner_of({"kind": "Pod", "metadata": {"name": "p"}}) == "Pod default/p"


def workload(kind: str, version: str, spec: Body, gpus: int) -> Body:
    """Describe an object of two replicas."""
    container = {"name": "e", "image": "e", "resources": {"limits": {GPU: str(gpus)}}}
    template = {"metadata": {"labels": {"app": "web"}},
                "spec": {"schedulerName": "volcano", "containers": [container]}}  # fmt: skip
    if kind == "LeaderWorkerSet":
        whole = {"leaderWorkerTemplate": {"size": 1, "workerTemplate": template}}
    else:
        whole = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    metadata = {"name": "web", "namespace": "serving"}
    return {"apiVersion": version, "kind": kind, "metadata": metadata,
            "spec": {"replicas": 2, **whole, **spec}}  # fmt: skip


def rolling(**budgets: object) -> Body:
    return {"strategy": {"type": "RollingUpdate", "rollingUpdate": budgets}}


def lws(**budgets: object) -> Body:
    rolled = {"type": "RollingUpdate", "rollingUpdateConfiguration": budgets}
    return {"rolloutStrategy": rolled}


APPS, LWS = ("Deployment", "apps/v1"), ("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1")
NEEDS = "during its update, 1 pod beside the old ones must fit"
UPDATES: dict[str, tuple[tuple[str, str], Body, int, str]] = {
    "the defaults of a Deployment": (APPS, {}, 2, f"{NEEDS}, and the update never ends otherwise"),
    "no old one stops": (APPS, rolling(maxSurge=1, maxUnavailable=0), 2,
                         f"{NEEDS}, and the update never ends otherwise: 1 pod cannot"),
    "an old one may stop": (APPS, rolling(maxSurge=1, maxUnavailable=1), 2, f"{NEEDS}: 1 pod"),
    "with the change": (APPS, rolling(maxSurge=1), 2, "Add one node like a"),
    "all old ones at once": (APPS, rolling(maxSurge="100%"), 2, "during its update, 2 pods beside"),
    "no surge": (APPS, rolling(maxSurge=0), 2, ""),
    "old pods first": (APPS, {"strategy": {"type": "Recreate"}}, 2, ""),
    "a free node": (APPS, rolling(maxSurge=1), 3, ""),
    "groups": (LWS, lws(maxSurge=1), 2, NEEDS),
    "groups, and a free node": (LWS, lws(maxSurge=1), 3, ""),
    "groups without a surge": (LWS, {}, 2, ""),
    "a StatefulSet": (("StatefulSet", "apps/v1"), {"serviceName": "web"}, 2, ""),
}  # fmt: skip


@for_each("kind, spec, nodes, told", UPDATES.values(), ids=UPDATES)
def test_an_update_needs_room_for_its_surge(
    kind: tuple[str, str], spec: Body, nodes: int, told: str
) -> None:
    """Two replicas that run get 7 GPUs in place of 8. Nothing is said if nothing is replaced."""
    old = pod_groups_of([workload(*kind, spec, 8)])
    names = ["a", "b", "c"][:nodes]
    where = iter(names)
    running = tuple(
        Running(group=one, nodes=tuple(next(where) for _ in range(one.size))) for one in old
    )
    full = placement.cluster([placement.node(name, used=8 * (name != "c")) for name in names])
    there = replace(full, running=running)
    changed = answer(ask(there, [workload(*kind, spec, 7)]))
    assert {one.verdict for one in changed} == {Verdict.FITS}
    said = " ".join(one.note for one in changed).strip()
    assert told in said
    assert bool(said) == bool(told)
    for cluster_, gpus in ((there, 8), (replace(full, running=()), 7)):
        assert NEEDS not in str([one.note for one in answer(ask(cluster_, [
            workload(*kind, spec, gpus)]))])  # fmt: skip


def test_a_version_and_plugins_that_are_not_known_are_told() -> None:
    known = replace(cluster(), scheduler=Scheduler(version="v1.15.2-a", plugins=frozenset({"sla"})))
    assert not ask(known, []).cluster.notes
    other = Scheduler(version="latest", plugins=frozenset({"gnag", "gang", "mine"}))
    assert list(ask(replace(known, scheduler=other), []).cluster.notes) == [
        "the scheduler's version latest is not known: the model knows 1.14 and 1.15",
        (
            "Volcano has no plugin 'gnag', so what it does is not modelled; write 'gang' if that "
            "is meant"
        ),
        "Volcano has no plugin 'mine', so what it does is not modelled",
    ]


def claiming(*names: str) -> Body:
    body = workload(*APPS, {}, 1)
    body["spec"]["template"]["spec"]["volumes"] = [
        {"name": f"v{n}", "persistentVolumeClaim": {"claimName": name}}
        for n, name in enumerate(names)
    ]
    return body


def claim(name: str, namespace: str = "serving") -> Body:
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": namespace}, "spec": {}}  # fmt: skip


def without_claims() -> list[Body]:
    return [each for each in OBJECTS if each["kind"] != "PersistentVolumeClaim"]


LISTED = claim("models")
MISSING_CLAIMS: dict[str, tuple[list[Body], list[Body], str]] = {
    "it is listed": ([LISTED], [claiming("models")], ""),
    "it is among the files": ([LISTED], [claiming("cache"), claim("cache")], ""),
    "the inventory lists no claims": ([], [claiming("cache")], ""),
    "only the files have claims": ([], [claiming("cache", "other"), claim("cache")], ""),
    "nobody has it": ([LISTED], [claiming("models", "cache")], "PersistentVolumeClaim 'cache'"),
    "another namespace has it": (
        [LISTED, claim("cache", "team")], [claiming("cache")], "in the namespace 'serving'",
    ),
}  # fmt: skip


@for_each(("name", "row"), MISSING_CLAIMS.items())
def test_pods_wait_for_a_claim_that_nobody_has(
    name: str, row: tuple[list[Body], list[Body], str]
) -> None:
    """Source: Kubernetes 1.34 plugins/volumebinding: a pod whose claim is not found is not bound.

    The claim may have been made since the inventory was read, so it is not said that they wait.
    """
    there, objects, told = row
    cluster = parse_inventory(listed(*without_claims(), *there), "dump.json")
    for each in (cluster, without_names(cluster)):
        for outcome in answer(ask(each, objects)):
            assert bool(told) == (outcome.verdict is Verdict.UNKNOWN), (name, outcome)
            assert told in outcome.note


def test_a_group_that_runs_stays_without_its_claim() -> None:
    """Kubernetes keeps a claim until no pod uses it, so the inventory is what lacks it."""
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "cache"}}]
    pods = [{**each, "spec": {**each["spec"], "volumes": volumes}}
            for each in OBJECTS if str(each["metadata"]["name"]).startswith("chat-0-")]  # fmt: skip
    asked = ask(parse_inventory(listed(*OBJECTS), "dump.json"), [GROUP, *pods])
    assert len(asked.staying) == 1
    assert [one.verdict for one in answer(asked)] == [Verdict.FITS]
