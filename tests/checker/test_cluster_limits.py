"""What would be compared without end is not, and that is said."""

from typing import Any

import pytest

from kthena_components.core.objects import cluster_objects
from kthena_components.systems.volcano.rules import gang_fits_hypernode as stack_capacity
from kthena_components.systems.volcano.rules import (
    gang_starts_rollout_subgroup_has_pods as stack_subgroups,
)
from tests.rules.cases import judge

LIMITS: dict[str, tuple[Any, str, str, dict[str, Any]]] = {
    "gang-fits-hypernode": (
        stack_capacity, "_MOST_COUNTED", "racks", {"chat-0.spec.minMember": 3},
    ),
    "service-selects-pods": (
        cluster_objects, "_MOST_COMPARED", "shared",
        {"front.spec.selector": {"app": "wide"}},
    ),
    "subgroup-has-pods": (
        stack_subgroups, "_MOST_COMPARED", "stack",
        {"other.spec.template.metadata.labels": {"app": "chat"}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("rule", LIMITS)
def test_beyond_its_limit_a_rule_says_that_it_did_not_check(
    rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, limit, base, changes = LIMITS[rule]
    assert [found.level for found in judge(base, changes) if found.rule == rule] != ["unknown"]
    monkeypatch.setattr(module, limit, 0)
    (told,) = (found for found in judge(base, changes) if found.rule == rule)
    assert told.level == "unknown"
    assert "not checked, because there are too many" in told.seen
