"""Objects of Volcano with values that are not known yet."""

import pytest

from kthena_components.core.findings import Level
from tests.support.admission import own_findings
from tests.support.specs import Args, changed
from tests.systems.volcano.samples import (
    JOB,
    LATE,
    OTHER,
    POD_GROUP,
    QUEUE,
    TREE,
    places,
    with_value,
)

SUB, TOPOLOGY = "spec.subGroupPolicy[0]", "spec.networkTopology"


@pytest.mark.parametrize(
    "body", [POD_GROUP, QUEUE, JOB, *TREE], ids=lambda b: str(b["metadata"]["name"])
)
def test_an_unknown_value_anywhere_refuses_nothing(body: Args) -> None:
    for place in places(body):
        if place[0] in {"spec", "metadata"}:
            found = own_findings(with_value(body, place, LATE))
            assert [str(f) for f in found if f.level is Level.MANDATORY] == [], place


@pytest.mark.parametrize(
    ("body", "path", "rule"),
    [
        (POD_GROUP, f"{TOPOLOGY}.highestTierAllowed", "topology-cap-reachable"),
        (POD_GROUP, f"{SUB}.matchLabelKeys", "subgroup-match-label-keys"),
        (POD_GROUP, f"{SUB}.name", "subgroup-names-unique"),
        (POD_GROUP, "spec.minMember", "subgroup-minimum"),
        (POD_GROUP, "spec.minTaskMember", "task-minimum"),
        (POD_GROUP, "spec.minResources.pods", "min-resources-within-minimum"),
        (POD_GROUP, "spec.queue", "volcano-name"),
        (QUEUE, "spec.weight", "queue-weight"),
        (QUEUE, "spec.deserved", "queue-quantities"),
        (JOB, "spec.minAvailable", "job-minimum"),
        (JOB, "spec.tasks[0].replicas", "job-partitions"),
    ],
)
def test_what_is_not_known_yet_is_told(body: Args, path: str, rule: str) -> None:
    found = own_findings(changed(body, {path: LATE}))
    assert {finding.level for finding in found} == {Level.UNKNOWN}
    assert {finding.seen for finding in found if finding.rule == rule} == {OTHER}


def test_a_topology_of_unknown_mode_is_told() -> None:
    (_, finding) = own_findings(changed(POD_GROUP, {TOPOLOGY: {"mode": LATE}}))
    assert str(finding) == f"{TOPOLOGY}: {OTHER}. [topology-cap-stated]"
