"""What a surge of a LeaderWorkerSet's groups needs."""

import pytest

from kthena_components.checker.cluster_rules import compare_objects
from tests.support.peers import LWS_VLLM, changed

ROLLING = "spec/rolloutStrategy/rollingUpdateConfiguration"


def surge(value: object) -> list[str]:
    """Give what is said of 2 groups of 16 GPUs, of which the budget has no more."""
    body = changed(LWS_VLLM, {f"{ROLLING}/maxSurge": value, f"{ROLLING}/maxUnavailable": 0})
    found = compare_objects([body], ["it"], budget=32)
    return [finding.seen for finding in found if finding.rule == "surge-needs-spare-gpus"]


@pytest.mark.parametrize(("value", "groups"), [(1, 1), ("1%", 1), ("50%", 1), ("51%", 2), (3, 3)])
def test_a_surge_is_rounded_up(value: object, groups: int) -> None:
    (seen,) = surge(value)
    assert f"adds {groups} replica" in seen
    assert f"{32 + 16 * groups} GPUs in all" in seen


@pytest.mark.parametrize("value", [None, 0, "0%"])
def test_no_surge_needs_nothing(value: object) -> None:
    assert surge(value) == []


@pytest.mark.parametrize("value", ["101%", "1", -1, 2**31])
def test_what_the_webhook_refuses_is_not_checked_again(value: object) -> None:
    assert surge(value) == []
