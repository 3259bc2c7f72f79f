"""What several rules share of the objects of a cluster."""

from typing import Any

from kthena_components.checker.read_cluster_objects import read_objects
from kthena_components.core.objects.cluster_objects import running_pods
from kthena_components.core.values.unknown import Unknown
from tests.support.peers import LATE


def _deployment(name: str, replicas: int) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c"}]}}
    spec = {"replicas": replicas, "template": template}
    metadata = {"name": name, "namespace": "serving"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def test_each_rule_has_its_own_number_of_comparisons() -> None:
    cluster = read_objects([_deployment("chat", 1), _deployment("idle", 0)], ["a", "b"])
    first, second = running_pods(cluster)["serving"], running_pods(cluster)["serving"]
    first.left = 0
    assert first.matching({"app": "chat"}) == []
    assert [pods.owner.name for pods in second.matching({"app": "chat"})] == ["chat"]
    assert second.matching({"app": "idle"}) == []


def test_each_rule_sees_the_pods_whose_labels_are_not_known() -> None:
    late = _deployment("late", 1)
    late["spec"]["template"]["metadata"]["labels"] = {"app": LATE}
    cluster = read_objects([late], ["a"])
    assert isinstance(running_pods(cluster)["serving"].matches({"app": "chat"}), Unknown)
