"""surge-needs-spare-gpus: what the numbers of a Deployment ask for."""

from typing import Any

import pytest

from kthena_components.checker.cluster_rules import compare_objects
from tests.support.peers import template


def surge(**rolling: Any) -> list[str]:
    """Give what is said of 2 replicas of 8 GPUs, of which the budget has no more."""
    spec = {
        "replicas": 2,
        "template": template("vllm", "vllm serve m -tp 8"),
        "strategy": {"rollingUpdate": {"maxUnavailable": 0, **rolling}},
    }
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}
    found = compare_objects([body], ["it"], budget=16)
    return [finding.seen for finding in found if finding.rule == "surge-needs-spare-gpus"]


def test_a_deployment_may_surge_by_more_than_all_its_replicas() -> None:
    """Only its maxUnavailable ends at 100% (ValidateRollingUpdateDeployment)."""
    (seen,) = surge(maxSurge="150%")
    assert seen.startswith(
        "is '150%', and adds 3 replicas of 8 GPUs during an update: 40 GPUs in all"
    )


@pytest.mark.parametrize(
    "rolling",
    [{"maxSurge": "1"}, {"maxSurge": -1}, {"maxSurge": 2**31}, {"maxUnavailable": "101%"}],
)
def test_what_is_no_budget_is_not_checked(rolling: dict[str, Any]) -> None:
    assert surge(**{"maxSurge": 1, **rolling}) == []
