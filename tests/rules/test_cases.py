"""Every rule has cases of five kinds, and does with each what the file says."""

from itertools import chain

import pytest

from kthena_components.judge.catalogue import BRANCH, EDGES, all_rules
from tests.rules.cases import HERE, KINDS, Case, documents, read_cases

RULES = sorted(rule.name for rule in all_rules() if rule.judges not in {EDGES, BRANCH})
"""Those that judge manifests or the input of a component: the others have tests of their own."""
CASES = list(chain.from_iterable(read_cases(rule) for rule in RULES))


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_has_cases_of_every_kind(rule: str) -> None:
    assert {case.kind for case in CASES if case.rule == rule} == set(KINDS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.kind}-{case.number}")
def test_a_rule_does_what_its_case_says(case: Case) -> None:
    if case.none is not None:
        assert case.none.strip()
        return
    findings = case.findings()
    own = [str(finding) for finding in findings if finding.rule == case.rule]
    if case.says is None or case.by is not None:
        assert own == []
    if case.says is not None:
        speaker = case.by or case.rule
        told = [str(f) for f in findings if f.rule == speaker and f.level is case.weight]
        assert case.says in "\n".join(told), [str(finding) for finding in findings]


def test_no_file_is_of_a_rule_that_does_not_exist() -> None:
    assert {path.stem for path in (HERE / "cases").glob("*.yaml")} <= set(RULES)


@pytest.mark.parametrize("rule", RULES)
def test_pass_is_silent_and_fail_is_not(rule: str) -> None:
    cases = [case for case in CASES if case.rule == rule]
    assert all(case.says is None for case in cases if case.kind == "pass")
    assert all(case.says is not None or case.none for case in cases if case.kind == "fail")


def test_the_documents_of_a_base_have_names_of_their_own() -> None:
    for base in {case.base for case in CASES if case.base}:
        names = [str(body.get("metadata", body).get("name")) for body in documents(base)]
        assert sorted(names) == sorted(set(names)), base


def test_every_base_is_used() -> None:
    stored = {path.stem for path in (HERE / "bases").glob("*.yaml")}
    assert {case.base for case in CASES if case.none is None} == stored
