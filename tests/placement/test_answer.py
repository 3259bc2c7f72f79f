"""What a change replaces: running groups of the same servings, HyperNodes and queues."""

from dataclasses import replace
from decimal import Decimal

from kthena_components.placement.answer import ask, without
from kthena_components.placement.inventory import parse_inventory
from kthena_components.placement.model import Cluster, Queue
from kthena_components.placement.owners import owner_of
from tests.cluster.objects import by_label, hyper_node
from tests.placement.test_inventory import GROUP, OBJECTS, Body, listed

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
