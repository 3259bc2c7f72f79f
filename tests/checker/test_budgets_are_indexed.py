"""A budget is compared only with the pods that have one of its labels."""

from collections.abc import Mapping

import pytest

from kthena_components.checker import disruption_budget
from kthena_components.checker.check_cluster_objects import check_objects_together
from kthena_components.core.objects.cluster_objects import selects
from kthena_components.core.objects.object import PodSet
from kthena_components.core.values.unknown import Unknown

NUMBER = 30


def test_each_budget_is_compared_with_its_own_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    def counted(wanted: Mapping[str, object], pods: PodSet) -> bool | Unknown:
        compared.append(pods)
        return selects(wanted, pods)

    monkeypatch.setattr(disruption_budget, "selects", counted)
    bodies = {}
    for number in range(NUMBER):
        labels = {"app": f"llama-{number}"}
        container = {"name": "engine", "image": "vllm/vllm-openai:v0.9.2"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
        selector = {"matchLabels": labels}
        bodies[f"pods {number}"] = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": f"llama-{number}"},
            "spec": {"replicas": 1, "selector": selector, "template": template},
        }
        bodies[f"budget {number}"] = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": f"llama-{number}"},
            "spec": {"minAvailable": 1, "selector": selector},
        }
    found = [each for each in check_objects_together(bodies) if each.rule == "disruption-budget"]
    assert len(found) == NUMBER
    assert len(compared) == NUMBER
