"""Every rule has cases of five kinds, and does with each what the file says."""

from itertools import chain

import pytest

from kthena_components.core.checks.catalogue import all_rules
from kthena_components.core.findings import Level
from tests.rules.cases import HERE, KINDS, Case, read_cases

RULES = sorted(rule.name for rule in all_rules())
CASES = list(chain.from_iterable(read_cases(rule) for rule in RULES))


@pytest.mark.parametrize("rule", sorted({case.rule for case in CASES}))
def test_a_rule_has_cases_of_every_kind(rule: str) -> None:
    assert {case.kind for case in CASES if case.rule == rule} == set(KINDS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.kind}-{case.number}")
def test_a_rule_does_what_its_case_says(case: Case) -> None:
    if case.none is not None:
        assert case.none.strip()
        return
    found = case.findings()
    if case.says is None:
        assert [str(finding) for finding in found] == []
        return
    level = Level.UNKNOWN if case.kind == "unknown" else Level(case.level)
    assert case.says in "\n".join(str(f) for f in found if f.level is level), found


def test_no_file_is_of_a_rule_that_does_not_exist() -> None:
    assert {path.stem for path in (HERE / "cases").glob("*.yaml")} <= set(RULES)


@pytest.mark.parametrize("rule", sorted({case.rule for case in CASES}))
def test_pass_is_silent_and_fail_is_not(rule: str) -> None:
    cases = [case for case in CASES if case.rule == rule]
    assert all(case.says is None for case in cases if case.kind == "pass")
    assert all(case.says is not None or case.none for case in cases if case.kind == "fail")
