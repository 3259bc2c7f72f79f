"""Claims and pods in several objects of a stack, and in several files."""

from pathlib import Path
from typing import Any

import yaml

from kthena_components.checker.check_cluster_objects import check_objects_together
from kthena_components.cli.check.files import CheckOptions, check
from kthena_components.cli.check.results import Result, Summary
from kthena_components.core.findings import Level
from tests.rules.cases import given

COUNT = "gpus.spec.spec.devices.requests[0].exactly.count"


def found(bodies: dict[str, Any]) -> list[str]:
    known = (one for one in check_objects_together(bodies) if one.level is Level.MANDATORY)
    return [f"{one.path.partition('.')[0]} {one.rule}" for one in known]


def test_a_stack_is_checked_with_its_claims() -> None:
    assert found(given("claims", {})) == []
    assert sorted(found(given("claims", {COUNT: 4}))) == [
        "llama world-size-equals-gpus",
        "wide world-size-equals-gpus",
    ]


def test_a_claim_may_be_in_another_file(tmp_path: Path) -> None:
    for name, body in given("claims", {COUNT: 4}).items():
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(body))
    told = list(check([str(tmp_path)], CheckOptions(), Summary()))
    rule = "world-size-equals-gpus"
    assert sorted(
        Path(one.file).name
        for one in told
        if isinstance(one, Result) and one.finding.rule == rule
        and one.finding.level is Level.MANDATORY
    ) == ["llama.yaml", "wide.yaml"]  # fmt: skip
