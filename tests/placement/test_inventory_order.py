"""An inventory keeps the orders by which the scheduler decides, with names and without."""

from typing import Any

import yaml

from kthena_components.placement.anonymous import without_names
from kthena_components.placement.inventory import parse_inventory
from kthena_components.placement.inventory_write import write_inventory
from tests.cluster.objects import racks
from tests.placement.test_inventory import of_kind

Body = dict[str, Any]
ENGINE = "engine"


def aged(kind: str, name: str, second: int, **fields: Any) -> Body:
    """Return an object of Volcano that was created at a second."""
    group = "v1" if kind == "Pod" else "scheduling.volcano.sh/v1beta1"
    space = {} if kind == "Queue" else {"namespace": "serving"}
    metadata = {"name": name, "creationTimestamp": f"2026-01-01T00:00:{second:02}Z", **space}
    return {"apiVersion": group, "kind": kind, "metadata": metadata | fields.pop("metadata", {}),
            **fields}  # fmt: skip


def waiting_pod(name: str, group: str, gpus: int) -> Body:
    limits = {"requests": {"nvidia.com/gpu": str(gpus)}}
    spec = {"schedulerName": "volcano", "containers": [{"name": "a", "resources": limits}]}
    named = {"annotations": {"scheduling.k8s.io/group-name": group}, "uid": name}
    return aged("Pod", name, 5, metadata=named, spec=spec)


def test_groups_pods_and_queues_are_in_the_order_of_the_scheduler() -> None:
    """Old groups and queues come first, and pods by the number at the end of their names."""
    pods = [("a-decode-0", 8), ("a-decode-1", 8), ("a-decode-10", 8), ("a-prefill-0", 4),
            ("a-prefill-1", 4), ("a-prefill-2", 4)]  # fmt: skip
    objects = [
        *of_kind("Node", racks(1, 1)),
        *(aged("Queue", name, 9 - at) for at, name in enumerate(("q-1", "q-2"))),
        *(aged("PodGroup", name, 9 - at, spec={"minMember": 1})
          for at, name in enumerate(("a", "b", "c"))),
        *(waiting_pod(f"{name}-0", name, 1) for name in "bc"),
        *(waiting_pod(name, "a", gpus) for name, gpus in pods),
    ]  # fmt: skip
    cluster = parse_inventory(yaml.safe_dump_all(objects))
    read = parse_inventory(write_inventory(cluster))
    assert [group.name for group in read.waiting] == ["c", "b", "a"]
    assert [queue.name for queue in read.queues] == ["q-2", "q-1"]
    sets = [(str(each.requests["nvidia.com/gpu"]), each.count) for each in read.waiting[2].pods]
    assert sets == [("8", 1), ("4", 1), ("8", 1), ("4", 2), ("8", 1)]


def test_without_names_subgroups_keep_their_order() -> None:
    policies = [
        {"name": role, "labelSelector": {"matchLabels": {"role": role}}, "matchLabelKeys": [ENGINE]}
        for role in ("prefill", "decode")
    ]
    group = aged("PodGroup", "a", 1, spec={"minMember": 1, "subGroupPolicy": policies})
    pods = [waiting_pod(f"a-{role}-{n}", "a", 1) for role in ("decode", "prefill") for n in (2, 10)]
    for pod in pods:
        _, role, number = pod["metadata"]["name"].split("-")
        pod["metadata"]["labels"] = {"role": role, ENGINE: number}
    named = parse_inventory(yaml.safe_dump_all([*of_kind("Node", racks(1, 1)), group, *pods]))
    hidden = without_names(named)
    (old,), (new,) = named.waiting, hidden.waiting
    numbers = [[pods.labels[ENGINE] for pods in group.pods] for group in (old, new)]
    assert numbers[0] == numbers[1] == ["2", "2", "10", "10"]
    assert new.subgroups[0].name > new.subgroups[1].name, "as prefill and decode"
    assert "decode" not in write_inventory(hidden)
