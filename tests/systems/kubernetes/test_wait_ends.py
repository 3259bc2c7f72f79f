"""The rule wait-ends, where other objects may be in the cluster, or the objects were reduced."""

from typing import Any

from kthena_components.checker.cluster_rules import compare_objects
from kthena_components.checker.manifest import reduce_object
from kthena_components.core.findings import Finding, Level


def objects(labels: dict[str, str], script: str = "until nc -z chat 80; do sleep 2; done") -> Any:
    init = {"name": "wait", "image": "busybox:1.36", "command": ["sh", "-c", script]}
    engine = {"name": "engine", "image": "vllm/vllm-openai:v0.22.0", "command": ["vllm", "serve"]}
    template = {
        "metadata": {"labels": {"app": "chat", "part": "head"}},
        "spec": {"initContainers": [init], "containers": [engine]},
    }
    spec = {"selector": {"matchLabels": {"app": "chat", "part": "head"}}, "template": template}
    metadata = {"name": "chat", "namespace": "serving"}
    service = {"selector": labels, "ports": [{"port": 80}]}
    return [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec},
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service},
    ]


def found(bodies: list[Any], *, complete: bool) -> list[Finding]:
    told = compare_objects(bodies, ["chat", "service"], complete=complete)
    return [each for each in told if each.rule == "wait-ends"]


def test_a_service_of_labels_that_others_may_have_is_advice_unless_these_are_all_objects() -> None:
    own, shared = objects({"app": "chat", "part": "head"}), objects({"app": "chat"})
    levels = [found(each, complete=False)[0].level for each in (own, shared)]
    assert levels == [Level.MANDATORY, Level.ADVISORY]
    assert found(shared, complete=True)[0].level is Level.MANDATORY


def test_a_reduced_object_is_reported_alike() -> None:
    bodies = objects({"app": "chat"})
    reduced = [reduce_object(body) for body in bodies]
    assert found(reduced, complete=True) == found(bodies, complete=True) != []
