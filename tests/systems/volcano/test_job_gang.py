"""Volcano Jobs: what their minimum of pods says of their engines."""
# ruff: noqa: E501 - a message stands whole on its line, to be searched for

import pytest

from kthena_components.checker.manifest import check_manifest
from kthena_components.core.findings import Level
from tests.support.specs import Args, changed
from tests.systems.volcano.samples import LATE
from tests.systems.volcano.test_job_facts import (
    CLIENT,
    NODES,
    ONE,
    RAY,
    SERVE,
    job,
    read,
    task,
    told,
)

GANG = "gang-covers-engine"


def gang(body: Args) -> tuple[object, object] | None:
    """Give how many pods of engines start together, and how many engines of each name."""
    found = read(body).gang
    return None if found is None else (found.min_member, dict(found.minima))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (RAY, (4, {"head": 1})),
        (changed(RAY, {"spec.minAvailable": 4}), (4, {"head": 1})),
        (changed(RAY, {"spec.minAvailable": 2}), (2, {"head": 1})),
        (changed(RAY, {"spec.tasks[1].minAvailable": 1}), (2, {"head": 1})),
        (changed(ONE, {"spec.minAvailable": 2}), (2, {"server": 2})),
        (changed(ONE, {"spec.minAvailable": 1}), None),
        (job(*RAY["spec"]["tasks"], CLIENT), (4, {"head": 1})),
        (job(*RAY["spec"]["tasks"], CLIENT, minAvailable=6), (4, {"head": 1})),
        (job(*RAY["spec"]["tasks"], CLIENT, minAvailable=4), None),
        (job(*RAY["spec"]["tasks"], minAvailable=5), None),
        (job(task("server", NODES, 8)), None),
        (changed(RAY, {"spec.tasks[1].dependsOn": {"name": ["head"]}, "spec.minAvailable": 1}), None),
        (changed(RAY, {"spec.tasks[1].partitionPolicy": {"totalPartitions": 3, "partitionSize": 1}, "spec.minAvailable": 1}), None),
        (changed(RAY, {"spec.schedulerName": "default-scheduler"}), None),
        (job(task("a", SERVE), task("a", SERVE)), None),
        (job(CLIENT), None),
    ],
)  # fmt: skip
def test_the_gang_is_given_where_it_is_told(body: Args, expected: object) -> None:
    assert gang(body) == expected


def test_a_gang_that_starts_a_part_of_an_engine_is_refused() -> None:
    (line,) = told(changed(RAY, {"spec.minAvailable": 2}))
    assert line == (
        "spec.minAvailable: the gang needs 2 pods to start, but its engines have 4 that must start together. Write minAvailable 4. [gang-covers-engine]"
    )


def test_a_minimum_that_is_not_known_yet_is_told() -> None:
    found = check_manifest(changed(RAY, {"spec.minAvailable": LATE}))
    (finding,) = [finding for finding in found if finding.rule == GANG]
    assert finding.level is Level.UNKNOWN
    assert finding.seen == "was not checked, because minAvailable is not known yet"


@pytest.mark.parametrize(
    ("changes", "level"),
    [
        ({}, None),
        ({"spec.schedulerName": ""}, None),
        ({"spec.schedulerName": "volcano"}, None),
        ({"spec.schedulerName": "default-scheduler"}, Level.ADVISORY),
        ({"spec.schedulerName": LATE}, Level.UNKNOWN),
        ({"spec.tasks[0].template.spec.schedulerName": "other"}, Level.ADVISORY),
    ],
)
def test_volcano_places_the_pods_where_nothing_else_is_said(
    changes: Args, level: Level | None
) -> None:
    found = [f for f in check_manifest(changed(RAY, changes)) if f.rule == GANG]
    assert [finding.level for finding in found] == ([] if level is None else [level])
