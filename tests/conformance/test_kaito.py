"""What the part `kaito` draws and expects, without a cluster."""

import random
from collections import Counter

import pytest

from conformance.kaito import random_workspaces
from conformance.kaito.cluster import CREATED, EXISTING, SORTS, Sort, wrong_objects
from conformance.kaito.expected import Outcome, created, existing
from conformance.validation.cases import ours
from conformance.validation.deliberate_differences import KAITO, admission
from kthena_components.checker.manifest import check_manifest
from kthena_components.core.hardware import Instance
from kthena_components.core.objects.object import read_object
from kthena_components.systems.kaito.estimator import node_of


@pytest.mark.parametrize("sort", SORTS, ids=lambda sort: f"{sort.gpus}-{sort.product}")
def test_the_labels_of_the_nodes_say_what_the_table_of_gpus_says(sort: Sort) -> None:
    node = node_of("", sort.labels)
    assert isinstance(node, Instance)
    assert (node.gpus, node.memory_gib) == (sort.gpus, int(sort.mebibytes / 1024 + 0.5))


def test_the_cases_have_every_outcome_and_most_are_written_by_the_backend() -> None:
    found = [case for cases in existing() for case in cases]
    outcomes = Counter(case.outcome for case in found)
    assert set(outcomes) == set(Outcome)
    assert sum(case.serving is not None for case in found) > len(found) / 2
    assert len({case.name for case in found}) == len(found)
    splits = {case.deployment.pipeline for case in found if case.deployment and case.serving}
    assert splits == {1, 2, 3}
    assert {case.outcome for case in created()} >= {Outcome.STARTS, Outcome.TOO_MANY}


@pytest.mark.parametrize("provisioner", [EXISTING, CREATED])
def test_objects_are_drawn_without_findings_of_admission(provisioner: str) -> None:
    for kind in random_workspaces.kinds(provisioner, 10):
        for number in range(20):
            body = kind.draw(random.Random(number))
            assert body["kind"] == kind.of[1]
            assert admission(ours(kind, body), KAITO) == []
            for _, parts in [kind.parts] if kind.parts else []:
                for made in parts(body):
                    assert read_object(made).kind == "Workspace"
                    assert [f for f in check_manifest(made) if f.rule == "crd-schema"] == []


def test_changes_reach_the_rules_of_admission() -> None:
    kind, *_ = random_workspaces.kinds(CREATED, 10)
    found = Counter[str]()
    for number in range(400):
        found.update({finding.rule for finding in ours(kind, kind.body(1, number))})
    assert {"crd-schema", "kaito-preset", "kaito-adapters", "kaito-name", "kaito-annotations",
            "kaito-selector", "kaito-instance-type"} <= set(found)  # fmt: skip


def test_only_the_name_of_a_wrong_object_is_wrong() -> None:
    for body in wrong_objects():
        (finding,) = [f for f in check_manifest(body) if f.level.name == "MANDATORY"]
        assert finding.rule == "kaito-name"
        assert "a.b" in finding.seen


def test_a_rejection_counts_as_elsewhere_only_if_each_line_does() -> None:
    nodes = "validation failed: No nodes found matching the specified label selector"
    assert KAITO.elsewhere_alone(nodes)
    assert not KAITO.elsewhere_alone(f"{nodes}\nDuplicate adapter source name found: a")
